//===- Curve.h - pictures of time against memory ----------------*- C++ -*-===//
//
// What a budget costs: the extra cost of the best plan found for each budget
// and, under it, what is proven for any plan; with the budgets that are proven
// too small. An SVG that opens anywhere. Plain numbers in, text out.
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
  double bound = 0;      ///< the same for what is proven of any plan
  double orderBound = 0; ///< ... of any plan in program order
};

struct TradeoffCurve {
  std::string title, subtitle;
  std::vector<TradeoffPoint> points; ///< by rising budget
  int64_t provenMinimum = 0;         ///< no budget below it is feasible; bytes
};

/// Between two points a plan for the smaller budget and a bound for the larger
/// one hold, so both lines are stairs.
std::string curveSvg(const TradeoffCurve &curve);

} // namespace ckopt

#endif // CKOPT_SUPPORT_CURVE_H
