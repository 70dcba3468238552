//===- Options.cpp - options of a step from those of flags ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Settings/CommandLine.h"
#include "ckopt/Support/Error.h"

using namespace ckopt;

/// Commands that compute or apply gradients refuse a file that lacks
/// parameters.
static LostParameters onLost(const DriverOptions &options) {
  if (options.command == Command::Run || options.command == Command::Check)
    return LostParameters::Ignore;
  bool trains =
      options.command == Command::Train || options.command == Command::Grad;
  return trains && !options.allowInferenceExport ? LostParameters::Refuse
                                                 : LostParameters::Warn;
}

CompileOptions ckopt::compileOptions(const DriverOptions &options) {
  CompileOptions compile = options.compile;
  compile.remarks &= !options.quiet;
  compile.lost = onLost(options);
  compile.import.allowUnread |=
      options.command == Command::Run || options.command == Command::Import;
  bool wantsNumbers =
      options.command == Command::Run || options.command == Command::Grad;
  compile.import.needValues |=
      wantsNumbers && options.weights.empty() && !options.asksForInit;
  compile.instrument |= options.checkFinite || options.verifyRemat ||
                        options.profile || !options.profileOut.empty() ||
                        !options.calibrate.empty();
  return compile;
}

llvm::Error ckopt::readPlanning(DriverOptions &options) {
  RematSettings &remat = options.compile.step.remat;
  auto costs = parseCostModel(options.costModel);
  if (!costs)
    return costs.takeError();
  remat.costs = std::move(*costs);
  auto read = [](const std::string &path,
                 std::optional<StoredPlan> &plan) -> llvm::Error {
    if (path.empty())
      return llvm::Error::success();
    auto stored = StoredPlan::read(path);
    if (!stored)
      return stored.takeError();
    plan = std::move(*stored);
    return llvm::Error::success();
  };
  if (llvm::Error error = read(options.plan, remat.plan))
    return error;
  return read(options.planHint, remat.hint);
}

llvm::Expected<LoadOptions>
ckopt::readLoadOptions(const DriverOptions &options) {
  LoadOptions load;
  load.session.checkFinite = options.checkFinite;
  load.session.verifyRemat = options.verifyRemat;
  load.session.keepValues = options.keepValues;
  load.session.device = options.compile.device.ordinal;
  load.seed = options.seed;
  if (options.weights.empty())
    return std::move(load);
  auto file = StoredTensors::openPublished(options.weights);
  if (!file)
    return file.takeError();
  if (llvm::Error error = file->readAll().moveInto(load.weights))
    return std::move(error);
  load.weightsFile = "'" + options.weights + "'";
  load.weightsFolder = StoredTensors::folderOf(options.weights);
  return std::move(load);
}
