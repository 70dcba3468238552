//===- Updates.h - one update of a run, and its state on disk ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What training from a source and training by single batches share, so that the
// same batches give the same bits, checks and checkpoints.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_DRIVER_UPDATES_H
#define CKOPT_LIB_DRIVER_UPDATES_H

#include "ckopt/Driver/Training.h"

namespace ckopt {

/// The option of a checkpoint that says where its schedule ends.
constexpr const char *horizonKey = "schedule-steps";

/// What updates depend on beside weights and batches.
struct UpdateSettings {
  const LearningRateSchedule &schedule;
  uint64_t seed = 0;
  int64_t accumulate = 1; ///< batches of an update
};

struct BatchOutcome {
  double loss = 0;
  double seconds = 0; ///< of the step itself, without feeding
};

/// Runs the batch that the session holds as a part of update `number` (from 1).
/// Of batches that `after` others of the same update follow, the gradients are
/// added up; the last one makes the update.
llvm::Expected<BatchOutcome> runBatch(Session &session,
                                      const UpdateSettings &settings,
                                      int64_t number, int64_t after);

/// Returns an error (ExitNonFinite) where an update's loss, the norm of its
/// gradients or, every so often, what it left is not finite.
llvm::Error checkUpdate(const Session &session, double loss, int64_t number);

/// Writes a checkpoint of a session's tensors, unless one is not finite.
llvm::Error saveRun(llvm::StringRef path, const Session &session,
                    TrainingState state);
/// Restores a session from a checkpoint of a run with the same options. Errors
/// name them as they are asked for; `schedule` tells from where its end comes.
llvm::Error restoreRun(llvm::StringRef path, Session &session,
                       const Checkpoint &checkpoint,
                       const StringMetadata &options,
                       const LearningRateSchedule &schedule);

} // namespace ckopt

#endif // CKOPT_LIB_DRIVER_UPDATES_H
