//===- Settings.h - options of a step by name and text ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs that compile steps for others (bindings, services) pass on options
// by name and text: the flags of `ckopt train` without dashes, with the
// driver's defaults, checks and messages.
//
//   auto settings = readSettings("model.onnx", {{"loss", "cross_entropy"},
//                                               {"optimizer", "adamw"},
//                                               {"memory-budget", "64MiB"}});
//   auto step = compile(settings->compile, settings->data);
//   auto run = StepRun::create(std::move(*step), settings->train,
//                              settings->load);
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_SETTINGS_SETTINGS_H
#define CKOPT_SETTINGS_SETTINGS_H

#include "ckopt/Support/FlagTable.h"
#include "ckopt/Train/Step.h"

#include <string>

namespace ckopt {

struct StepSettings {
  CompileOptions compile;
  DataOptions data;
  TrainOptions train;
  LoadOptions load;
  double rankTimeout = 0; ///< seconds; 0: none
  std::string ncclId;     ///< a file to connect ranks on devices; "": by MPI
};

/// Reads settings. One usage error lists all that are unknown or wrong. Flags
/// for the driver's files and its loop (`data`, `epochs`, `checkpoint`,
/// `report`, ...) are no settings; `total-steps` gives the end of a schedule,
/// which the driver takes from the epochs.
llvm::Expected<StepSettings>
readSettings(const std::string &model, llvm::ArrayRef<GivenSetting> settings);

/// Reads the settings that describe samples: `data`, `data-cache`, `tokens`,
/// `token-type`, `sequence`, `images`, `resize`, `augment`, `normalize`,
/// `inputs`, `targets`.
llvm::Error readDataSettings(llvm::ArrayRef<GivenSetting> settings,
                             DataOptions &data);

/// Checks the name and the value of one setting; readSettings() checks
/// combinations.
llvm::Error checkSetting(const GivenSetting &setting);
/// Returns all settings with their help, as `ckopt train --help` prints them.
std::string settingsHelp(SettingStyle style);

} // namespace ckopt

#endif // CKOPT_SETTINGS_SETTINGS_H
