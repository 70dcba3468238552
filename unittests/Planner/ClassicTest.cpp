//===- ClassicTest.cpp - the classical strategies -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Baselines/Classic.h"
#include "Baselines/Baselines.h"
#include "TestGraphs.h"
#include "ckopt/Planner/Solve.h"
#include "ckopt/Planner/Verifier.h"

#include <gtest/gtest.h>

using namespace ckopt::planner;
using namespace ckopt::planner::test;

namespace {

const char *const names[] = {"all",    "sqrt",     "revolve", "rotor",
                             "mincut", "lowerset", "greedy",  "dtr"};

Result run(const Graph &graph, const std::string &strategy, int64_t budget) {
  Options options;
  options.strategy = strategy;
  options.more = &baselines();
  options.budget = budget;
  return BudgetPlanner(graph).solve(options);
}

/// Bytes of the program order without recomputation.
int64_t programPeak(const Graph &graph) {
  std::vector<NodeId> order;
  for (NodeId n = 0; n < NodeId(graph.nodes.size()); ++n)
    order.push_back(n);
  return simulate(graph, order).peak;
}

int64_t binomial(int64_t n, int64_t k) {
  int64_t result = 1;
  for (int64_t i = 1; i <= k; ++i)
    result = result * (n - k + i) / i;
  return result;
}

TEST(Classic, RevolveRunsTheBinomialNumberOfStages) {
  RevolveTable table(40, 8);
  for (int32_t slots = 0; slots <= 8; ++slots)
    for (int32_t length = 1; length <= 40; ++length) {
      int64_t kept = slots + 1, rounds = 0; // The start is a checkpoint too.
      while (binomial(kept + rounds, kept) < length)
        ++rounds;
      EXPECT_EQ(table.advances(length, slots),
                rounds * length - binomial(kept + rounds, kept + 1))
          << length << " stages, " << slots << " slots";
    }
}

/// Least cost of a chain's persistent schedules, by trying all of them.
double tryAll(const std::vector<double> &cost, const std::vector<int> &enters,
              const std::vector<int> &keeps, int from, int to, int memory) {
  if (from > to)
    return 0;
  double best = 1e300;
  if (keeps[from] <= memory)
    best = cost[from] +
           tryAll(cost, enters, keeps, from + 1, to, memory - keeps[from]);
  double run = 0;
  for (int s = from + 1; s <= to; ++s) {
    run += cost[s - 1];
    if (enters[s] <= memory)
      best = std::min(
          best, run + tryAll(cost, enters, keeps, s, to, memory - enters[s]) +
                    tryAll(cost, enters, keeps, from, s - 1, memory));
  }
  return best;
}

TEST(Classic, RotorIsTheBestOfAllSchedules) {
  std::mt19937_64 rng(7);
  for (int round = 0; round < 40; ++round) {
    int stages = 2 + int(rng() % 5);
    std::vector<double> cost;
    std::vector<int> enters, keeps;
    for (int i = 0; i < stages; ++i) {
      cost.push_back(1 + double(rng() % 9));
      enters.push_back(int(rng() % 4));
      keeps.push_back(enters[i] + int(rng() % 4));
    }
    RotorTable table(cost, enters, keeps, 24);
    for (int memory = 0; memory <= 24; ++memory) {
      double best = tryAll(cost, enters, keeps, 0, stages - 1, memory);
      double found = table.cost(0, stages - 1, memory);
      if (best >= 1e299)
        EXPECT_GT(found, 1e299);
      else
        EXPECT_DOUBLE_EQ(found, best) << "memory " << memory;
    }
  }
}

TEST(Classic, SqrtHoldsAboutTwoRootsOfAChain) {
  Graph graph = chain(100);
  int64_t budget = 27 * 100; // 10 checkpoints, 10 of a segment, gradients.
  Result result = run(graph, "sqrt", budget);
  ASSERT_TRUE(result.hasPlan()) << result.message;
  EXPECT_LE(result.plan.cost, baseCost(graph) + 100); // Each stage once more.
}

TEST(Classic, RevolveAndRotorGoBelowSqrtOnAChain) {
  Graph graph = chain(100);
  for (const char *name : {"revolve", "rotor"}) {
    Result result = run(graph, name, 12 * 100);
    ASSERT_TRUE(result.hasPlan()) << name << ": " << result.message;
    EXPECT_EQ(verify(graph, result.plan, 12 * 100), "") << name;
  }
}

TEST(Classic, EveryStrategySavesOnAChain) {
  Graph graph = chain(30);
  int64_t peak = programPeak(graph);
  for (const char *name : names) {
    if (std::string(name) == "all")
      continue; // It replays everything at once.
    Result result = run(graph, name, peak * 6 / 10);
    ASSERT_TRUE(result.hasPlan()) << name << ": " << result.message;
    EXPECT_LE(result.plan.peak, peak * 6 / 10) << name;
  }
}

/// Splits or keeps at random, by a hash of its arguments.
struct RandomPolicy : StagePolicy {
  explicit RandomPolicy(uint64_t seed) : seed(seed) {}
  Decision decide(int32_t from, int32_t to, int32_t level) const override {
    std::mt19937_64 rng(seed + uint64_t(from) * 1000 + uint64_t(to));
    if (from == to || rng() % 2)
      return {from, level, level};
    return {from + 1 + int32_t(rng() % uint64_t(to - from)), level, level};
  }
  uint64_t seed;
};

/// Whatever a policy or a saved set says, the steps are a valid plan.
TEST(Classic, AnyPolicyAndAnySavedSetGiveValidSteps) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Graph graph = randomGraph(seed, 10 + int(seed % 50), seed % 2);
    Problem problem(graph);
    std::vector<NodeId> order;
    for (NodeId n = 0; n < problem.numNodes; ++n)
      order.push_back(n);
    ForwardPart forward(problem, order, seed % 3 ? 1000 : 5);
    std::mt19937_64 rng(seed);
    std::vector<char> saved;
    for (ValueId v = 0; v < problem.numValues; ++v)
      saved.push_back(rng() % 2);
    for (std::vector<NodeId> steps :
         {runStages(forward, RandomPolicy(seed)), runSaved(forward, saved)}) {
      Plan plan;
      Simulation simulation = simulate(graph, steps);
      plan.steps = std::move(steps);
      plan.cost = simulation.cost;
      plan.peak = simulation.peak;
      EXPECT_EQ(verify(graph, plan, 0), "") << "seed " << seed;
    }
  }
}

TEST(Classic, PlansOfRandomGraphsAreVerified) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    Graph graph = randomGraph(seed, 30, seed % 2);
    for (const char *name : names) {
      Result result = run(graph, name, 0);
      ASSERT_TRUE(result.hasPlan())
          << name << " seed " << seed << ": " << result.message;
      EXPECT_EQ(verify(graph, result.plan, 0), "") << name;
    }
  }
}

} // namespace
