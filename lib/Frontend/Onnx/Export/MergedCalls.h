//===- MergedCalls.h - equal calls that became one --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_FRONTEND_ONNX_EXPORT_MERGEDCALLS_H
#define CKOPT_LIB_FRONTEND_ONNX_EXPORT_MERGEDCALLS_H

#include "Reader/GraphEdits.h"
#include "Reader/TorchMetadata.h"
#include "llvm/ADT/ArrayRef.h"
#include <map>

namespace ckopt::onnx_frontend {

/// Derives, from the calls of an exported program, the values that merging
/// removed.
class MergedCalls {
public:
  explicit MergedCalls(const Graph &graph);

  /// An operand at the position where its node's call has the removed `value`.
  struct Read {
    size_t node, operand;
    std::string value;
    std::string held; ///< what it reads instead
    bool isDirect;    ///< else through other nodes of the same call
  };
  std::vector<Read> reads() const;
  /// Returns the parameters that no call has among its arguments.
  std::vector<const TorchSignature::Entry *> unmentioned() const;
  size_t producerOf(llvm::StringRef value) const {
    return producer.lookup(value);
  }
  const FxCall &callOf(size_t node) const { return calls[node]; }
  std::vector<const TorchSignature::Entry *>
  twinOf(const FxCall &call,
         llvm::ArrayRef<const TorchSignature::Entry *> left) const;
  /// Copies the nodes of `call`, one of which is `node`, so that they make
  /// `value` with the parameters of `twin`.
  std::vector<NodeCopy>
  copyFor(llvm::StringRef value, size_t node, const FxCall &call,
          llvm::ArrayRef<const TorchSignature::Entry *> twin);

  /// Returns whether merging the value away may have removed one of the
  /// parameters.
  bool isSuspect(llvm::StringRef value, size_t node,
                 llvm::ArrayRef<const TorchSignature::Entry *> left) const;
  /// Returns a buffer that no call mentions and that a call of this kind may
  /// have read in place of a parameter of equal value.
  const TorchSignature::Entry *equalBuffer(const FxCall &call) const;
  /// Parameters of other modules that the calls which `reads` stand for may
  /// have read, by what the file says, in place of equal ones: a sentence, or
  /// "" where there are none.
  std::string sharedTwins(llvm::ArrayRef<Read> reads, size_t node);
  /// Values that calls name, that are gone, and that no operand stands for:
  /// those that were calls of a kind that reads parameters.
  std::vector<std::string>
  unplaced(llvm::ArrayRef<Read> reads,
           llvm::ArrayRef<const TorchSignature::Entry *> left) const;
  /// Results of the program that are gone.
  std::vector<std::string>
  lostOutputs(llvm::ArrayRef<const TorchSignature::Entry *> left) const;

private:
  bool hasTwinNames(const FxCall &call,
                    llvm::ArrayRef<const TorchSignature::Entry *> left) const;
  bool isNumberMissing(llvm::StringRef kind) const;
  bool isNamedInSource(llvm::StringRef target) const;
  bool standsFor(const std::string &operand, llvm::StringRef argument) const;
  const std::string &heldThrough(const std::string &input,
                                 const FxCall &call) const;

  // MergedTwins.cpp
  using Line = std::pair<llvm::StringRef, llvm::StringRef>; ///< place, text
  std::vector<Line> linesOf(const Node &node) const;
  std::vector<const TorchSignature::Entry *> twinsOf(const FxCall &call) const;
  bool mayBeGone(llvm::StringRef kind, size_t reader) const;
  size_t callsOnLine(const Line &line,
                     const TorchSignature::Entry &entry) const;
  bool isSameModule(llvm::ArrayRef<Read> reads,
                    const TorchSignature::Entry &own,
                    llvm::ArrayRef<const TorchSignature::Entry *> twins);

  const Graph &graph;
  TorchSignature signature;
  std::vector<FxCall> calls; ///< by node
  llvm::StringSet<> known, mentioned;
  llvm::StringMap<size_t> producer; ///< by value: its node
  llvm::StringSet<> lines;          ///< of Python
  llvm::StringSet<> initializers;
  /// Calls that are gone and that a line accounts for, by line and parameter.
  std::map<std::pair<Line, const TorchSignature::Entry *>, size_t> repeated;
};

struct SplitCalls {
  std::vector<NodeCopy> copies;
  /// Operands that read the copies, by node numbers of the graph with the
  /// copies.
  std::vector<GraphEdits::Rewire> reads;
  /// Removed values for which equal ones stand in.
  std::vector<std::string> gone;
  /// Those of these values, and of the results, that may have had parameters of
  /// their own.
  std::vector<std::string> suspects;
  std::vector<std::string> lost; ///< sentences on what is certainly lost
};

/// Copies merged calls in the graph, where their parameters are known.
SplitCalls splitMergedCalls(Graph &graph);

/// Inserts each copy after the node that it is a copy of.
void insertCopies(llvm::ArrayRef<NodeCopy> copies, Graph &graph);

} // namespace ckopt::onnx_frontend

#endif // CKOPT_LIB_FRONTEND_ONNX_EXPORT_MERGEDCALLS_H
