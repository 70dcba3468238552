//===- Pareto.h - curves of time against memory -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_PLANNER_PARETO_H
#define CKOPT_PLANNER_PARETO_H

#include "ckopt/Planner/MessagePlanner.h"
#include "ckopt/Planner/Policy.h"
#include "ckopt/Planner/Solve.h"

namespace llvm {
class raw_ostream;
}

namespace ckopt::planner {

struct ParetoPoint {
  int64_t budget = 0; ///< bytes
  Result result;      ///< always has a plan
  /// The time of a step, with bounds on it: by the clock if there is one, else
  /// the plan's cost.
  double cost = 0, lowerBound = 0, orderLowerBound = 0;
  Status status = Status::Unknown; ///< as of plans, for this cost and bound
  std::optional<StepTime> time;    ///< only with a clock
};

/// Points from the smallest budget found to larger ones. Cost never rises with
/// the budget.
struct ParetoCurve {
  int64_t programPeak = 0; ///< load of the program order, aligned bytes
  double baseCost = 0;     ///< without recomputation, without a budget
  int64_t provenMinimum = 0;
  Scope scope; ///< as Answer::scope, for all statements of the curve
  std::vector<ParetoPoint> points;
  /// If there are no points, a result with the reason.
  Result error;
};

/// Computes pareto() and the figures that describe the curve as a whole. With
/// `constrained`, which applyPolicy() made from `graph`, every point is a plan
/// of `graph` that obeys the policy. With a clock of `graph` plans are chosen
/// by its times.
ParetoCurve paretoCurve(const Graph &graph, const Options &options, int points,
                        const PolicyGraph *constrained = nullptr,
                        MessageClock *clock = nullptr);

/// Prints a table, one line for each budget.
void printCurve(llvm::raw_ostream &os, const Graph &graph,
                const ParetoCurve &curve);

/// Returns ckopt-pareto/1 (docs/planner.md): every point with its whole plan.
std::string printPareto(const Graph &graph, const ParetoCurve &curve);

} // namespace ckopt::planner

#endif // CKOPT_PLANNER_PARETO_H
