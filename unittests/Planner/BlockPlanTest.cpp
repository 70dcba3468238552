//===- BlockPlanTest.cpp - repeated blocks solved once --------------------===//
#include "../../lib/Planner/BlockCombine.h"
#include "../../lib/Planner/Order.h"
#include "TestGraphs.h"
#include "ckopt/Planner/Report.h"
#include "ckopt/Planner/Solve.h"

#include <gtest/gtest.h>

using namespace ckopt::planner;
using namespace ckopt::planner::test;

namespace {

/// `depth` blocks of a cheap wide node and a dear narrow one, and backward
/// nodes that read both; `cost(b)` is that of block b's wide node.
template <typename Cost> Graph network(int depth, Cost cost) {
  Graph graph;
  ValueId x = addValue(graph, 10, ValueKind::Input);
  struct Saved {
    ValueId x, wide;
  };
  std::vector<Saved> saved;
  for (int b = 0; b < depth; ++b) {
    ValueId wide = addValue(graph, 40), narrow = addValue(graph, 10);
    addNode(graph, cost(b), {x}, {wide});
    addNode(graph, 5, {wide}, {narrow});
    saved.push_back({x, wide});
    x = narrow;
  }
  ValueId grad = addValue(graph, 10);
  addNode(graph, 1, {x}, {grad});
  for (int b = depth; b-- > 0;) {
    ValueId next =
        addValue(graph, 10, b == 0 ? ValueKind::Output : ValueKind::Temp);
    addNode(graph, 3, {grad, saved[b].wide, saved[b].x}, {next});
    grad = next;
  }
  return graph;
}

Graph network(int depth) {
  return network(depth, [](int) { return 2; });
}

/// Cuts the network between its blocks.
BlockChain cut(const Problem &problem, const std::vector<NodeId> &order,
               int depth) {
  std::vector<int32_t> cuts;
  for (int b = 1; b < depth; ++b)
    cuts.push_back(2 * b);
  return BlockChain(problem, order, 2 * depth, cuts);
}

TEST(BlockPlan, EqualBlocksAreOneKind) {
  Graph graph = network(8);
  Problem problem(graph);
  std::vector<NodeId> order = programOrder(problem);
  BlockChain chain = cut(problem, order, 8);
  ASSERT_EQ(chain.blocks.size(), 8u);
  // The first one reads the network's input, the last one has the turn.
  EXPECT_LE(chain.kinds.size(), 3u);
  for (int b = 2; b < 7; ++b)
    EXPECT_EQ(chain.blocks[b].kind, chain.blocks[1].kind) << b;
  EXPECT_GE(chain.kinds[chain.blocks[1].kind].members, 6);
}

TEST(BlockPlan, BlocksOfOtherCostsAreOtherKinds) {
  Graph graph = network(8, [](int b) { return b % 2 ? 2 : 3; });
  Problem problem(graph);
  std::vector<NodeId> order = programOrder(problem);
  BlockChain chain = cut(problem, order, 8);
  for (int b = 1; b + 2 < 7; ++b) {
    EXPECT_NE(chain.blocks[b].kind, chain.blocks[b + 1].kind) << b;
    EXPECT_EQ(chain.blocks[b].kind, chain.blocks[b + 2].kind) << b;
  }
}

TEST(BlockPlan, BlocksOfOtherWiringAreOtherKinds) {
  Graph graph = network(8);
  // One backward node reads less.
  graph.nodes[2 * 8 + 1 + 3].inputs.pop_back();
  Problem problem(graph);
  std::vector<NodeId> order = programOrder(problem);
  BlockChain chain = cut(problem, order, 8);
  EXPECT_NE(chain.blocks[4].kind, chain.blocks[5].kind);
  EXPECT_EQ(chain.blocks[3].kind, chain.blocks[5].kind);
}

TEST(BlockPlan, ReportsCountKindsAndCopies) {
  BlockCounts equal = countBlocks(network(8));
  EXPECT_EQ(equal.kinds, 1);
  EXPECT_GE(equal.copies, 6);
  EXPECT_GE(equal.blocks, equal.copies);
  BlockCounts different = countBlocks(network(8, [](int b) { return 1 + b; }));
  EXPECT_EQ(different.kinds, 0);
  EXPECT_EQ(different.copies, 0);
}

TEST(BlockPlan, OptionsTradeBytesForCost) {
  Graph graph = network(6);
  Problem problem(graph);
  std::vector<NodeId> order = programOrder(problem);
  BlockChain chain = cut(problem, order, 6);
  Deadline deadline(0);
  std::vector<BlockOption> options =
      blockOptions(chain.kinds[chain.blocks[3].kind], 1 << 10, deadline);
  // What the block hands on stays; the wide value is kept, or made for 2.
  ASSERT_EQ(options.size(), 2u);
  EXPECT_EQ(options[0].kept, 10);
  EXPECT_EQ(options[0].extra, 2);
  EXPECT_EQ(options[1].kept, 50);
  EXPECT_EQ(options[1].extra, 0);
}

TEST(BlockPlan, MinimumCutsFindTheCornersOfAllSubsets) {
  Graph graph = network(6, [](int b) { return 1 + b; });
  Problem problem(graph);
  std::vector<NodeId> order = programOrder(problem);
  BlockChain chain(problem, order, 12,
                   {8}); // Blocks of four layers and of two.
  for (const BlockKind &kind : chain.kinds) {
    Deadline deadline(0);
    std::vector<BlockOption> all = blockOptions(kind, 1 << 16, deadline),
                             corners = blockOptions(kind, 0, deadline);
    ASSERT_FALSE(all.empty());
    EXPECT_EQ(all.front().kept, corners.front().kept);
    EXPECT_EQ(all.back().extra, corners.back().extra);
    for (double price : {0.01, 0.04, 0.06, 0.1, 0.2, 0.5}) {
      auto best = [&](const std::vector<BlockOption> &options) {
        double least = 1e300;
        for (const BlockOption &option : options)
          least = std::min(least, option.extra + price * double(option.kept));
        return least;
      };
      EXPECT_NEAR(best(all), best(corners), 1e-9) << price;
    }
  }
}

Result run(const Graph &graph, const char *strategy, int64_t budget) {
  Options options;
  options.strategy = strategy;
  options.budget = budget;
  return solve(graph, options);
}

TEST(BlockPlan, ReachesTheOptimumOfChainsOfTinyBlocks) {
  int told = 0;
  for (int depth : {3, 4}) {
    Graph graph = network(depth, [](int b) { return 2 + b % 2; });
    int64_t top = simulate(graph, programOrder(Problem(graph))).peak;
    for (int64_t budget = top; budget >= 90; budget -= 10) {
      Result best = run(graph, "exact", budget);
      if (best.status != Status::Optimal)
        continue;
      Result blocks = run(graph, "blocks", budget);
      ASSERT_TRUE(blocks.status == Status::Feasible ||
                  blocks.status == Status::Optimal)
          << depth << " layers in " << budget;
      EXPECT_EQ(blocks.plan.cost, best.plan.cost)
          << depth << " layers in " << budget;
      ++told;
    }
  }
  EXPECT_GE(told, 10);
}

TEST(BlockPlan, DeepNetworksTakeLittleMoreThanTheirBlocks) {
  // Far below one level of checkpoints, stretches of blocks run again.
  Graph graph = network(64);
  int64_t top = simulate(graph, programOrder(Problem(graph))).peak;
  for (int64_t budget : {top / 2, top / 5, top / 12}) {
    Result result = run(graph, "blocks", budget);
    ASSERT_TRUE(result.status == Status::Feasible ||
                result.status == Status::Optimal)
        << budget;
    EXPECT_LE(result.plan.peak, budget);
  }
}

} // namespace
