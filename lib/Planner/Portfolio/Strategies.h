//===- Strategies.h - the table of strategies -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_PORTFOLIO_STRATEGIES_H
#define CKOPT_LIB_PLANNER_PORTFOLIO_STRATEGIES_H

#include "Model/Strategy.h"

namespace ckopt::planner {

/// Returns the strategies of "auto" and those that have to be named; within a
/// tier, "auto" runs them in this order.
const std::vector<Strategy> &strategies();

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_PORTFOLIO_STRATEGIES_H
