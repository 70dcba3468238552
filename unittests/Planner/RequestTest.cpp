//===- RequestTest.cpp - what programs ask and what they are told ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Planner/Request.h"
#include "GraphFamilies.h"
#include "TestGraphs.h"
#include "ckopt/Planner/Report.h"
#include "ckopt/Planner/SearchOptions.h"
#include "ckopt/Planner/Verifier.h"

#include <gtest/gtest.h>

#include <random>

using namespace ckopt;
using namespace ckopt::planner;
using namespace ckopt::planner::test;

namespace {

MemoryBudget ratio(double of) {
  MemoryBudget budget;
  budget.kind = MemoryBudget::Kind::Ratio;
  budget.ratio = of;
  return budget;
}

std::string refusal(llvm::ArrayRef<GivenSetting> settings) {
  auto request = readRequest(settings);
  return request ? "" : takeErrorText(request.takeError()).text;
}

/// Loads count rounded up to the alignment, and a share of them is rounded up.
TEST(Request, BudgetsInBytes) {
  Graph graph = chain(3, 7);
  graph.alignment = 8;
  int64_t load = programLoad(graph);
  EXPECT_EQ(load % 8, 0);
  EXPECT_GE(load, 4 * 8);
  EXPECT_EQ(budgetBytes(graph, ratio(1)), load);
  EXPECT_EQ(budgetBytes(graph, ratio(0.3)), (load * 3 + 9) / 10);
  EXPECT_EQ(budgetBytes(graph, ratio(1e-9)), 1);
  EXPECT_EQ(budgetBytes(graph, {}), 0);
  auto request = readRequest({{"budget", "2KiB"}, {"pack", ""}});
  ASSERT_TRUE(bool(request));
  EXPECT_EQ(budgetBytes(graph, request->budget), 2048);
  EXPECT_TRUE(request->search.pack);
}

TEST(Request, RefusesWhatMakesNoSense) {
  EXPECT_NE(refusal({{"budget", "0"}}).find("0 bytes hold nothing"),
            std::string::npos);
  EXPECT_NE(refusal({{"budget", "9"}, {"budget-ratio", "0.5"}})
                .find("give one budget"),
            std::string::npos);
  std::string both = refusal({{"nonsense", "1"}, {"budget-ratio", "2"}});
  EXPECT_NE(both.find("nonsense"), std::string::npos);
  EXPECT_NE(both.find("is not a ratio"), std::string::npos);
}

/// Each row of the table of search options that has a flag is stored by it,
/// stands in the help and has a range.
TEST(Request, TakesEachSearchOption) {
  std::string help = requestHelp(SettingStyle::Flags);
  for (const SearchOption &row : searchOptions()) {
    if (row.flag.empty())
      continue;
    std::string flag = row.flag.str();
    EXPECT_NE(help.find("--" + flag), std::string::npos) << flag;
    bool name = std::holds_alternative<std::string Options::*>(row.member);
    auto request = readRequest({{flag, row.value.empty() ? ""
                                       : name            ? "dtr"
                                                         : "7"}});
    ASSERT_TRUE(bool(request)) << flag;
    EXPECT_TRUE(std::visit(
        [&](auto member) {
          return request->search.*member != Options().*member;
        },
        row.member))
        << flag;
    EXPECT_EQ(request->search.searchToLimit, row.limits) << flag;
    if (!row.value.empty())
      EXPECT_EQ(refusal({{flag, "-1"}}).rfind("--" + flag + ": '-1' is", 0), 0u)
          << flag;
  }
}

/// Options of a program are checked by the same ranges, and named as their
/// user names them.
TEST(Request, ChecksSearchOptions) {
  Options options;
  EXPECT_FALSE(bool(checkSearch(options))); // defaults may lie outside
  options.threads = 257;
  EXPECT_EQ(takeErrorText(checkSearch(options)).text,
            "--search-threads is an integer from 1 to 256");
  EXPECT_EQ(takeErrorText(checkSearch(options, OptionStyle::Pass)).text,
            "threads is an integer from 1 to 256");
  options = {};
  options.effort = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(takeErrorText(checkSearch(options)).text,
            "--effort is a number from 0 to 1e+06");
}

/// The answer to each question names the budget that it is for, and has the
/// exit code of ckopt-plan.
TEST(Request, AnswersAndErrors) {
  Graph graph = chain(6);
  Request request;
  Result free = planRequest(graph, request);
  EXPECT_EQ(free.budget, 0);
  EXPECT_FALSE(bool(planError(free)));
  request.budget.kind = MemoryBudget::Kind::Minimum;
  Result least = planRequest(graph, request);
  EXPECT_FALSE(bool(planError(least)));
  EXPECT_EQ(least.budget, least.plan.minimumBudget);
  EXPECT_GT(least.budget, 0);
  request.budget.kind = MemoryBudget::Kind::Bytes;
  request.budget.bytes = 1;
  Result none = planRequest(graph, request);
  EXPECT_EQ(none.budget, 1);
  EXPECT_EQ(takeErrorText(planError(none)).code, ExitInfeasible);
  none.plan.status = Status::Unknown;
  EXPECT_EQ(takeErrorText(planError(none)).code, ExitNoPlanFound);
  none.plan.status = Status::Error;
  EXPECT_EQ(takeErrorText(planError(none)).code, ExitInputError);
  none.internalError = true;
  EXPECT_EQ(takeErrorText(planError(none)).code, ExitInternal);
}

/// Steps of any kind are judged as the verifier judges them, and are never
/// simulated before: files may list any known nodes in any order.
TEST(Request, StepsOfFilesAreCheckedFirst) {
  int wrong = 0, right = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    Graph graph = seed % 2 ? trainingGraph(seed, 12 + int(seed % 20))
                           : randomGraph(seed, 2 + int(seed % 12), true);
    std::mt19937_64 random(seed);
    PlanFile file;
    file.plan.status = Status::Feasible;
    for (size_t n = 0; n < graph.nodes.size(); ++n)
      file.plan.steps.push_back(NodeId(n));
    for (uint64_t edits = seed % 4; edits-- > 0;) {
      size_t at = random() % file.plan.steps.size();
      NodeId node = NodeId(random() % graph.nodes.size());
      if (random() % 2)
        file.plan.steps[at] = node;
      else
        file.plan.steps.insert(file.plan.steps.begin() + long(at), node);
    }
    for (NodeId n : file.plan.steps)
      file.plan.cost += graph.nodes[n].cost;
    std::string expected = verifySteps(graph, file.plan);
    EXPECT_EQ(verifyFile(graph, file, 0), expected);
    (expected.empty() ? right : wrong) += 1;
    if (!expected.empty())
      EXPECT_EQ(file.plan.peak, 0) << "was simulated";
    else
      EXPECT_EQ(file.plan.peak, planPeak(graph, file.plan, false));
  }
  EXPECT_GT(wrong, 100);
  EXPECT_GT(right, 100);
}

/// A file's budget counts where none is given; a file without steps is no plan.
TEST(Request, FilesAreHeldToTheirBudget) {
  Graph graph = chain(4);
  PlanFile file;
  file.plan = BudgetPlanner(graph).solve({}).plan;
  EXPECT_EQ(verifyFile(graph, file, 0), "");
  file.budget = 1;
  EXPECT_NE(verifyFile(graph, file, 0), "");
  EXPECT_EQ(verifyFile(graph, file, programLoad(graph)), "");
  file.plan.status = Status::Infeasible;
  EXPECT_NE(verifyFile(graph, file, 0).find("yet it has steps"),
            std::string::npos);
  file.plan.steps.clear();
  EXPECT_NE(verifyFile(graph, file, 0).find("there is no plan"),
            std::string::npos);
}

} // namespace
