//===- RunChecks.h - checks of a training run -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TRAIN_RUNCHECKS_H
#define CKOPT_TRAIN_RUNCHECKS_H

#include "ckopt/Support/HostTensor.h"
#include "ckopt/Target/TargetOptions.h"
#include "ckopt/Train/Session.h"
#include "ckopt/Train/Training.h"

namespace ckopt {

/// Refuses pipes and devices as checkpoints, which are replaced whole, and
/// pipes as a log: opening one waits for a reader, maybe for ever.
llvm::Error checkRunFiles(const TrainOptions &options);

/// Returns an error (ExitNonFinite) for a loss or a norm that is not finite;
/// `step` is the last one that ran.
llvm::Error checkFinite(double value, const llvm::Twine &what, int64_t step);

/// Returns an error (ExitNonFinite) that names the first gradient, or the loss
/// among them, that is not finite; `where` says what happened to the numbers.
llvm::Error checkGradients(const TensorMap &gradients, Precision precision,
                           const llvm::Twine &where = "");

/// Returns whether the step computes the norm of its gradients.
bool hasGradientNorm(const Session &session);
/// Returns the error of checkFinite for the gradients' norm, if the step
/// computes it: clipping by an infinite norm would silently multiply all
/// gradients by 0.
llvm::Error checkGradientNorm(const Session &session, int64_t step);
/// Returns the same error for everything that a step stores.
llvm::Error checkState(const Session &session, int64_t step);

/// Steps between checks of the state: reading all weights costs as much as a
/// few of their updates.
constexpr int64_t kStateCheckEvery = 100;

/// Tells a diverging loss from a noisy one. A loss is far above its start if it
/// exceeds the first loss by more than ten times that loss's size; it diverges
/// if it stays there for five steps (or up to the end of a shorter run).
class DivergenceWatch {
public:
  /// Adds a loss; returns whether the run is known to diverge from this step
  /// on.
  bool add(int64_t step, double loss);
  /// Returns the first step of those at the end of the run that are far above
  /// the start, or 0 if there are none.
  int64_t leftAt() const { return above ? left : 0; }
  /// Returns whether `add` has returned true.
  bool wasReported() const { return reported; }
  MessageText describe() const;

private:
  int64_t firstStep = 0, lastStep = 0, left = 0, above = 0;
  double first = 0, last = 0;
  bool reported = false;
};

} // namespace ckopt

#endif // CKOPT_TRAIN_RUNCHECKS_H
