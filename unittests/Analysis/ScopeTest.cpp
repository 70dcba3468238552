//===- ScopeTest.cpp - which plans the pass speaks of ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plans small functions under every restriction and compares what plan files,
// figures, attributes and errors state with exhaustive search.
//
//===----------------------------------------------------------------------===//
#include "ScopeTruth.h"
#include "TestModule.h"
#include "ckopt/Remat/Figures.h"
#include "ckopt/Remat/Remat.h"

#include <random>

using namespace mlir;
using namespace ckopt;
using planner::Restriction;
using planner::Scope;

namespace {

/// A function of eight ops on f32 and f16, whose sizes are no multiples of the
/// alignment.
std::string randomFunction(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string text;
  std::vector<std::string> single{"%x"}, half;
  auto pick = [&](std::vector<std::string> &values) {
    size_t back = random() % (random() % 3 ? std::min<size_t>(2, values.size())
                                           : values.size());
    return values[values.size() - 1 - back];
  };
  for (int i = 0; i < 8; ++i) {
    std::string made = "%v" + std::to_string(i);
    switch (i == 7 ? 1 : random() % (half.empty() ? 4 : 5)) {
    case 0:
      text += made + " = math.exp " + pick(single) + " : tensor<251xf32>\n";
      single.push_back(made);
      break;
    case 3:
      text += made + " = arith.truncf " + pick(single) +
              " : tensor<251xf32> to tensor<251xf16>\n";
      half.push_back(made);
      break;
    case 4:
      text += made + " = arith.extf " + pick(half) +
              " : tensor<251xf16> to tensor<251xf32>\n";
      single.push_back(made);
      break;
    default:
      text += made + " = arith.mulf " + pick(single) + ", " + pick(single) +
              " : tensor<251xf32>\n";
      single.push_back(made);
    }
  }
  return "func.func @step(%x: tensor<251xf32>) -> tensor<251xf32> {\n" + text +
         "return %v7 : tensor<251xf32>\n}\n";
}

/// Plans a function by the pass's entry, and checks all that it states.
class PassCase {
public:
  PassCase(const std::string &text, Scope scope) : test(text), scope(scope) {
    options.search.fixedOrder = scope.has(Restriction::FixedOrder);
    options.search.orderOnly = scope.has(Restriction::OrderOnly);
    options.search.timeLimitSeconds = 0;
    options.search.threads = 1;
    options.compare = Comparison::Off;
    if (scope.has(Restriction::Policy))
      options.policy.recompute = {"op:math.exp", "op:arith.truncf"};
  }

  /// Returns false if there is nothing for rules to decide.
  bool run() {
    if (!test.module)
      return false;
    FailureOr<RematGraph> graph =
        buildRematGraph(test.function("step"), options, costs);
    bool policy = scope.has(Restriction::Policy);
    if (failed(graph) || (policy && !graph->constrained) ||
        graph->searched().nodes.size() > 16 ||
        graph->searched().values.size() > 16)
      return false;
    truth.emplace(graph->graph, policy ? &graph->searched() : nullptr);
    using Kind = MemoryBudget::Kind;
    int64_t least = state({Kind::Minimum});
    for (int64_t bytes : {least - 1, least / 2, least + 600, int64_t(1 << 20)})
      state({Kind::Bytes, bytes});
    state({Kind::Unlimited});
    return true;
  }
  int infeasible = 0, stayed = 0;

private:
  int64_t state(MemoryBudget budget) {
    options.budget = budget;
    auto plan = planRemat(test.function("step"), options, costs);
    EXPECT_TRUE(succeeded(plan));
    if (failed(plan))
      return 0;
    // What stays as it is need not obey the policy.
    Scope speaksOf = scope;
    if (plan->unchanged && scope.has(Restriction::Policy))
      speaksOf = Scope();
    stayed += plan->unchanged;
    truth->expectTrue(printStoredPlan(*plan), speaksOf);
    RematFigures figures =
        figuresFromAttribute(toAttribute(getFigures(*plan), &test.context));
    EXPECT_EQ(figures.scope, speaksOf);
    EXPECT_EQ(figures.status, plan->result.status());
    EXPECT_LT(truth->leastCost(speaksOf, figures.memoryBound - 1), 0);
    if (!plan->result.hasPlan()) {
      infeasible += plan->result.status() == planner::Status::Infeasible;
      EXPECT_NE(describeNoPlan("step", *plan)
                    .find("no plan" + speaksOf.words() + " needs less than"),
                std::string::npos);
    }
    return plan->arena;
  }

  TestModule test;
  Scope scope;
  RematOptions options;
  CostModel costs;
  std::optional<planner::test::ScopeTruth> truth;
};

TEST(Remat, StatesNothingOfMorePlansThanItHoldsFor) {
  int ran = 0, ruled = 0, infeasible = 0, stayed = 0;
  for (uint64_t seed = 0; seed < 8; ++seed)
    for (bool policy : {false, true})
      for (Scope scope : {Scope{}, Scope{Restriction::FixedOrder},
                          Scope{Restriction::OrderOnly}}) {
        if (policy)
          scope.add(Restriction::Policy);
        SCOPED_TRACE("seed " + std::to_string(seed) + scope.words());
        PassCase one(randomFunction(seed), scope);
        if (!one.run())
          continue;
        ++ran;
        ruled += policy;
        infeasible += one.infeasible;
        stayed += one.stayed;
        if (HasFatalFailure())
          return;
      }
  EXPECT_GE(ran, 24);
  EXPECT_GE(ruled, 3);
  EXPECT_GE(infeasible, 24);
  EXPECT_GE(stayed, 1);
  EXPECT_LT(stayed, ran);
}

/// Callers are planned beside the plans of their callees, which smaller ones
/// would leave more room.
TEST(Remat, CallersSpeakOfTheirCalleesPlans) {
  TestModule test(R"(
func.func private @inner(%x: tensor<1024xf32>) -> tensor<1024xf32> {
  %0 = math.exp %x : tensor<1024xf32>
  %1 = arith.mulf %0, %x : tensor<1024xf32>
  return %1 : tensor<1024xf32>
}
func.func @step(%x: tensor<1024xf32>) -> tensor<1024xf32> {
  %0 = call @inner(%x) : (tensor<1024xf32>) -> tensor<1024xf32>
  return %0 : tensor<1024xf32>
})");
  ASSERT_TRUE(test.module);
  RematOptions options;
  RematResult result;
  SmallVector<FunctionOpInterface> functions{test.function("inner"),
                                             test.function("step")};
  ASSERT_TRUE(succeeded(runRemat(functions, options, result)));
  EXPECT_EQ(getFigures(result.plans[0]).scope, Scope());
  EXPECT_EQ(getFigures(result.plans[1]).scope, Scope{Restriction::CalleePlans});
}

} // namespace
