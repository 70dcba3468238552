//===- Schedule.h - learning-rate schedules ---------------------*- C++ -*-===//
//
// The learning rate as a pure function of the step, computed on the host and
// fed as a scalar: nothing to save in a checkpoint.
//
// With t = step - 1, w warm-up steps and T steps in all:
//   t <  w:  base * (t + 1) / w          (linear warm-up; reaches base at step
//   w) t >= w:  constant: base
//            linear:   base * (1 - (1 - m) p)
//            cosine:   base * (m + (1 - m) (1 + cos(pi p)) / 2)
// where p = min(1, (t - w) / (T - w)) and m is the smallest share of the base
// rate. Without warm-up the cosine is PyTorch's CosineAnnealingLR(T_max=T,
// eta_min=m*base).
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_SUPPORT_SCHEDULE_H
#define CKOPT_SUPPORT_SCHEDULE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>

namespace ckopt {

enum class ScheduleKind { Constant, Linear, Cosine };

struct LearningRateSchedule {
  ScheduleKind kind = ScheduleKind::Constant;
  double base = 1e-3;
  int64_t warmupSteps = 0;
  int64_t totalSteps = 0; ///< needed by linear and cosine
  double minRatio = 0;    ///< m

  /// The rate of a step; the first is step 1.
  double at(int64_t step) const;
  /// What is wrong with the fields, as a usage error.
  llvm::Error verify() const;
};

/// "constant", "linear-warmup" (constant after `warmupSteps`), "linear",
/// "cosine".
llvm::Expected<ScheduleKind> parseScheduleKind(llvm::StringRef text);
const char *scheduleName(ScheduleKind kind);

} // namespace ckopt

#endif // CKOPT_SUPPORT_SCHEDULE_H
