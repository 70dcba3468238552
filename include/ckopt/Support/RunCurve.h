//===- RunCurve.h - pictures of numbers over a training run -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_SUPPORT_RUNCURVE_H
#define CKOPT_SUPPORT_RUNCURVE_H

#include <cstdint>
#include <string>
#include <vector>

namespace ckopt {

/// One line of a picture.
struct RunSeries {
  struct Point {
    int64_t step = 0;
    double value = 0; ///< those that are not finite are left out
  };
  std::string name;
  std::vector<Point> points; ///< by rising step
  bool dots = false;         ///< few points, each of which counts
};

struct RunCurve {
  std::string title, subtitle;
  std::vector<RunSeries> series;
  bool percent = false; ///< values are shares
};

/// Draws values over steps, as an SVG: on a logarithmic scale where all are
/// above 0 and differ by more than a factor of 30. Lines of many points show
/// means of neighbors, and say of how many.
std::string runCurveSvg(const RunCurve &curve);

} // namespace ckopt

#endif // CKOPT_SUPPORT_RUNCURVE_H
