//===- MemoryNeedTest.cpp - what makes a budget too small -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Planner/MemoryNeed.h"
#include "TestGraphs.h"
#include "ckopt/Planner/Bounds.h"
#include "gtest/gtest.h"

using namespace ckopt::planner;
using namespace ckopt::planner::test;

/// x (input) -> a -> y; b reads x again at the end, so x waits for it.
static Graph waiting() {
  Graph graph;
  graph.values = {{100, ValueKind::Persistent, -1, "w"},
                  {10, ValueKind::Input, -1, "x"},
                  {30, ValueKind::Temp, -1, "y"},
                  {20, ValueKind::Temp, -1, "z"},
                  {1, ValueKind::Output, -1, "out"}};
  auto add = [&](const char *name, std::vector<ValueId> inputs, ValueId out) {
    Node &node = graph.nodes.emplace_back();
    node.name = name;
    node.cost = 1;
    node.inputs = std::move(inputs);
    node.outputs = {out};
  };
  add("a", {0, 1}, 2);
  add("mid", {2}, 3);
  add("b", {1, 3}, 4);
  graph.nodes[1].workspace = 5;
  return graph;
}

TEST(MemoryNeed, NamesWhatIsThereInEveryPlan) {
  MemoryNeed need = memoryNeed(waiting());
  EXPECT_EQ(need.node, 1);
  EXPECT_EQ(need.bytes, 100 + 10 + 30 + 20 + 5);
  EXPECT_EQ(need.persistentBytes, 100);
  ASSERT_EQ(need.values.size(), 4u);
  EXPECT_EQ(need.values[0].name, "y");
  EXPECT_EQ(need.values[1].name, "z");
  EXPECT_EQ(need.values[2].name, "x"); // It is not made again.
  EXPECT_EQ(need.values[3].name, "workspace of mid");
}

TEST(MemoryNeed, ResultsThatMayTakeBytesOverAreNotCounted) {
  Graph graph = waiting();
  graph.nodes[1].reuse = {{2, 3}};
  EXPECT_EQ(memoryNeed(graph).bytes, 100 + 10 + 30 + 5);
}

TEST(MemoryNeed, AnEmptyGraphNeedsNothing) {
  EXPECT_EQ(memoryNeed(Graph()).node, -1);
}

TEST(MemoryNeed, IsNeverAboveTheProvenBound) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Graph graph = randomGraph(seed, 9, seed % 2);
    MemoryNeed need = memoryNeed(graph);
    EXPECT_LE(need.bytes, memoryBound(graph, 100000)) << "seed " << seed;
    int64_t sum = need.persistentBytes;
    for (const PeakEntry &entry : need.values)
      sum += entry.bytes;
    EXPECT_EQ(sum, need.bytes) << "seed " << seed;
  }
}
