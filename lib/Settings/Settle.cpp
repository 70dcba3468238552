//===- Settle.cpp - what depends on several flags -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Base/PrintableText.h"
#include "ckopt/Compiler/LossChoice.h"
#include "ckopt/Ranks/Ranks.h"
#include "ckopt/Settings/Flags.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/Report.h"
#include "ckopt/Target/TargetRegistry.h"
#include "llvm/Support/raw_ostream.h"

using namespace ckopt;
using llvm::StringRef;

llvm::raw_ostream &DriverOptions::out() const {
  static PrintableStream terminal(llvm::outs());
  return quiet ? llvm::nulls() : terminal;
}

llvm::Error DriverFlags::settleTarget() {
  CompileOptions &compile = o.compile;
  if (!compile.device.target.empty())
    compile.step.target = compile.device.target;
  auto target = findTarget(compile.step.target);
  if (!target)
    return target.takeError();
  o.target = *target;
  Command command = o.command;
  bool runsHere = command != Command::Compile && command != Command::Plan &&
                  command != Command::Inspect;
  const bool isAlone = compile.step.ranks == 1; // ranks choose their devices
  if (!isAlone && o.target->traits.hasDevices) {
    if (!compile.device.target.empty())
      return usageError(
          Setting("device") +
          " is for one process: ranks take the devices of their machine in "
          "turn, by LOCAL_RANK where it is set; give " +
          Setting("target", o.target->name()));
    if (runsHere)
      compile.device.target = o.target->name();
    compile.device.ordinal = -1;
  }
  for (const OwnSettings &own : ownSettings) {
    if (own.target == o.target)
      compile.device.own = own.options;
    else if (auto flag = llvm::find_if(
                 own.flags,
                 [&](const std::string &name) { return given.count(name); });
             flag != own.flags.end())
      return usageError(Setting::ofFlag(*flag) + " is for " +
                        own.target->traits.machines + ": give " +
                        settingFor(own.target->name(), runsHere && isAlone));
  }
  TargetRequest request{compile.step, compile.target, compile.device,
                        compile.import.f64, given};
  request.runsHere = runsHere && isAlone;
  if (llvm::Error error = o.target->settle(request))
    return error;
  if (!budgetOfDevice)
    return llvm::Error::success();
  if (compile.device.target.empty() || compile.device.ordinal < 0)
    return usageError(Setting("memory-budget", "device") +
                      " asks a device: give " + Setting("device", "cuda:0"));
  MemoryBudget &budget = compile.step.remat.budget;
  budget.kind = MemoryBudget::Kind::Bytes;
  return o.target->roomOn(compile.device, compile.step).moveInto(budget.bytes);
}

llvm::Error ckopt::checkDataFlags(const DataOptions &data) {
  if (!data.path.empty() + !data.tokens.empty() + !data.images.empty() > 1)
    return usageError("give one of " + Setting("data") + ", " +
                      Setting("tokens") + " and " + Setting("images"));
  if (data.images.empty() &&
      (data.imageOptions.resize || data.imageOptions.augment.any() ||
       !data.imageOptions.mean.empty()))
    return usageError(Setting("resize") + ", " + Setting("augment") + " and " +
                      Setting("normalize") + " are for " + Setting("images"));
  if (!data.tokens.empty() && !data.sequence)
    return usageError(Setting("tokens") + " needs " + Setting("sequence", "N") +
                      ", the tokens of a sample");
  return llvm::Error::success();
}

/// Refuses combinations of flags that contradict each other.
static llvm::Error checkFlags(const DriverOptions &options) {
  const OptimizerSettings &opt = options.compile.step.optimizer;
  bool updates =
      options.command == Command::Train || options.command == Command::Compare;
  if (updates) // said before anything is compiled
    if (llvm::Error error = checkUpdates(opt))
      return error;
  if (llvm::Error error = checkDataFlags(options.data))
    return error;
  if (options.paretoPoints > 0 &&
      options.compile.step.remat.budget.kind != MemoryBudget::Kind::Unlimited)
    return usageError(Setting("pareto") +
                      " plans many budgets: leave out the one given");
  bool printsIR =
      options.command == Command::Import || !options.compile.phases.to.empty();
  if (options.quiet && ((printsIR && options.output.empty()) ||
                        options.summary || options.listOps))
    return usageError(Setting("quiet") +
                      " leaves nothing to print: give -o FILE (or -o -) for "
                      "the IR, or leave out " +
                      Setting("quiet"));
  // A step for another machine may have any number of threads.
  if (options.command == Command::Compile || options.command == Command::Plan)
    return llvm::Error::success();
  return checkThreadsHere(options.compile.step.threads);
}

llvm::Error DriverFlags::checkRead() const {
  const StepOptions &step = o.compile.step;
  const MessageText ranks = Setting("parallel") + " with several ranks";
  const struct {
    std::vector<const char *> flags;
    bool areRead;
    MessageText reader;
  } rules[] = {
      {{"rank-timeout"}, step.ranks > 1, ranks},
      {{"no-overlap", "sync-batchnorm"}, given.count("parallel") > 0, ranks},
      {{"loss-scale", "loss-scale-init", "loss-scale-growth-interval"},
       step.precision == Precision::F16,
       Setting("precision", "f16")},
      {{"lora-targets", "lora-dropout", "dora"},
       o.compile.lora.rank > 0,
       Setting("lora", "RANK")},
      {{"lora-alpha"},
       o.compile.lora.rank > 0 || o.command == Command::Merge,
       Setting("lora", "RANK")},
      {{"loss-scale-init", "loss-scale-growth-interval"},
       step.lossScaling.dynamic,
       Setting("loss-scale", "dynamic")},
      {{"sequence", "token-type"}, !o.data.tokens.empty(), Setting("tokens")},
      {{"data-cache"}, !o.data.path.empty(), Setting("data")},
      {{"decode-threads"}, !o.data.images.empty(), Setting("images")},
      {{"checkpoint-every"},
       !o.train.checkpoint.empty(),
       Setting("checkpoint")},
      {{"dampening"},
       step.optimizer.values.count("momentum") > 0,
       Setting("momentum")},
      {{"warmup-start"},
       o.train.schedule.warmupSteps > 0,
       Setting("warmup-steps")},
      {{"lr-unit"},
       o.train.schedule.kind != ScheduleKind::Constant ||
           o.train.schedule.warmupSteps > 0,
       Setting("lr-schedule")},
      {{"ema-out"}, step.optimizer.ema > 0, Setting("ema")},
      {{"save-trained"},
       !o.output.empty() || !o.emaOutput.empty(),
       Setting::ofFlag("o") + " and " + Setting("ema-out")},
  };
  for (const auto &[flags, areRead, reader] : rules)
    for (const char *flag : flags)
      if (!areRead && given.count(flag))
        return usageError(Setting::ofFlag(flag) + " is for " + reader +
                          ": nothing else reads it");
  return llvm::Error::success();
}

/// Gives a rank its share of the batch, and of the machine's cores.
llvm::Error DriverFlags::settleParallel() {
  StepOptions &step = o.compile.step;
  if (!o.ncclId.empty()) {
    auto target = findTarget(step.target);
    if (!target)
      return target.takeError();
    if (step.ranks == 1 || !(*target)->traits.hasDevices)
      return usageError(
          Setting("nccl-id") + " is for " + Setting("parallel") +
          " with several ranks on GPUs: " + Setting("target", "cuda"));
  }
  if (step.ranks == 1)
    return llvm::Error::success();
  std::optional<int64_t> &batch = o.compile.import.batch;
  const Setting flag("parallel", parallelText(step));
  if (!batch)
    return usageError(flag + " needs " + Setting("batch", "N") +
                      ", the samples of all ranks together in a step");
  if (*batch % step.ranks)
    return usageError(Setting("batch", llvm::Twine(*batch)) +
                      " is the batch of all ranks, and " + flag +
                      " does not divide it");
  if (o.data.isStream())
    return usageError(
        Setting("data", "-") +
        ": only one of the ranks has standard input; give a file");
  *batch /= step.ranks;
  if (!given.count("threads"))
    step.threads = int32_t(
        std::max<int64_t>(1, step.threads / ranksOfMachine(step.ranks)));
  return llvm::Error::success();
}

llvm::Error DriverFlags::settle() {
  if (llvm::Error error = checkRead())
    return error;
  if (llvm::Error error = settleParallel())
    return error;
  if (!given.count("decode-threads")) // on a device, steps have one thread
    o.data.imageOptions.threads = o.compile.step.threads;
  if (llvm::Error error = settleTarget())
    return error;
  if (llvm::Error error = checkFlags(o))
    return error;
  auto isGiven = [&](StringRef flag) { return given.count(flag.str()) > 0; };
  if (llvm::Error error = checkLossSettings(o.compile.step, isGiven))
    return error;
  o.train.seed = o.seed;
  return settleOptimizer();
}
