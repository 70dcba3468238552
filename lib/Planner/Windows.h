//===- Windows.h - polishes the best plan by trades -------------*- C++ -*-===//
//
// Private to lib/Planner.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_WINDOWS_H
#define CKOPT_LIB_PLANNER_WINDOWS_H

#include "Strategy.h"

namespace ckopt::planner {

/// Above, what fits into the work does not pay.
constexpr int32_t mostWindowsNodes = 5000;

/// Improves the cheapest known plan within the budget, first by annealing too
/// cool to leave its basin, then by trades from it (WindowsTrade.h), each
/// annealed in turn. Reports valid steps only; does nothing where no plan is
/// known, nothing is left to gain, or the graph is too large for it to help.
void runWindows(StrategyContext &context);

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_WINDOWS_H
