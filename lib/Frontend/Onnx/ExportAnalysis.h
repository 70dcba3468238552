//===- ExportAnalysis.h - what exporting left of a model --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_FRONTEND_ONNX_EXPORTANALYSIS_H
#define CKOPT_LIB_FRONTEND_ONNX_EXPORTANALYSIS_H

#include "GraphEdits.h"
#include "llvm/ADT/StringSet.h"

namespace ckopt::onnx_frontend {

struct ExportAnalysis {
  /// "PyTorch (torch.export), 27 parameters", for people.
  std::string form;
  /// The file says which parameters the model had.
  bool isSigned = false;
  /// What makes the file the model that was exported.
  GraphEdits edits;
  /// After the edits: initializers that are parameters whatever their shape and
  /// use, and float initializers that are not trained, with the reason.
  llvm::StringSet<> parameters;
  std::map<std::string, std::string> constants;
  /// Those of `constants` that their values alone make ones: named by --train
  /// they are trained.
  llvm::StringSet<> likelyConstants;
  /// Trained initializers that may be buffers: this form does not tell.
  std::vector<std::string> unclear;
  /// What cannot be trained as the model that was exported: a sentence each.
  std::vector<std::string> lost;
  /// What was mended.
  std::vector<std::string> notes;
  bool hasDropout = false;
};

/// Compares a graph with what its exporter notes about it. The graph must be as
/// the file has it. Calls that were merged are split in it at once; all else is
/// left to applyEdits(), since edits name the nodes of that graph by number.
ExportAnalysis analyzeExport(Model &model);

/// The same where no signature is there to compare with: names and structure.
void analyzeUnsigned(const Model &model, ExportAnalysis &result);

/// Whether the values are those of a mask that is added: zeros, and numbers of
/// -100 or less, such as -inf.
bool isMask(const HostTensor &value);

} // namespace ckopt::onnx_frontend

#endif // CKOPT_LIB_FRONTEND_ONNX_EXPORTANALYSIS_H
