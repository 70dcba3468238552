//===- Timeline.cpp - pictures of memory over a step ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Draws panels of stacked areas on common scales. They show how high the peak
// is, where it lies, which kinds of memory it consists of, how it compares with
// the budget, and what recomputation costs. O(steps).
//
//===----------------------------------------------------------------------===//
#include "SvgCanvas.h"
#include "TimelineLayout.h"
#include "ckopt/Support/AtomicFile.h"
#include "ckopt/Support/ByteSize.h"
#include "ckopt/Support/Report.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>
#include <cmath>

using namespace llvm;

namespace ckopt {

namespace {

constexpr double pageWidth = 1120, plotLeft = 86, plotWidth = 880,
                 plotHeight = 270, panelHeight = 404, headHeight = 112;
constexpr const char *recomputeInk = "#8e5bb5";

/// Colors in the order of MemoryKind, which people with red-green blindness can
/// tell apart as well.
constexpr const char *colors[numMemoryKinds] = {"#33527f", "#7fa6d9", "#e39c3d",
                                                "#a3abb3", "#58a27c", "#b48bd2",
                                                "#d9cfa8", "#d5d9dd"};

class TimelineWriter : SvgCanvas {
public:
  TimelineWriter(raw_ostream &os, const Timeline &timeline)
      : SvgCanvas(os), timeline(timeline), scales(timeline) {}
  void write();

private:
  void legend(double y);
  void panel(const TimelinePanel &panel, size_t number, double top);
  void panelTitle(const TimelinePanel &panel, size_t number, double top);
  void axes(double top);
  void areas(ArrayRef<TimelineBar> bars, double top);
  void hovers(ArrayRef<TimelineBar> bars, double top);
  void phases(ArrayRef<TimelineBar> bars, double top);
  void recomputed(ArrayRef<TimelineBar> bars, double top);
  void levels(const TimelinePanel &panel, double top);
  void peak(ArrayRef<TimelineBar> bars, double top);

  double x(double value) const {
    return plotLeft + value / scales.xMax * plotWidth;
  }
  double y(double bytes, double top) const {
    return top + plotHeight * (1 - bytes / scales.yMax);
  }

  const Timeline &timeline;
  const TimelineScales scales;
};

} // namespace

void TimelineWriter::legend(double y) {
  double at = 24;
  for (size_t kind = 0; kind < numMemoryKinds; ++kind) {
    const bool present = any_of(timeline.panels, [&](const TimelinePanel &p) {
      return any_of(p.steps,
                    [&](const TimelineStep &s) { return s.bytes[kind] > 0; });
    });
    if (!present)
      continue;
    const StringRef name = memoryKindName(MemoryKind(kind));
    rect(at, y - 11, 13, 13, fill(colors[kind], " rx=\"2\""));
    text(at + 19, y, name);
    at += 19 + 7.1 * double(name.size()) + 18;
  }
}

void TimelineWriter::panelTitle(const TimelinePanel &panel, size_t number,
                                double top) {
  text(24, top - 26, escape(shorten(panel.title, 100)),
       "font-size=\"16\" font-weight=\"600\"");
  const TimelinePanel &first = timeline.panels.front();
  std::string facts = "planned peak " + formatBytes(peakOf(panel));
  if (number && peakOf(first) > 0)
    facts += " (" +
             formatPercent(double(peakOf(panel)) / double(peakOf(first))) +
             " of the first)";
  if (scales.timed) {
    facts += timeline.costUnit.empty()
                 ? "   ·   expected time " + formatSeconds(secondsOf(panel))
                 : "   ·   " + timeline.costUnit + " " +
                       formatNumber(secondsOf(panel));
    const double base = secondsOf(first);
    if (number && base > 0) {
      const double more = secondsOf(panel) / base - 1;
      facts +=
          std::string(" (") + (more < 0 ? "" : "+") + formatPercent(more) + ")";
    }
  }
  const auto again = count_if(
      panel.steps, [](const TimelineStep &step) { return step.recomputed; });
  facts += "   ·   " + groupDigits(int64_t(panel.steps.size())) + " calls";
  if (again)
    facts += ", " + groupDigits(again) + " of them recomputed";
  text(24, top - 6, facts, fill(faint));
}

void TimelineWriter::axes(double top) {
  const std::string label = fill(faint, " font-size=\"12\"");
  const std::string centred = label + " text-anchor=\"middle\"";
  const double yStep = niceStep(scales.yMax / scales.unit, 5);
  for (int i = 0; i * yStep * scales.unit <= scales.yMax; ++i) {
    const double at = y(i * yStep * scales.unit, top);
    line(plotLeft, at, plotLeft + plotWidth, at, stroke(grid));
    text(plotLeft - 8, at + 4, formatv("{0}", format("%g", i * yStep)),
         label + " text-anchor=\"end\"");
  }
  verticalText(34, top + plotHeight / 2,
               Twine("live memory (") + scales.unitName + ")", label);
  const double bottom = top + plotHeight;
  double factor = 1;
  const char *unit = "s";
  for (const char *name : {"ms", "us", "ns"})
    if (scales.timed && timeline.costUnit.empty() && scales.xMax * factor < 1) {
      factor *= 1000;
      unit = name;
    }
  double xStep = niceStep(scales.xMax * factor, 8);
  if (!scales.timed)
    xStep = std::max(1.0, xStep);
  for (int i = 0; i * xStep / factor <= scales.xMax * (1 + 1e-9); ++i) {
    const double at = x(i * xStep / factor);
    line(at, bottom, at, bottom + 4, stroke(faint));
    text(at, bottom + 34, formatv("{0}", format("%g", i * xStep)), centred);
  }
  text(plotLeft + plotWidth / 2, bottom + 53,
       !scales.timed ? Twine("kernel call")
       : !timeline.costUnit.empty()
           ? Twine(timeline.costUnit)
           : Twine("expected time within the step (") + unit + ")",
       centred);
}

void TimelineWriter::areas(ArrayRef<TimelineBar> bars, double top) {
  std::vector<int64_t> base(bars.size(), 0);
  for (size_t kind = 0; kind < numMemoryKinds; ++kind) {
    if (none_of(bars,
                [&](const TimelineBar &b) { return b.step->bytes[kind] > 0; }))
      continue;
    // The outline runs right along the upper edge and back along the lower one.
    // Points within a straight line are left out.
    os << "<path " << fill(colors[kind]) << " d=\"M" << px(x(bars[0].from))
       << ' ' << px(y(double(base[0]), top));
    auto edge = [&](bool upper, size_t i) {
      return double(base[i] + (upper ? bars[i].step->bytes[kind] : 0));
    };
    for (size_t i = 0; i < bars.size(); ++i) {
      if (i == 0 || edge(true, i) != edge(true, i - 1))
        os << 'V' << px(y(edge(true, i), top));
      if (i + 1 == bars.size() || edge(true, i) != edge(true, i + 1))
        os << 'H' << px(x(bars[i].to));
    }
    for (size_t i = bars.size(); i-- > 0;) {
      if (i + 1 == bars.size() || edge(false, i) != edge(false, i + 1))
        os << 'V' << px(y(edge(false, i), top));
      if (i == 0 || edge(false, i) != edge(false, i - 1))
        os << 'H' << px(x(bars[i].from));
    }
    os << "Z\"><title>" << memoryKindName(MemoryKind(kind))
       << "</title></path>\n";
    for (size_t i = 0; i < bars.size(); ++i)
      base[i] += bars[i].step->bytes[kind];
  }
}

/// Writes names that viewers show under the pointer.
void TimelineWriter::hovers(ArrayRef<TimelineBar> bars, double top) {
  os << "<g fill=\"#000\" fill-opacity=\"0\">\n";
  for (const TimelineBar &bar : bars)
    rect(x(bar.from), top, x(bar.to) - x(bar.from), plotHeight, "",
         "call " + Twine(bar.index) + ": " +
             escape(shorten(bar.step->name, 120)) +
             (bar.step->recomputed ? " (again)" : "") + " - " +
             formatBytes(bar.step->total()) + " live");
  os << "</g>\n";
}

/// Writes the phases below the axis. If all parts of a phase are too narrow for
/// its name, the name is explained beside the axis's title.
void TimelineWriter::phases(ArrayRef<TimelineBar> bars, double top) {
  static const char *const shades[] = {"#cfd8e3", "#aab8c9", "#8797ab"};
  struct Phase {
    StringRef name;
    bool labelled;
  };
  std::vector<Phase> known;
  const double at = top + plotHeight + 5;
  for (size_t i = 0; i < bars.size();) {
    const StringRef name = bars[i].step->phase;
    size_t end = i;
    while (end < bars.size() && bars[end].step->phase == name)
      ++end;
    const double left = x(bars[i].from), right = x(bars[end - 1].to);
    i = end;
    if (name.empty())
      continue;
    auto it = find_if(known, [&](const Phase &p) { return p.name == name; });
    if (it == known.end())
      it = known.insert(it, Phase{name, false});
    rect(left, at, right - left, 14,
         fill(shades[size_t(it - known.begin()) % 3]));
    if (right - left <= 7.0 * double(name.size()) + 8)
      continue;
    it->labelled = true;
    text((left + right) / 2, at + 11, escape(name),
         "text-anchor=\"middle\" font-size=\"11\"");
  }
  double right = plotLeft + plotWidth;
  for (size_t i = known.size(); i-- > 0;) {
    if (known[i].labelled)
      continue;
    text(right, top + plotHeight + 53, escape(known[i].name),
         "text-anchor=\"end\" font-size=\"11\"");
    right -= 6.6 * double(known[i].name.size()) + 18;
    rect(right, top + plotHeight + 43, 12, 12, fill(shades[i % 3]));
    right -= 14;
  }
}

/// Marks on the axis where something is computed again.
void TimelineWriter::recomputed(ArrayRef<TimelineBar> bars, double top) {
  if (none_of(bars, [](const TimelineBar &bar) { return bar.recomputed; }))
    return;
  os << "<g " << fill(recomputeInk) << ">\n";
  for (const TimelineBar &bar : bars)
    if (bar.recomputed)
      rect(x(bar.from), top + plotHeight - 4,
           std::max(0.8, x(bar.to) - x(bar.from)), 4, "");
  os << "</g>\n";
  text(plotLeft + plotWidth + 10, top + plotHeight, "recomputing",
       fill(recomputeInk, " font-size=\"12\""));
}

/// Draws the lines of the budget and of the arena's size, with labels at the
/// right.
void TimelineWriter::levels(const TimelinePanel &panel, double top) {
  const double right = plotLeft + plotWidth;
  const double arena = y(double(peakOf(panel)), top);
  const double budget = y(double(panel.budget), top);
  // Labels are two lines of 14 px each; if they would overlap, the arena's
  // label goes below its line.
  double arenaLabel = arena;
  if (panel.budget && std::fabs(arena - budget) < 32)
    arenaLabel = arena < budget ? budget - 32 : budget + 32;
  line(plotLeft, arena, right + 6, arena,
       stroke(ink, " stroke-dasharray=\"2 3\""));
  text(right + 10, arenaLabel - 2, "planned peak", "font-size=\"12\"");
  text(right + 10, arenaLabel + 12, formatBytes(peakOf(panel)),
       "font-size=\"12\" font-weight=\"600\"");
  if (!panel.budget)
    return;
  line(plotLeft, budget, right + 6, budget,
       stroke(limit, " stroke-width=\"1.6\" stroke-dasharray=\"8 4\""));
  const std::string style = fill(limit, " font-size=\"12\"");
  text(right + 10, budget - 2, "budget", style);
  text(right + 10, budget + 12, formatBytes(panel.budget),
       style + " font-weight=\"600\"");
}

/// Draws a dot at the highest load, and names the call that runs there.
void TimelineWriter::peak(ArrayRef<TimelineBar> bars, double top) {
  const TimelineBar *highest = &bars.front();
  for (const TimelineBar &bar : bars)
    if (bar.step->total() > highest->step->total())
      highest = &bar;
  const double atX = x((highest->from + highest->to) / 2);
  const double atY = y(double(highest->step->total()), top);
  circle(atX, atY, 4,
         fill("#ffffff", " ") + stroke(ink, " stroke-width=\"1.8\""));
  const std::string words = "peak load " + formatBytes(highest->step->total()) +
                            " in " + shorten(highest->step->name, 60);
  const double half = 3.4 * double(words.size());
  const double middle = std::clamp(
      atX, plotLeft + half + 4,
      std::max(plotLeft + half + 4, plotLeft + plotWidth - half - 4));
  // A white outline keeps the text readable on lines and areas.
  text(middle, std::max(atY - 12, top + 10), escape(words),
       "text-anchor=\"middle\" font-size=\"12\" stroke=\"#ffffff\" "
       "stroke-width=\"4\" paint-order=\"stroke\" stroke-linejoin=\"round\"");
}

void TimelineWriter::panel(const TimelinePanel &panel, size_t number,
                           double top) {
  panelTitle(panel, number, top);
  axes(top);
  const std::vector<TimelineBar> bars = makeBars(panel, scales, plotWidth);
  if (!bars.empty()) {
    areas(bars, top);
    phases(bars, top);
    recomputed(bars, top);
  }
  line(plotLeft, top + plotHeight, plotLeft + plotWidth, top + plotHeight,
       stroke(faint));
  levels(panel, top);
  if (!bars.empty()) {
    hovers(bars, top);
    peak(bars, top);
  }
}

void TimelineWriter::write() {
  const double height =
      headHeight + panelHeight * double(timeline.panels.size()) + 4;
  begin(pageWidth, height, timeline.title, timeline.subtitle);
  legend(92);
  for (size_t i = 0; i < timeline.panels.size(); ++i)
    panel(timeline.panels[i], i, headHeight + panelHeight * double(i) + 60);
  end();
}

std::string timelineSvg(const Timeline &timeline) {
  std::string text;
  raw_string_ostream os(text);
  TimelineWriter(os, timeline).write();
  return text;
}

Error writeTimelineSvg(StringRef path, const Timeline &timeline) {
  return writeFileAtomically(path, timelineSvg(timeline));
}

} // namespace ckopt
