//===- Pipelines.h - the named phases of a compilation ----------*- C++ -*-===//
//
// A compilation is a list of phases; each is a textual pass pipeline that
// ckopt-opt runs just as well, so what the driver does can be repeated, stopped
// and looked at anywhere. docs/architecture.md describes what holds after each.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_PIPELINES_PIPELINES_H
#define CKOPT_PIPELINES_PIPELINES_H

#include "ckopt/Autodiff/Loss.h"
#include "ckopt/Planner/Solve.h"
#include "ckopt/Remat/Policy.h"
#include "ckopt/Support/ByteSize.h"
#include "ckopt/Support/Optimizers.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ckopt {

/// How parameters change; names and defaults as in PyTorch. What differs for
/// single parameters is an attribute of theirs (autodiff::kOptimizerAttr).
struct OptimizerSettings {
  std::string kind = "sgd"; ///< Support/Optimizers.h; "": gradients are results
  HyperValues values;       ///< those that are not the kind's defaults
  double clipNorm = 0;      ///< 0: none
  int64_t accumulate = 1;
  double ema = 0; ///< decay of averaged parameters; 0: none
};

/// All that decides what is computed, and under which budget it is planned.
struct StepOptions {
  std::string loss; ///< terms as attach-loss reads them; "": the model's own
  autodiff::LossSettings lossSettings;
  /// @eval computes an attached loss, too (that of the model's own it always
  /// does).
  bool evaluateLoss = false;
  OptimizerSettings optimizer;
  bool evaluation = true;   ///< also make @eval
  bool forwardOnly = false; ///< @eval alone, no training step
  /// With forwardOnly: dropouts and batch norms do what the file says.
  bool asWritten = false;
  bool freezeNorms = false; ///< batch norms that are not trained: as in @eval
  std::string layout = "channels-last";
  int32_t threads = 1;
  unsigned vectorBits = 512;
  std::string target = "cpu";   ///< where kernels run: cpu, cuda
  int64_t libraryWorkspace = 0; ///< cuda: of each call of a library
  /// cuda, operands of products of f32: f32, tf32, bf16, f16.
  std::string matmulPrecision = "f32";
  MemoryBudget budget;
  planner::Options search; ///< how to plan; its budget is not read
  std::string planHint;    ///< a plan to start from (a file)
  /// As the pass option `compare`: quick, on, off.
  std::string compare = "quick";
  /// As the pass option `cost-model`: analytic, profile=FILE, attribute.
  std::string costModel = "analytic";
  RematPolicy policy;     ///< what to keep and what to compute again
  std::string planFile;   ///< take the plan from here instead of searching
  std::string planOut;    ///< write the plan here
  std::string planReport; ///< what is kept and made again, and why: a file
};

struct Phase {
  std::string name;     ///< "autodiff"
  std::string pipeline; ///< "builtin.module(...)"
  std::string summary;
};

/// The phases after import and before lowering, in order.
std::vector<Phase> buildPhases(const StepOptions &options);

struct PhaseControl {
  std::string from, to; ///< phase names; empty: all
  std::string dumpDirectory;
  bool verbose = false; ///< a line a phase on stderr
  /// Called after each phase that ran, with its name.
  std::function<void(llvm::StringRef)> finished;
};

/// Runs the phases on the module. Failure: diagnostics have been emitted; the
/// returned error says in which phase.
llvm::Error runPhases(mlir::ModuleOp module, const std::vector<Phase> &phases,
                      const PhaseControl &control);

/// Registers all passes and pipelines of ckopt, and upstream ones that the
/// phases use, for textual pipelines.
void registerAllPasses();
/// Adds the dialects and external models that the phases need.
void registerAllDialects(mlir::DialectRegistry &registry);

} // namespace ckopt

#endif // CKOPT_PIPELINES_PIPELINES_H
