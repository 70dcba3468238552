//===- Subgraphs.h - nodes under other names --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_FRONTEND_ONNX_READER_SUBGRAPHS_H
#define CKOPT_LIB_FRONTEND_ONNX_READER_SUBGRAPHS_H

#include "OnnxModel.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include <functional>

namespace ckopt::onnx_frontend {

/// Copies nodes while it renames values.
class Renamer {
public:
  /// `fresh` makes a name for a value that a copied node defines.
  explicit Renamer(std::function<std::string(llvm::StringRef)> fresh)
      : fresh(std::move(fresh)) {}

  /// Replaces reads of `name` by reads of `to`.
  void bind(llvm::StringRef name, std::string to) {
    names[name] = std::move(to);
  }
  /// Returns the name by which copies read `name`, which is itself unless it is
  /// bound.
  std::string use(llvm::StringRef name) const;
  /// Makes a new name for `name`, which copies read from here on.
  std::string define(llvm::StringRef name);
  /// Attributes that refer to one of the call's take its value, or are dropped.
  void setCall(const Node *call, const Function *function) {
    this->call = call;
    this->function = function;
  }

  /// Returns a copy with all names replaced, in its subgraphs too.
  Node copy(const Node &node);
  Graph copy(const Graph &graph);

private:
  std::optional<NodeAttribute> resolve(const NodeAttribute &attribute) const;

  std::function<std::string(llvm::StringRef)> fresh;
  llvm::StringMap<std::string> names;
  const Node *call = nullptr;
  const Function *function = nullptr;
};

/// Returns a name that starts as `wanted` and is not in `taken`, and adds it
/// there.
std::string uniqueName(llvm::StringSet<> &taken, llvm::StringRef wanted);

/// Gives all values in subgraphs of `nodes` unique names and moves their
/// initializers to `initializers`.
void separateSubgraphs(std::vector<Node> &nodes, llvm::StringSet<> &taken,
                       std::vector<Tensor> &initializers);

/// Replaces calls of `functions` in `nodes` and their subgraphs by the nodes of
/// the functions. Fails on recursion, and if the result has too many nodes.
llvm::Error expandFunctions(std::vector<Node> &nodes,
                            llvm::ArrayRef<Function> functions,
                            llvm::StringSet<> &taken);

} // namespace ckopt::onnx_frontend

#endif // CKOPT_LIB_FRONTEND_ONNX_READER_SUBGRAPHS_H
