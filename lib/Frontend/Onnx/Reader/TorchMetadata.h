//===- TorchMetadata.h - what PyTorch's exporter notes in files -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_FRONTEND_ONNX_READER_TORCHMETADATA_H
#define CKOPT_LIB_FRONTEND_ONNX_READER_TORCHMETADATA_H

#include "OnnxModel.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include <map>
#include <optional>

namespace ckopt::onnx_frontend {

struct FxCall;

/// The inputs of the exported program other than data: every parameter and
/// buffer of the module, even if the file no longer holds it.
struct TorchSignature {
  struct Entry {
    std::string placeholder; ///< "p_h_0_ln1_weight"
    std::string target;      ///< "h.0.ln1.weight"
    bool isParameter;        ///< else it is a buffer or a constant
  };
  std::vector<Entry> entries;
  llvm::StringMap<size_t> byPlaceholder, byTarget;
  std::vector<std::string> inputs; ///< names of data inputs in the program
  /// A parameter or buffer that the program changes in place, and the value
  /// that it gets.
  struct Mutation {
    std::string value, target;
  };
  std::vector<Mutation> mutations;
  llvm::StringSet<> outputs; ///< names of its results

  const Entry *placeholder(llvm::StringRef name) const;
  const Entry *target(llvm::StringRef name) const;
  /// Returns the parameters among the call's arguments, in their order.
  std::vector<const Entry *> parametersOf(const FxCall &call) const;
};

/// Returns the signature of a graph; it is empty if the file has none.
TorchSignature readSignature(const Graph &graph);

/// One call of the exported program: "%name : ... target=torch.ops.aten.op".
struct FxCall {
  std::string name;              ///< empty if the node belongs to no call
  std::string op;                ///< "linear", without package and overload
  std::vector<std::string> args; ///< values among its arguments, in order
  /// Arguments by position; "" if not a single value (None, a number, a list).
  std::vector<std::string> positions;
  std::string target; ///< "aten.linear.default"; empty if the file has none
  /// The text of each argument by position ("%x", "[1, 2]", "None"), and of
  /// those that are given by name.
  std::vector<std::string> texts;
  std::map<std::string, std::string> keywords;
  /// Set if the file only has the name of the call; its arguments are then
  /// those that calls of this kind in its module have.
  bool guessed = false;
};
FxCall readFxCall(const Node &node, const TorchSignature &signature);

/// Returns whether the call is a batch norm that uses the batch's statistics
/// (true) or the running ones (false); nothing if it is another call, or if the
/// file does not tell.
std::optional<bool> normTrains(const FxCall &call);

/// Splits "embedding_1" into "embedding" and 1; 0 if there is no number.
std::pair<llvm::StringRef, unsigned> splitFxName(llvm::StringRef name);

/// Splits "h.0.ln1.weight" into the module "h.0.ln1" and its own name "weight".
llvm::StringRef moduleOf(llvm::StringRef target);
llvm::StringRef leafOf(llvm::StringRef target);

/// Returns the names that a constant was folded from, directly or not, which
/// the optimizer notes as a list between quotes.
std::optional<llvm::StringRef> foldedFrom(const Graph &graph,
                                          llvm::StringRef constant);

/// Returns whether the result of such a call only holds elements of its
/// operand.
bool isViewCall(llvm::StringRef op);

} // namespace ckopt::onnx_frontend

#endif // CKOPT_LIB_FRONTEND_ONNX_READER_TORCHMETADATA_H
