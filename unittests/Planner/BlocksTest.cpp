//===- BlocksTest.cpp - repeated blocks of training graphs ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Model/Order.h"
#include "Structure/Structure.h"
#include "ckopt/Planner/Report.h"
#include "gtest/gtest.h"

using namespace ckopt::planner;

namespace {

struct Network {
  Graph graph;
  int32_t turn = 0;

  ValueId value(int64_t bytes) {
    graph.values.push_back({bytes, ValueKind::Temp, -1, ""});
    return ValueId(graph.values.size()) - 1;
  }
  ValueId node(double cost, std::vector<ValueId> inputs, int64_t bytes,
               std::string group = "") {
    Node node;
    node.cost = cost;
    node.inputs = std::move(inputs);
    node.outputs = {value(bytes)};
    node.group = std::move(group);
    graph.nodes.push_back(node);
    return node.outputs[0];
  }
};

/// `depth` blocks of three forward nodes (wide, narrow, sum with the input) and
/// as many backward nodes each, behind a stem.
Network residual(int depth, bool named, double jitter = 0) {
  Network net;
  ValueId x = net.node(1, {}, 100);
  std::vector<std::vector<ValueId>> saved;
  for (int b = 0; b < depth; ++b) {
    std::string name = named ? "layer" + std::to_string(b) : "";
    ValueId wide = net.node(5 + b * jitter, {x}, 400, name);
    ValueId narrow = net.node(3, {wide}, 100, name);
    ValueId sum = net.node(1, {x, narrow}, 100, name);
    saved.push_back({x, wide, narrow});
    x = sum;
  }
  ValueId g = net.node(1, {x}, 100);
  net.turn = int32_t(net.graph.nodes.size()) - 2;
  for (int b = depth; b-- > 0;) {
    ValueId a = net.node(2, {g, saved[b][2]}, 100);
    ValueId w = net.node(5, {a, saved[b][1]}, 400);
    g = net.node(5, {w, saved[b][0]}, 100);
  }
  return net;
}

BlockGroups find(const Network &net) {
  Problem problem(net.graph);
  return findRepeatedBlocks(problem, programOrder(problem), net.turn);
}

TEST(Blocks, FindsLayersByStructure) {
  Network net = residual(6, false);
  BlockGroups groups = find(net);
  ASSERT_EQ(groups.size(), 1u);
  // The first one reads the stem, so it may look different.
  ASSERT_GE(groups[0].size(), 5u);
  Problem problem(net.graph);
  std::vector<int32_t> labels = structuralLabels(problem);
  const std::vector<NodeId> &first = groups[0][0];
  EXPECT_EQ(first.size(), 3u);
  for (const std::vector<NodeId> &block : groups[0]) {
    ASSERT_EQ(block.size(), first.size());
    for (size_t i = 0; i < block.size(); ++i)
      EXPECT_EQ(labels[block[i]], labels[first[i]]);
  }
  // Nothing but a block's input lives across the place where it begins.
  EXPECT_EQ(problem.outputs[first[0] - 1].size(), 1u);
  EXPECT_EQ(problem.bytes[problem.outputs[first[0] - 1][0]], 100);
}

TEST(Blocks, MeasuredCostsMayDiffer) {
  EXPECT_EQ(find(residual(6, false, 0.37)).size(), 1u);
  EXPECT_EQ(find(residual(6, false, 0.37))[0].size(),
            find(residual(6, false))[0].size());
}

TEST(Blocks, NamesDecide) {
  BlockGroups groups = find(residual(4, true));
  ASSERT_EQ(groups.size(), 1u);
  ASSERT_EQ(groups[0].size(), 4u);
  EXPECT_EQ(groups[0][0], (std::vector<NodeId>{1, 2, 3}));
  EXPECT_EQ(groups[0][3], (std::vector<NodeId>{10, 11, 12}));
}

TEST(Blocks, NothingRepeats) {
  Network net;
  ValueId x = net.node(1, {}, 8);
  for (int i = 1; i < 10; ++i)
    x = net.node(1, {x}, 8 << i);
  net.turn = 9;
  EXPECT_TRUE(find(net).empty());
  EXPECT_TRUE(find(Network{}).empty());
}

/// Reports count the repeated blocks and their kinds.
TEST(Blocks, AreCounted) {
  BlockCounts equal = countBlocks(residual(6, false).graph);
  EXPECT_EQ(equal.kinds, 1);
  EXPECT_GE(equal.copies, 5);
  BlockCounts none = countBlocks(Graph());
  EXPECT_EQ(none.kinds, 0);
  EXPECT_EQ(none.copies, 0);
}

} // namespace
