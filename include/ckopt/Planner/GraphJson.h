//===- GraphJson.h - ckopt-graph/1 and ckopt-plan/1 files -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_PLANNER_GRAPHJSON_H
#define CKOPT_PLANNER_GRAPHJSON_H

#include "ckopt/Planner/Solve.h"

#include <optional>
#include <string_view>

namespace llvm::json {
class OStream;
}

namespace ckopt::planner {

/// Reads ckopt-graph/1. On failure returns nothing and sets `error` to the
/// problems with their places, one a line, at most 20; no input crashes it. The
/// result is validated.
std::optional<Graph> parseGraph(std::string_view text, std::string &error);

/// Writes ckopt-graph/1.
std::string printGraph(const Graph &graph);

/// The contents of a ckopt-plan/1 file: the plan and further statements.
struct PlanFile {
  Plan plan;
  std::string graph;       ///< name of the graph it is for; may be empty
  int64_t budget = 0;      ///< bytes; 0: none stated
  bool statesPeak = false; ///< otherwise plan.peak is not compared
  /// Names of the graph's nodes by id, as plans of models state them; `graph`
  /// is then a function of the model.
  std::vector<std::string> nodes;
};

/// Reads ckopt-plan/1 for a graph; checks form and ids, not validity (see
/// verify()). Errors are returned as above.
std::optional<PlanFile> parsePlan(std::string_view text, const Graph &graph,
                                  std::string &error);

/// Reads a plan without a graph: ids stay as they are in the file.
std::optional<Plan> parsePlan(std::string_view text, std::string &error);

/// Writes `restricted_to` into the current object, in the form of all formats:
/// the name of the restriction, a list of several, or nothing for all plans.
void writeScope(llvm::json::OStream &out, const Scope &scope);

/// Writes ckopt-plan/1 for a plan (or, if the result has none, the statement
/// that the budget is infeasible). With `budget` 0, no budget is written.
std::string printPlan(const Graph &graph, const Result &result, int64_t budget);

} // namespace ckopt::planner

#endif // CKOPT_PLANNER_GRAPHJSON_H
