//===- Updates.h - one update of a run, and its state on disk ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What training from a source and training by single batches share, so that the
// same batches give the same bits, checks and checkpoints.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRAIN_UPDATES_H
#define CKOPT_LIB_TRAIN_UPDATES_H

#include "ckopt/Train/Training.h"

namespace ckopt {

/// The option of a checkpoint that says where its schedule ends.
constexpr const char *horizonKey = "schedule-steps";
/// Which algorithms libraries chose on the device, as a hash.
constexpr const char *librariesKey = "libraries";

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

/// Starts the batch that the session holds as a part of update `number` (from
/// 1). Of batches that `after` others of the same update follow, the gradients
/// are added up; the last one makes the update. Returns at once on a device,
/// which works on.
llvm::Error startBatch(Session &session, const UpdateSettings &settings,
                       int64_t number, int64_t after);
/// The same, and waits for its loss.
llvm::Expected<BatchOutcome> runBatch(Session &session,
                                      const UpdateSettings &settings,
                                      int64_t number, int64_t after);

/// Forgets the gradients of batches whose update will not be made.
llvm::Error clearGradientSums(Session &session);

/// Watches which updates loss scaling skips.
class SkipWatch {
public:
  /// Reads where updates go on from.
  llvm::Error begin(const Session &session);
  /// Looks at update `number`. Returns an error (ExitNonFinite) where gradients
  /// overflow at a scale of 1 or less, so that no smaller one will help.
  llvm::Error update(const Session &session, int64_t number);

  /// Whether the last update was skipped.
  bool skipped() const { return lastSkipped; }
  const std::optional<LossScale> &state() const { return now; }
  int64_t count() const { return skips; } ///< since begin()
  /// Tells, once each time, that ten updates in a row were skipped.
  bool isStuck() const { return inRow == kStuck; }
  std::string describe() const;
  /// What to tell of a run of so many updates, all of which were skipped.
  MessageText describeUseless(int64_t updates) const;

private:
  static constexpr int64_t kStuck = 10;
  std::optional<LossScale> now;
  bool lastSkipped = false;
  int64_t skips = 0, inRow = 0;
};

/// Whether a batch may start before the last one's loss is read: on a device of
/// one process, where nothing else is read after each update.
bool mayRunOn(const Session &session, const SkipWatch &skips);

/// Returns an error (ExitNonFinite) where an update's loss, the norm of its
/// gradients or, every so often, what it left is not finite.
/// Of an update that was skipped only what it left counts.
llvm::Error checkUpdate(const Session &session, double loss, int64_t number,
                        bool skipped);

/// Writes a checkpoint of a session's tensors, unless one is not finite. Of
/// several ranks all must come here; each writes a share.
llvm::Error saveRun(llvm::StringRef path, const Session &session,
                    TrainingState state);
llvm::Error saveByRanks(llvm::StringRef path, const Session &session,
                        TrainingState state);
/// Restores a session from a checkpoint of a run with the same options. Errors
/// name them as they are asked for; `schedule` tells from where its end comes.
/// `warn` is told where the checkpoint brings a base that is not the model's,
/// and where libraries chose otherwise, which changes bits.
llvm::Error restoreRun(llvm::StringRef path, Session &session,
                       const OpenCheckpoint &checkpoint,
                       const StringMetadata &options,
                       const LearningRateSchedule &schedule,
                       llvm::function_ref<void(MessageText)> warn);

} // namespace ckopt

#endif // CKOPT_LIB_TRAIN_UPDATES_H
