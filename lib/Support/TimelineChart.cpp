//===- TimelineChart.cpp - memory timelines as text -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Draws columns of block characters for a terminal or a log, one panel below
// the other on common scales. A column shows the highest load within it, so no
// peak is lost. O(steps + width * height).
//
//===----------------------------------------------------------------------===//
#include "TimelineLayout.h"
#include "ckopt/Support/ByteSize.h"
#include "ckopt/Support/Report.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>

using namespace llvm;

namespace ckopt {

namespace {

constexpr unsigned labelWidth = 11;

struct Glyphs {
  const char *parts[9]; ///< a cell filled by eighths
  const char *axis, *corner, *floor, *budget, *again;
};
constexpr Glyphs unicodeGlyphs = {
    {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}, "│", "└", "─", "╌", "▲"};
constexpr Glyphs asciiGlyphs = {
    {" ", " ", " ", ".", ".", ":", ":", "#", "#"}, "|", "+", "-", "-", "^"};

class Chart {
public:
  Chart(raw_ostream &os, const Timeline &timeline, const ChartOptions &options)
      : os(os), timeline(timeline), scales(timeline),
        glyphs(options.unicode ? unicodeGlyphs : asciiGlyphs),
        columns(std::clamp(options.width, 40u, 400u) - labelWidth - 2),
        rows(std::clamp(options.height, 3u, 60u)) {
    for (const TimelinePanel &panel : timeline.panels)
      top = std::max({top, peakLoad(panel), panel.budget});
  }
  void print() {
    for (const TimelinePanel &panel : timeline.panels)
      print(panel);
  }

private:
  void print(const TimelinePanel &panel);
  void printRow(const TimelinePanel &panel, unsigned row,
                ArrayRef<int64_t> loads);
  /// Computes, by column, the load and whether something is recomputed.
  void measure(const TimelinePanel &panel, std::vector<int64_t> &loads,
               std::vector<bool> &again) const;
  /// Returns the height of a level in eighths of a row.
  int64_t eighths(int64_t bytes) const {
    return int64_t(double(bytes) / double(top) * rows * 8 + 0.5);
  }

  raw_ostream &os;
  const Timeline &timeline;
  const TimelineScales scales;
  const Glyphs &glyphs;
  const unsigned columns, rows;
  int64_t top = 1;
};

void Chart::measure(const TimelinePanel &panel, std::vector<int64_t> &loads,
                    std::vector<bool> &again) const {
  loads.assign(columns, 0);
  again.assign(columns, false);
  double at = 0;
  for (const TimelineStep &step : panel.steps) {
    double end = at + (scales.timed ? std::max(step.seconds, 0.0) : 1);
    auto column = [&](double x) {
      return std::min<int64_t>(columns - 1, int64_t(x / scales.xMax * columns));
    };
    // A step that ends where a column begins is not part of that column.
    int64_t first = column(at), last = column(end);
    if (last > first && double(last) * scales.xMax / columns >= end)
      --last;
    for (int64_t c = first; c <= last; ++c) {
      loads[c] = std::max(loads[c], step.total());
      again[c] = again[c] || step.recomputed;
    }
    at = end;
  }
}

void Chart::printRow(const TimelinePanel &panel, unsigned row,
                     ArrayRef<int64_t> loads) {
  bool budgetHere =
      panel.budget > 0 &&
      std::clamp<int64_t>((eighths(panel.budget) - 1) / 8, 0, rows - 1) == row;
  std::string label;
  if (budgetHere)
    label = "budget";
  else if (row == rows - 1)
    label = formatBytes(top);
  else if (row == rows / 2)
    label = formatBytes(int64_t(double(top) * row / rows));
  os << right_justify(label, labelWidth) << ' ' << glyphs.axis;
  std::string line;
  for (int64_t load : loads) {
    int64_t part = std::clamp<int64_t>(eighths(load) - row * 8, 0, 8);
    line += part == 0 && budgetHere ? glyphs.budget : glyphs.parts[part];
  }
  os << StringRef(line).rtrim() << '\n';
}

void Chart::print(const TimelinePanel &panel) {
  std::vector<int64_t> loads;
  std::vector<bool> again;
  measure(panel, loads, again);
  os << panel.title << ": peak " << formatBytes(peakLoad(panel));
  if (scales.timed && timeline.costUnit.empty())
    os << ", " << formatSeconds(secondsOf(panel));
  else if (scales.timed)
    os << ", cost " << formatNumber(secondsOf(panel));
  os << '\n';
  for (unsigned row = rows; row-- > 0;)
    printRow(panel, row, loads);
  os << right_justify("0", labelWidth) << ' ' << glyphs.corner;
  for (unsigned c = 0; c < columns; ++c)
    os << glyphs.floor;
  os << '\n';
  if (is_contained(again, true)) {
    std::string line;
    for (bool here : again)
      line += here ? glyphs.again : " ";
    os << right_justify("again", labelWidth) << "  " << StringRef(line).rtrim()
       << '\n';
  }
}

} // namespace

std::string timelineChart(const Timeline &timeline,
                          const ChartOptions &options) {
  std::string text;
  raw_string_ostream os(text);
  Chart(os, timeline, options).print();
  return text;
}

} // namespace ckopt
