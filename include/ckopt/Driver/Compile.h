//===- Compile.h - from a model file to a loaded step -----------*- C++ -*-===//
#ifndef CKOPT_DRIVER_COMPILE_H
#define CKOPT_DRIVER_COMPILE_H

#include "ckopt/Conversion/Emit/Emit.h"
#include "ckopt/Driver/Training.h"
#include "ckopt/Frontend/Onnx/Onnx.h"
#include "ckopt/Pipelines/Pipelines.h"
#include "ckopt/Remat/Figures.h"
#include "ckopt/Support/Timeline.h"
#include "mlir/IR/MLIRContext.h"

#include <memory>
#include <string>

namespace ckopt {

struct CompileOptions {
  std::string model; ///< .onnx
  onnx_frontend::ImportOptions import;
  /// How weights without values start, where their role asks for random
  /// numbers: "kaiming", "xavier", "normal"; "auto": by the role.
  std::string init = "auto";
  StepOptions step;
  PhaseControl phases;
  TargetOptions target;
  bool instrument = false;
  bool keepDenormals = false;
  bool embedWeights = false; ///< the artifact carries the model's weights
};

/// What planning decided, for tables and reports.
struct PlanSummary {
  /// Of the planned step, or of the function that nothing fits.
  RematFigures figures;
  int64_t parameterBytes = 0, optimizerBytes = 0, dataBytes = 0, stateBytes = 0;
  int64_t calls = 0;   ///< kernel calls of a step, clones included
  int64_t kernels = 0; ///< distinct ones
  double planSeconds = 0;
};

/// A model on its way to a step. Owns its MLIR context.
class Compilation {
public:
  explicit Compilation(CompileOptions options);
  ~Compilation();

  /// Imports; prints remarks when asked to.
  llvm::Error import();
  /// Runs the phases up to the planned step. Where no plan fits the budget,
  /// summary() still says what is known.
  llvm::Error plan();
  /// Lowers and emits the object.
  llvm::Error emit();

  const CompileOptions &options() const { return opts; }
  CompileOptions &options() { return opts; }
  mlir::ModuleOp module() const { return *imported.module; }
  const onnx_frontend::ImportedModel &model() const { return imported; }
  const PlanSummary &summary() const { return planSummary; }
  const runtime::Manifest &manifest() const { return lowered.manifest; }
  const std::vector<char> &object() const { return objectBytes; }
  TensorMap weights() const;
  /// Labels that the model's own losses take, by the name of their target.
  const std::map<std::string, LabelRange> &labels() const {
    return labelRanges;
  }
  /// Live bytes by kind over the planned step.
  TimelinePanel timeline(llvm::StringRef title) const;
  /// The same before anything was moved or recomputed; no steps if planning did
  /// not get there.
  const TimelinePanel &timelineBefore() const { return before; }

  /// Rows of the tables that inputs index, by the input's name.
  const std::map<std::string, int64_t> &tableRows() const { return rows; }

private:
  void summarize();
  llvm::Error checkFreeze() const;
  void applyInit();
  llvm::Error embedWeights(ArtifactData &data);

  CompileOptions opts;
  std::unique_ptr<mlir::MLIRContext> context;
  onnx_frontend::ImportedModel imported;
  std::map<std::string, LabelRange> labelRanges;
  std::map<std::string, int64_t> rows;
  PlanSummary planSummary;
  TimelinePanel before;
  LoweredStep lowered;
  std::vector<char> objectBytes;
};

} // namespace ckopt

#endif // CKOPT_DRIVER_COMPILE_H
