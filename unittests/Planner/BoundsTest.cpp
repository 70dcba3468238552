//===- BoundsTest.cpp - bounds against the true optimum -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random small graphs of two families: graphs with every feature of the format,
// and training steps (forward chains with cheap private links, skips, in-place
// pairs, then backward). The exact search gives the optimum; no bound may
// exceed it, and on training steps bounds must be near it.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Planner/Bounds.h"
#include "StateSearch.h"
#include "TestGraphs.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>

using namespace ckopt::planner;
using namespace ckopt::planner::test;

namespace {

/// Forward values, some never read in the backward part, then gradients.
Graph trainingStep(uint64_t seed, int forward) {
  std::mt19937_64 rng(seed);
  auto below = [&](uint64_t n) { return int64_t(rng() % n); };
  Graph graph;
  ValueId x = addValue(graph, 1 + below(4), ValueKind::Input);
  ValueId param = addValue(graph, 1 + below(2), ValueKind::Persistent);
  struct Layer {
    std::vector<ValueId> saved;
  };
  std::vector<Layer> layers;
  std::vector<ValueId> chain{x};
  for (int i = 0; i < forward; ++i) {
    std::vector<ValueId> inputs{chain.back()};
    ValueId skip = chain[below(chain.size())];
    if (below(4) == 0 && skip != inputs[0])
      inputs.push_back(skip);
    if (below(3) == 0)
      inputs.push_back(param);
    ValueId v = addValue(graph, 1 + below(6));
    NodeId n = addNode(graph, 1 + below(6), inputs, {v});
    if (below(3) == 0)
      graph.nodes[n].reuse = {{inputs[0], v}};
    graph.nodes[n].recompute = below(9) != 0;
    Layer layer;
    int64_t kind = below(3);
    if (kind == 0)
      layer.saved = {inputs[0]};
    if (kind == 1)
      layer.saved = {v};
    layers.push_back(layer);
    chain.push_back(v);
  }
  ValueId grad = addValue(graph, 1 + below(4));
  addNode(graph, 1, {chain.back()}, {grad});
  for (int i = forward - 1; i >= 0; --i) {
    std::vector<ValueId> inputs = layers[i].saved;
    inputs.push_back(grad);
    ValueId next = addValue(graph, 1 + below(4),
                            i == 0 ? ValueKind::Output : ValueKind::Temp);
    NodeId n = addNode(graph, 1 + below(6), inputs, {next});
    if (below(2))
      graph.nodes[n].reuse = {{grad, next}};
    grad = next;
  }
  return graph;
}

struct Seen {
  int cases = 0, costly = 0, closeInOrder = 0, closeAny = 0, memoryExact = 0;
};

void checkCase(const Graph &graph, int64_t step, Seen &seen,
               const std::string &where) {
  ASSERT_EQ(validate(graph), "") << where;
  Problem problem(graph);
  std::vector<NodeId> program(problem.numNodes);
  std::iota(program.begin(), program.end(), 0);
  int64_t peak = simulate(problem, program, true).peak;
  int64_t low = memoryBound(graph);
  for (bool fixed : {true, false}) {
    Deadline deadline(0);
    ExactResult least =
        exactLeastPeak(problem, fixed, 0, program, deadline, 200000);
    if (least.kind != ExactResult::Optimal)
      return;
    EXPECT_LE(low, least.leastPeak) << where;
    seen.memoryExact += !fixed && low == least.leastPeak;
    if (fixed)
      EXPECT_LE(memoryBoundInOrder(graph, program), least.leastPeak) << where;
    int64_t budget = least.leastPeak + (peak - least.leastPeak) * step / 4;
    ExactResult truth = exactSearch(problem, budget, fixed, deadline, 200000);
    if (truth.kind != ExactResult::Optimal)
      return;
    ++seen.cases;
    double any = costBound(graph, budget);
    EXPECT_LE(any, truth.cost * (1 + 1e-12)) << where << " budget " << budget;
    seen.costly += truth.cost > problem.baseCost;
    seen.closeAny +=
        !fixed && truth.cost > problem.baseCost && any > problem.baseCost;
    if (!fixed)
      continue;
    Certificate certificate;
    double bound = orderBound(graph, program, budget, nullptr, &certificate);
    EXPECT_LE(bound, truth.cost * (1 + 1e-12)) << where << " budget " << budget;
    std::string error;
    EXPECT_EQ(checkCertificate(graph, certificate, error), bound) << error;
    seen.closeInOrder +=
        truth.cost > problem.baseCost && bound > problem.baseCost;
  }
}

/// Work limits change which bound is proven, never whether it is true.
TEST(Bounds, MemoryNeverPassesTheLeastPeak) {
  int exact = 0, all = 0, exactOnce = 0;
  for (uint64_t seed = 1000; seed < 1200; ++seed) {
    Graph graph = randomGraph(seed, 5 + int(seed % 5), seed % 5 == 0);
    Problem problem(graph);
    std::vector<NodeId> program(problem.numNodes);
    std::iota(program.begin(), program.end(), 0);
    Deadline deadline(0);
    ExactResult least =
        exactLeastPeak(problem, false, 0, program, deadline, 100000);
    if (least.kind != ExactResult::Optimal)
      continue;
    ++all;
    int64_t before = 0;
    for (int64_t units : {0, 500, 20000, 4000000}) {
      int64_t bound = memoryBound(graph, units);
      EXPECT_LE(bound, least.leastPeak) << "seed " << seed;
      EXPECT_EQ(bound, memoryBound(graph, units));
      before = std::max(before, bound);
    }
    exact += before == least.leastPeak;
    Graph once = graph;
    for (Node &node : once.nodes)
      node.recompute = false;
    Problem onceProblem(once);
    ExactResult order =
        exactLeastPeak(onceProblem, false, 0, program, deadline, 100000);
    ASSERT_EQ(order.kind, ExactResult::Optimal);
    EXPECT_LE(orderOnlyBound(graph), order.leastPeak) << "seed " << seed;
    exactOnce += orderOnlyBound(graph) == order.leastPeak;
  }
  EXPECT_GE(all, 150);
  EXPECT_GE(exact * 10, all * 6) << exact << " of " << all;
  EXPECT_GE(exactOnce * 10, all * 6) << exactOnce << " of " << all;
}

uint64_t cases(uint64_t usual) {
  const char *asked = std::getenv("CKOPT_BRUTE_FORCE_CASES");
  return asked ? std::strtoull(asked, nullptr, 10) : usual;
}

TEST(Bounds, NeverPassTheOptimumOfTrainingSteps) {
  Seen seen;
  for (uint64_t seed = 0; seed < cases(runsLongTests() ? 300 : 150); ++seed) {
    checkCase(trainingStep(seed, 4 + int(seed % 3)), int64_t(seed % 4), seen,
              "training step, seed " + std::to_string(seed));
    if (HasFailure())
      return;
  }
  // Cases that say something, and bounds that do.
  EXPECT_GE(seen.costly * 4, seen.cases) << seen.costly;
  EXPECT_GE(seen.closeInOrder * 10, seen.costly * 3) << seen.closeInOrder;
  EXPECT_GE(seen.closeAny * 10, seen.costly * 2) << seen.closeAny;
  if (std::getenv("CKOPT_BRUTE_FORCE_CASES"))
    printf("cases %d costly %d in order %d any %d memory exact %d\n",
           seen.cases, seen.costly, seen.closeInOrder, seen.closeAny,
           seen.memoryExact);
}

TEST(Bounds, NeverPassTheOptimumOfRandomGraphs) {
  Seen seen;
  for (uint64_t seed = 0; seed < cases(runsLongTests() ? 300 : 150); ++seed) {
    checkCase(randomGraph(seed, 5 + int(seed % 4), seed % 5 == 0),
              int64_t(seed % 4), seen,
              "random graph, seed " + std::to_string(seed));
    if (HasFailure())
      return;
  }
  EXPECT_GE(seen.costly * 50, seen.cases) << seen.costly;
  if (std::getenv("CKOPT_BRUTE_FORCE_CASES"))
    printf("cases %d costly %d in order %d any %d memory exact %d\n",
           seen.cases, seen.costly, seen.closeInOrder, seen.closeAny,
           seen.memoryExact);
}

} // namespace
