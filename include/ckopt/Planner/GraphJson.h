//===- GraphJson.h - ckopt-graph/1 and ckopt-plan/1 files -------*- C++ -*-===//
#ifndef CKOPT_PLANNER_GRAPHJSON_H
#define CKOPT_PLANNER_GRAPHJSON_H

#include "ckopt/Planner/Solve.h"

#include <optional>
#include <string_view>

namespace ckopt::planner {

/// Reads ckopt-graph/1. On failure returns nothing and `error` names the place
/// and what is wrong; no input crashes it. The result is validated.
std::optional<Graph> parseGraph(std::string_view text, std::string &error);

/// Writes ckopt-graph/1.
std::string printGraph(const Graph &graph);

/// Reads ckopt-plan/1; checks form, not validity (see verify()).
std::optional<Plan> parsePlan(std::string_view text, std::string &error);

/// Writes ckopt-plan/1 for a plan (or, where the result has none, the statement
/// that the budget is infeasible). `budget` 0: no budget is written.
std::string printPlan(const Graph &graph, const Result &result, int64_t budget);

} // namespace ckopt::planner

#endif // CKOPT_PLANNER_GRAPHJSON_H
