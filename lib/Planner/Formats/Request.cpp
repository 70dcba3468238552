//===- Request.cpp - what a graph's planning is asked for -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Planner/Request.h"
#include "ckopt/Planner/Report.h"
#include "ckopt/Planner/SearchFlags.h"
#include "ckopt/Planner/Verifier.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace ckopt;
using namespace ckopt::planner;

/// Adds the flags of a request, which store into it.
static void addRequestFlags(FlagTable &table, Request &request) {
  using Kind = MemoryBudget::Kind;
  auto set = [&request](llvm::Expected<MemoryBudget> budget) -> llvm::Error {
    if (!budget)
      return budget.takeError();
    if (budget->kind == Kind::Bytes && budget->bytes == 0)
      return usageError(
          Setting("budget") +
          ": 0 bytes hold nothing; 'min' asks for the smallest budget");
    if (request.budget.kind != Kind::Unlimited &&
        request.budget.kind != budget->kind)
      return usageError("give one budget");
    request.budget = *budget;
    return llvm::Error::success();
  };
  table.add("budget", "BYTES", 1,
            "limit, e.g. 512MiB; 'min': the smallest that can be found",
            [set](llvm::StringRef text) {
              return set(parseMemoryBudget(text, Setting("budget")));
            });
  table.add("budget-ratio", "R", 1,
            "R times what the program order needs, rounded up; 0 < R <= 1",
            [set](llvm::StringRef text) {
              return set(
                  parseBudgetRatio(text, Kind::Ratio, Setting("budget-ratio")));
            });
  table.add("pack", "", 1, "give each value an offset, and limit the arena",
            flag::turnOn(request.search.pack));
  addSearchFlags(
      request.search, [&](const SearchOption &row, Flag::Store store) {
        table.add(row.flag, row.value, 1, row.help, std::move(store));
      });
}

llvm::Expected<Request>
planner::readRequest(llvm::ArrayRef<GivenSetting> settings) {
  Request request;
  FlagTable table;
  addRequestFlags(table, request);
  if (llvm::Error error = table.store(settings, 1))
    return std::move(error);
  return request;
}

std::string planner::requestHelp(SettingStyle style) {
  Request request;
  FlagTable table;
  addRequestFlags(table, request);
  std::string text;
  llvm::raw_string_ostream stream(text);
  table.printHelp(stream, 1, style);
  return text;
}

int64_t planner::programLoad(const Graph &graph) {
  Plan program;
  program.steps.resize(graph.nodes.size());
  std::iota(program.steps.begin(), program.steps.end(), 0);
  return planPeak(graph, program, /*aligned=*/true);
}

int64_t planner::budgetBytes(const Graph &graph, const MemoryBudget &budget) {
  if (budget.kind == MemoryBudget::Kind::Bytes)
    return budget.bytes;
  if (budget.kind == MemoryBudget::Kind::Ratio)
    return std::max<int64_t>(
        1, int64_t(std::ceil(budget.ratio * double(programLoad(graph)))));
  return 0;
}

Result planner::planRequest(const Graph &graph, const Request &request) {
  if (request.budget.kind == MemoryBudget::Kind::Minimum) {
    Result result = BudgetPlanner(graph).minimize(request.search);
    result.budget = result.plan.minimumBudget;
    return result;
  }
  Options options = request.search;
  options.budget = budgetBytes(graph, request.budget);
  Result result = BudgetPlanner(graph).solve(options);
  result.budget = options.budget;
  return result;
}

llvm::Error planner::planError(const Result &result) {
  if (result.hasPlan())
    return llvm::Error::success();
  ExitCode code = ExitNoPlanFound;
  if (result.status() == Status::Error)
    code = result.internalError ? ExitInternal : ExitInputError;
  else if (result.status() == Status::Infeasible)
    code = ExitInfeasible;
  return makeError(code, result.message);
}

std::string planner::verifyFile(const Graph &graph, PlanFile &file,
                                int64_t budget) {
  Plan &plan = file.plan;
  std::string status = statusName(plan.status);
  if (!isPlan(plan.status))
    return plan.steps.empty()
               ? "it says that there is no plan ('" + status + "')"
               : "called " + status + ", and yet it has steps";
  if (!file.statesPeak) {
    if (std::string wrong = verifySteps(graph, plan); !wrong.empty())
      return wrong;
    plan.peak = planPeak(graph, plan, /*aligned=*/false);
  }
  return verify(graph, plan, budget > 0 ? budget : file.budget);
}
