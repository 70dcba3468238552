//===- Schedule.cpp - learning-rate schedules -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See the header for the formulas. O(1) a step, O(milestones) for multistep.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Train/Data/Schedule.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/FlagTable.h"
#include "ckopt/Support/InputBuffer.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/LineIterator.h"
#include "llvm/Support/MemoryBuffer.h"
#include <algorithm>
#include <cmath>

using namespace llvm;

namespace ckopt {

static constexpr double pi = 3.14159265358979323846;

/// Goes from `start` to `end` as p goes from 0 to 1.
static double anneal(double start, double end, double p, bool linear) {
  if (linear)
    return start + (end - start) * p;
  return end + (start - end) / 2 * (1 + std::cos(pi * p));
}

double LearningRateSchedule::oneCycle(int64_t t) const {
  const double low = base / divide, last = low / divideFinal;
  const double top = warmShare * double(totalSteps) - 1;
  const double end = double(totalSteps - 1);
  const double now = std::min(double(t), end);
  if (now <= top)
    return anneal(low, base, now / top, linearCycle);
  return anneal(base, last, (now - top) / (end - top), linearCycle);
}

double LearningRateSchedule::at(int64_t step) const {
  const int64_t t = timeOf(step);
  if (kind == ScheduleKind::OneCycle)
    return oneCycle(t);
  if (kind == ScheduleKind::File)
    return rates[size_t(std::min<int64_t>(t, int64_t(rates.size()) - 1))];
  if (t < warmupSteps && warmupStart)
    return base * (*warmupStart +
                   (1 - *warmupStart) * (double(t) / double(warmupSteps)));
  if (t < warmupSteps)
    return base * (double(t + 1) / double(warmupSteps));
  const int64_t s = t - warmupSteps;
  const int64_t span = std::max<int64_t>(totalSteps - warmupSteps, 1);
  const double p = std::min(1.0, double(s) / double(span));
  switch (kind) {
  case ScheduleKind::Linear:
    return base * (1 - (1 - minRatio) * p);
  case ScheduleKind::Cosine:
    return base * (minRatio + (1 - minRatio) * 0.5 * (1 + std::cos(pi * p)));
  case ScheduleKind::Step:
    return base * std::pow(gamma, double(s / stepSize));
  case ScheduleKind::MultiStep:
    return base * std::pow(gamma, double(count_if(milestones, [&](int64_t at) {
                             return at <= s;
                           })));
  case ScheduleKind::Exponential:
    return base * std::pow(gamma, double(s));
  case ScheduleKind::Constant:
  case ScheduleKind::OneCycle:
  case ScheduleKind::File:
    break;
  }
  return base;
}

Error LearningRateSchedule::verify() const {
  const std::string units = byEpoch ? "epochs" : "steps";
  const Setting name("lr-schedule", scheduleName(kind));
  if (!std::isfinite(base) || base < 0)
    return usageError(Setting("lr") + " must be a finite number, at least 0");
  if (warmupSteps < 0)
    return usageError(Setting("warmup-steps") + " must not be negative");
  if (warmupStart && !(*warmupStart >= 0 && *warmupStart <= 1))
    return usageError(Setting("warmup-start") + " must lie between 0 and 1");
  if (!(minRatio >= 0 && minRatio <= 1))
    return usageError(Setting("min-lr-ratio") + " must lie between 0 and 1");
  if (hasEnd() && totalSteps <= warmupSteps)
    return usageError(name + " needs more " + units + " in all (" +
                      Twine(totalSteps) + ") than warm-up " + units + " (" +
                      Twine(warmupSteps) + ")");
  if (!(gamma > 0) || !std::isfinite(gamma))
    return usageError(Setting("lr-gamma") + " must be above 0");
  if (kind == ScheduleKind::Step && stepSize < 1)
    return usageError(name + " needs " + Setting("lr-step-size") +
                      " of 1 or more");
  if (kind == ScheduleKind::MultiStep &&
      (milestones.empty() || milestones.front() < 0 ||
       !std::is_sorted(milestones.begin(), milestones.end())))
    return usageError(name + " needs " + Setting("lr-milestones") +
                      ", in ascending order");
  bool ownShape = kind == ScheduleKind::OneCycle || kind == ScheduleKind::File;
  if (ownShape && warmupSteps)
    return usageError(name + " has a shape of its own: leave out " +
                      Setting("warmup-steps"));
  if (kind == ScheduleKind::OneCycle &&
      !(warmShare >= 0 && warmShare <= 1 && divide > 0 && divideFinal > 0))
    return usageError(name + " needs " + Setting("lr-pct-start") +
                      " from 0 to 1, and " + Setting("lr-div-factor") +
                      " and " + Setting("lr-final-div-factor") + " above 0");
  if (kind == ScheduleKind::File && rates.empty())
    return usageError("the schedule's file holds no rates");
  return Error::success();
}

static constexpr std::pair<const char *, ScheduleKind> names[] = {
    {"constant", ScheduleKind::Constant},
    {"linear", ScheduleKind::Linear},
    {"cosine", ScheduleKind::Cosine},
    {"step", ScheduleKind::Step},
    {"multistep", ScheduleKind::MultiStep},
    {"exponential", ScheduleKind::Exponential},
    {"onecycle", ScheduleKind::OneCycle},
    {"file", ScheduleKind::File},
};

Expected<ScheduleKind> parseScheduleKind(StringRef text) {
  if (text == "linear-warmup")
    return ScheduleKind::Constant;
  std::string known;
  for (auto [name, kind] : names) {
    if (text == name)
      return kind;
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  return usageError("unknown learning-rate schedule '" + text + "': " + known);
}

const char *scheduleName(ScheduleKind kind) {
  for (auto [name, one] : names)
    if (one == kind)
      return name;
  return "";
}

Expected<std::vector<double>> readRates(const std::string &path) {
  auto file = readInput(path, /*endsWithZero=*/true);
  if (!file)
    return file.takeError();
  std::vector<double> rates;
  for (line_iterator line(**file, /*SkipBlanks=*/true, '#'); !line.is_at_end();
       ++line) {
    StringRef text = line->split('#').first.trim();
    double rate = 0;
    if (text.empty())
      continue;
    if (!flag::parseReal(text, rate) || rate < 0)
      return inputError(path + ":" + Twine(line.line_number()) + ": '" + text +
                        "' is no learning rate");
    rates.push_back(rate);
  }
  if (rates.empty())
    return inputError(path + ": no learning rates in it; give one a line");
  return rates;
}

} // namespace ckopt
