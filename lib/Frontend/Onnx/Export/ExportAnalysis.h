//===- ExportAnalysis.h - what exporting left of a model --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_FRONTEND_ONNX_EXPORT_EXPORTANALYSIS_H
#define CKOPT_LIB_FRONTEND_ONNX_EXPORT_EXPORTANALYSIS_H

#include "Reader/GraphEdits.h"
#include "ckopt/Base/MessageText.h"
#include "llvm/ADT/StringSet.h"
#include <optional>
#include <set>

namespace ckopt::onnx_frontend {

struct ExportAnalysis {
  /// Describes the exporter to users: "PyTorch (torch.export), 27 parameters".
  std::string form;
  /// Set if the file lists the parameters that the model had.
  bool isSigned = false;
  /// Parameters that the file notes as not trained, if it notes any or none
  /// (ckopt.torch.export does).
  std::optional<llvm::StringSet<>> frozen;
  /// Edits that turn the file into the model that was exported.
  GraphEdits edits;
  /// After the edits: initializers that are parameters whatever their shape and
  /// use, and float initializers that are not trained, with the reason.
  llvm::StringSet<> parameters;
  std::map<std::string, MessageText> constants;
  /// Members of `constants` that were classified by their values alone; --train
  /// can override this.
  llvm::StringSet<> likelyConstants;
  /// Values of the file: weights in the form that a quantizer gave them, which
  /// follow from initializers of few bits, and initializers, alone.
  llvm::StringSet<> quantized;
  /// Trained initializers that may be buffers, because this form of file does
  /// not tell.
  std::vector<std::string> unclear;
  /// Sentences that say which parts cannot be trained as in the exported model.
  std::vector<std::string> lost;
  /// Sentences on calls of the model of which it is known that the file
  /// computes something else.
  std::vector<std::string> differing;
  /// Sentences on calls that were not compared with the file, and how many
  /// were.
  std::vector<std::string> uncompared;
  size_t numCompared = 0;
  /// Kinds of calls whose results the file has not: "view", "clone", "mul".
  std::set<std::string> removed;
  /// Parameters that the file has under another parameter's name.
  std::map<std::string, std::string> tied;
  /// Parameters of which the file may hold some entries alone.
  std::vector<std::string> partial;
  /// Sentences that say what the edits repaired.
  std::vector<std::string> notes;
  bool hasDropout = false;
};

/// Compares a graph with the exporter's metadata in it. The graph must be as
/// the file has it, since edits refer to its nodes by number.
ExportAnalysis analyzeExport(const Model &model);

/// Compares the calls that the exporter notes with what the nodes do.
void compareCalls(const Graph &graph, ExportAnalysis &result);

/// Analyzes a file without a signature, by names and structure.
void analyzeUnsigned(const Model &model, ExportAnalysis &result);

/// Returns whether the values are those of a mask that is added: zeros, and
/// numbers of -100 or less, such as -inf.
bool isMask(const HostTensor &value);

/// Finds ExportAnalysis::quantized.
llvm::StringSet<> findQuantized(const Graph &graph);

} // namespace ckopt::onnx_frontend

#endif // CKOPT_LIB_FRONTEND_ONNX_EXPORT_EXPORTANALYSIS_H
