//===- CompileOptions.h - options of a compilation --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Without MLIR: programs fill these structs and need no header of the compiler.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_COMPILER_COMPILEOPTIONS_H
#define CKOPT_COMPILER_COMPILEOPTIONS_H

#include "ckopt/Frontend/Onnx/ImportOptions.h"
#include "ckopt/Losses/LossOptions.h"
#include "ckopt/Normalize/AdapterOptions.h"
#include "ckopt/Optimizers/OptimizerOptions.h"
#include "ckopt/Ranks/Ranks.h"
#include "ckopt/Remat/RematOptions.h"
#include "ckopt/Support/Messages.h"
#include "ckopt/Support/OutputFiles.h"
#include "ckopt/Target/TargetOptions.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ckopt {

/// The optimizer of a step. A parameter with separate settings has them as an
/// attribute (kOptimizerAttr). Without a kind the step returns gradients.
struct OptimizerSettings : OptimizerOptions {
  OptimizerSettings() { kind = "sgd"; }
};

/// Loss scaling with precision f16, as in torch.amp.GradScaler: the loss is
/// multiplied by a power of two in the backward pass.
struct LossScaling {
  bool dynamic = true;    ///< halved after an overflow, doubled after a while
  double initial = 65536; ///< the initial scale, or the constant one
  int64_t growthInterval = 2000; ///< updates without overflow until it doubles
};

/// The options that decide the arithmetic of a step and the budget of its plan.
struct StepOptions : KernelSettings {
  /// parseLoss() reads them from text; none: the model's own.
  std::vector<LossTerm> loss;
  LossSettings lossSettings;
  /// @eval computes an attached loss, too (that of the model's own it always
  /// does).
  bool evaluateLoss = false;
  /// Rows of a chunk of the cross entropy of a large head; 0: chosen by sizes;
  /// -1: no chunks. Changes the order of sums.
  int64_t chunkRows = 0;
  /// How many chunks, if not as many as there are rows for: rows of zeros,
  /// whose loss is ignored, fill the last ones.
  int64_t chunkBlocks = 0;
  /// Rows of a block of regions that work row by row; 0: chosen by sizes; -1:
  /// no blocks. Changes the order of sums.
  int64_t tileRows = 0;
  OptimizerSettings optimizer;
  LossScaling lossScaling;
  bool evaluation = true; ///< also make @eval
  /// No plan is made that leaves no room for @eval; else such a plan leaves
  /// @eval out.
  bool needsEvaluation = false;
  /// @eval compares large scores with labels itself, and does not return them.
  bool ranksLabels = false;
  bool forwardOnly = false; ///< only @eval, no training step
  /// With forwardOnly: dropouts and batch norms keep the file's mode.
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
  /// Budget, search, costs and policy of recomputation.
  RematSettings remat;
};

struct PhaseControl {
  std::string from, to; ///< phase names; empty: all
  std::string dumpDirectory;
  /// By phase (or "import"): the flags that only it reads, as given. A dump
  /// contains them, so that they cannot be given again when a compilation
  /// continues from it.
  std::map<std::string, std::string> flags;
  bool verbose = false; ///< prints a line for each phase on stderr
  /// Called after each phase that ran, with its name.
  std::function<void(llvm::StringRef)> finished;
};

/// What to do with a file that lacks parameters of the model from which it was
/// exported.
enum class LostParameters { Refuse, Warn, Ignore };

/// Flags or settings by name, as they were written; for files, only that they
/// were given.
using GivenFlags = std::map<std::string, MessageText>;

/// How weights start; Auto: by their role.
enum class InitRule { Auto, Kaiming, Xavier, Normal };
inline ChoiceNames choiceNames(InitRule) {
  static constexpr const char *names[] = {"auto", "kaiming", "xavier",
                                          "normal"};
  return names;
}

/// Sizes of one dimension that a step is compiled for at once. Options of the
/// import have the largest.
struct SizeRange {
  std::string name; ///< of the dimension; "": the batch
  int64_t low = 1, high = 1;
};

struct CompileOptions {
  std::string model; ///< .onnx
  /// The model's name in reports and pictures; "": its path.
  std::string modelName;
  const std::string &title() const {
    return modelName.empty() ? model : modelName;
  }
  onnx_frontend::ImportOptions import;
  std::optional<SizeRange> sizes;
  /// The initialization of weights without values whose role asks for random
  /// numbers.
  InitRule init = InitRule::Auto;
  /// Parameters with separate settings: the first group that matches a
  /// parameter counts.
  std::vector<ParameterGroup> groups;
  /// The learning rate that groups' rates are relative to; not a number: the
  /// optimizer's.
  double learningRate = std::numeric_limits<double>::quiet_NaN();
  /// Adapters that products get, beside which nothing is trained that
  /// `import.trainRegex` does not name.
  AdapterOptions lora;
  StepOptions step;
  PhaseControl phases;
  CpuOptions target;
  DeviceOptions device;
  bool instrument = false;
  bool keepDenormals = false;
  bool embedWeights = false; ///< the artifact carries the model's weights
  bool keepGraph = false;    ///< keeps the planning graph
  /// The ranks that compile it together: rank 0 plans and makes code, the
  /// others receive both.
  Ranks ranks;
  GivenFlags flags; ///< ranks compare them
  /// Files that are written later, which must not be files that the model's
  /// weights come from.
  std::vector<NamedFile> outputs;
  LostParameters lost = LostParameters::Refuse;
  MessageHandler messages = printMessage;
  bool remarks = true; ///< reports decisions of import and of the loss
};

} // namespace ckopt

#endif // CKOPT_COMPILER_COMPILEOPTIONS_H
