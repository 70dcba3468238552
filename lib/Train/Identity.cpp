//===- Identity.cpp - what a resumed run must share -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Describes a run, so that a checkpoint is only resumed by the same run. The
// bits of a run depend on the data and on all options that change arithmetic,
// order of samples, or rates. A checkpoint holds them by name; an option that
// an older checkpoint does not name had its default. The budget is not among
// them: a run may continue under another one.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Normalize/Normalize.h"
#include "ckopt/Target/TargetRegistry.h"
#include "ckopt/Train/Step.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

using namespace ckopt;

/// Settings of losses that differ from the defaults: what older checkpoints do
/// not name was as it is by default.
static void describeLoss(const LossSettings &set, StringMetadata &result) {
  const LossSettings usual;
  auto note = [&](const char *key, double value, double otherwise) {
    if (value != otherwise)
      llvm::raw_string_ostream(result[key]) << llvm::format("%.17g", value);
  };
  auto list = [&](const char *key, const std::vector<double> &values) {
    for (double value : values)
      llvm::raw_string_ostream(result[key]) << llvm::format("%.17g ", value);
  };
  if (set.reduction != usual.reduction)
    result["reduction"] = nameOf(set.reduction).str();
  if (set.classAxis)
    result["class-axis"] = std::to_string(*set.classAxis);
  note("label-smoothing", set.labelSmoothing, usual.labelSmoothing);
  note("beta", set.beta, usual.beta);
  note("delta", set.delta, usual.delta);
  note("margin", set.margin, usual.margin);
  list("class-weights", set.classWeights);
  list("pos-weight", set.posWeight);
}

/// Returns the class of products, whatever name it was asked for by.
static runtime::ProductPrecision productsOf(const StepOptions &step) {
  const TargetInfo *target = llvm::cantFail(findTarget(step.target));
  return llvm::cantFail(target->productPrecision(step.matmulPrecision));
}

/// Adds settings that only some schedules have.
static void addSchedule(const LearningRateSchedule &schedule,
                        StringMetadata &result,
                        llvm::function_ref<void(const char *, double)> set) {
  using Kind = ScheduleKind;
  if (schedule.byEpoch)
    result["lr-unit"] = "epoch";
  if (schedule.kind == Kind::Step || schedule.kind == Kind::MultiStep ||
      schedule.kind == Kind::Exponential)
    set("lr-gamma", schedule.gamma);
  if (schedule.kind == Kind::Step)
    set("lr-step-size", double(schedule.stepSize));
  for (int64_t at : schedule.milestones)
    result["lr-milestones"] += std::to_string(at) + " ";
  if (schedule.kind == Kind::OneCycle) {
    set("lr-pct-start", schedule.warmShare);
    set("lr-div-factor", schedule.divide);
    set("lr-final-div-factor", schedule.divideFinal);
    result["lr-anneal"] = schedule.linearCycle ? "linear" : "cos";
  }
  if (schedule.kind == Kind::File)
    result["lr-file"] = std::to_string(llvm::xxh3_64bits(
        llvm::ArrayRef(reinterpret_cast<const uint8_t *>(schedule.rates.data()),
                       schedule.rates.size() * sizeof(double))));
}

StringMetadata ckopt::runIdentity(const CompileOptions &compile,
                                  const TrainOptions &options,
                                  const Session &session,
                                  llvm::StringRef data) {
  const StepOptions &step = compile.step;
  const OptimizerSettings &opt = step.optimizer;
  const LearningRateSchedule &schedule = options.schedule;
  StringMetadata result;
  auto set = [&](const char *key, double value) {
    std::string text;
    llvm::raw_string_ostream(text) << llvm::format("%.17g", value);
    result[key] = text;
  };
  std::string dims;
  for (const auto &[name, size] : compile.import.dims)
    dims += name + "=" + std::to_string(size) + " ";
  result["loss"] = formatLoss(step.loss);
  result["dims"] = dims;
  result["layout"] = nameOf(step.layout).str();
  result["cpu"] =
      compile.target.cpu + " -O" + std::to_string(compile.target.optLevel);
  result["ignore-index"] = std::to_string(step.lossSettings.ignoreIndex);
  describeLoss(step.lossSettings, result);
  result["seed"] = std::to_string(options.seed);
  result["optimizer"] = opt.kind;
  result["schedule"] = scheduleName(schedule.kind);
  result["compute-type"] = compile.import.f64 ? "f64" : "";
  if (runtime::ProductPrecision products = productsOf(step);
      products != runtime::ProductPrecision::F32)
    result["matmul-precision"] = runtime::productPrecisionName(products);
  if (step.precision != Precision::F32)
    result["precision"] = nameOf(step.precision).str();
  if (step.precision == Precision::F16 && step.lossScaling.dynamic)
    set("loss-scale-growth-interval", double(step.lossScaling.growthInterval));
  else if (step.precision == Precision::F16)
    set("loss-scale", step.lossScaling.initial);
  if (!step.keepF32.empty())
    result["keep-f32"] = step.keepF32;
  if (step.chunkRows)
    result["chunk-vocab"] = printChunkRows(step.chunkRows);
  if (step.tileRows)
    result["tile-rows"] = printChunkRows(step.tileRows);
  if (step.attention != Attention::Auto)
    result["attention"] = nameOf(step.attention).str();
  if (int32_t sm = session.manifest().device.sm) {
    result["target"] = step.target;
    set("sm", sm);
    set("multiprocessors", session.manifest().device.multiprocessors);
    // Tiles depend on it; that of earlier releases is the capability's.
    if (constexpr int32_t kLeast = 100 << 10; step.processorShared == kLeast)
      set("multiprocessor-shared", kLeast);
    result["cuda-libs"] = !step.libraryWorkspace    ? "none"
                          : step.ownBesideLibraries ? "auto"
                                                    : "all";
  }
  if (!session.manifest().libraryTable.empty())
    result["library-table"] = session.manifest().libraryTable;
  result["freeze"] = compile.import.freezeRegex;
  if (!compile.import.trainRegex.empty())
    result["train"] = compile.import.trainRegex;
  if (const AdapterOptions &lora = compile.lora; lora.rank) {
    result["lora"] = std::to_string(lora.rank);
    set("lora-alpha", lora.alpha);
    set("lora-dropout", lora.dropout);
    result["lora-targets"] = lora.targets;
    if (lora.dora)
      result["dora"] = "yes";
  }
  if (step.syncNorms && step.ranks > 1)
    result["sync-batchnorm"] = "yes";
  if (step.freezeNorms)
    result["freeze-norms"] = "yes";
  for (size_t i = 0; i < compile.groups.size(); ++i)
    result["group " + std::to_string(i + 1)] = compile.groups[i].text;
  if (opt.ema > 0)
    set("ema", opt.ema);
  if (opt.paramType != ParamType::F32)
    result["param-type"] = nameOf(opt.paramType).str();
  if (opt.stateType != StateType::F32)
    result["state-type"] = nameOf(opt.stateType).str();
  set("lr", schedule.base);
  set("min-lr-ratio", schedule.minRatio);
  set("warmup-steps", double(schedule.warmupSteps));
  if (schedule.warmupStart)
    set("warmup-start", *schedule.warmupStart);
  if (const OptimizerKind *kind = findOptimizer(opt.kind))
    for (const HyperParameter &parameter : kind->parameters)
      set(parameter.name, hyperValue(*kind, opt.values, parameter.name));
  addSchedule(schedule, result, set);
  set("clip-norm", opt.clipNorm);
  set("holdout", options.holdout);
  set("threads", step.threads);
  set("accumulate", double(opt.accumulate));
  result["batch"] = std::to_string(batchSize(session.manifest()) * step.ranks);
  if (options.smaller)
    result["batch"] =
        std::to_string(options.leastSamples) + ".." + result["batch"];
  result["data"] = data.str();
  return result;
}
