//===- Progress.cpp - a training run on the terminal ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Train/Progress.h"
#include "ckopt/Support/ByteSize.h"
#include "ckopt/Support/Report.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdio>
#include <unistd.h>

using namespace ckopt;

int64_t ckopt::residentBytes() {
  std::FILE *file = std::fopen("/proc/self/statm", "r");
  if (!file)
    return 0;
  long long pages = 0, resident = 0;
  int read = std::fscanf(file, "%lld %lld", &pages, &resident);
  std::fclose(file);
  return read == 2 ? int64_t(resident) * int64_t(sysconf(_SC_PAGESIZE)) : 0;
}

std::string ckopt::describeMetrics(const MetricSums &sums, bool classified,
                                   llvm::ArrayRef<Metric> metrics) {
  std::string text;
  auto add = [&](const Metric &metric) {
    text += ", " + metric.name() + " " + metric.format(metric.of(sums));
  };
  if (classified)
    add({Metric::Kind::Accuracy});
  for (const Metric &metric : metrics)
    if (metric.kind != Metric::Kind::Loss &&
        metric.kind != Metric::Kind::Accuracy)
      add(metric);
  return text;
}

void ProgressLine::step(const RunPlace &place, double loss, double seconds,
                        llvm::StringRef more) {
  bool last = stepsPerEpoch ? place.inEpoch == stepsPerEpoch : place.epochEnds;
  if (!on || (!live && !last) || (live && !last && secondsSince(shown) < 0.1))
    return;
  shown = ProgressClock::now();
  const double elapsed = secondsSince(start);
  llvm::errs() << (live ? "\r" : "") << "epoch " << place.epoch + 1 << "/"
               << epochs << "  step " << place.inEpoch;
  if (stepsPerEpoch)
    llvm::errs() << "/" << stepsPerEpoch;
  llvm::errs() << llvm::format("  loss %.6f  %.2f ms/step  %.1f s", loss,
                               seconds * 1e3, elapsed)
               << more;
  if (elapsed > 0)
    llvm::errs() << "  "
                 << groupDigits(int64_t(double(place.samples) / elapsed))
                 << " samples/s";
  if (int64_t bytes = residentBytes())
    llvm::errs() << "  " << formatBytes(bytes) << " resident";
  if (place.stepsLeft && place.stepsDone)
    llvm::errs() << "  "
                 << formatSeconds(elapsed / double(place.stepsDone) *
                                  double(*place.stepsLeft))
                 << " left";
  llvm::errs() << (live ? "   " : "\n");
  dirty = live;
}

void ProgressLine::validated(int64_t step, const MetricSums &sums,
                             llvm::StringRef more) {
  if (!on || !sums.count)
    return;
  finish();
  llvm::errs() << "step " << step
               << llvm::format("  validation loss %.6f", sums.meanLoss())
               << more << "\n";
}

void ProgressLine::finish() {
  if (dirty)
    llvm::errs() << "\n";
  dirty = false;
}
