//===- Onnx.h - ONNX files in and out ---------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Imports ONNX files. The result is a `func.func @forward` of ckopt ops on
// statically shaped tensors: batch fixed, shape arithmetic folded, batch norms
// and dropouts in training form. Weights are not in the IR but in a table by
// name. Export.h puts trained weights into a copy of the original file. For any
// bytes of a file, both return a result or an error that names file, node and
// remedy; no protobuf type and no exception leaves this library.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_FRONTEND_ONNX_ONNX_H
#define CKOPT_FRONTEND_ONNX_ONNX_H

#include "ckopt/Base/MessageText.h"
#include "ckopt/Frontend/Onnx/Export.h"
#include "ckopt/Frontend/Onnx/ImportOptions.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/HostTensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ckopt::onnx_frontend {

/// Describes how exporting changed the model; see docs/from-pytorch.md.
struct ExportDiagnosis {
  std::string form; ///< the exporter, and which metadata the file has
  /// Sentences on parts of the model that the file lacks, without which
  /// training would train another model; empty if the file is complete.
  std::vector<std::string> lost;
  /// Sentences on calls that the file computes differently from the model,
  /// according to the exporter's notes.
  std::vector<std::string> differing;
  /// Sentences on calls whose form in the file was not compared with the
  /// model's, and the number of compared calls (0: the file has no notes).
  std::vector<std::string> uncompared;
  size_t numCompared = 0;
  /// Kinds of calls whose results are missing in the file: "view", "clone",
  /// "mul".
  std::set<std::string> removed;
  /// Parameters of which the file may hold only some entries, so that they have
  /// another shape in the model.
  std::vector<std::string> partial;
  /// Other names of parameters that modules share: from the name that the file
  /// has not to the one that it has.
  std::map<std::string, std::string> tied;
  std::vector<std::string> notes; ///< repairs that import made
  /// Float initializers that are not trained, and why.
  std::vector<std::pair<std::string, MessageText>> constants;
  /// Trained weights that may be buffers, because this form of export does not
  /// tell.
  std::vector<std::string> unclear;
  bool hasDropout = false;
  /// Set if the file says which parameters the model does not train.
  bool notesFrozen = false;

  /// Returns whether the file is known to differ from the model.
  bool isAnother() const { return !lost.empty() || !differing.empty(); }
};

struct ImportedModel {
  /// Holds @forward; docs/architecture.md describes arguments and results.
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// Values of arguments by `ckopt.name`. Arguments without a value carry
  /// `ckopt.init` ("kaiming", "xavier", "normal", "zeros", "ones"), and, where
  /// they are defined, `ckopt.fan_in` and `ckopt.fan_out`.
  std::map<std::string, HostTensor> weights;
  /// Values of the file that became constants, but for small ones: also those
  /// of weights in few bits. They are as the file stores them.
  std::map<std::string, HostTensor> constants;
  /// Remarks to the user on the roles that import assigned.
  std::vector<MessageText> remarks;
  /// Remarks on nodes of the graph, which are also among `remarks`.
  std::vector<MessageText> notes;
  ExportDiagnosis diagnosis;
  /// Changes that are needed to write trained weights into a copy of the file.
  std::shared_ptr<const WriteBack> writeBack;
  /// The files other than the model's from which its weights were read.
  std::set<std::string> externalFiles;
  /// The fixed batch size, 0 if no data input has dimensions.
  int64_t batch = 0;
  /// Set if the graph ends in a loss of its own: the result that carries
  /// `ckopt.role = "loss"`.
  bool endsInLoss = false;
};

/// Reads the file and imports it. Errors carry ExitInputError (file, shapes,
/// types) or ExitUnsupported (operators, opsets: all of them at once).
llvm::Expected<ImportedModel> importModel(llvm::StringRef path,
                                          const ImportOptions &options,
                                          mlir::MLIRContext &context);

/// Diagnoses the model in the file, without importing it.
llvm::Expected<ExportDiagnosis> diagnoseExport(llvm::StringRef path);
/// The line of Python that exports a complete model.
constexpr const char kExportLine[] =
    "ckopt.torch.export(module, args, \"model.onnx\")";
/// Returns what is lost or differs as one message, with that line.
std::string describeLost(const ExportDiagnosis &diagnosis,
                         llvm::StringRef path);

/// An operator and the opset versions from which its supported forms are valid.
struct SupportedOp {
  std::string domain, name;
  std::vector<int64_t> opsets;
};
/// Lists all operators that import supports, by name.
std::vector<SupportedOp> listSupportedOps();
/// Prints the list as a Markdown table.
void printSupportedOps(llvm::raw_ostream &os);

/// The opsets that import accepts.
constexpr int64_t firstOpset = 1, lastOpset = 27;

} // namespace ckopt::onnx_frontend

#endif // CKOPT_FRONTEND_ONNX_ONNX_H
