//===- Compile.h - from a model file to a loaded step -----------*- C++ -*-===//
#ifndef CKOPT_DRIVER_COMPILE_H
#define CKOPT_DRIVER_COMPILE_H

#include "ckopt/Conversion/Emit/Emit.h"
#include "ckopt/Driver/Training.h"
#include "ckopt/Frontend/Onnx/Onnx.h"
#include "ckopt/Pipelines/Pipelines.h"
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
  int64_t plannedPeak = 0; ///< bytes of the arena
  int64_t budget = 0;      ///< bytes, 0 if unlimited
  int64_t load = 0;        ///< largest sum of live bytes
  int64_t parameterBytes = 0, gradientBytes = 0, optimizerBytes = 0,
          dataBytes = 0, stateBytes = 0;
  int64_t calls = 0, recomputed = 0; ///< kernel calls of a step, clones
  int64_t kernels = 0;               ///< distinct ones
  double cost = 0;                   ///< seconds, predicted
  double unconstrainedCost = 0;
  double lowerBound = 0;   ///< proven, on the cost of any plan
  int64_t memoryBound = 0; ///< proven, on the arena of any plan
  std::string status;      ///< "optimal", "feasible"
  /// The plan for the same budget without the policy that was given; 0: there
  /// was no policy, or no such plan.
  double autoCost = 0;
  int64_t autoArena = 0;
  double autoCostInArena = 0; ///< of one within the bytes of this plan; 0: -
  int64_t regions = 0;        ///< checkpointed ones
  double planSeconds = 0;
};

/// A model on its way to a step. Owns its MLIR context.
class Compilation {
public:
  explicit Compilation(CompileOptions options);
  ~Compilation();

  /// Imports; prints remarks when asked to.
  llvm::Error import();
  /// Runs the phases up to the planned step.
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

  /// Rows of the tables that inputs index, by the input's name.
  const std::map<std::string, int64_t> &tableRows() const { return rows; }

private:
  llvm::Error checkFreeze() const;
  void applyInit();
  llvm::Error embedWeights(ArtifactData &data);

  CompileOptions opts;
  std::unique_ptr<mlir::MLIRContext> context;
  onnx_frontend::ImportedModel imported;
  std::map<std::string, LabelRange> labelRanges;
  std::map<std::string, int64_t> rows;
  PlanSummary planSummary;
  LoweredStep lowered;
  std::vector<char> objectBytes;
};

} // namespace ckopt

#endif // CKOPT_DRIVER_COMPILE_H
