//===- Compile.h - from a model file to a compiled step ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_COMPILER_COMPILE_H
#define CKOPT_COMPILER_COMPILE_H

#include "ckopt/Analysis/CostModel.h"
#include "ckopt/Compiler/CompileOptions.h"
#include "ckopt/Compiler/Phases.h"
#include "ckopt/Compiler/PlanSummary.h"
#include "ckopt/Frontend/Onnx/Onnx.h"
#include "ckopt/Support/Timeline.h"
#include "ckopt/Train/Data/DataOptions.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"

#include <map>
#include <memory>
#include <optional>
#include <string>

namespace ckopt {

/// An adapter that a model was given.
struct AdapterNote {
  std::string name;      ///< of its product, as PEFT names modules
  std::string weight;    ///< the stored weight; "": a constant
  std::string magnitude; ///< DoRA's vector; "": none
};

/// A model on its way to a step. Owns its MLIR context. import(), plan() and
/// emit() are called once each, in this order; any other order is a usage
/// error.
class Compilation {
public:
  explicit Compilation(CompileOptions options);
  ~Compilation();

  /// Imports the model. Messages report how doubtful cases were interpreted,
  /// and what the file lacks.
  llvm::Error import();
  /// Runs the phases up to the planned step. If no plan fits the budget,
  /// summary() still has the known figures.
  llvm::Error plan();
  /// Replaces plan(): takes the step that another process planned from the same
  /// model and options, in the form that it printed module().
  llvm::Error adopt(llvm::StringRef planned);
  /// Lowers the planned step to the target's code; makes none if phases stop
  /// earlier.
  llvm::Error emit();

  /// Replaces emit(): takes the code that another process emitted and packed
  /// (StepCode::pack) from the same planned step. False: the code cannot be
  /// used, and emit() has to follow.
  llvm::Expected<bool> adoptCode(llvm::StringRef packed);

  const CompileOptions &options() const { return opts; }
  CompileOptions &options() { return opts; }
  /// Returns the plans of all functions, or only of the first one that no plan
  /// fits; empty if the phases began after planning.
  const RematResult &planned() const { return plans; }
  /// Returns the options as they were given; in options() the target and the
  /// phases have filled in open choices.
  const CompileOptions &given() const { return asked; }
  /// Null before import().
  mlir::ModuleOp module() const { return imported.module.get(); }
  const onnx_frontend::ImportedModel &model() const { return imported; }
  const PlanSummary &summary() const { return planSummary; }
  /// Whether planning found a plan or proved that there is none.
  bool wasPlanned() const { return planSummary.planSeconds > 0; }
  /// Null, with an error from import(), if options name no target.
  const TargetInfo *target() const { return targetInfo; }
  /// Null before emit().
  const StepCode *code() const { return stepCode.get(); }
  /// The code for a size of the dimension that is left open (0: the largest):
  /// each schedule is for sizes up to one.
  const StepCode &codeAt(int64_t size) const;
  /// Empty before emit().
  const runtime::Manifest &manifest() const;
  TensorMap weights() const;
  /// Lets the values of weights go: a session that was loaded has its own, and
  /// those here take as many bytes again. Nothing else can be loaded then.
  void releaseWeights();
  bool hasWeights() const { return !released; }
  /// Returns the model's output for each target of an attached loss.
  const std::map<std::string, std::string> &targetOutputs() const {
    return targets;
  }
  /// Returns the live bytes of the planned step, by kind.
  TimelinePanel timeline(llvm::StringRef title) const;
  /// Returns the live bytes before reordering and recomputation; without steps
  /// if planning failed earlier.
  const TimelinePanel &timelineBefore() const { return before; }

  /// With `keepGraph`: the planner's view of the step, before reordering and
  /// recomputation, with the rules in the options.
  const std::optional<RematGraph> &graph() const { return unplanned; }

  /// Returns a line for each group of parameters with separate settings.
  const std::vector<std::string> &trained() const { return trainedLines; }

  /// Returns the adapters that the options asked for.
  const std::vector<AdapterNote> &adapters() const { return adapterNotes; }

  /// Checks that trained weights have a type wide enough for updates.
  llvm::Error checkTrainedTypes() const;

  /// Refuses a file of weights for the module that holds only parts of some
  /// weights, and a model's file for adapters.
  llvm::Error checkGoesBack(llvm::StringRef path) const;

  /// Passes a message without a node to the handler.
  void say(Message::Severity severity, const MessageText &text) const;
  void remark(const MessageText &text) const {
    if (opts.remarks)
      say(Message::Severity::Remark, text);
  }

private:
  /// The progress of the compilation; Failed: import() or plan() stopped.
  enum class Stage { New, Failed, Imported, Planned };

  llvm::Error importModel();
  llvm::Error checkEmit() const;
  llvm::Error checkWithTwoSamples();
  llvm::Error runPlanning();
  llvm::Error settleSizes();
  llvm::Error lookAtSizes();
  llvm::Error lookAtSizes(bool above, bool inBlocks);
  /// The model at one size, as text: contexts are used by one thread each.
  struct StepText {
    std::string module;
    TensorMap values;
    std::vector<int64_t> chunks; ///< of a loss: rows of each, how many
  };
  llvm::Expected<StepText> firstStep(int64_t size);
  llvm::Expected<std::vector<StepText>>
  stepsAt(llvm::ArrayRef<SizePoint> points, bool imports);
  llvm::Expected<StepText> stepAt(SizePoint point, bool imports,
                                  bool choosesBlocks = false) const;
  llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
  readStep(llvm::StringRef text);
  llvm::Error compareConstants(int64_t size, mlir::ModuleOp step,
                               const TensorMap &values) const;
  llvm::Error noteBlocks();
  llvm::Error makeLargest(llvm::MutableArrayRef<mlir::ModuleOp> modules);
  llvm::Error compareImports();
  llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
  unplannedStep(int64_t size, bool plans = true);
  llvm::Error raiseWorkspaces(mlir::ModuleOp step, int64_t high);
  llvm::Error planSmaller();
  llvm::Expected<PlannedSizes> planSizes(mlir::ModuleOp planned, int64_t high);
  llvm::Error settleTarget();
  llvm::Error judgeExport() const;
  llvm::Error explainShare(llvm::Error error);
  void summarize();
  void summarizeProducts(mlir::func::FuncOp step);
  llvm::Error addAdapters();
  llvm::Error checkTrained();
  llvm::Error applyGroups();
  llvm::Error noteFrozenNorms();
  void noteProducts();
  void noteUnclear() const;
  void applyInit();
  void noteTargets();
  void noteUnplanned();
  llvm::Error embedWeights(runtime::Manifest &manifest,
                           std::vector<char> &data) const;

  const CompileOptions asked;
  CompileOptions opts;
  Stage stage = Stage::New;
  const TargetInfo *targetInfo = nullptr;
  std::unique_ptr<mlir::MLIRContext> context;
  onnx_frontend::ImportedModel imported;
  bool released = false; ///< releaseWeights()
  std::map<std::string, std::string> targets;
  std::vector<std::string> trainedLines;
  std::vector<AdapterNote> adapterNotes;
  PlanSummary planSummary;
  RematResult plans;
  TimelinePanel before;
  std::optional<RematGraph> unplanned;
  std::unique_ptr<StepCode> stepCode;
  /// With CompileOptions::sizes: the step before planning at some of them.
  std::vector<std::pair<SizePoint, mlir::OwningOpRef<mlir::ModuleOp>>>
      unplannedAt;
  RowBlocks blocks; ///< of losses at these sizes
  /// Schedules for sizes up to a smaller one, which recompute less.
  struct Schedule {
    int64_t high = 0;
    mlir::OwningOpRef<mlir::ModuleOp> planned;
    std::unique_ptr<StepCode> code;
  };
  std::vector<Schedule> smaller; ///< by falling sizes
};

/// Refuses names of files that writeWeights() cannot write; `what` is the flag
/// that names them ("-o").
llvm::Error checkWeightsPath(llvm::StringRef path, const llvm::Twine &what);
/// Tells whether weights written to this path are a folder's: one that exists,
/// or "NAME/".
bool isWeightFolder(llvm::StringRef path);

} // namespace ckopt

#endif // CKOPT_COMPILER_COMPILE_H
