//===- ExportMatcher.h - parameters of a signature in a graph ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_FRONTEND_ONNX_EXPORT_EXPORTMATCHER_H
#define CKOPT_LIB_FRONTEND_ONNX_EXPORT_EXPORTMATCHER_H

#include "ExportAnalysis.h"
#include "MergedCalls.h"
#include "Reader/TorchMetadata.h"
#include "RecoveredParameters.h"
#include "llvm/ADT/MapVector.h"

namespace ckopt::onnx_frontend {

/// A value of the exported program that folding replaced by a constant.
struct FoldedValue {
  std::string name; ///< of the program's value; "" if ambiguous
  std::vector<OperandUse> uses;
  bool explained = false;      ///< its contents are known
  bool transposed = false;     ///< its reader reads it transposed
  std::optional<size_t> batch; ///< the batch dimension, if known
  std::string target;          ///< the parameter that it is a form of, or ""
};

/// Returns the innermost module that the node belongs to; "" if the file names
/// none.
llvm::StringRef scopeOf(const Node &node);

/// Returns whether all elements are the same number.
bool isUniform(const HostTensor &value);

/// Returns whether the call makes its values from shapes and numbers alone.
bool isCreation(llvm::StringRef op);

class ExportMatcher {
public:
  ExportMatcher(const Model &model, const MergedValues &merged,
                ExportAnalysis &result);
  void run();

private:
  using Entry = TorchSignature::Entry;

  /// What the optimizer notes of a constant: the parameter that it was made of,
  /// and the kinds of calls that did.
  struct View {
    const Entry *source = nullptr;
    llvm::StringSet<> calls;
    int64_t numTurns = 0, numAdded = 0; ///< transpositions; dimensions added
  };

  // In ExportMatcher.cpp: match the operands of nodes with their call.
  void noteFoldedNorm(llvm::ArrayRef<size_t> nodes, const FxCall &call);
  void matchCall(llvm::ArrayRef<size_t> nodes);
  void matchOperand(OperandUse use, const FxCall &call, size_t groupSize);
  bool bindOrTie(OperandUse use, const Entry &entry, Form form, bool guessed);
  bool bindIndexed(OperandUse use, const FxCall &call);
  bool restoreBias(size_t node, const Entry &entry);
  void bindPlain(OperandUse use, const Entry &entry);
  void noteConstant(OperandUse use, llvm::StringRef reason);
  void noteMissing(llvm::ArrayRef<size_t> nodes,
                   llvm::ArrayRef<const Entry *> missing);
  bool isPositional(const Node &node, const FxCall &call) const;
  bool readsInitializer(OperandUse use) const;

  // In ExportRecurrent.cpp: match packed weights and states.
  void noteState(OperandUse use, const FxCall &call, llvm::StringRef argument,
                 bool isWhole);
  bool matchRecurrent(llvm::ArrayRef<size_t> nodes, const FxCall &call);

  // In ExportStops.cpp: find values that the model detaches.
  void matchStops(llvm::ArrayRef<size_t> nodes, const FxCall &call);
  bool placeStop(llvm::ArrayRef<size_t> nodes, const FxCall &call,
                 llvm::StringRef detached);
  void loseStop(llvm::StringRef name, const Node &node);
  void stopInRegions();
  void finishStops();

  // In ExportFolds.cpp, ExportViews.cpp and ExportStates.cpp: explain constants
  // that no call mentions.
  void noteFolded(OperandUse use, const FxCall &call, llvm::StringRef name,
                  Form form = Form::Same);
  void noteNameless(OperandUse use);
  bool isOfQuantized(OperandUse use) const;
  bool isFill(OperandUse use) const;
  llvm::StringRef scopeNear(size_t node) const;
  void explainVanished();
  void findTied();
  void explainConstants();
  void explainByNotes();
  bool hasZeroState() const;
  bool readsWeightOf(llvm::StringRef scope, int64_t outputs);
  void explainTiedViews();
  void explainBiasOnly();
  std::vector<llvm::StringRef> foldedNames(llvm::StringRef constant) const;
  void findConstantValues();
  bool isFromNoParameter(llvm::StringRef name) const;
  bool standsForAnother(llvm::StringRef name, const FxCall &call) const;
  /// Returns nothing if there is no note, or it names other calls than views.
  std::optional<View> viewOf(const FoldedValue &value) const;
  const Entry *soleSource(llvm::StringRef name) const;
  void reportHidden(llvm::StringRef name);
  void reportFolded();
  bool loseSources(const FoldedValue &value);
  std::vector<const Entry *> unmentioned() const;
  std::vector<FoldedValue *> unexplained();
  bool bindFolded(FoldedValue &folded, const View &view);
  void lose(const Entry &entry, const llvm::Twine &how);
  void finish();

  const Graph &graph;
  ExportAnalysis &result;
  TorchSignature signature;
  RecoveredParameters recovered;
  std::vector<FxCall> calls; ///< by node
  /// Program values that do not depend on parameters.
  llvm::StringSet<> constant;
  llvm::StringSet<> produced; ///< values that the file computes, or its inputs
  llvm::MapVector<llvm::StringRef, llvm::SmallVector<size_t>> groups;
  /// Targets that are found, tied, or reported as lost.
  llvm::StringSet<> settled;
  std::map<std::string, FoldedValue> folded; ///< by program value
  llvm::StringSet<> lostInPart;              ///< parameters, by target
  std::vector<std::string> merged;           ///< values
  std::string vanished; ///< a call that was removed as an identity
  llvm::StringMap<std::string> reasons; ///< why an initializer is no parameter
  llvm::StringSet<> trained;            ///< stand-ins for lost weights
  llvm::StringSet<> namedStops;         ///< detached values that calls name
  int64_t numStops = 0;                 ///< how many of these were matched
  /// Operands of the current call without a match.
  std::vector<OperandUse> open;
  /// Parameters matched in the current call.
  llvm::StringSet<> boundHere;
};

} // namespace ckopt::onnx_frontend

#endif // CKOPT_LIB_FRONTEND_ONNX_EXPORT_EXPORTMATCHER_H
