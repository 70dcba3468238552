//===- Schedule.cpp - learning-rate schedules -----------------------------===//
//
// See the header for the formulas. O(1) a step.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/Schedule.h"
#include "ckopt/Support/Error.h"
#include "llvm/ADT/StringSwitch.h"
#include <algorithm>
#include <cmath>

using namespace llvm;

namespace ckopt {

double LearningRateSchedule::at(int64_t step) const {
  const int64_t t = step - 1;
  if (t < warmupSteps)
    return base * (double(t + 1) / double(warmupSteps));
  if (kind == ScheduleKind::Constant)
    return base;
  const int64_t span = std::max<int64_t>(totalSteps - warmupSteps, 1);
  const double p = std::min(1.0, double(t - warmupSteps) / double(span));
  if (kind == ScheduleKind::Linear)
    return base * (1 - (1 - minRatio) * p);
  const double wave = 0.5 * (1 + std::cos(3.14159265358979323846 * p));
  return base * (minRatio + (1 - minRatio) * wave);
}

Error LearningRateSchedule::verify() const {
  if (!std::isfinite(base) || base < 0)
    return usageError("the learning rate must be a finite number, at least 0");
  if (warmupSteps < 0)
    return usageError("the number of warm-up steps must not be negative");
  if (!(minRatio >= 0 && minRatio <= 1))
    return usageError("the smallest learning rate's ratio must lie between 0 "
                      "and 1");
  if (kind != ScheduleKind::Constant && totalSteps <= warmupSteps)
    return usageError(Twine("the ") + scheduleName(kind) +
                      " schedule needs more steps in all (" +
                      Twine(totalSteps) + ") than warm-up steps (" +
                      Twine(warmupSteps) + ")");
  return Error::success();
}

Expected<ScheduleKind> parseScheduleKind(StringRef text) {
  const int kind = StringSwitch<int>(text)
                       .Cases({"constant", "linear-warmup"}, 0)
                       .Case("linear", 1)
                       .Case("cosine", 2)
                       .Default(-1);
  if (kind < 0)
    return usageError("unknown learning-rate schedule '" + text +
                      "': constant, linear-warmup, linear or cosine");
  return ScheduleKind(kind);
}

const char *scheduleName(ScheduleKind kind) {
  switch (kind) {
  case ScheduleKind::Constant:
    return "constant";
  case ScheduleKind::Linear:
    return "linear";
  case ScheduleKind::Cosine:
    return "cosine";
  }
  return "";
}

} // namespace ckopt
