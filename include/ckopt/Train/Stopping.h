//===- Stopping.h - runs that end before their time -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TRAIN_STOPPING_H
#define CKOPT_TRAIN_STOPPING_H

#include "ckopt/Ranks/Ranks.h"
#include "ckopt/Train/Progress.h"

#include "llvm/Support/Error.h"

#include <functional>

namespace ckopt {

/// While one lives, the first SIGINT, SIGTERM or SIGUSR1 (which mpirun passes
/// on) is kept for those who ask; the second one does what it did before.
class SignalCatcher {
public:
  SignalCatcher();
  ~SignalCatcher();
  SignalCatcher(const SignalCatcher &) = delete;
  /// The signal that came, or 0.
  static int caught();
};

/// Returns "SIGINT", "SIGTERM" or "SIGUSR1".
const char *signalName(int number);

/// Decides after which step a run ends because it was asked to. Ranks are asked
/// at different steps: they tell each other, about five times a second.
class StopCheck {
public:
  StopCheck(const std::function<int()> &asked, const Ranks &ranks)
      : asked(asked), ranks(ranks), last(ProgressClock::now()) {}
  /// Called after each step, by all ranks: the number that one was given, or 0.
  llvm::Expected<int> afterStep();

private:
  const std::function<int()> &asked;
  const Ranks &ranks;
  ProgressClock::time_point last;
  int64_t interval = 1, steps = 0; ///< between two talks, and since the last
};

} // namespace ckopt

#endif // CKOPT_TRAIN_STOPPING_H
