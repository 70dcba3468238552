//===- Request.h - requests to plan a graph ---------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs that plan graphs for others (ckopt-plan, the C interface, Python)
// share this code: it parses settings, converts budgets to bytes, maps answers
// to errors, and checks plans from files.
//
//   auto request = readRequest({{"budget", "2GiB"}, {"pack", ""}});
//   Result result = planRequest(graph, *request);
//   if (llvm::Error error = planError(result)) ...
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_PLANNER_REQUEST_H
#define CKOPT_PLANNER_REQUEST_H

#include "ckopt/Planner/GraphJson.h"
#include "ckopt/Support/ByteSize.h"
#include "ckopt/Support/FlagTable.h"

namespace ckopt::planner {

struct Request {
  Options search; ///< without the budget
  MemoryBudget budget;
};

/// Reads settings: `budget`, `budget-ratio`, `pack`, and the search's flags
/// (SearchFlags.h). One usage error lists all that are unknown or wrong;
/// checkSearch() checks combinations.
llvm::Expected<Request> readRequest(llvm::ArrayRef<GivenSetting> settings);
/// Returns these settings with their help.
std::string requestHelp(SettingStyle style);

/// Returns the load of the program order: the largest sum of live bytes, each
/// rounded up to the alignment.
int64_t programLoad(const Graph &graph);

/// Returns the budget in bytes: a ratio is one of programLoad(), rounded up; no
/// limit and the minimum are 0.
int64_t budgetBytes(const Graph &graph, const MemoryBudget &budget);

/// Plans the graph. The result's `budget` is the one asked for in bytes, or the
/// minimum that was found; 0: none.
Result planRequest(const Graph &graph, const Request &request);

/// Returns why there is no plan, with the exit code of ckopt-plan; success if
/// there is one.
llvm::Error planError(const Result &result);

/// Checks a plan from a file and its figures against `budget` (bytes; 0: the
/// file's, if it has one): returns the first defect, or "". Steps are checked
/// before anything simulates them. Sets the peak if none is stated.
std::string verifyFile(const Graph &graph, PlanFile &file, int64_t budget);

} // namespace ckopt::planner

#endif // CKOPT_PLANNER_REQUEST_H
