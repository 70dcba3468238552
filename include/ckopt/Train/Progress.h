//===- Progress.h - a training run on the terminal --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TRAIN_PROGRESS_H
#define CKOPT_TRAIN_PROGRESS_H

#include "ckopt/Train/Data/Metrics.h"
#include "llvm/Support/Process.h"

#include <chrono>
#include <optional>
#include <string>

namespace ckopt {

using ProgressClock = std::chrono::steady_clock;

inline double secondsSince(ProgressClock::time_point start) {
  return std::chrono::duration<double>(ProgressClock::now() - start).count();
}

/// Returns the resident bytes of this process, 0 if the system does not tell.
int64_t residentBytes();

/// The progress of a run after a step.
struct RunPlace {
  int64_t epoch = 0;   ///< from 0
  int64_t inEpoch = 0; ///< steps of this epoch
  bool epochEnds = false;
  int64_t samples = 0;              ///< samples that this process trained on
  int64_t stepsDone = 0;            ///< steps by this process
  std::optional<int64_t> stepsLeft; ///< nothing: not known
};

/// Prints one line that is overwritten on a terminal, and a line for each epoch
/// elsewhere: position, loss, time of a step, samples a second, resident
/// memory, and the remaining time.
class ProgressLine {
public:
  /// `stepsPerEpoch` is 0 if it is not known.
  ProgressLine(bool on, int64_t epochs, int64_t stepsPerEpoch)
      : on(on), live(llvm::sys::Process::StandardErrIsDisplayed()),
        epochs(epochs), stepsPerEpoch(stepsPerEpoch),
        start(ProgressClock::now()) {}

  /// `more` follows the time.
  void step(const RunPlace &place, double loss, double seconds,
            llvm::StringRef more);
  /// A line with the result of an evaluation during a run; `more` comes from
  /// describeMetrics().
  void validated(int64_t step, const MetricSums &sums, llvm::StringRef more);
  void finish();

private:
  bool on, live, dirty = false;
  int64_t epochs, stepsPerEpoch;
  ProgressClock::time_point start, shown;
};

/// Formats an evaluation's accuracy, if it has one, and the requested metrics:
/// ", accuracy 97.01 %, top5 99.80 %".
std::string describeMetrics(const MetricSums &sums, bool classified,
                            llvm::ArrayRef<Metric> metrics);

} // namespace ckopt

#endif // CKOPT_TRAIN_PROGRESS_H
