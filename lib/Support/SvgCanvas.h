//===- SvgCanvas.h - what pictures are drawn with ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes an SVG page that any viewer opens: header, lines, boxes and text in
// one style. Coordinates are pixels from the upper left corner. Text that comes
// from outside has to go through escape() first.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_SUPPORT_SVGCANVAS_H
#define CKOPT_LIB_SUPPORT_SVGCANVAS_H

#include "TimelineLayout.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

namespace ckopt {

class SvgCanvas {
protected:
  using Text = const llvm::Twine &;
  static constexpr const char *ink = "#1f2933", *faint = "#66717d",
                              *grid = "#e4e8ec", *limit = "#c62828";

  explicit SvgCanvas(llvm::raw_ostream &os) : os(os) {}

  /// Opens the page; the headline and the line below it are escaped here.
  void begin(double width, double height, llvm::StringRef title,
             llvm::StringRef subtitle) {
    os << llvm::formatv("<svg xmlns=\"http://www.w3.org/2000/svg\" "
                        "viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" ",
                        px(width), px(height))
       << "font-family=\"Inter, Helvetica, Arial, DejaVu Sans, sans-serif\" "
          "font-size=\"13\" "
       << fill(ink) << ">\n<title>" << escape(title) << "</title>\n";
    rect(0, 0, width, height, fill("#ffffff"));
    text(24, 38, escape(title), "font-size=\"21\" font-weight=\"600\"");
    text(24, 60, escape(subtitle), fill(faint));
  }
  void end() { os << "</svg>\n"; }

  /// Prints one decimal of a pixel, which is precise enough.
  static std::string px(double value) { return llvm::formatv("{0:f1}", value); }
  /// Returns attributes: the color, then `more`.
  static std::string fill(llvm::StringRef color, Text more = "") {
    return ("fill=\"" + color + "\"" + more).str();
  }
  static std::string stroke(llvm::StringRef color, Text more = "") {
    return ("stroke=\"" + color + "\"" + more).str();
  }

  void text(double x, double y, Text words, Text style = "") {
    os << "<text x=\"" << px(x) << "\" y=\"" << px(y) << "\" " << style << '>'
       << words << "</text>\n";
  }
  /// Draws text that runs upwards, centered.
  void verticalText(double x, double y, Text words, Text style) {
    os << "<text transform=\"translate(" << px(x) << ',' << px(y)
       << ") rotate(-90)\" text-anchor=\"middle\" " << style << '>' << words
       << "</text>\n";
  }
  void line(double x1, double y1, double x2, double y2, Text style) {
    os << "<line x1=\"" << px(x1) << "\" y1=\"" << px(y1) << "\" x2=\""
       << px(x2) << "\" y2=\"" << px(y2) << "\" " << style << "/>\n";
  }
  /// Draws a box; viewers show `title` under the pointer.
  void rect(double left, double top, double width, double height, Text style,
            Text title = "") {
    os << "<rect x=\"" << px(left) << "\" y=\"" << px(top) << "\" width=\""
       << px(width) << "\" height=\"" << px(height) << "\" " << style;
    close("rect", title);
  }
  void circle(double x, double y, double radius, Text style, Text title = "") {
    os << "<circle cx=\"" << px(x) << "\" cy=\"" << px(y) << "\" r=\""
       << px(radius) << "\" " << style;
    close("circle", title);
  }

  llvm::raw_ostream &os;

private:
  void close(const char *element, Text title) {
    if (title.isTriviallyEmpty())
      os << "/>\n";
    else
      os << "><title>" << title << "</title></" << element << ">\n";
  }
};

} // namespace ckopt

#endif // CKOPT_LIB_SUPPORT_SVGCANVAS_H
