//===- TimelineLayout.cpp - what the picture is computed from -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Merges calls to columns where there are more calls than pixels. A column
// keeps the call with the most live bytes, so that no peak is lost. O(steps).
//
//===----------------------------------------------------------------------===//
#include "TimelineLayout.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"
#include <algorithm>
#include <cmath>

using namespace llvm;

namespace ckopt {

std::string escape(StringRef text) {
  std::string result;
  for (char c : json::fixUTF8(text)) {
    if (c == '&')
      result += "&amp;";
    else if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else if (c == '"')
      result += "&quot;";
    else if (uint8_t(c) >= 0x20) // XML has no control characters
      result += c;
  }
  return result;
}

std::string shorten(StringRef text, size_t limit) {
  if (text.size() <= limit)
    return text.str();
  const size_t part = (limit - 3) / 2;
  return json::fixUTF8(
      (text.take_front(part) + "..." + text.take_back(part)).str());
}

double niceStep(double range, int count) {
  const double raw = range / count;
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  for (double factor : {1.0, 2.0, 5.0})
    if (factor * power >= raw)
      return factor * power;
  return 10 * power;
}

int64_t peakLoad(const TimelinePanel &panel) {
  int64_t largest = 0;
  for (const TimelineStep &step : panel.steps)
    largest = std::max(largest, step.total());
  return largest;
}

int64_t peakOf(const TimelinePanel &panel) {
  return panel.plannedPeak ? panel.plannedPeak : peakLoad(panel);
}

double secondsOf(const TimelinePanel &panel) {
  double sum = 0;
  for (const TimelineStep &step : panel.steps)
    sum += std::max(step.seconds, 0.0);
  return sum;
}

TimelineScales::TimelineScales(const Timeline &timeline) {
  int64_t highest = 1;
  double longest = 0;
  size_t most = 1;
  for (const TimelinePanel &panel : timeline.panels) {
    highest =
        std::max({highest, peakLoad(panel), panel.plannedPeak, panel.budget});
    longest = std::max(longest, secondsOf(panel));
    most = std::max(most, panel.steps.size());
  }
  timed = longest > 0;
  xMax = timed ? longest : double(most);
  yMax = double(highest) * 1.16; // room for the peak's label
  static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  for (unsigned i = 1; i < std::size(names) && highest >= unit * 1024; ++i) {
    unit *= 1024;
    unitName = names[i];
  }
}

std::vector<TimelineBar> makeBars(const TimelinePanel &panel,
                                  const TimelineScales &scales, double pixels) {
  // A column narrower than a pixel cannot be seen.
  const double narrowest = scales.xMax / pixels;
  std::vector<TimelineBar> bars;
  double at = 0;
  for (const auto &[index, step] : enumerate(panel.steps)) {
    const double width = scales.timed ? std::max(step.seconds, 0.0) : 1;
    if (!bars.empty() && bars.back().to - bars.back().from < narrowest) {
      TimelineBar &last = bars.back();
      last.to = at + width;
      last.recomputed |= step.recomputed;
      if (step.total() > last.step->total()) {
        last.step = &step;
        last.index = index;
      }
    } else {
      bars.push_back({at, at + width, &step, index, step.recomputed});
    }
    at += width;
  }
  return bars;
}

} // namespace ckopt
