//===- Onnx.h - ONNX files in and out ---------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Import gives a `func.func @forward` of ckopt ops on statically shaped
// tensors: batch fixed, shape arithmetic folded, batch norms and dropouts in
// training form. Weights stay out of the IR: they lie in a table by name.
// Export.h puts trained weights into a copy of the original file. Whatever the
// bytes of a file are, both end in a result or in an error that names file,
// node and remedy; no protobuf type and no exception leaves this library.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_FRONTEND_ONNX_ONNX_H
#define CKOPT_FRONTEND_ONNX_ONNX_H

#include "ckopt/Frontend/Onnx/Export.h"
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

struct ImportOptions {
  /// The size of the data inputs' first dimension. Needed where the file has a
  /// symbol there; where it has a number, the graph's shape constants follow as
  /// far as it is proven which of them hold the batch (an error names the
  /// others).
  std::optional<int64_t> batch;
  /// Values of other symbolic dimensions by name.
  std::map<std::string, int64_t> dims;
  /// Whole shapes of graph inputs by name: for inputs whose shape the file
  /// leaves out, or whose dimensions have no names. They must agree with what
  /// the file does say.
  std::map<std::string, std::vector<int64_t>> shapes;
  /// Graph inputs that have one value for good, by name: what decides shapes,
  /// axes and trip counts must be known when compiling.
  std::map<std::string, HostTensor> constants;
  /// Where import fails, receives the graph inputs that would have to be
  /// constants for it to get further (see `constants`).
  std::set<std::string> *neededConstants = nullptr;
  /// The graph inputs that are data. Empty: the first graph input where the
  /// graph has no initializers, else every input that is no initializer.
  std::vector<std::string> inputs;
  /// Float weights whose whole name matches (POSIX extended) are not trained.
  std::string freezeRegex;
  /// If not empty, only those whose whole name matches are trained; a weight
  /// that both expressions match is not.
  std::string trainRegex;
  /// Weights that are made by ConstantOfShape, as in files whose numbers were
  /// taken out, are parameters without a value.
  bool paramsFromConstants = false;
  /// Batch norms use the batch's statistics and update the running ones,
  /// dropouts drop, also where the file was exported for inference. False:
  /// each does what the file says.
  bool trainMode = true;
  /// "" or "f64": every float32 becomes float64.
  std::string computeType;
};

/// What exporting did to the model; see docs/from-pytorch.md.
struct ExportDiagnosis {
  std::string form; ///< who wrote the file and what it notes, for people
  /// What is not in the file, so that training it would train another model: a
  /// sentence each. Empty: the file is whole.
  std::vector<std::string> lost;
  std::vector<std::string> notes; ///< what was mended
  /// Float initializers that are not trained, and why.
  std::vector<std::pair<std::string, std::string>> constants;
  /// What is trained and may be a buffer: this form of export does not tell.
  std::vector<std::string> unclear;
  bool hasDropout = false;
};

struct ImportedModel {
  /// Holds @forward; docs/architecture.md describes arguments and results.
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// Values of arguments by `ckopt.name`. Arguments without a value carry
  /// `ckopt.init` ("kaiming", "xavier", "normal", "zeros", "ones"), and, where
  /// it has a meaning, `ckopt.fan_in` and `ckopt.fan_out`.
  std::map<std::string, HostTensor> weights;
  /// What was taken for what, for the user.
  std::vector<std::string> remarks;
  /// Those of them that are on the nodes of the graph.
  std::vector<std::string> notes;
  ExportDiagnosis diagnosis;
  /// The batch size that was fixed, 0 where no data input has dimensions.
  int64_t batch = 0;
  /// The graph ends in a loss of its own: the result that carries
  /// `ckopt.role = "loss"`.
  bool endsInLoss = false;
};

/// Reads the file and imports it. Errors carry ExitInputError (file, shapes,
/// types) or ExitUnsupported (operators, opsets: all of them at once).
llvm::Expected<ImportedModel> importModel(llvm::StringRef path,
                                          const ImportOptions &options,
                                          mlir::MLIRContext &context);

/// What exporting did to the model in the file, without importing it.
llvm::Expected<ExportDiagnosis> diagnoseExport(llvm::StringRef path);
/// `diagnosis.lost` as one message, with the lines that export it whole.
std::string describeLost(const ExportDiagnosis &diagnosis,
                         llvm::StringRef path);

/// An operator and the opset versions from which its handled forms hold.
struct SupportedOp {
  std::string domain, name;
  std::vector<int64_t> opsets;
};
/// All operators that import knows, by name.
std::vector<SupportedOp> listSupportedOps();
/// The same as a Markdown table.
void printSupportedOps(llvm::raw_ostream &os);

/// The opsets that import accepts.
constexpr int64_t firstOpset = 1, lastOpset = 27;

} // namespace ckopt::onnx_frontend

#endif // CKOPT_FRONTEND_ONNX_ONNX_H
