//===- RunCurveSvg.cpp - pictures of numbers over a training run ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Draws one plot, in the style of the memory timelines. Linear in the points.
//
//===----------------------------------------------------------------------===//
#include "SvgCanvas.h"
#include "TimelineLayout.h"
#include "ckopt/Support/Report.h"
#include "ckopt/Support/RunCurve.h"
#include <algorithm>
#include <cmath>

using namespace llvm;

namespace ckopt {

namespace {

constexpr double runWidth = 1000, runHeight = 380, runLeft = 90, runRight = 960,
                 runTop = 96, runBottom = 316;
constexpr size_t kMostPoints = 800; ///< of a line: about one a pixel
constexpr const char *seriesInk[] = {"#33527f", "#e39c3d", "#4c8c62",
                                     "#8a4f7d"};

class RunCurveWriter : SvgCanvas {
public:
  RunCurveWriter(raw_ostream &os, const RunCurve &curve);
  void write();

private:
  static RunSeries thinned(const RunSeries &series);
  double level(double value) const {
    return logarithmic ? std::log10(value) : value;
  }
  double x(double step) const {
    return runLeft + (step - first) / (last - first) * (runRight - runLeft);
  }
  double y(double value) const {
    return runBottom -
           (level(value) - low) / (high - low) * (runBottom - runTop);
  }
  std::string words(double value) const {
    return curve.percent ? formatPercent(value, 1) : formatNumber(value, 3);
  }
  void axes();
  void draw(const RunSeries &series, const char *color, double legendAt);

  const RunCurve &curve;
  std::vector<RunSeries> lines;
  bool any = false, logarithmic = false;
  double first = 0, last = 1, low = 0, high = 1;
};

/// Drops what is not finite; means of neighbors where points are many.
RunSeries RunCurveWriter::thinned(const RunSeries &series) {
  RunSeries all = series, result = series;
  erase_if(all.points, [](const RunSeries::Point &point) {
    return !std::isfinite(point.value);
  });
  if (all.dots || all.points.size() <= kMostPoints)
    return all;
  const size_t group = (all.points.size() + kMostPoints - 1) / kMostPoints;
  result.name += " (means of " + std::to_string(group) + " steps)";
  result.points.clear();
  for (size_t i = 0; i < all.points.size(); i += group) {
    const size_t end = std::min(i + group, all.points.size());
    double sum = 0;
    for (size_t k = i; k < end; ++k)
      sum += all.points[k].value;
    result.points.push_back(
        {all.points[(i + end - 1) / 2].step, sum / double(end - i)});
  }
  return result;
}

RunCurveWriter::RunCurveWriter(raw_ostream &os, const RunCurve &curve)
    : SvgCanvas(os), curve(curve) {
  double least = INFINITY, most = -INFINITY;
  first = INFINITY;
  last = -INFINITY;
  for (const RunSeries &series : curve.series)
    lines.push_back(thinned(series));
  for (const RunSeries &series : lines)
    for (const RunSeries::Point &point : series.points) {
      any = true;
      least = std::min(least, point.value);
      most = std::max(most, point.value);
      first = std::min(first, double(point.step));
      last = std::max(last, double(point.step));
    }
  if (!any)
    return;
  if (first == last)
    last = first + 1;
  logarithmic = !curve.percent && least > 0 && most / least > 30;
  low = level(least);
  high = level(most);
  const double margin =
      high > low ? (high - low) * 0.05 : std::max(std::abs(high) * 0.05, 1e-3);
  low -= margin;
  high += margin;
}

void RunCurveWriter::axes() {
  const std::string label = fill(faint, " font-size=\"12\"");
  auto mark = [&](double value) {
    line(runLeft, y(value), runRight, y(value), stroke(grid));
    text(runLeft - 8, y(value) + 4, words(value),
         label + " text-anchor=\"end\"");
  };
  if (logarithmic) {
    for (double power = std::ceil(low); power <= high; ++power)
      mark(std::pow(10, power));
    if (std::floor(high) - std::ceil(low) < 1)
      for (double value : {std::pow(10, low + (high - low) * 0.1),
                           std::pow(10, low + (high - low) * 0.9)})
        mark(value);
  } else {
    const double step = niceStep(high - low, 6);
    for (double i = std::ceil(low / step); i * step <= high; ++i)
      mark(i * step);
  }
  const double step = std::max(niceStep(last - first, 8), 1.0);
  for (double i = std::ceil(first / step); i * step <= last; ++i)
    text(x(i * step), runBottom + 20, std::to_string(int64_t(i * step)),
         label + " text-anchor=\"middle\"");
  text((runLeft + runRight) / 2, runBottom + 44, "step",
       label + " text-anchor=\"middle\"");
}

void RunCurveWriter::draw(const RunSeries &series, const char *color,
                          double legendAt) {
  os << "<path fill=\"none\" " << stroke(color, " stroke-width=\"1.6\"")
     << " d=\"";
  const char *command = "M";
  for (const RunSeries::Point &point : series.points) {
    os << command << px(x(double(point.step))) << ' ' << px(y(point.value));
    command = "L";
  }
  os << "\"><title>" << escape(series.name) << "</title></path>\n";
  if (series.dots)
    for (const RunSeries::Point &point : series.points)
      circle(x(double(point.step)), y(point.value), 3.2, fill(color),
             "step " + Twine(point.step) + ": " + words(point.value));
  line(legendAt, 80, legendAt + 22, 80, stroke(color, " stroke-width=\"3\""));
  text(legendAt + 28, 84, escape(series.name), "font-size=\"12\"");
}

void RunCurveWriter::write() {
  begin(runWidth, runHeight, curve.title, curve.subtitle);
  if (any)
    axes();
  double legendAt = runLeft;
  size_t color = 0;
  for (const RunSeries &series : lines) {
    if (series.points.empty())
      continue;
    draw(series, seriesInk[color++ % std::size(seriesInk)], legendAt);
    legendAt += 60 + 7 * double(series.name.size());
  }
  end();
}

} // namespace

std::string runCurveSvg(const RunCurve &curve) {
  std::string text;
  raw_string_ostream os(text);
  RunCurveWriter(os, curve).write();
  return text;
}

} // namespace ckopt
