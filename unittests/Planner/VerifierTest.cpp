//===- VerifierTest.cpp - one violation per rule --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Planner/Verifier.h"
#include "TestGraphs.h"
#include "ckopt/Planner/Packing.h"
#include "ckopt/Planner/Simulator.h"

#include <gtest/gtest.h>

using namespace ckopt::planner;
using namespace ckopt::planner::test;

namespace {

/// Returns a packed plan with correct figures for these steps.
Plan planOf(const Graph &graph, std::vector<NodeId> steps) {
  Plan plan;
  plan.steps = std::move(steps);
  Simulation simulation = simulate(graph, plan.steps);
  plan.cost = simulation.cost;
  plan.peak = simulation.peak;
  packPlan(graph, plan, true);
  plan.status = Status::Feasible;
  return plan;
}

testing::AssertionResult refuses(const Graph &graph, const Plan &plan,
                                 const char *why, int64_t budget = 0) {
  std::string error = verify(graph, plan, budget);
  if (error.find(why) != std::string::npos)
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << "said: '" << error << "'";
}

/// x -> a -> b -> c (reads a too), a parameter updated last.
struct Fixture {
  Graph graph;
  ValueId x, w, a, b, c;
  Fixture() {
    x = addValue(graph, 10, ValueKind::Input);
    w = addValue(graph, 20, ValueKind::Persistent);
    a = addValue(graph, 30);
    b = addValue(graph, 30);
    c = addValue(graph, 40, ValueKind::Output);
    addNode(graph, 1, {x, w}, {a});
    addNode(graph, 1, {a}, {b});
    addNode(graph, 1, {a, b}, {c});
    addNode(graph, 1, {c}, {});
    graph.nodes[3].mutates = {w};
  }
};

TEST(Verifier, AcceptsTrueplans) {
  Fixture f;
  EXPECT_EQ(verify(f.graph, planOf(f.graph, {0, 1, 2, 3}), 1000), "");
  EXPECT_EQ(verify(f.graph, planOf(f.graph, {0, 1, 0, 2, 3}), 1000), "");
}

TEST(Verifier, RefusesFalsePacking) {
  Fixture f;
  Plan plan = planOf(f.graph, {0, 1, 2, 3});
  EXPECT_EQ(plan.packing.proof(plan.arena), PackProof::Load);
  plan.packing.load += 1;
  EXPECT_TRUE(refuses(f.graph, plan, "packing: the plan says load"));
  plan.packing.load -= 1;
  plan.packing.lowerBound += 1;
  EXPECT_TRUE(refuses(f.graph, plan, "above the load"));
  plan.packing.searched = true;
  EXPECT_TRUE(refuses(f.graph, plan, "above the arena"));
}

/// Outputs, workspaces and what is there at the start begin at multiples of the
/// alignment.
TEST(Verifier, RefusesOffsetsOffTheAlignment) {
  Graph graph;
  graph.alignment = 64;
  ValueId in = addValue(graph, 100, ValueKind::Input);
  addNode(graph, 1, {in}, {addValue(graph, 100, ValueKind::Output)});
  graph.nodes[0].workspace = 100;
  const Plan plan = planOf(graph, {0});
  ASSERT_EQ(verify(graph, plan, 0), "");
  auto moved = [&](auto change) {
    Plan other = plan;
    other.arena += 64; // there is room
    change(other);
    return other;
  };
  EXPECT_TRUE(refuses(graph, moved([](Plan &p) { p.offsets[0][0] += 4; }),
                      "not aligned"));
  EXPECT_TRUE(refuses(graph, moved([](Plan &p) { p.offsets[0][1] += 4; }),
                      "workspace of step 0 (node 0 n0) is not aligned"));
  EXPECT_TRUE(refuses(graph, moved([](Plan &p) { p.initial[0].second += 4; }),
                      "the offset of value 0 is not aligned"));
}

TEST(Verifier, RefusesBrokenOrder) {
  Fixture f;
  Plan plan = planOf(f.graph, {0, 1, 2, 3});
  auto with = [&](std::vector<NodeId> steps) {
    Plan changed = plan;
    changed.steps = std::move(steps);
    return changed;
  };
  EXPECT_TRUE(refuses(f.graph, with({0, 1, 2}), "node 3 n3 never runs"));
  EXPECT_TRUE(refuses(f.graph, with({0, 1, 2, 9}), "unknown node 9"));
  EXPECT_TRUE(refuses(f.graph, with({1, 0, 2, 3}), "was never made"));
  EXPECT_TRUE(refuses(f.graph, with({0, 1, 2, 3, 3}), "may run only once"));
  EXPECT_TRUE(
      refuses(f.graph, with({0, 1, 2, 3, 0}), "after node 3 overwrites"));
  f.graph.nodes[0].recompute = false;
  EXPECT_TRUE(refuses(f.graph, with({0, 1, 0, 2, 3}), "may run only once"));
  f.graph.nodes[2].after = {1};
  f.graph.nodes[2].inputs = {f.a};
  EXPECT_TRUE(refuses(f.graph, with({0, 2, 1, 3}), "runs before node 1"));
}

TEST(Verifier, OrdersWritersAndReaders) {
  Graph graph;
  ValueId w = addValue(graph, 8, ValueKind::Persistent);
  ValueId early = addValue(graph, 8), late = addValue(graph, 8);
  addNode(graph, 1, {w}, {early});
  addNode(graph, 1, {}, {});
  graph.nodes[1].mutates = {w};
  addNode(graph, 1, {w}, {late});
  EXPECT_EQ(verify(graph, planOf(graph, {0, 1, 2}), 0), "");
  Plan plan = planOf(graph, {0, 1, 2});
  plan.steps = {1, 0, 2};
  EXPECT_TRUE(refuses(graph, plan, "after node 1 overwrites"));
  plan.steps = {0, 2, 1};
  EXPECT_TRUE(refuses(graph, plan, "before node 1 overwrites"));
}

TEST(Verifier, ChangesAreNotLost) {
  Graph graph;
  ValueId x = addValue(graph, 8, ValueKind::Input);
  ValueId a = addValue(graph, 64);
  ValueId view = addValue(graph, 64, ValueKind::Temp, a);
  ValueId b = addValue(graph, 8);
  ValueId c = addValue(graph, 8, ValueKind::Output);
  addNode(graph, 1, {x}, {a});
  addNode(graph, 1, {a}, {view});
  addNode(graph, 1, {view}, {b});
  addNode(graph, 1, {a}, {}); // overwrites `a`
  graph.nodes[3].mutates = {a};
  addNode(graph, 1, {a, b}, {c});
  EXPECT_EQ(verify(graph, planOf(graph, {0, 1, 2, 3, 4}), 0), "");
  // Made again before the change, which the new copy gets.
  EXPECT_EQ(verify(graph, planOf(graph, {0, 1, 2, 0, 3, 4}), 0), "");
  Plan plan = planOf(graph, {0, 1, 2, 3, 4});
  plan.steps = {0, 1, 2, 3, 0, 4};
  EXPECT_TRUE(refuses(graph, plan, "the change would be lost"));
  // A view of the older copy misses the change.
  graph.nodes[4].inputs = {a, b, view};
  plan.steps = {0, 1, 2, 0, 3, 4};
  EXPECT_TRUE(refuses(graph, plan, "the change would be lost"));
  plan.steps = {0, 1, 2, 0, 3, 1, 4};
  EXPECT_FALSE(refuses(graph, plan, "the change would be lost"));
}

TEST(Verifier, ChecksFigures) {
  Fixture f;
  Plan good = planOf(f.graph, {0, 1, 2, 3}), plan = good;
  plan.cost += 1;
  EXPECT_TRUE(refuses(f.graph, plan, "says cost"));
  plan = good;
  plan.peak -= 1;
  EXPECT_TRUE(refuses(f.graph, plan, "says peak"));
  EXPECT_TRUE(refuses(f.graph, good, "over budget", good.peak - 1));
  plan = good;
  plan.lowerBound = plan.cost + 1;
  EXPECT_TRUE(refuses(f.graph, plan, "above the cost"));
  plan = planOf(f.graph, {0, 1, 0, 2, 3});
  plan.status = Status::Optimal;
  plan.lowerBound = 4;
  EXPECT_TRUE(refuses(f.graph, plan, "no bound says so"));
}

TEST(Verifier, ChecksOffsets) {
  Fixture f;
  f.graph.nodes[1].workspace = 16;
  Plan good = planOf(f.graph, {0, 1, 2, 3}), plan = good;
  ASSERT_EQ(verify(f.graph, good, good.arena), "");
  plan.offsets[1][0] = plan.offsets[0][0]; // b over a, which lives on
  EXPECT_TRUE(refuses(f.graph, plan, "overlap"));
  plan = good;
  plan.offsets[1][1] = plan.offsets[1][0]; // the workspace over b
  EXPECT_TRUE(refuses(f.graph, plan, "overlap"));
  plan = good;
  plan.initial[1].second = plan.offsets[2][0]; // w under c
  EXPECT_TRUE(refuses(f.graph, plan, "overlap"));
  plan = good;
  plan.offsets[2][0] = good.arena;
  EXPECT_TRUE(refuses(f.graph, plan, "outside the arena"));
  plan = good;
  plan.offsets[1].pop_back();
  EXPECT_TRUE(refuses(f.graph, plan, "offsets of step 1"));
  plan = good;
  plan.offsets.pop_back();
  EXPECT_TRUE(refuses(f.graph, plan, "not one list a step"));
  plan = good;
  plan.initial.push_back({f.a, 0});
  EXPECT_TRUE(refuses(f.graph, plan, "not there at the start"));
  plan = good;
  plan.initial.clear(); // Counts beside the arena all the time.
  EXPECT_TRUE(refuses(f.graph, plan, "over budget", good.arena));
  f.graph.alignment = 64;
  EXPECT_TRUE(refuses(f.graph, good, "not aligned"));
}

TEST(Verifier, TakesBytesOverOnlyAtTheLastUse) {
  Graph graph;
  ValueId x = addValue(graph, 64, ValueKind::Input);
  ValueId a = addValue(graph, 64), b = addValue(graph, 64);
  ValueId c = addValue(graph, 8, ValueKind::Output);
  addNode(graph, 1, {x}, {a});
  addNode(graph, 1, {a}, {b});
  addNode(graph, 1, {b}, {c});
  graph.nodes[1].reuse = {{a, b}};
  Plan plan = planOf(graph, {0, 1, 2});
  EXPECT_EQ(plan.offsets[1][0], plan.offsets[0][0]);
  EXPECT_EQ(plan.peak, 128);
  EXPECT_EQ(verify(graph, plan, 0), "");
  // With another reader of `a` the same offsets overlap.
  graph.nodes[2].inputs = {a, b};
  plan.peak = 128;
  EXPECT_TRUE(refuses(graph, plan, "it is"));
  plan.peak = simulate(graph, plan.steps).peak;
  EXPECT_TRUE(refuses(graph, plan, "overlap"));
}

TEST(Verifier, ViewsKeepTheirBase) {
  Graph graph;
  ValueId a = addValue(graph, 64);
  ValueId view = addValue(graph, 64, ValueKind::Temp, a);
  ValueId b = addValue(graph, 64), c = addValue(graph, 8, ValueKind::Output);
  addNode(graph, 1, {}, {a});
  addNode(graph, 0, {a}, {view});
  addNode(graph, 1, {a}, {b});
  addNode(graph, 1, {view, b}, {c});
  graph.nodes[2].reuse = {{a, b}}; // Not taken: the view lives on.
  Plan plan = planOf(graph, {0, 1, 2, 3});
  EXPECT_EQ(plan.peak, 64 + 64 + 8);
  EXPECT_EQ(verify(graph, plan, 0), "");
  plan.offsets[2][0] = plan.offsets[0][0];
  EXPECT_TRUE(refuses(graph, plan, "overlap"));
}

} // namespace
