//===- OptionChecks.cpp - options that do not fit together ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs and command lines get the same refusals: what is wrong with the
// options of a compilation is found here, before a file is read. Messages name
// settings by the driver's flags.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Compiler/LossChoice.h"
#include "ckopt/Normalize/Normalize.h"
#include "ckopt/Planner/SearchOptions.h"
#include "ckopt/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Regex.h"

#include <cmath>
#include <thread>

using namespace ckopt;
using namespace ckopt::autodiff;
using llvm::StringRef;

llvm::Error
ckopt::checkLossSettings(const StepOptions &step,
                         llvm::function_ref<bool(StringRef)> isGiven) {
  static const std::pair<StringRef, unsigned> settings[] = {
      {"class-axis", LossKind::ClassAxis},
      {"ignore-index", LossKind::IgnoreIndex},
      {"label-smoothing", LossKind::LabelSmoothing},
      {"class-weights", LossKind::ClassWeights},
      {"pos-weight", LossKind::PosWeight},
      {"beta", LossKind::Beta},
      {"delta", LossKind::Delta},
      {"margin", LossKind::Margin},
      {"soft-targets", LossKind::SoftTargets},
      {"reduction", ~0u},
  };
  const std::vector<LossTerm> &terms = step.loss;
  const LossSettings &set = step.lossSettings;
  for (auto [flag, setting] : settings) {
    if (!isGiven(flag))
      continue;
    bool read = false;
    for (const LossTerm &term : terms)
      read |= term.attaches() &&
              (setting == ~0u || findLossKind(term.kind)->settings & setting);
    if (read)
      continue;
    MessageText takers;
    for (const LossKind &kind : lossKinds())
      if (setting != ~0u && kind.settings & setting)
        takers += takers.empty() ? Setting("loss", kind.name)
                                 : MessageText(", ") + kind.name;
    auto attached = llvm::find_if(
        terms, [](const LossTerm &term) { return term.attaches(); });
    if (attached != terms.end())
      return usageError(Setting::ofFlag(flag) + " is for " + takers +
                        ", not for " + attached->kind);
    return usageError(Setting::ofFlag(flag) +
                      " is for losses that are attached (" +
                      (takers.empty() ? Setting("loss", "KIND") : takers) +
                      "); a loss that the model holds has its own");
  }
  if (set.softTargets && isGiven("ignore-index"))
    return usageError(Setting("ignore-index") + " is for labels, and " +
                      Setting("soft-targets") +
                      " takes none: leave out one of the two");
  if (set.reduction == Reduction::BatchMean)
    for (const LossTerm &term : terms)
      if (term.attaches() &&
          !(findLossKind(term.kind)->settings & LossKind::BatchMean))
        return usageError(Setting("reduction", "batchmean") + " is for " +
                          Setting("loss", "kl"));
  return llvm::Error::success();
}

llvm::Error ckopt::checkUpdates(const OptimizerSettings &optimizer) {
  if (!optimizer.kind.empty())
    return llvm::Error::success();
  return usageError(Setting("optimizer", "none") +
                    " changes no weights: there is nothing to train ('ckopt "
                    "grad' writes gradients)");
}

/// Whether a setting differs from its default.
static bool isChanged(const LossSettings &set, StringRef flag) {
  const LossSettings usual;
  return llvm::StringSwitch<bool>(flag)
      .Case("class-axis", set.classAxis.has_value())
      .Case("ignore-index", set.ignoreIndex != usual.ignoreIndex)
      .Case("label-smoothing", set.labelSmoothing != usual.labelSmoothing)
      .Case("class-weights", !set.classWeights.empty())
      .Case("pos-weight", !set.posWeight.empty())
      .Case("beta", set.beta != usual.beta)
      .Case("delta", set.delta != usual.delta)
      .Case("margin", set.margin != usual.margin)
      .Case("soft-targets", set.softTargets)
      .Case("reduction", set.reduction != usual.reduction)
      .Default(false);
}

/// The optimizer, and groups of parameters with settings of their own.
static llvm::Error checkOptimizer(const CompileOptions &options) {
  const OptimizerSettings &settings = options.step.optimizer;
  if (!(settings.clipNorm >= 0) || std::isinf(settings.clipNorm))
    return usageError(Setting("clip-norm") + " is a number from 0 on");
  if (!(settings.ema >= 0 && settings.ema < 1))
    return usageError(Setting("ema") + " must lie in [0, 1)");
  if (settings.accumulate < 1)
    return usageError(Setting("accumulate") +
                      ": an update needs at least one batch");
  if (settings.kind.empty()) {
    if (settings.accumulate > 1)
      return usageError(Setting("optimizer", "none") +
                        " has no updates that several batches could make: "
                        "leave out " +
                        Setting("accumulate"));
    if (settings.values.empty() && options.groups.empty() &&
        settings.ema == 0 && settings.clipNorm == 0 &&
        settings.stateType == StateType::F32 &&
        settings.paramType == ParamType::F32)
      return llvm::Error::success();
    return usageError(Setting("optimizer", "none") +
                      " has no updates that settings, groups, averages and a "
                      "limit of the norm could be about");
  }
  const OptimizerKind *kind = findOptimizer(settings.kind);
  if (!kind)
    return usageError("unknown optimizer '" + settings.kind +
                      "': " + optimizerNames());
  if (settings.paramType != ParamType::F32 && options.import.f64)
    return usageError(Setting("param-type", nameOf(settings.paramType)) +
                      " stores what is f32, and " +
                      Setting("compute-type", "f64") +
                      " has none: leave out one of the two");
  if (settings.stateType != StateType::F32 && options.import.f64)
    return usageError(Setting("state-type", nameOf(settings.stateType)) +
                      " is for states of f32, and " +
                      Setting("compute-type", "f64") +
                      " has none: leave out one of the two");
  if (llvm::Error error = checkHyperValues(*kind, settings.values))
    return error;
  for (const ParameterGroup &group : options.groups) {
    std::string problem;
    if (!llvm::Regex(group.pattern).isValid(problem))
      return usageError(Setting("group", inQuotes(group.text)) + ": " +
                        problem);
    HyperValues values = settings.values;
    for (const auto &[name, value] : group.values)
      values[name] = value;
    if (llvm::Error error = checkHyperValues(*kind, values))
      return withContext(std::move(error),
                         Setting("group", inQuotes(group.text)));
    if (group.learningRate && options.learningRate == 0)
      return usageError(Setting("group", inQuotes(group.text)) +
                        ": a group's lr needs an " + Setting("lr") +
                        " above 0, whose schedule it follows");
  }
  return llvm::Error::success();
}

/// Numbers that flags would not take.
static llvm::Error checkLossNumbers(const LossSettings &set) {
  if (!(set.labelSmoothing >= 0 && set.labelSmoothing <= 1))
    return usageError(Setting("label-smoothing") + " is a share, from 0 to 1");
  for (const std::vector<double> *weights : {&set.classWeights, &set.posWeight})
    for (double weight : *weights)
      if (!(weight >= 0) || std::isinf(weight))
        return usageError("weights of classes and targets are numbers from 0 "
                          "on");
  if (!(set.beta >= 0) || !(set.delta >= 0) || std::isinf(set.beta) ||
      std::isinf(set.delta) || !std::isfinite(set.margin))
    return usageError(Setting("beta") + " and " + Setting("delta") +
                      " are numbers from 0 on, " + Setting("margin") +
                      " is any finite one");
  return llvm::Error::success();
}

static llvm::Error checkBudget(const MemoryBudget &budget) {
  bool isRatio = budget.kind == MemoryBudget::Kind::Ratio ||
                 budget.kind == MemoryBudget::Kind::ActivationRatio;
  if (isRatio && !(budget.ratio > 0 && budget.ratio <= 1))
    return usageError("a budget's ratio is a number above 0 up to 1");
  if (budget.kind == MemoryBudget::Kind::Bytes && budget.bytes <= 0)
    return usageError("a budget of " + llvm::Twine(budget.bytes) +
                      " bytes holds nothing; 'min' asks for the smallest "
                      "possible");
  return llvm::Error::success();
}

/// What decides kernels, as flags would take it.
static llvm::Error checkKernelSettings(const KernelSettings &kernels) {
  if (!llvm::is_contained({0u, 128u, 256u, 512u}, kernels.vectorBits))
    return usageError("vectors have 128, 256 or 512 bits, or 0 for none, not " +
                      llvm::Twine(kernels.vectorBits));
  if (kernels.libraryWorkspace < 0)
    return usageError("a library's workspace is not negative");
  return llvm::Error::success();
}

static llvm::Error checkNumbers(const CompileOptions &options) {
  constexpr int32_t kMostThreads = 4096; // that a manifest may name
  const StepOptions &step = options.step;
  if (step.threads < 1 || step.threads > kMostThreads)
    return usageError("a step has 1 to " + llvm::Twine(kMostThreads) +
                      " threads, not " + llvm::Twine(step.threads));
  if (options.target.optLevel > 3)
    return usageError("LLVM optimizes by levels 0 to 3, not " +
                      llvm::Twine(options.target.optLevel));
  if (options.learningRate < 0 || std::isinf(options.learningRate))
    return usageError(Setting("lr") + " is a number from 0 on");
  if (llvm::Error error = checkKernelSettings(step))
    return error;
  if (llvm::Error error = checkBudget(step.remat.budget))
    return error;
  return checkLossNumbers(step.lossSettings);
}

llvm::Error ckopt::checkAllPhases(const PhaseControl &phases) {
  if (phases.to.empty() || phases.to == "plan-memory")
    return llvm::Error::success();
  return usageError("there is no code to make of phases that stop behind '" +
                    phases.to + "' (" + Setting("compile-to") + ")");
}

llvm::Error ckopt::checkThreadsHere(int64_t threads) {
  int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  if (threads <= 4 * cores)
    return llvm::Error::success();
  return usageError(Setting("threads", llvm::Twine(threads)) +
                    " is more than four for each of this machine's cores (" +
                    llvm::Twine(cores) + ")");
}

/// The factor of losses, which gradients of f16 alone need.
static llvm::Error checkLossScale(const StepOptions &step) {
  const LossScaling &given = step.lossScaling, usual;
  if (step.precision != Precision::F16)
    return given.dynamic == usual.dynamic && given.initial == usual.initial &&
                   given.growthInterval == usual.growthInterval
               ? llvm::Error::success()
               : usageError("losses are scaled with " +
                            Setting("precision", "f16") + " alone: leave out " +
                            Setting("loss-scale") + " and its kin");
  if (!autodiff::isLossScale(given.initial))
    return usageError(
        (given.dynamic ? Setting("loss-scale-init") : Setting("loss-scale")) +
        " must be a power of two between 2^-" +
        llvm::Twine(autodiff::kMaxScaleExponent) + " and 2^" +
        llvm::Twine(autodiff::kMaxScaleExponent) +
        ", so that scaling rounds "
        "nothing");
  if (given.growthInterval < 1)
    return usageError(Setting("loss-scale-growth-interval") +
                      " must be 1 or more");
  return llvm::Error::success();
}

/// Precisions that contradict each other, or that programs ask for by other
/// names than flags.
static llvm::Error checkPrecision(const CompileOptions &options) {
  const StepOptions &step = options.step;
  std::string problem;
  if (!step.keepF32.empty() && !llvm::Regex(step.keepF32).isValid(problem))
    return usageError(Setting("keep-f32", inQuotes(step.keepF32)) + ": " +
                      problem);
  if (llvm::Error error = checkLossScale(step))
    return error;
  if (step.precision == Precision::F32)
    return step.keepF32.empty()
               ? llvm::Error::success()
               : usageError(Setting("keep-f32") + " is for " +
                            Setting("precision", "bf16") +
                            " and f16: in f32 all nodes are kept");
  StringRef type = nameOf(step.precision);
  if (options.import.f64)
    return usageError(Setting("precision", type) + " stores what is f32, and " +
                      Setting("compute-type", "f64") +
                      " has none: leave out one of the two");
  StringRef products = nameOf(step.matmulPrecision);
  if (step.matmulPrecision != MatmulPrecision::F32 &&
      step.matmulPrecision != MatmulPrecision::Highest && products != type &&
      !(step.matmulPrecision == MatmulPrecision::Medium &&
        step.precision == Precision::BF16))
    return usageError(Setting("precision", type) + " and " +
                      Setting("matmul-precision", products) +
                      " contradict each other: products are by " + type);
  return llvm::Error::success();
}

llvm::Error ckopt::checkOptions(const CompileOptions &options) {
  const StepOptions &step = options.step;
  if (llvm::Error error = checkNumbers(options))
    return error;
  if (llvm::Error error = checkPrecision(options))
    return error;
  auto checkRows = [](Setting name, int64_t rows) -> llvm::Error {
    if (rows >= -1)
      return llvm::Error::success();
    return usageError(std::move(name) + ": " + llvm::Twine(rows) +
                      " is not 0 (auto), -1 (off), or a positive number");
  };
  if (llvm::Error error = checkRows(Setting("chunk-vocab"), step.chunkRows))
    return error;
  if (llvm::Error error = checkRows(Setting("tile-rows"), step.tileRows))
    return error;
  if (llvm::Error error = checkPolicyForm(step.remat.policy))
    return error;
  if (llvm::Error error = planner::checkSearch(step.remat.search))
    return error;
  if (step.forwardOnly)
    return llvm::Error::success();
  if (llvm::Error error = checkOptimizer(options))
    return error;
  return checkLossSettings(
      step, [&](StringRef flag) { return isChanged(step.lossSettings, flag); });
}
