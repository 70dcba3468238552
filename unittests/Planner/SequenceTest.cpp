//===- SequenceTest.cpp - edits keep cost and load up to date -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Model/Sequence.h"
#include "Model/Order.h"
#include "TestGraphs.h"

#include <gtest/gtest.h>

using namespace ckopt::planner;
using namespace ckopt::planner::test;

namespace {

/// Range adds and range maxima against plain arrays.
TEST(LoadTree, AgreesWithAnArray) {
  std::mt19937_64 rng(3);
  for (int size : {1, 2, 3, 17, 64, 100}) {
    std::vector<int64_t> loads(size);
    for (int64_t &load : loads)
      load = int64_t(rng() % 100);
    LoadTree tree;
    tree.build(loads);
    for (int i = 0; i < 300; ++i) {
      int32_t a = int32_t(rng() % size), b = int32_t(rng() % size);
      if (a > b)
        std::swap(a, b);
      int64_t delta = int64_t(rng() % 201) - 100;
      tree.add(a, b, delta);
      for (int32_t k = a; k <= b; ++k)
        loads[k] += delta;
      auto most = std::max_element(loads.begin(), loads.end());
      ASSERT_EQ(tree.max(), *most);
      ASSERT_EQ(tree.argmax(), most - loads.begin());
      int32_t c = int32_t(rng() % size), d = int32_t(rng() % size);
      if (c > d)
        std::swap(c, d);
      ASSERT_EQ(tree.maxIn(c, d),
                *std::max_element(loads.begin() + c, loads.begin() + d + 1));
    }
  }
}

/// After each of many random edits, cost and load equal the simulator's.
TEST(Sequence, AgreesWithTheSimulator) {
  int inserted = 0, removed = 0;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    Graph graph = randomGraph(seed, 8 + int(seed), seed % 3 == 0);
    Problem problem(graph);
    std::mt19937_64 rng(seed);
    Sequence sequence(problem, programOrder(problem));
    for (int edit = 0; edit < 400; ++edit) {
      int32_t slot = int32_t(rng() % sequence.numSlots());
      NodeId n = NodeId(rng() % problem.numNodes);
      if (sequence.at(slot) >= 0 && sequence.mayRemove(slot)) {
        sequence.remove(slot);
        ++removed;
      } else if (sequence.at(slot) < 0 && problem.recompute[n] &&
                 sequence.numSteps() < 4 * problem.numNodes &&
                 sequence.mayInsert(n, slot)) {
        sequence.insert(n, slot);
        ++inserted;
      } else {
        continue;
      }
      if (edit % 50 == 0)
        sequence.respread();
      Simulation simulation = simulate(problem, sequence.steps(), true);
      ASSERT_NEAR(sequence.cost(), simulation.cost, 1e-9);
      ASSERT_EQ(sequence.peak(), simulation.peak) << "seed " << seed;
    }
  }
  EXPECT_GT(inserted, 500);
  EXPECT_GT(removed, 500);
}

/// A run that moves within the steps around it has the same effect as a removal
/// and an insertion.
TEST(Sequence, MovesLikeARemovalAndAnInsertion) {
  Graph graph = chain(12);
  Problem problem(graph);
  Sequence sequence(problem, programOrder(problem));
  for (NodeId n = 0; n < problem.numNodes; ++n) {
    int32_t from = sequence.runs(n).front();
    for (int32_t to = sequence.previousStep(from) + 1;
         to < sequence.numSlots() && (to <= from || sequence.at(to) < 0);
         ++to) {
      if (to == from)
        continue;
      int64_t before = sequence.peak();
      sequence.move(from, to);
      EXPECT_EQ(sequence.at(to), n);
      EXPECT_EQ(sequence.at(from), -1);
      EXPECT_EQ(sequence.peak(), before);
      sequence.move(to, from);
      EXPECT_EQ(sequence.peak(), before);
    }
  }
}

} // namespace
