//===- Phases.h - the named phases of a compilation ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A compilation is a list of phases. Each is a pass pipeline that is made from
// option structs, and prints as text that ckopt-opt runs, so that every phase
// of the driver can be repeated and inspected by itself. docs/architecture.md
// describes what holds after each.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_COMPILER_PHASES_H
#define CKOPT_COMPILER_PHASES_H

#include "ckopt/Autodiff/Autodiff.h"
#include "ckopt/Losses/Loss.h"
#include "ckopt/Optimizers/Optimizers.h"
#include "ckopt/Remat/Remat.h"
#include "ckopt/Target/TargetInfo.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace ckopt {

/// The optimizer of a step. Parameters with settings of their own have them as
/// an attribute (autodiff::kOptimizerAttr). Without a kind the step returns
/// gradients.
struct OptimizerSettings : autodiff::OptimizerOptions {
  OptimizerSettings() { kind = "sgd"; }
};

/// The options that decide the arithmetic of a step and the budget of its plan.
/// With precision f16: the factor of losses in the backward pass, as
/// torch.amp.GradScaler has it, a power of two.
struct LossScaling {
  bool dynamic = true;    ///< halved after an overflow, doubled after a while
  double initial = 65536; ///< where it starts, or stays
  int64_t growthInterval = 2000; ///< updates without overflow until it doubles
};

struct StepOptions : KernelSettings {
  /// autodiff::parseLoss() reads them from text; none: the model's own.
  std::vector<autodiff::LossTerm> loss;
  autodiff::LossSettings lossSettings;
  /// @eval computes an attached loss, too (that of the model's own it always
  /// does).
  bool evaluateLoss = false;
  /// Cross entropy of a large head by chunks: "auto" (a rule of its sizes),
  /// "off", or the rows of a chunk. Changes the order of sums.
  std::string chunkVocab = "auto";
  OptimizerSettings optimizer;
  LossScaling lossScaling;
  bool evaluation = true;   ///< also make @eval
  bool forwardOnly = false; ///< @eval alone, no training step
  /// With forwardOnly: dropouts and batch norms do what the file says.
  bool asWritten = false;
  /// Processes that train together, each on a share of every batch (data
  /// parallel); shapes are those of a share.
  int64_t ranks = 1;
  /// Ranks that share parameters, gradients and optimizer states (fully
  /// sharded); divides `ranks`.
  int64_t shards = 1;
  bool syncNorms = false;   ///< batch norms have statistics of all ranks
  bool overlap = true;      ///< kernels run while ranks exchange tensors
  bool freezeNorms = false; ///< batch norms that are not trained: as in @eval
  /// Budget, search, costs, policy; what is asked of one step.
  RematOptions remat;
};

/// Returns whether the ops that `normalize` may match attention to have code.
bool hasAttention(const StepOptions &options, const TargetInfo &target);
/// Returns whether kernels of the step run while ranks exchange tensors.
bool overlaps(const StepOptions &options);
/// Returns what --parallel says of the step: "dp:2", "fsdp:4", "dp:2,fsdp:4".
std::string parallelText(const StepOptions &options);

struct Phase {
  std::string name; ///< "autodiff"
  std::string summary;
  /// Adds the phase's passes to a pipeline on modules.
  std::function<void(mlir::OpPassManager &)> build;

  /// Returns the pipeline as text: "builtin.module(...)".
  std::string pipeline() const;
};

/// Returns the phases after import and before lowering, in order, for `target`,
/// which gets registered: their text has its name. They put the plans into
/// `result` if given, which must outlive their runs. Fails where
/// registerTarget() does.
llvm::Expected<std::vector<Phase>> buildPhases(const StepOptions &options,
                                               const TargetInfo &target,
                                               RematResult *result = nullptr);

struct PhaseControl {
  std::string from, to; ///< phase names; empty: all
  std::string dumpDirectory;
  /// The flags that only one phase (or "import") reads, by its name, as given.
  /// IR is dumped with them, and none other can be given where it goes on.
  std::map<std::string, std::string> flags;
  bool verbose = false; ///< a line a phase on stderr
  /// Called after each phase that ran, with its name.
  std::function<void(llvm::StringRef)> finished;
};

/// Refuses names of phases that there are none of, and an end before the start
/// (usage errors).
llvm::Error checkPhases(llvm::ArrayRef<Phase> phases,
                        const PhaseControl &control);

/// Runs the phases on the module. On failure diagnostics have been emitted, and
/// the returned error names the phase and has the first diagnostic's exit code.
/// A dumped module begins with the pipeline that made it.
llvm::Error runPhases(mlir::ModuleOp module, const std::vector<Phase> &phases,
                      const PhaseControl &control);

/// Registers all passes, pipelines and targets of ckopt, and upstream passes
/// that the phases use, for textual pipelines.
void registerAllPasses();
/// Adds the dialects and external models that the phases need.
void registerAllDialects(mlir::DialectRegistry &registry);

} // namespace ckopt

#endif // CKOPT_COMPILER_PHASES_H
