//===- CurveSvg.cpp - pictures of time against memory ---------------------===//
//
// One plot, in the style of the memory timelines. Linear in the points.
//
//===----------------------------------------------------------------------===//
#include "TimelineLayout.h"
#include "ckopt/Support/ByteSize.h"
#include "ckopt/Support/Curve.h"
#include "ckopt/Support/Report.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <cmath>

using namespace llvm;

namespace ckopt {

namespace {

constexpr double pageWidth = 1000, pageHeight = 560, left = 90, right = 960,
                 top = 100, bottom = 480;
constexpr const char *ink = "#1f2933", *faint = "#66717d", *grid = "#e4e8ec",
                     *planInk = "#33527f", *boundInk = "#c62828",
                     *orderInk = "#e39c3d";

std::string px(double value) {
  std::string text;
  raw_string_ostream(text) << format("%.1f", value);
  return text;
}

class CurveWriter {
public:
  CurveWriter(raw_ostream &os, const TradeoffCurve &curve)
      : os(os), curve(curve) {
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
  void text(double atX, double atY, const Twine &words, const Twine &style) {
    os << "<text x=\"" << px(atX) << "\" y=\"" << px(atY) << "\" " << style
       << '>' << words << "</text>\n";
  }
  void axes();
  void stairs(double TradeoffPoint::*level, bool holdsBelow, const char *color,
              const char *name, double legendAt);
  void dots();

  raw_ostream &os;
  const TradeoffCurve &curve;
  double xMin = 0, xMax = 1, yMax = 0.001, unit = 1;
  const char *unitName = "B";
};

void CurveWriter::axes() {
  std::string label = (Twine("fill=\"") + faint + "\" font-size=\"12\"").str();
  double yStep = niceStep(yMax * 100, 6) / 100;
  for (int i = 0; i * yStep <= yMax; ++i) {
    double at = y(i * yStep);
    os << "<line x1=\"" << px(left) << "\" y1=\"" << px(at) << "\" x2=\""
       << px(right) << "\" y2=\"" << px(at) << "\" stroke=\"" << grid
       << "\"/>\n";
    std::string words = formatNumber(i * yStep * 100, 3) + " %";
    text(left - 8, at + 4, i ? words : "0 %", label + " text-anchor=\"end\"");
  }
  double xStep = niceStep((xMax - xMin) / unit, 8);
  for (double at = std::ceil(xMin / unit / xStep) * xStep; at * unit <= xMax;
       at += xStep)
    text(x(at * unit), bottom + 20, formatNumber(at, 4),
         label + " text-anchor=\"middle\"");
  text((left + right) / 2, bottom + 44, Twine("budget (") + unitName + ")",
       label + " text-anchor=\"middle\"");
  os << "<text transform=\"translate(28," << px((top + bottom) / 2)
     << ") rotate(-90)\" " << label
     << " text-anchor=\"middle\">cost above that without recomputation"
        "</text>\n";
}

/// A level that holds from each point on to the right (a plan for less is a
/// plan for more), or from each point to the left (a bound).
void CurveWriter::stairs(double TradeoffPoint::*level, bool holdsBelow,
                         const char *color, const char *name, double legendAt) {
  os << "<path fill=\"none\" stroke=\"" << color
     << "\" stroke-width=\"1.8\" d=\"M";
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
  os << "<line x1=\"" << px(legendAt) << "\" y1=\"80\" x2=\""
     << px(legendAt + 22) << "\" y2=\"80\" stroke=\"" << color
     << "\" stroke-width=\"3\"/>\n";
  text(legendAt + 28, 84, name, "font-size=\"12\"");
}

void CurveWriter::dots() {
  for (const TradeoffPoint &p : curve.points)
    os << "<circle cx=\"" << px(x(double(p.budget))) << "\" cy=\""
       << px(y(p.extra)) << "\" r=\"3.5\" fill=\"" << planInk << "\"><title>"
       << formatBytes(p.budget) << ": +" << formatPercent(p.extra, 3)
       << ", proven at least +" << formatPercent(std::max(p.bound, 0.0), 3)
       << "</title></circle>\n";
}

void CurveWriter::write() {
  os << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 "
     << px(pageWidth) << ' ' << px(pageHeight) << "\" width=\"" << px(pageWidth)
     << "\" height=\"" << px(pageHeight)
     << "\" font-family=\"Inter, Helvetica, Arial, DejaVu Sans, sans-serif\" "
        "font-size=\"13\" fill=\""
     << ink << "\">\n<title>" << escape(curve.title)
     << "</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
  text(24, 36, escape(curve.title), "font-size=\"20\" font-weight=\"600\"");
  text(24, 58, escape(curve.subtitle), Twine("fill=\"") + faint + "\"");
  double wall = std::clamp(x(double(curve.provenMinimum)), left, right);
  if (wall > left) {
    os << "<rect x=\"" << px(left) << "\" y=\"" << px(top) << "\" width=\""
       << px(wall - left) << "\" height=\"" << px(bottom - top)
       << "\" fill=\"#f3e3e3\"><title>proven: no plan fits below "
       << formatBytesExact(curve.provenMinimum) << "</title></rect>\n";
    text(wall - 6, top + 16, "no plan (proven)",
         Twine("font-size=\"11\" text-anchor=\"end\" fill=\"") + boundInk +
             "\"");
  }
  axes();
  if (!curve.points.empty()) {
    stairs(&TradeoffPoint::bound, true, boundInk, "proven, any order", 330);
    stairs(&TradeoffPoint::orderBound, true, orderInk, "proven, program order",
           500);
    stairs(&TradeoffPoint::extra, false, planInk, "plans found", 200);
    dots();
  }
  os << "</svg>\n";
}

} // namespace

std::string curveSvg(const TradeoffCurve &curve) {
  std::string text;
  raw_string_ostream os(text);
  CurveWriter(os, curve).write();
  return text;
}

} // namespace ckopt
