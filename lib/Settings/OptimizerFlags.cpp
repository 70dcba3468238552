//===- OptimizerFlags.cpp - flags of optimizers and schedules -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The hyperparameters' flags come from the table in Support/Optimizers.h. A
// flag that has no effect on the chosen optimizer or schedule is an error.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Settings/Flags.h"
#include "ckopt/Support/AtomicFile.h"
#include "llvm/ADT/StringSwitch.h"

using namespace ckopt;
using namespace ckopt::takers;
using llvm::StringRef;

static StringRef meaning(StringRef parameter) {
  return llvm::StringSwitch<StringRef>(parameter)
      .Case("momentum", "momentum")
      .Case("dampening", "of the momentum")
      .Case("weight_decay", "decoupled in adamw and lion")
      .Case("nesterov", "Nesterov's momentum")
      .Case("beta1", "decay of the mean of gradients")
      .Case("beta2", "decay of the mean of their squares")
      .Case("epsilon", "added to the denominator")
      .Case("amsgrad", "divide by the largest mean of squares so far")
      .Case("alpha", "decay of the mean of squares")
      .Case("centered", "divide by the standard deviation")
      .Case("rho", "decay of the means of squares")
      .Case("lr_decay", "the learning rate is divided by 1 + step * this")
      .Case("initial_accumulator_value", "where the sums of squares start")
      .Case("momentum_decay", "decay of the momentum")
      .Case("decoupled_weight_decay", "weight decay as adamw has it")
      .Default("");
}

/// Returns the help text, such as "of the momentum (sgd; default 0)".
static std::string help(StringRef parameter) {
  std::string kinds;
  std::vector<double> values;
  for (const OptimizerKind &kind : optimizerKinds())
    if (const HyperParameter *found = kind.find(parameter)) {
      kinds += (kinds.empty() ? "" : ", ") + std::string(kind.name);
      values.push_back(found->value);
    }
  std::string text = (meaning(parameter) + " (" + kinds).str();
  bool same = llvm::all_equal(values);
  if (!isSwitch(parameter))
    text += same ? "; default " + flag::limitText(values.front())
                 : std::string("; defaults as in PyTorch");
  return text + ")";
}

void DriverFlags::addOptimizerFlags() {
  table.beginSection("The optimizer");
  readBy("optimizer");
  OptimizerSettings &opt = o.compile.step.optimizer;
  std::vector<std::string> kinds;
  for (const OptimizerKind &kind : optimizerKinds())
    kinds.push_back(kind.name);
  kinds.push_back("none");
  add("optimizer", "KIND", Stepping,
      "sgd (default), adam, adamw, rmsprop, adagrad, adadelta, adamax, nadam, "
      "radam, lion, or none: the step returns gradients",
      [&opt, kinds](StringRef text) -> llvm::Error {
        if (llvm::Error error = flag::oneOf("optimizer", opt.kind, kinds)(text))
          return error;
        if (opt.kind == "none")
          opt.kind.clear();
        return llvm::Error::success();
      });
  for (const std::string &parameter : allHyperParameters()) {
    std::string name = flagOf(parameter);
    bool share = parameter == "beta1" || parameter == "beta2";
    auto store = [&opt, parameter, name, share](StringRef text) -> llvm::Error {
      double value = 1; // a switch
      if (!isSwitch(parameter))
        if (llvm::Error error = flag::number<double>(
                name, value, 0, share ? 1 : std::numeric_limits<double>::max(),
                /*open=*/share)(text))
          return error;
      opt.values[parameter] = value;
      return llvm::Error::success();
    };
    add(name, isSwitch(parameter) ? "" : "X", Stepping, help(parameter), store);
  }
  add("group", "REGEX:NAME=X,...", Stepping,
      "settings of the weights whose name the expression is found in, as in "
      "'norm|bias:weight_decay=0,lr=1e-4' (repeatable; the first match counts)",
      [this](StringRef text) -> llvm::Error {
        groups.push_back(text.str());
        return llvm::Error::success();
      });
  add("clip-norm", "X", Stepping, "clip gradients by their global norm",
      flag::number<double>("clip-norm", opt.clipNorm, 0));
  add("accumulate", "K", Stepping,
      "micro-batches whose gradients make one update",
      flag::number<int64_t>("accumulate", opt.accumulate, 1));
  add("ema", "D", Stepping,
      "also keep averages of the weights, D * old + (1 - D) * new each step",
      flag::number<double>("ema", opt.ema, 0, 1, /*open=*/true));
  add("state-type", "TYPE", Stepping,
      "what optimizer states of weights are stored in: f32 (default), bf16, "
      "to which they are rounded at random, or int8: codes and a scale for 256",
      flag::oneOf("state-type", opt.stateType));
  add("param-type", "TYPE", Stepping,
      "what trained weights are stored in: f32 (default), or bf16, to which "
      "they are rounded at random",
      flag::oneOf("param-type", opt.paramType));
  readBy("");
  add("ema-out", "FILE", Train,
      "write the averaged weights (.onnx or .safetensors)",
      flag::outputFile("ema-out", o.emaOutput));
  add("save-trained", "", Train,
      "write what was trained alone, without frozen weights; adapters by "
      "PEFT's names",
      flag::turnOn(o.saveTrained));
}

void DriverFlags::addScheduleFlags() {
  table.beginSection("The learning rate");
  LearningRateSchedule &schedule = o.train.schedule;
  add("lr", "RATE", Stepping,
      "learning rate (default as in PyTorch: 1e-3; rmsprop and adagrad 1e-2, "
      "adamax and nadam 2e-3, adadelta 1, lion 1e-4)",
      flag::number<double>("lr", schedule.base, 0));
  add("lr-schedule", "KIND", Stepping,
      "constant (default), linear, cosine, step, multistep, exponential, "
      "onecycle, or file:PATH with a rate a line (docs/training.md)",
      flag::reads(
          [this, &schedule](StringRef text) -> llvm::Error {
            StringRef path = text;
            bool isFile = path.consume_front("file:");
            auto kind = parseScheduleKind(isFile ? "file" : text);
            if (!kind)
              return kind.takeError();
            if (*kind == ScheduleKind::File && (path.empty() || !isFile))
              return usageError(Setting("lr-schedule", "file:PATH") +
                                " needs the path");
            rateFile = isFile ? path.str() : "";
            schedule.kind = *kind;
            return llvm::Error::success();
          },
          rateFile));
  add("lr-unit", "UNIT", Stepping,
      "what a schedule counts: step (default) or epoch",
      [&schedule](StringRef text) -> llvm::Error {
        if (text != "step" && text != "epoch")
          return usageError(Setting("lr-unit") + ": '" + text +
                            "' is not one of step, epoch");
        schedule.byEpoch = text == "epoch";
        return llvm::Error::success();
      });
  add("total-steps", "N", Program,
      "linear, cosine, onecycle: where they end, in updates from the start",
      flag::number<int64_t>("total-steps", schedule.totalSteps, 1));
  add("warmup-steps", "N", Stepping,
      "linear warm-up before the schedule (in " + Setting("lr-unit") + ")",
      flag::number<int64_t>("warmup-steps", schedule.warmupSteps, 0));
  add("warmup-start", "R", Stepping,
      "the share of " + Setting("lr") +
          " that the warm-up begins with, to reach all of it behind its last "
          "step (0: as Transformers; default: 1 / N, and all in the last one)",
      [&schedule](StringRef text) {
        return flag::number<double>("warmup-start",
                                    schedule.warmupStart.emplace(), 0, 1)(text);
      });
  add("min-lr-ratio", "R", Stepping,
      "linear, cosine: where they end, as a share of " + Setting("lr"),
      flag::number<double>("min-lr-ratio", schedule.minRatio, 0));
  add("lr-gamma", "X", Stepping,
      "step, multistep, exponential: the factor (default 0.1)",
      flag::number<double>("lr-gamma", schedule.gamma, 0));
  add("lr-step-size", "N", Stepping, "step: how long a rate stays",
      flag::number<int64_t>("lr-step-size", schedule.stepSize, 1));
  add("lr-milestones", "N,N,...", Stepping,
      "multistep: where the factor applies",
      [&schedule](StringRef text) -> llvm::Error {
        llvm::SmallVector<StringRef> parts;
        text.split(parts, ',');
        schedule.milestones.clear();
        for (StringRef part : parts) {
          int64_t at = 0;
          if (llvm::Error error =
                  flag::number<int64_t>("lr-milestones", at, 0)(part))
            return error;
          schedule.milestones.push_back(at);
        }
        return llvm::Error::success();
      });
  add("lr-pct-start", "X", Stepping,
      "onecycle: the share of the run in which the rate rises (default 0.3)",
      flag::number<double>("lr-pct-start", schedule.warmShare, 0, 1));
  add("lr-div-factor", "X", Stepping,
      "onecycle: the first rate is " + Setting("lr") +
          " divided by it (default 25)",
      flag::number<double>("lr-div-factor", schedule.divide, 0));
  add("lr-final-div-factor", "X", Stepping,
      "onecycle: the last rate is the first divided by it (default 1e4)",
      flag::number<double>("lr-final-div-factor", schedule.divideFinal, 0));
  add("lr-anneal", "HOW", Stepping, "onecycle: cos (default) or linear",
      [&schedule](StringRef text) -> llvm::Error {
        if (text != "cos" && text != "linear")
          return usageError(Setting("lr-anneal") + ": '" + text +
                            "' is not one of cos, linear");
        schedule.linearCycle = text == "linear";
        return llvm::Error::success();
      });
}

//===----------------------------------------------------------------------===//
// Checks after parsing
//===----------------------------------------------------------------------===//

llvm::Error DriverFlags::settleGroups() {
  const OptimizerSettings &opt = o.compile.step.optimizer;
  const OptimizerKind &kind = *findOptimizer(opt.kind);
  for (const std::string &text : groups) {
    auto group = parseParameterGroup(text, kind);
    if (!group)
      return group.takeError();
    o.compile.groups.push_back(std::move(*group));
  }
  o.compile.learningRate = o.train.schedule.base;
  return llvm::Error::success();
}

llvm::Error DriverFlags::settleSchedule() {
  LearningRateSchedule &schedule = o.train.schedule;
  using Kind = ScheduleKind;
  struct {
    const char *flag;
    std::vector<Kind> kinds;
  } const needs[] = {
      {"min-lr-ratio", {Kind::Linear, Kind::Cosine}},
      {"lr-gamma", {Kind::Step, Kind::MultiStep, Kind::Exponential}},
      {"lr-step-size", {Kind::Step}},
      {"lr-milestones", {Kind::MultiStep}},
      {"lr-pct-start", {Kind::OneCycle}},
      {"lr-div-factor", {Kind::OneCycle}},
      {"lr-final-div-factor", {Kind::OneCycle}},
      {"lr-anneal", {Kind::OneCycle}},
  };
  for (const auto &[flag, kinds] : needs)
    if (given.count(flag) && !llvm::is_contained(kinds, schedule.kind)) {
      MessageText names;
      for (Kind kind : kinds)
        names += names.empty() ? Setting("lr-schedule", scheduleName(kind))
                               : MessageText(" or ") + scheduleName(kind);
      return usageError(Setting::ofFlag(flag) + " is for " + names + ", not " +
                        scheduleName(schedule.kind));
    }
  if (!rateFile.empty()) {
    auto rates = readRates(rateFile);
    if (!rates)
      return rates.takeError();
    schedule.rates = std::move(*rates);
  }
  LearningRateSchedule whole = schedule;
  whole.totalSteps =
      schedule.warmupSteps + 1; // the run's length is checked later
  return whole.verify();
}

llvm::Error DriverFlags::settleOptimizer() {
  OptimizerSettings &opt = o.compile.step.optimizer;
  o.train.schedule.base = learningRateOr(o.train.schedule.base, opt.kind);
  if (opt.kind.empty()) {
    for (const char *flag : {"clip-norm", "lr", "lr-schedule", "param-type",
                             "state-type", "warmup-steps"})
      if (given.count(flag))
        return usageError(Setting("optimizer", "none") +
                          " has no updates that " + Setting::ofFlag(flag) +
                          " could be about");
    if (!opt.values.empty() || !groups.empty() || opt.ema > 0)
      return usageError(
          Setting("optimizer", "none") + " has no updates that " +
          (groups.empty() && opt.values.empty() ? Setting("ema")
           : groups.empty() ? Setting::ofFlag(flagOf(opt.values.begin()->first))
                            : Setting("group")) +
          " could be about");
    return llvm::Error::success();
  }
  const OptimizerKind &kind = *findOptimizer(opt.kind);
  for (const auto &entry : opt.values)
    if (!kind.find(entry.first))
      return usageError(Setting::ofFlag(flagOf(entry.first)) + " is not for " +
                        kind.name + ", which has " + kind.parameterNames());
  if (hyperValue(kind, opt.values, "nesterov") != 0 &&
      (hyperValue(kind, opt.values, "momentum") <= 0 ||
       hyperValue(kind, opt.values, "dampening") != 0))
    return usageError(Setting("nesterov") + " needs " + Setting("momentum") +
                      " above 0 and no " + Setting("dampening"));
  if (llvm::Error error = settleSchedule())
    return error;
  return settleGroups();
}
