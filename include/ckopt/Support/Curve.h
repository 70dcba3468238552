//===- Curve.h - pictures of time against memory ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The picture shows how much slower a step is under each budget: the extra cost
// of the best plan found, the proven lower bound under it, and the budgets that
// are proven too small. The result is a self-contained SVG as text.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_SUPPORT_CURVE_H
#define CKOPT_SUPPORT_CURVE_H

#include <cstdint>
#include <string>
#include <vector>

namespace ckopt {

struct TradeoffPoint {
  int64_t budget = 0;    ///< bytes
  double extra = 0;      ///< cost of the plan over the base cost, less one
  double bound = 0;      ///< the same of the bound for any plan
  double orderBound = 0; ///< the same of the bound in program order
};

struct TradeoffCurve {
  std::string title, subtitle;
  std::vector<TradeoffPoint> points; ///< by rising budget
  int64_t provenMinimum = 0;         ///< no budget below it is feasible; bytes
  /// Words behind "no plan" where all of it holds for some plans alone; else
  /// "".
  std::string plans;
};

/// Draws the curve. Between two budgets the plan for the smaller one still fits
/// and the bound for the larger one still holds, so both lines are stairs.
std::string curveSvg(const TradeoffCurve &curve);

} // namespace ckopt

#endif // CKOPT_SUPPORT_CURVE_H
