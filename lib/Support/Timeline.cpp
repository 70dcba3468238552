//===- Timeline.cpp - pictures of memory over a step ----------------------===//
//
// Panels of stacked areas on common scales. What a reader wants to see at
// once: how high the peak is, where, what it is made of, how it lies to the
// budget, and what recomputation costs. O(steps).
//
//===----------------------------------------------------------------------===//
#include "TimelineLayout.h"
#include "ckopt/Support/AtomicFile.h"
#include "ckopt/Support/ByteSize.h"
#include "ckopt/Support/Report.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <cmath>

using namespace llvm;

namespace ckopt {

namespace {

constexpr double pageWidth = 1120, plotLeft = 86, plotWidth = 880,
                 plotHeight = 270, panelHeight = 404, headHeight = 112;
constexpr const char *ink = "#1f2933", *faint = "#66717d", *grid = "#e4e8ec",
                     *budgetInk = "#c62828", *recomputeInk = "#8e5bb5";

/// Told apart with red-green blindness too; in the order of MemoryKind.
constexpr const char *colors[numMemoryKinds] = {"#33527f", "#7fa6d9", "#e39c3d",
                                                "#a3abb3", "#58a27c", "#b48bd2",
                                                "#d9cfa8", "#d5d9dd"};

class SvgWriter {
public:
  SvgWriter(raw_ostream &os, const Timeline &timeline)
      : os(os), timeline(timeline), scales(timeline) {}
  void write();

private:
  void head(double height);
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
  /// One decimal of a pixel is enough, and short.
  static std::string px(double value) {
    std::string text;
    raw_string_ostream(text) << format("%.1f", value);
    return text;
  }
  void text(double atX, double atY, const Twine &words, StringRef style) {
    os << "<text x=\"" << px(atX) << "\" y=\"" << px(atY) << "\" " << style
       << '>' << words << "</text>\n";
  }
  void line(double x1, double y1, double x2, double y2, StringRef style) {
    os << "<line x1=\"" << px(x1) << "\" y1=\"" << px(y1) << "\" x2=\""
       << px(x2) << "\" y2=\"" << px(y2) << "\" " << style << "/>\n";
  }
  void rect(double left, double top, double width, double height,
            const Twine &style) {
    os << "<rect x=\"" << px(left) << "\" y=\"" << px(top) << "\" width=\""
       << px(width) << "\" height=\"" << px(height) << "\" " << style;
  }

  raw_ostream &os;
  const Timeline &timeline;
  const TimelineScales scales;
};

} // namespace

void SvgWriter::head(double height) {
  os << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 "
     << px(pageWidth) << ' ' << px(height) << "\" width=\"" << px(pageWidth)
     << "\" height=\"" << px(height)
     << "\" font-family=\"Inter, Helvetica, Arial, DejaVu Sans, sans-serif\" "
        "font-size=\"13\" fill=\""
     << ink << "\">\n<title>" << escape(timeline.title) << "</title>\n";
  rect(0, 0, pageWidth, height, "fill=\"#ffffff\"/>\n");
  text(24, 38, escape(timeline.title), "font-size=\"21\" font-weight=\"600\"");
  text(24, 60, escape(timeline.subtitle),
       (Twine("fill=\"") + faint + "\"").str());
}

void SvgWriter::legend(double y) {
  double at = 24;
  for (size_t kind = 0; kind < numMemoryKinds; ++kind) {
    const bool present = any_of(timeline.panels, [&](const TimelinePanel &p) {
      return any_of(p.steps,
                    [&](const TimelineStep &s) { return s.bytes[kind] > 0; });
    });
    if (!present)
      continue;
    const StringRef name = memoryKindName(MemoryKind(kind));
    rect(at, y - 11, 13, 13,
         Twine("rx=\"2\" fill=\"") + colors[kind] + "\"/>\n");
    text(at + 19, y, name, "");
    at += 19 + 7.1 * double(name.size()) + 18;
  }
}

void SvgWriter::panelTitle(const TimelinePanel &panel, size_t number,
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
  text(24, top - 6, facts, (Twine("fill=\"") + faint + "\"").str());
}

void SvgWriter::axes(double top) {
  const std::string gridStyle = (Twine("stroke=\"") + grid + "\"").str();
  const std::string label =
      (Twine("fill=\"") + faint + "\" font-size=\"12\" text-anchor=\"").str();
  const double yStep = niceStep(scales.yMax / scales.unit, 5);
  for (int i = 0; i * yStep * scales.unit <= scales.yMax; ++i) {
    const double at = y(i * yStep * scales.unit, top);
    line(plotLeft, at, plotLeft + plotWidth, at, gridStyle);
    text(plotLeft - 8, at + 4, formatv("{0}", format("%g", i * yStep)),
         label + "end\"");
  }
  const double middle = top + plotHeight / 2;
  os << "<text transform=\"translate(34," << px(middle) << ") rotate(-90)\" "
     << label << "middle\">live memory (" << scales.unitName << ")</text>\n";
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
    line(at, bottom, at, bottom + 4, (Twine("stroke=\"") + faint + "\"").str());
    text(at, bottom + 34, formatv("{0}", format("%g", i * xStep)),
         label + "middle\"");
  }
  text(plotLeft + plotWidth / 2, bottom + 53,
       !scales.timed ? Twine("kernel call")
       : !timeline.costUnit.empty()
           ? Twine(timeline.costUnit)
           : Twine("expected time within the step (") + unit + ")",
       label + "middle\"");
}

void SvgWriter::areas(ArrayRef<TimelineBar> bars, double top) {
  std::vector<int64_t> base(bars.size(), 0);
  for (size_t kind = 0; kind < numMemoryKinds; ++kind) {
    if (none_of(bars,
                [&](const TimelineBar &b) { return b.step->bytes[kind] > 0; }))
      continue;
    // There along the upper edge, back along the lower one. Corners that
    // would lie on a straight line are left out.
    os << "<path fill=\"" << colors[kind] << "\" d=\"M" << px(x(bars[0].from))
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

/// Names under the pointer, in viewers that show titles.
void SvgWriter::hovers(ArrayRef<TimelineBar> bars, double top) {
  os << "<g fill=\"#000\" fill-opacity=\"0\">\n";
  for (const TimelineBar &bar : bars) {
    rect(x(bar.from), top, x(bar.to) - x(bar.from), plotHeight, "><title>");
    os << "call " << bar.index << ": " << escape(shorten(bar.step->name, 120))
       << (bar.step->recomputed ? " (again)" : "") << " - "
       << formatBytes(bar.step->total()) << " live</title></rect>\n";
  }
  os << "</g>\n";
}

/// Under the axis: phases. One whose parts are all too narrow for its name is
/// explained beside the axis's title.
void SvgWriter::phases(ArrayRef<TimelineBar> bars, double top) {
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
         Twine("fill=\"") + shades[size_t(it - known.begin()) % 3] + "\"/>\n");
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
    rect(right, top + plotHeight + 43, 12, 12,
         Twine("fill=\"") + shades[i % 3] + "\"/>\n");
    right -= 14;
  }
}

/// On the axis: marks where something is computed again.
void SvgWriter::recomputed(ArrayRef<TimelineBar> bars, double top) {
  if (none_of(bars, [](const TimelineBar &bar) { return bar.recomputed; }))
    return;
  os << "<g fill=\"" << recomputeInk << "\">\n";
  for (const TimelineBar &bar : bars)
    if (bar.recomputed)
      rect(x(bar.from), top + plotHeight - 4,
           std::max(0.8, x(bar.to) - x(bar.from)), 4, "/>\n");
  os << "</g>\n";
  text(plotLeft + plotWidth + 10, top + plotHeight, "recomputing",
       (Twine("font-size=\"12\" fill=\"") + recomputeInk + "\"").str());
}

/// The lines of the budget and of the arena's size, named at the right.
void SvgWriter::levels(const TimelinePanel &panel, double top) {
  const double right = plotLeft + plotWidth;
  const double arena = y(double(peakOf(panel)), top);
  const double budget = y(double(panel.budget), top);
  // Labels are two lines of 14 px each; where they would overlap, the arena's
  // goes below.
  double arenaLabel = arena;
  if (panel.budget && std::fabs(arena - budget) < 32)
    arenaLabel = arena < budget ? budget - 32 : budget + 32;
  line(plotLeft, arena, right + 6, arena,
       (Twine("stroke=\"") + ink + "\" stroke-dasharray=\"2 3\"").str());
  text(right + 10, arenaLabel - 2, "planned peak", "font-size=\"12\"");
  text(right + 10, arenaLabel + 12, formatBytes(peakOf(panel)),
       "font-size=\"12\" font-weight=\"600\"");
  if (!panel.budget)
    return;
  line(plotLeft, budget, right + 6, budget,
       (Twine("stroke=\"") + budgetInk +
        "\" stroke-width=\"1.6\" stroke-dasharray=\"8 4\"")
           .str());
  const std::string style =
      (Twine("font-size=\"12\" fill=\"") + budgetInk + "\"").str();
  text(right + 10, budget - 2, "budget", style);
  text(right + 10, budget + 12, formatBytes(panel.budget),
       style + " font-weight=\"600\"");
}

/// A dot on the highest load, with the call that runs there.
void SvgWriter::peak(ArrayRef<TimelineBar> bars, double top) {
  const TimelineBar *highest = &bars.front();
  for (const TimelineBar &bar : bars)
    if (bar.step->total() > highest->step->total())
      highest = &bar;
  const double atX = x((highest->from + highest->to) / 2);
  const double atY = y(double(highest->step->total()), top);
  os << "<circle cx=\"" << px(atX) << "\" cy=\"" << px(atY)
     << "\" r=\"4\" fill=\"#ffffff\" stroke=\"" << ink
     << "\" stroke-width=\"1.8\"/>\n";
  const std::string words = "peak load " + formatBytes(highest->step->total()) +
                            " in " + shorten(highest->step->name, 60);
  const double half = 3.4 * double(words.size());
  const double middle = std::clamp(
      atX, plotLeft + half + 4,
      std::max(plotLeft + half + 4, plotLeft + plotWidth - half - 4));
  // A white rim keeps it readable on lines and areas.
  text(middle, std::max(atY - 12, top + 10), escape(words),
       "text-anchor=\"middle\" font-size=\"12\" stroke=\"#ffffff\" "
       "stroke-width=\"4\" paint-order=\"stroke\" stroke-linejoin=\"round\"");
}

void SvgWriter::panel(const TimelinePanel &panel, size_t number, double top) {
  panelTitle(panel, number, top);
  axes(top);
  const std::vector<TimelineBar> bars = makeBars(panel, scales, plotWidth);
  if (!bars.empty()) {
    areas(bars, top);
    phases(bars, top);
    recomputed(bars, top);
  }
  line(plotLeft, top + plotHeight, plotLeft + plotWidth, top + plotHeight,
       (Twine("stroke=\"") + faint + "\"").str());
  levels(panel, top);
  if (!bars.empty()) {
    hovers(bars, top);
    peak(bars, top);
  }
}

void SvgWriter::write() {
  const double height =
      headHeight + panelHeight * double(timeline.panels.size()) + 4;
  head(height);
  legend(92);
  for (size_t i = 0; i < timeline.panels.size(); ++i)
    panel(timeline.panels[i], i, headHeight + panelHeight * double(i) + 60);
  os << "</svg>\n";
}

std::string timelineSvg(const Timeline &timeline) {
  std::string text;
  raw_string_ostream os(text);
  SvgWriter(os, timeline).write();
  return text;
}

Error writeTimelineSvg(StringRef path, const Timeline &timeline) {
  return writeFileAtomically(path, timelineSvg(timeline));
}

} // namespace ckopt
