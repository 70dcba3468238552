//===- TorchMetadata.h - what PyTorch's exporter notes in files -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_FRONTEND_ONNX_TORCHMETADATA_H
#define CKOPT_LIB_FRONTEND_ONNX_TORCHMETADATA_H

#include "OnnxModel.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace ckopt::onnx_frontend {

/// The inputs of the exported program that are no data: every parameter and
/// buffer of the module, whether the file still holds it or not.
struct TorchSignature {
  struct Entry {
    std::string placeholder; ///< "p_h_0_ln1_weight"
    std::string target;      ///< "h.0.ln1.weight"
    bool isParameter;        ///< else a buffer or a constant
  };
  std::vector<Entry> entries;
  llvm::StringMap<size_t> byPlaceholder, byTarget;
  std::vector<std::string> inputs; ///< names of the data in the program
  llvm::StringSet<> outputs;       ///< and of its results

  const Entry *placeholder(llvm::StringRef name) const;
  const Entry *target(llvm::StringRef name) const;
};

/// The signature of a graph; without entries where the file has none.
TorchSignature readSignature(const Graph &graph);

/// One call of the exported program: "%name : ... target=torch.ops.aten.op".
struct FxCall {
  std::string name;              ///< empty: the node belongs to no call
  std::string op;                ///< "linear", without package and overload
  std::vector<std::string> args; ///< the values among its arguments, in order
  /// Its arguments by position; "": no single value (None, a number, a list).
  std::vector<std::string> positions;
  /// The file has no more than the name of the call: its arguments are those
  /// that such a call of its module has.
  bool guessed = false;
};
FxCall readFxCall(const Node &node, const TorchSignature &signature);

/// "embedding_1" as "embedding" and 1; 0 where there is no number.
std::pair<llvm::StringRef, unsigned> splitFxName(llvm::StringRef name);

/// "h.0.ln1.weight" as the module "h.0.ln1" and its own name "weight".
llvm::StringRef moduleOf(llvm::StringRef target);
llvm::StringRef leafOf(llvm::StringRef target);

/// Whether the result of such a call holds elements of its operand and nothing
/// else.
bool isViewCall(llvm::StringRef op);

/// Where `line` reads `.leaf` as a whole name: what follows it, for each time.
std::vector<llvm::StringRef> mentionsOf(llvm::StringRef line,
                                        llvm::StringRef leaf);
/// Whether `line` holds `name` as a whole identifier.
bool hasIdentifier(llvm::StringRef line, llvm::StringRef name);

} // namespace ckopt::onnx_frontend

#endif // CKOPT_LIB_FRONTEND_ONNX_TORCHMETADATA_H
