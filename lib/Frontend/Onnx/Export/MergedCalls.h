//===- MergedCalls.h - equal calls that became one --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_FRONTEND_ONNX_EXPORT_MERGEDCALLS_H
#define CKOPT_LIB_FRONTEND_ONNX_EXPORT_MERGEDCALLS_H

#include "Reader/TorchMetadata.h"
#include "llvm/ADT/ArrayRef.h"

namespace ckopt::onnx_frontend {

struct MergedValues {
  /// Removed values for which equal ones stand in.
  std::vector<std::string> gone;
  /// Those of these values, and of the results, that may have had parameters of
  /// their own.
  std::vector<std::string> suspects;
  std::vector<std::string> lost; ///< sentences on what is certainly lost
};

/// Derives, from the calls of an exported program, the values that merging
/// removed.
class MergedCalls {
public:
  explicit MergedCalls(const Graph &graph);
  MergedValues find() const;

private:
  using Entry = TorchSignature::Entry;
  using Entries = llvm::ArrayRef<const Entry *>;

  /// An operand at the position where its node's call has the removed `value`.
  struct Read {
    size_t node;
    std::string value;
    std::string held; ///< what it reads instead
    bool isDirect;    ///< else through other nodes of the same call
  };
  std::vector<Read> reads() const;
  /// Returns the parameters that no call has among its arguments.
  std::vector<const Entry *> unmentioned() const;
  /// Returns the node and those that it depends on whose calls may have been
  /// merged before its own was: operands of others are the same value.
  std::vector<size_t> behind(size_t node, size_t reader) const;

  /// Returns whether merging the value away may have removed one of the
  /// parameters.
  bool isSuspect(size_t node, size_t reader, Entries left) const;
  /// Returns a buffer that no call mentions and that a call of this kind may
  /// have read in place of a parameter of equal value.
  const Entry *equalBuffer(const FxCall &call) const;
  /// Parameters of other modules that the merged call may have read, by what
  /// the file says, in place of equal ones: a sentence, or "" where there are
  /// none.
  std::string sharedTwins(size_t node, size_t reader) const;
  std::vector<const Entry *> twinsOf(const FxCall &call) const;
  /// The same of constants that were made of a parameter.
  std::string foldedTwins(size_t node, size_t reader) const;
  /// Values that calls name, that are gone, and that no operand stands for:
  /// those that were calls of a kind that reads parameters.
  std::vector<std::string> unplaced(llvm::ArrayRef<Read> reads,
                                    Entries left) const;
  /// Results of the program that are gone.
  std::vector<std::string> lostOutputs(Entries left) const;
  bool hasTwinNames(const FxCall &call, Entries left) const;
  bool isNumberMissing(llvm::StringRef kind) const;
  bool mayBeGone(llvm::StringRef kind, size_t reader) const;
  bool standsFor(const std::string &operand, llvm::StringRef argument) const;
  const std::string &heldThrough(const std::string &input,
                                 const FxCall &call) const;

  const Graph &graph;
  TorchSignature signature;
  std::vector<FxCall> calls; ///< by node
  llvm::StringSet<> known, mentioned;
  llvm::StringMap<size_t> producer; ///< by value: its node
  llvm::StringSet<> initializers;
};

} // namespace ckopt::onnx_frontend

#endif // CKOPT_LIB_FRONTEND_ONNX_EXPORT_MERGEDCALLS_H
