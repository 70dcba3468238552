//===- Deadline.h - when a search must end ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_MODEL_DEADLINE_H
#define CKOPT_LIB_PLANNER_MODEL_DEADLINE_H

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

namespace ckopt::planner {

/// When a search must end: after a number of work units, which makes results
/// reproducible, or by the clock, for the user's sake. A unit is an elementary
/// step of about 50 ns (a touched operand; a proposed move counts its
/// operands); strategies report their work by spend(), at least every
/// millisecond. A limit of a minute, the default, is a safety net for the whole
/// search: parts have no share of it, so that a busy machine makes the same
/// plan as a quiet one until the net itself is reached.
class Deadline {
public:
  explicit Deadline(double seconds, int64_t workUnits = 0)
      : limited(seconds > 0), shared(seconds < kNetSeconds),
        workLimit(workUnits),
        struck(std::make_shared<std::atomic<bool>>(false)),
        end(std::chrono::steady_clock::now() +
            std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                std::chrono::duration<double>(
                    seconds > 0 ? std::min(seconds, 1e7) : 0))) {}

  /// Counts work; returns false once the search must end.
  bool spend(int64_t units) {
    work += units;
    return !passed();
  }
  bool passed() const { return workPassed() || stale() || timePassed(); }
  bool workPassed() const { return workLimit > 0 && work >= workLimit; }
  bool timePassed() const {
    bool passed = limited && std::chrono::steady_clock::now() >= end;
    if (passed)
      *struck = true;
    return passed;
  }
  /// Tells whether the clock ended this search or a part of it.
  bool wasCutByTime() const { return *struck; }
  /// Also ends the search after this much work (0: any) without an improvement.
  void setPatience(int64_t units) { patience = units; }
  /// Reports an improvement, after which patience counts from 0.
  void gained() { lastGain = work; }
  bool stale() const { return patience > 0 && work - lastGain >= patience; }
  int64_t spent() const { return work; }
  int64_t unitsLeft() const {
    return workLimit == 0 ? 0 : std::max<int64_t>(1, workLimit - work);
  }
  bool hasWorkLimit() const { return workLimit > 0; }
  /// Returns a deadline for a part of the search, or a task on another thread:
  /// at most that share of the time left, at most `units` (0: no limit of its
  /// own) and at most the work left here. The caller adds its work here when it
  /// is done. Parallel tasks get their parts before any of them starts, so that
  /// the result does not depend on which is faster.
  Deadline part(int64_t units, double timeShare = 1) const {
    Deadline result = *this;
    result.work = result.lastGain = 0;
    int64_t left = std::max<int64_t>(1, workLimit - work);
    if (timeShare < 1 && limited && shared) {
      auto now = std::chrono::steady_clock::now();
      if (now < end)
        result.end =
            now +
            std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                (end - now) * timeShare);
    }
    result.workLimit = workLimit == 0 ? units
                       : units == 0   ? left
                                      : std::min(units, left);
    return result;
  }

private:
  /// Shorter limits are for the user's sake and are divided among parts: less
  /// than a minute, of which the search proper has a share.
  static constexpr double kNetSeconds = 50;

  bool limited, shared;
  int64_t workLimit, work = 0, patience = 0, lastGain = 0;
  std::shared_ptr<std::atomic<bool>> struck; ///< one for all parts
  std::chrono::steady_clock::time_point end;
};

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_MODEL_DEADLINE_H
