//===- CompileOptions.h - what a compilation is asked for -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Without MLIR: programs fill these structs and include no compiler.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_COMPILER_COMPILEOPTIONS_H
#define CKOPT_COMPILER_COMPILEOPTIONS_H

#include "ckopt/Frontend/Onnx/ImportOptions.h"
#include "ckopt/Losses/LossOptions.h"
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
#include <string>
#include <vector>

namespace ckopt {

/// The optimizer of a step. Parameters with settings of their own have them as
/// an attribute (kOptimizerAttr). Without a kind the step returns
/// gradients.
struct OptimizerSettings : OptimizerOptions {
  OptimizerSettings() { kind = "sgd"; }
};

/// With precision f16: the factor of losses in the backward pass, as
/// torch.amp.GradScaler has it, a power of two.
struct LossScaling {
  bool dynamic = true;    ///< halved after an overflow, doubled after a while
  double initial = 65536; ///< where it starts, or stays
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
  /// Rows of a chunk, of which cross entropy of a large head takes one after
  /// another; 0: by a rule of its sizes; -1: no chunks. Changes the order of
  /// sums.
  int64_t chunkRows = 0;
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
  RematSettings remat;
};

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

/// The treatment of a file that lacks parameters of the model it was exported
/// from.
enum class LostParameters { Refuse, Warn, Ignore };

/// Flags or settings by name, as they were written; of files, that they were.
using GivenFlags = std::map<std::string, MessageText>;

/// How weights start; Auto: by their role.
enum class InitRule { Auto, Kaiming, Xavier, Normal };
inline ChoiceNames choiceNames(InitRule) {
  static constexpr const char *names[] = {"auto", "kaiming", "xavier",
                                          "normal"};
  return names;
}

struct CompileOptions {
  std::string model; ///< .onnx
  /// What reports and pictures call it; "": its path.
  std::string modelName;
  const std::string &title() const {
    return modelName.empty() ? model : modelName;
  }
  onnx_frontend::ImportOptions import;
  /// How weights without values start, where their role asks for random
  /// numbers.
  InitRule init = InitRule::Auto;
  /// Parameters with settings of their own: the first group that matches.
  std::vector<ParameterGroup> groups;
  /// What a group's own is a multiple of; not a number: the optimizer's.
  double learningRate = std::numeric_limits<double>::quiet_NaN();
  StepOptions step;
  PhaseControl phases;
  CpuOptions target;
  DeviceOptions device;
  bool instrument = false;
  bool keepDenormals = false;
  bool embedWeights = false; ///< the artifact carries the model's weights
  bool keepGraph = false;    ///< remember what the planner is asked
  /// That compile it together: rank 0 plans and makes code, the others take it.
  Ranks ranks;
  GivenFlags flags; ///< ranks compare them
  /// What is written later: never a file that the model's weights come from.
  std::vector<NamedFile> outputs;
  LostParameters lost = LostParameters::Refuse;
  MessageHandler messages = printMessage;
  bool remarks = true; ///< tell what import and the loss took for what
};

} // namespace ckopt

#endif // CKOPT_COMPILER_COMPILEOPTIONS_H
