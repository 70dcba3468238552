//===- ScopeTest.cpp - which plans a statement speaks of ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A minimum, an infeasibility or an optimum may hold for plans in program
// order, without recomputation or under a policy alone. Every way to ask the
// planner, every restriction and every file that comes out is compared with
// exhaustive search on small graphs.
//
//===----------------------------------------------------------------------===//
#include "ScopeTruth.h"
#include "TestGraphs.h"
#include "ckopt/Planner/Pareto.h"
#include "ckopt/Planner/Policy.h"
#include "ckopt/Planner/Report.h"
#include "ckopt/Planner/Request.h"
#include "ckopt/Planner/Verifier.h"

#include "llvm/Support/JSON.h"

#include <numeric>

using namespace ckopt;
using namespace ckopt::planner;
using namespace ckopt::planner::test;

namespace {

Options optionsOf(Scope scope) {
  Options options;
  options.fixedOrder = scope.has(Restriction::FixedOrder);
  options.orderOnly = scope.has(Restriction::OrderOnly);
  options.effort = 0.02;
  options.timeLimitSeconds = 0;
  options.threads = 1;
  return options;
}

/// Values and nodes that PlanReference can take.
bool isSmall(const Graph &graph) {
  return graph.values.size() <= 16 && graph.nodes.size() <= 16;
}

std::string namesIn(const llvm::json::Object &file) {
  const llvm::json::Value *value = file.get("restricted_to");
  if (!value)
    return "";
  std::string text;
  if (auto one = value->getAsString())
    return one->str();
  for (const llvm::json::Value &each : *value->getAsArray())
    text += (text.empty() ? "" : ",") + each.getAsString()->str();
  return text;
}

std::string namesOf(Scope scope) {
  std::string text;
  for (const std::string &name : scope.names())
    text += (text.empty() ? "" : ",") + name;
  return text;
}

llvm::json::Value parsed(const std::string &text) {
  return llvm::cantFail(llvm::json::parse(text));
}

/// One graph under one restriction, by all doors of the planner.
class Case {
public:
  Case(const Graph &graph, Scope scope, const PolicyGraph *policy)
      : graph(graph), scope(scope), policy(policy),
        truth(graph, policy ? &policy->graph : nullptr),
        searched(policy ? policy->graph : graph), counts{} {}

  void run() {
    Options options = optionsOf(scope);
    BudgetPlanner planner(searched);
    Result least = planner.minimize(options);
    state(least, least.plan.minimumBudget);
    state(BudgetPlanner(searched).minimize(options), least.plan.minimumBudget);
    for (int64_t budget :
         {least.plan.minimumBudget - 1, least.plan.provenMinimum - 1,
          programLoad(searched)}) {
      options.budget = std::max<int64_t>(budget, 1);
      state(planner.solve(options), options.budget);
      state(BudgetPlanner(searched).solve(options), options.budget);
      options.pack = true;
      state(planner.solve(options), options.budget);
      options.pack = false;
    }
    options.budget = 0;
    state(BudgetPlanner(searched).solve(options), 0);
    curve(options);
  }

  struct Counts {
    int infeasible, optimal;
  };
  Counts seen() const { return counts; }

private:
  /// Writes the result to a file and a report, as for the given graph.
  void state(Result result, int64_t budget) {
    ASSERT_NE(result.status(), Status::Error) << result.message;
    counts.infeasible += result.status() == Status::Infeasible;
    counts.optimal += result.status() == Status::Optimal;
    if (policy && result.hasPlan())
      result.plan = restorePlan(graph, *policy, result.plan, true);
    // A plan that is read back may need more than the larger graph's; whoever
    // asks for it searches again, then.
    if (policy && result.hasPlan() && budget > 0 &&
        budget < std::max(simulate(graph, result.plan.steps, true).peak,
                          result.plan.arena + result.outside))
      return;
    truth.expectTrue(printPlan(graph, result, budget), scope);
    ReportOptions options;
    options.budget = budget;
    llvm::json::Value report = parsed(printReport(graph, result, options));
    EXPECT_EQ(namesIn(*report.getAsObject()), namesOf(scope));
    if (!result.hasPlan())
      EXPECT_NE(result.message.find("no plan" + scope.words() + " "),
                std::string::npos)
          << result.message;
  }

  void curve(const Options &options) {
    ParetoCurve drawn = paretoCurve(graph, options, 3, policy);
    ASSERT_FALSE(drawn.points.empty()) << drawn.error.message;
    llvm::json::Value file = parsed(printPareto(graph, drawn));
    EXPECT_EQ(namesIn(*file.getAsObject()), namesOf(scope));
    if (drawn.provenMinimum > 1)
      EXPECT_LT(truth.leastCost(scope, drawn.provenMinimum - 1), 0);
    for (const ParetoPoint &point : drawn.points)
      truth.expectTrue(printPlan(graph, point.result, point.budget), scope);
  }

  const Graph &graph;
  Scope scope;
  const PolicyGraph *policy;
  ScopeTruth truth;
  const Graph &searched;
  Counts counts;
};

TEST(Scope, NothingIsStatedOfMorePlansThanItHoldsFor) {
  int infeasible = 0, optimal = 0, ruled = 0;
  for (uint64_t seed = 0; seed < 24; ++seed) {
    Graph graph = randomGraph(seed, 3 + int(seed % 5), seed % 2);
    // The first half is forward; what it makes is kept or made again.
    Policy rules(graph.nodes.size());
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      rules.backward[n] = n >= graph.nodes.size() / 2;
      rules.save[n] = !rules.backward[n] && seed % 3 == 0;
      rules.recompute[n] = !rules.backward[n] && seed % 3 != 0;
    }
    PolicyGraph obeying = applyPolicy(graph, rules);
    if (!isSmall(graph) || !isSmall(obeying.graph))
      continue;
    ++ruled;
    for (bool policy : {false, true})
      for (Scope scope :
           {Scope{}, Scope{Restriction::FixedOrder},
            Scope{Restriction::OrderOnly},
            Scope{Restriction::FixedOrder, Restriction::OrderOnly}}) {
        if (policy)
          scope.add(Restriction::Policy);
        SCOPED_TRACE("seed " + std::to_string(seed) + scope.words());
        Case one(graph, scope, policy ? &obeying : nullptr);
        one.run();
        if (HasFatalFailure())
          return;
        infeasible += one.seen().infeasible;
        optimal += one.seen().optimal;
      }
  }
  EXPECT_GT(ruled, 10);
  EXPECT_GT(infeasible, 100);
  EXPECT_GT(optimal, 100);
}

/// Two producers and their two readers: only another order than the program's
/// needs less than both at once.
Graph twoPairs() {
  Graph graph;
  ValueId a = addValue(graph, 10), b = addValue(graph, 10);
  addNode(graph, 1, {}, {a});
  addNode(graph, 1, {}, {b});
  addNode(graph, 1, {a}, {addValue(graph, 1, ValueKind::Output)});
  addNode(graph, 1, {b}, {addValue(graph, 1, ValueKind::Output)});
  for (Node &node : graph.nodes)
    node.recompute = false;
  return graph;
}

TEST(Scope, WordsSayWhichPlansAreMeant) {
  Graph graph = twoPairs();
  Options options = optionsOf({Restriction::FixedOrder});
  options.budget = 15;
  Result none = BudgetPlanner(graph).solve(options);
  EXPECT_EQ(none.status(), Status::Infeasible);
  EXPECT_EQ(none.message,
            "no plan in program order exists for a budget of 15 bytes; the "
            "smallest budget found is 21 bytes, and no plan in program order "
            "needs less than 21");
  EXPECT_EQ(BudgetPlanner(graph).minimize(Options()).plan.minimumBudget, 12);
  using enum Restriction;
  EXPECT_EQ((Scope{Policy, OrderOnly}.words()),
            " that follows the policy and recomputes nothing else");
  EXPECT_EQ((Scope{FixedOrder, OrderOnly}.ofCost()), Scope());
  EXPECT_EQ((Scope{FixedOrder, Policy}.ofCost()), Scope{Policy});
}

/// A plan that is not one of those that it says it speaks of is refused.
TEST(Scope, StepsAreHeldToIt) {
  Graph graph = twoPairs();
  Plan plan = BudgetPlanner(graph).minimize(Options()).plan; // in another order
  EXPECT_EQ(verify(graph, plan, 0), "");
  plan.scope.add(Restriction::FixedOrder);
  EXPECT_EQ(verify(graph, plan, 0).find("restricted to fixed_order, and yet"),
            0u);
  Graph line = chain(4);
  Options options;
  options.budget = BudgetPlanner(line).minimize(options).plan.minimumBudget;
  plan = BudgetPlanner(line).solve(options).plan;
  ASSERT_GT(plan.steps.size(), line.nodes.size());
  plan.scope.add(Restriction::OrderOnly);
  EXPECT_NE(verify(line, plan, 0).find("runs twice"), std::string::npos);
  // Rules recompute what they ask for, and a file does not have them.
  plan.scope.add(Restriction::Policy);
  EXPECT_EQ(verify(line, plan, 0), "");
}

/// A hint may be anything; the answer stays in its scope.
TEST(Scope, HintsDoNotLeadOutOfIt) {
  Graph line = chain(4);
  Options free;
  free.budget = BudgetPlanner(line).minimize(free).plan.minimumBudget;
  Plan hint = BudgetPlanner(line).solve(free).plan;
  Options options = optionsOf({Restriction::OrderOnly});
  options.hint = &hint;
  for (const Result &point : BudgetPlanner(line).pareto(options, 4))
    EXPECT_EQ(point.plan.steps.size(), line.nodes.size());
  options.budget = free.budget;
  EXPECT_EQ(BudgetPlanner(line).solve(options).status(), Status::Infeasible);
}

} // namespace
