//===- Subgraphs.h - nodes under other names --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_FRONTEND_ONNX_SUBGRAPHS_H
#define CKOPT_LIB_FRONTEND_ONNX_SUBGRAPHS_H

#include "OnnxModel.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include <functional>

namespace ckopt::onnx_frontend {

/// Copies nodes from where their names hold to where other names do.
class Renamer {
public:
  /// `fresh` names what a copied node defines.
  explicit Renamer(std::function<std::string(llvm::StringRef)> fresh)
      : fresh(std::move(fresh)) {}

  /// Reads of `name` become reads of `to`.
  void bind(llvm::StringRef name, std::string to) {
    names[name] = std::move(to);
  }
  /// The name by which copies read `name`: itself where it is not defined.
  std::string use(llvm::StringRef name) const;
  /// A new name for `name`, read by copies from here on.
  std::string define(llvm::StringRef name);
  /// Attributes that refer to one of a call take it from here, or go.
  void setCall(const Node *call, const Function *function) {
    this->call = call;
    this->function = function;
  }

  /// A copy with all names replaced, in its subgraphs too.
  Node copy(const Node &node);
  Graph copy(const Graph &graph);

private:
  std::optional<NodeAttribute> resolve(const NodeAttribute &attribute) const;

  std::function<std::string(llvm::StringRef)> fresh;
  llvm::StringMap<std::string> names;
  const Node *call = nullptr;
  const Function *function = nullptr;
};

/// A name that starts as `wanted` and is not in `taken`, which it joins.
std::string uniqueName(llvm::StringSet<> &taken, llvm::StringRef wanted);

/// Gives everything that the subgraphs of `nodes` define a name of its own and
/// moves their initializers to `initializers`.
void separateSubgraphs(std::vector<Node> &nodes, llvm::StringSet<> &taken,
                       std::vector<Tensor> &initializers);

/// Replaces calls of `functions` in `nodes` and their subgraphs by the nodes of
/// the functions. Errors: recursion, more nodes than make sense.
llvm::Error expandFunctions(std::vector<Node> &nodes,
                            llvm::ArrayRef<Function> functions,
                            llvm::StringSet<> &taken);

} // namespace ckopt::onnx_frontend

#endif // CKOPT_LIB_FRONTEND_ONNX_SUBGRAPHS_H
