//===- Schedule.h - learning-rate schedules ---------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A schedule is a pure function from the step to the learning rate, which the
// host computes and feeds as a scalar. So checkpoints need not hold any of it.
//
// With a schedule by steps t = step - 1. By epochs t is the number of whole
// epochs before the step, as if PyTorch called scheduler.step() once an epoch,
// and every number below counts epochs. With w for the length of the warm-up
// and T for the whole length:
//   t <  w:  base * (t + 1) / w          (linear warm-up; reaches base at w)
//   t >= w, s = t - w, p = min(1, s / (T - w)), m the smallest share of base:
//            constant:    base
//            linear:      base * (1 - (1 - m) p)
//            cosine:      base * (m + (1 - m) (1 + cos(pi p)) / 2)
//            step:        base * gamma^floor(s / size)
//            multistep:   base * gamma^(number of milestones <= s)
//            exponential: base * gamma^s
//            onecycle:    base / div rises to base while t <= pct T - 1, then
//                         falls to base / (div * final) at T - 1; by half a
//                         cosine or linearly
//            file:        the rate number t of a list, the last one ever after
// These are PyTorch's CosineAnnealingLR(T_max=T, eta_min=m*base), StepLR,
// MultiStepLR, ExponentialLR and OneCycleLR(cycle_momentum=False), after its
// LinearLR by SequentialLR.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TRAIN_DATA_SCHEDULE_H
#define CKOPT_TRAIN_DATA_SCHEDULE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace ckopt {

enum class ScheduleKind {
  Constant,
  Linear,
  Cosine,
  Step,
  MultiStep,
  Exponential,
  OneCycle,
  File
};

struct LearningRateSchedule {
  ScheduleKind kind = ScheduleKind::Constant;
  /// Not a number: the optimizer's default, if there is an optimizer
  /// (learningRateOr).
  double base = std::numeric_limits<double>::quiet_NaN();
  int64_t warmupSteps = 0;
  int64_t totalSteps = 0; ///< the end, for kinds that have one
  double minRatio = 0;    ///< m
  /// The share of the rate that the warm-up begins with, reaching all of it in
  /// the step behind the warm-up; nothing: it rises to all in its last step.
  std::optional<double> warmupStart = std::nullopt;

  double gamma = 0.1;
  int64_t stepSize = 0;
  std::vector<int64_t> milestones = {}; ///< ascending
  double warmShare = 0.3;               ///< onecycle: pct
  double divide = 25, divideFinal = 1e4;
  bool linearCycle = false;
  std::vector<double> rates = {}; ///< file

  bool byEpoch = false;
  int64_t batchesPerEpoch = 1, batchesPerStep = 1; ///< by epochs

  /// Returns the rate of a step; the first is step 1.
  double at(int64_t step) const;
  /// Returns t of the formulas above.
  int64_t timeOf(int64_t step) const {
    return byEpoch ? (step - 1) * batchesPerStep / batchesPerEpoch : step - 1;
  }
  /// Tells whether rates depend on totalSteps.
  bool hasEnd() const {
    return kind == ScheduleKind::Linear || kind == ScheduleKind::Cosine ||
           kind == ScheduleKind::OneCycle;
  }
  /// Returns what is wrong with the fields, as a usage error.
  llvm::Error verify() const;

private:
  double oneCycle(int64_t t) const;
};

/// "constant", "linear-warmup" (constant after `warmupSteps`), "linear",
/// "cosine", "step", "multistep", "exponential", "onecycle", "file".
llvm::Expected<ScheduleKind> parseScheduleKind(llvm::StringRef text);
const char *scheduleName(ScheduleKind kind);

/// A file of rates, one a line; empty lines and comments after # are skipped.
llvm::Expected<std::vector<double>> readRates(const std::string &path);

} // namespace ckopt

#endif // CKOPT_TRAIN_DATA_SCHEDULE_H
