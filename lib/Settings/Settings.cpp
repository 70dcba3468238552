//===- Settings.cpp - what a step is asked for, by name -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Settings/Settings.h"
#include "ckopt/Settings/Flags.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Target/Targets.h"

#include <thread>

using namespace ckopt;

/// A schedule that ends has no epochs to take its end from.
static llvm::Error checkEnd(const LearningRateSchedule &schedule,
                            const std::set<std::string> &given) {
  if (schedule.byEpoch)
    return usageError(Setting("lr-unit", "epoch") +
                      ": who brings batches counts in updates; leave it out");
  bool ends = given.count("total-steps");
  const Setting kind("lr-schedule", scheduleName(schedule.kind));
  if (schedule.hasEnd() && !ends)
    return usageError(kind + " needs " + Setting("total-steps") +
                      ": where it ends");
  if (!schedule.hasEnd() && ends)
    return usageError(Setting("total-steps") + " is not for " + kind +
                      ", which has no end");
  return schedule.verify();
}

llvm::Error ckopt::checkSetting(const GivenSetting &setting) {
  registerAllTargets();
  DriverOptions options;
  DriverFlags flags(options);
  return flags.table.store(setting, takers::Program);
}

llvm::Error ckopt::readDataSettings(llvm::ArrayRef<GivenSetting> settings,
                                    DataOptions &data) {
  registerAllTargets();
  DriverOptions options;
  options.data = data;
  DriverFlags flags(options);
  if (llvm::Error error = flags.table.store(settings, takers::Train))
    return error;
  if (llvm::Error error = checkDataFlags(options.data))
    return error;
  data = std::move(options.data);
  return llvm::Error::success();
}

std::string ckopt::settingsHelp(SettingStyle style) {
  registerAllTargets();
  DriverOptions options;
  DriverFlags flags(options);
  std::string text;
  llvm::raw_string_ostream stream(text);
  flags.table.printHelp(stream, takers::Program, style);
  return text;
}

llvm::Expected<StepSettings>
ckopt::readSettings(const std::string &model,
                    llvm::ArrayRef<GivenSetting> settings) {
  registerAllTargets(); // flags name them
  DriverOptions options;
  // As strict as commands that derive gradients; updates are no must.
  options.command = Command::Grad;
  options.compile.model = model;
  options.compile.step.threads =
      int32_t(std::max(1u, std::thread::hardware_concurrency()));
  DriverFlags flags(options);
  if (llvm::Error error = flags.table.store(settings, takers::Program))
    return std::move(error);
  if (llvm::Error error = flags.settle())
    return std::move(error);
  if (llvm::Error error = checkEnd(options.train.schedule, flags.given))
    return std::move(error);
  if (llvm::Error error = readPlanning(options))
    return std::move(error);
  auto load = readLoadOptions(options);
  if (!load)
    return load.takeError();
  return StepSettings{compileOptions(options), options.data,
                      options.train,           std::move(*load),
                      options.rankTimeout,     options.ncclId};
}
