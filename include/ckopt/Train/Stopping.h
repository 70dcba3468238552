//===- Stopping.h - ends runs early on signals ------------------*- C++ -*-===//
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

/// While an object of this class lives, the first SIGINT, SIGTERM or SIGUSR1
/// (which mpirun passes on) is stored; the second one has its previous effect.
class SignalCatcher {
public:
  SignalCatcher();
  ~SignalCatcher();
  SignalCatcher(const SignalCatcher &) = delete;
  /// The stored signal, or 0.
  static int caught();
};

/// Returns "SIGINT", "SIGTERM" or "SIGUSR1".
const char *signalName(int number);

/// Decides after which step a run ends on request. Ranks get the request at
/// different steps, so they tell each other, about five times a second.
class StopCheck {
public:
  StopCheck(const std::function<int()> &asked, const Ranks &ranks)
      : asked(asked), ranks(ranks), last(ProgressClock::now()) {}
  /// Called after each step, by all ranks, with the number of this rank's
  /// signal, or 0.
  llvm::Expected<int> afterStep();

private:
  const std::function<int()> &asked;
  const Ranks &ranks;
  ProgressClock::time_point last;
  int64_t interval = 1, steps = 0; ///< between exchanges, since the last one
};

} // namespace ckopt

#endif // CKOPT_TRAIN_STOPPING_H
