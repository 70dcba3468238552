//===- OrderSearchTest.cpp - orders of least peak -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Improve/Improve.h"
#include "Model/Order.h"
#include "TestGraphs.h"

#include <gtest/gtest.h>

#include <limits>

using namespace ckopt::planner;
using namespace ckopt::planner::test;

namespace {

/// The least peak of all orders, by trying them all.
class AllOrders {
public:
  explicit AllOrders(const Problem &problem)
      : problem(problem), placed(problem.numNodes, 0) {}
  int64_t least() {
    extend();
    return best;
  }

private:
  void extend() {
    if (int32_t(order.size()) == problem.numNodes) {
      best = std::min(best, simulate(problem, order, true).peak);
      return;
    }
    for (NodeId n = 0; n < problem.numNodes; ++n) {
      bool ready = !placed[n];
      for (NodeId p : problem.preds[n])
        ready &= bool(placed[p]);
      if (!ready)
        continue;
      placed[n] = 1;
      order.push_back(n);
      extend();
      order.pop_back();
      placed[n] = 0;
    }
  }
  const Problem &problem;
  std::vector<char> placed;
  std::vector<NodeId> order;
  int64_t best = std::numeric_limits<int64_t>::max();
};

/// An order that is called optimal is the best of all orders, on graphs with
/// every feature of the format.
TEST(OrderSearch, AgreesWithAllOrdersOfSmallGraphs) {
  int proved = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    Graph graph = randomGraph(seed, 3 + int(seed % 5), seed % 3 == 0);
    Problem problem(graph);
    Deadline deadline(0);
    OrderResult result = searchOrder(problem, deadline, 1);
    ASSERT_TRUE(isValidOrder(problem, result.order));
    ASSERT_EQ(result.peak, simulate(problem, result.order, true).peak);
    int64_t least = AllOrders(problem).least();
    ASSERT_GE(result.peak, least);
    if (result.optimal)
      ASSERT_EQ(result.peak, least) << "seed " << seed;
    proved += result.optimal;
  }
  EXPECT_GT(proved, 380);
}

/// Wide graphs whose program order is far from the best: pairs of nodes that
/// make and consume, all makers first.
TEST(OrderSearch, FindsWhatSinksAndHoists) {
  Graph graph;
  ValueId x = addValue(graph, 8, ValueKind::Input);
  std::vector<ValueId> big;
  for (int i = 0; i < 150; ++i) {
    big.push_back(addValue(graph, 1000 + i));
    addNode(graph, 1, {x}, {big.back()});
  }
  ValueId sum = addValue(graph, 8);
  addNode(graph, 1, {big[0]}, {sum});
  for (int i = 1; i < 150; ++i) {
    ValueId next = addValue(graph, 8);
    addNode(graph, 1, {sum, big[i]}, {next});
    sum = next;
  }
  Problem problem(graph);
  Deadline deadline(0);
  OrderResult result = searchOrder(problem, deadline, 1, 0.2);
  EXPECT_LE(result.peak, 1149 + 24);
}

/// The same order on one thread and two, and for the same seed.
TEST(OrderSearch, DoesNotDependOnThreads) {
  Graph graph = randomGraph(5, 120);
  Problem problem(graph);
  Deadline one(0), two(0), limited(0, 200000), limitedToo(0, 200000);
  OrderResult a = searchOrder(problem, one, 7, 0.1, 1);
  OrderResult b = searchOrder(problem, two, 7, 0.1, 2);
  EXPECT_EQ(a.order, b.order);
  EXPECT_EQ(one.spent(), two.spent());
  EXPECT_EQ(searchOrder(problem, limited, 7, 1, 1).order,
            searchOrder(problem, limitedToo, 7, 1, 2).order);
}

} // namespace
