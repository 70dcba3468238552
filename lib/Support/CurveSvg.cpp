//===- CurveSvg.cpp - pictures of time against memory ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Draws one plot, in the style of the memory timelines. Linear in the points.
//
//===----------------------------------------------------------------------===//
#include "SvgCanvas.h"
#include "TimelineLayout.h"
#include "ckopt/Support/ByteSize.h"
#include "ckopt/Support/Curve.h"
#include "ckopt/Support/Report.h"
#include <algorithm>
#include <cmath>

using namespace llvm;

namespace ckopt {

namespace {

constexpr double pageWidth = 1000, pageHeight = 560, left = 90, right = 960,
                 top = 100, bottom = 480;
constexpr const char *planInk = "#33527f", *orderInk = "#e39c3d";

class CurveWriter : SvgCanvas {
public:
  CurveWriter(raw_ostream &os, const TradeoffCurve &curve)
      : SvgCanvas(os), curve(curve) {
    xMax = double(std::max<int64_t>(curve.provenMinimum, 1));
    xMin = xMax;
    for (const TradeoffPoint &p : curve.points) {
      xMax = std::max(xMax, double(p.budget));
      xMin = std::min(xMin, double(p.budget));
      yMax = std::max({yMax, p.extra, p.bound, p.orderBound});
    }
    double margin = std::max(xMax - xMin, 0.05 * xMax) * 0.06;
    xMin = std::max(0.0, xMin - margin);
    xMax += margin;
    yMax *= 1.08;
    for (const char *name : {"KiB", "MiB", "GiB", "TiB"})
      if (xMax >= unit * 1024) {
        unit *= 1024;
        unitName = name;
      }
  }
  void write();

private:
  double x(double bytes) const {
    return left + (bytes - xMin) / (xMax - xMin) * (right - left);
  }
  double y(double extra) const {
    return bottom - std::max(extra, 0.0) / yMax * (bottom - top);
  }
  void axes();
  void stairs(double TradeoffPoint::*level, bool holdsBelow, const char *color,
              const char *name, double legendAt);
  void dots();

  const TradeoffCurve &curve;
  double xMin = 0, xMax = 1, yMax = 0.001, unit = 1;
  const char *unitName = "B";
};

void CurveWriter::axes() {
  const std::string label = fill(faint, " font-size=\"12\"");
  const std::string centred = label + " text-anchor=\"middle\"";
  double yStep = niceStep(yMax * 100, 6) / 100;
  for (int i = 0; i * yStep <= yMax; ++i) {
    double at = y(i * yStep);
    line(left, at, right, at, stroke(grid));
    std::string words = formatNumber(i * yStep * 100, 3) + " %";
    text(left - 8, at + 4, i ? words : "0 %", label + " text-anchor=\"end\"");
  }
  double xStep = niceStep((xMax - xMin) / unit, 8);
  for (double at = std::ceil(xMin / unit / xStep) * xStep; at * unit <= xMax;
       at += xStep)
    text(x(at * unit), bottom + 20, formatNumber(at, 4), centred);
  text((left + right) / 2, bottom + 44, Twine("budget (") + unitName + ")",
       centred);
  verticalText(28, (top + bottom) / 2, "cost above that without recomputation",
               label);
}

/// Draws a step function whose value holds from each point on to the right (a
/// plan for less memory is also a plan for more), or to the left (a bound).
void CurveWriter::stairs(double TradeoffPoint::*level, bool holdsBelow,
                         const char *color, const char *name, double legendAt) {
  os << "<path fill=\"none\" " << stroke(color, " stroke-width=\"1.8\"")
     << " d=\"M";
  const std::vector<TradeoffPoint> &points = curve.points;
  for (size_t i = 0; i < points.size(); ++i) {
    double atX = x(double(points[i].budget)), atY = y(points[i].*level);
    if (i == 0)
      os << px(atX) << ' ' << px(atY);
    else if (holdsBelow)
      os << 'V' << px(atY) << 'H' << px(atX);
    else
      os << 'H' << px(atX) << 'V' << px(atY);
  }
  os << "\"><title>" << name << "</title></path>\n";
  line(legendAt, 80, legendAt + 22, 80, stroke(color, " stroke-width=\"3\""));
  text(legendAt + 28, 84, name, "font-size=\"12\"");
}

void CurveWriter::dots() {
  for (const TradeoffPoint &p : curve.points)
    circle(x(double(p.budget)), y(p.extra), 3.5, fill(planInk),
           formatBytes(p.budget) + ": +" + formatPercent(p.extra, 3) +
               ", proven at least +" +
               formatPercent(std::max(p.bound, 0.0), 3));
}

void CurveWriter::write() {
  begin(pageWidth, pageHeight, curve.title, curve.subtitle);
  double wall = std::clamp(x(double(curve.provenMinimum)), left, right);
  if (wall > left) {
    rect(left, top, wall - left, bottom - top, fill("#f3e3e3"),
         "proven: no plan" + curve.plans + " fits below " +
             formatBytesExact(curve.provenMinimum));
    text(wall - 6, top + 16, "no plan" + curve.plans + " (proven)",
         fill(limit, " font-size=\"11\" text-anchor=\"end\""));
  }
  axes();
  if (!curve.points.empty()) {
    stairs(&TradeoffPoint::bound, true, limit, "proven, any order", 330);
    stairs(&TradeoffPoint::orderBound, true, orderInk, "proven, program order",
           500);
    stairs(&TradeoffPoint::extra, false, planInk, "plans found", 200);
    dots();
  }
  end();
}

} // namespace

std::string curveSvg(const TradeoffCurve &curve) {
  std::string text;
  raw_string_ostream os(text);
  CurveWriter(os, curve).write();
  return text;
}

} // namespace ckopt
