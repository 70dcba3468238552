//===- JoinWorld.cpp - the processes of a command -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "ckopt/Compiler/Together.h"
#include "ckopt/Train/TrainRanks.h"

using namespace ckopt;

llvm::Error ckopt::joinWorld(DriverOptions &options) {
  int64_t ranks = options.compile.step.ranks;
  if (!options.collectives.empty()) {
    int64_t launched = launchedRanks();
    if (launched < 2)
      return usageError("--collectives times messages between ranks, and this "
                        "process was started alone: mpirun -n 2 ckopt bench "
                        "--collectives=" +
                        llvm::Twine(options.collectives));
    auto met = openWorld(launched, options.rankTimeout);
    if (!met)
      return met.takeError();
    options.compile.ranks = *met;
    options.compile.ranks.endAllOnFailure();
    return llvm::Error::success();
  }
  if (options.command != Command::Train) {
    if (int64_t launched = launchedRanks(); launched > 1)
      return usageError("mpirun started " + llvm::Twine(launched) +
                        " processes, which would all do the same: 'ckopt "
                        "train', 'ckopt bench --collectives' and ckopt-run "
                        "run on several");
    return llvm::Error::success();
  }
  auto line = [&](int64_t count) {
    const StepOptions &step = options.compile.step;
    return "mpirun -n " + std::to_string(count) + " ckopt train " +
           options.compile.model + " ... --parallel=" +
           (step.ranks == count ? parallelText(step)
                                : "dp:" + std::to_string(count)) +
           (options.target->traits.hasDevices
                ? "; or with RANK, WORLD_SIZE and --nccl-id=FILE for each"
                : "");
  };
  auto met = meetOthers(ranks, options.ncclId, options.rankTimeout, line);
  if (!met || !met->areSeveral())
    return met.takeError();
  met->endAllOnFailure();
  met->beginPreparing();
  options.compile.ranks = *met;
  if (llvm::Error error = agreeOnGiven(options.compile))
    return error;
  if (met->isMain()) {
    if (auto message = describeBinding(options.compile.step.threads);
        message && !options.quiet)
      printMessage(*message);
    return llvm::Error::success();
  }
  // Rank 0 writes and prints. Of weights that ranks share all know whether it
  // writes them, since it needs the others' parts.
  silence(options);
  if (options.compile.step.shards == 1)
    for (std::string *path : {&options.output, &options.emaOutput})
      path->clear();
  leaveFilesToMain(options.train);
  for (std::string *path :
       {&options.report, &options.timeline, &options.trace, &options.planOut,
        &options.planReport, &options.compile.phases.dumpDirectory})
    path->clear();
  return llvm::Error::success();
}
