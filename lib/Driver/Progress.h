//===- Progress.h - a training run on the terminal --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_DRIVER_PROGRESS_H
#define CKOPT_LIB_DRIVER_PROGRESS_H

#include "ckopt/Training/Metrics.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>

namespace ckopt {

using ProgressClock = std::chrono::steady_clock;

inline double secondsSince(ProgressClock::time_point start) {
  return std::chrono::duration<double>(ProgressClock::now() - start).count();
}

/// One line that is written over on a terminal, and a line an epoch elsewhere.
class ProgressLine {
public:
  /// `stepsPerEpoch` is 0 where it is not known.
  ProgressLine(bool on, int64_t epochs, int64_t stepsPerEpoch)
      : on(on), live(llvm::sys::Process::StandardErrIsDisplayed()),
        epochs(epochs), stepsPerEpoch(stepsPerEpoch),
        start(ProgressClock::now()) {}

  void step(int64_t epoch, int64_t inEpoch, bool epochEnds, double loss,
            double seconds) {
    bool last = stepsPerEpoch ? inEpoch == stepsPerEpoch : epochEnds;
    if (!on || (!live && !last) || (live && !last && secondsSince(shown) < 0.1))
      return;
    shown = ProgressClock::now();
    llvm::errs() << (live ? "\r" : "") << "epoch " << epoch + 1 << "/" << epochs
                 << "  step " << inEpoch;
    if (stepsPerEpoch)
      llvm::errs() << "/" << stepsPerEpoch;
    llvm::errs() << llvm::format("  loss %.6f  %.2f ms/step  %.1f s", loss,
                                 seconds * 1e3, secondsSince(start))
                 << (live ? "   " : "\n");
    dirty = live;
  }
  /// A line with what an evaluation in the middle of a run found.
  void validated(int64_t step, const MetricSums &sums, bool classified) {
    if (!on || !sums.count)
      return;
    finish();
    llvm::errs() << "step " << step
                 << llvm::format("  validation loss %.6f", sums.meanLoss());
    if (classified)
      llvm::errs() << llvm::format(", accuracy %.2f%%", sums.accuracy() * 100);
    llvm::errs() << "\n";
  }
  void finish() {
    if (dirty)
      llvm::errs() << "\n";
    dirty = false;
  }

private:
  bool on, live, dirty = false;
  int64_t epochs, stepsPerEpoch;
  ProgressClock::time_point start, shown;
};

} // namespace ckopt

#endif // CKOPT_LIB_DRIVER_PROGRESS_H
