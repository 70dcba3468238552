//===- WindowsExact.h - exact solutions of a few steps ----------*- C++ -*-===//
//
// Private to lib/Planner.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_WINDOWSEXACT_H
#define CKOPT_LIB_PLANNER_WINDOWSEXACT_H

#include "Strategy.h"

namespace ckopt::planner {

/// Solves windows of consecutive steps exactly, what is resident before and
/// after them being given, until no window within the limits has cheaper steps.
/// `steps` are valid and within the context's budget; so are those returned,
/// which are the same or cheaper. Reports nothing.
std::vector<NodeId> solveWindows(const StrategyContext &context,
                                 std::vector<NodeId> steps, Deadline &deadline);

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_WINDOWSEXACT_H
