//===- CaseTreeTest.cpp - cases show what a search found ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ExactOrder/ExactOrder.h"
#include "StateSearch.h"
#include "TestGraphs.h"

#include <gtest/gtest.h>

#include <numeric>

using namespace ckopt::planner;
using namespace ckopt::planner::test;

namespace {

struct Question {
  Graph graph;
  int64_t budget = 0;
  double optimum = 0, base = 0; ///< in program order
};

/// A chain of unequal layers, or any graph, and a budget that costs something.
std::optional<Question> question(uint64_t seed) {
  Question result;
  std::mt19937_64 rng(seed);
  if (seed % 4) {
    result.graph = chain(4 + int(seed % 3));
    for (Value &value : result.graph.values)
      value.bytes = 2 + int64_t(rng() % 9);
    for (Node &node : result.graph.nodes)
      node.cost = double(1 + rng() % 9);
  } else {
    result.graph = randomGraph(seed, 8);
  }
  Problem problem(result.graph);
  std::vector<NodeId> program(problem.numNodes);
  std::iota(program.begin(), program.end(), 0);
  int64_t peak = simulate(problem, program, true).peak;
  Deadline deadline(0);
  ExactResult least =
      exactLeastPeak(problem, true, 0, program, deadline, 100000);
  if (least.kind != ExactResult::Optimal || least.leastPeak >= peak)
    return std::nullopt;
  result.budget = least.leastPeak + (peak - least.leastPeak) / 2;
  ExactResult best =
      exactSearch(problem, result.budget, true, deadline, 100000);
  if (best.kind != ExactResult::Optimal || best.cost <= problem.baseCost)
    return std::nullopt;
  result.optimum = best.cost;
  result.base = problem.baseCost;
  return result;
}

TEST(CaseTree, ShowsOptimaAndNothingMore) {
  int asked = 0, shown = 0, branched = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    auto given = question(seed);
    if (!given)
      continue;
    ++asked;
    Problem problem(given->graph);
    Certificate cases = caseTree(problem, given->budget, given->optimum);
    EXPECT_TRUE(
        caseTree(problem, given->budget, given->optimum + 1).tree.empty())
        << "seed " << seed;
    if (cases.tree.empty())
      continue;
    ++shown;
    branched += cases.tree.size() > 1;
    std::string error;
    auto bound = checkCertificate(given->graph, cases, error);
    ASSERT_TRUE(bound) << error;
    EXPECT_EQ(*bound, given->optimum) << "seed " << seed;
  }
  EXPECT_GE(asked, 80);
  EXPECT_GE(shown * 10, asked * 7) << shown << " of " << asked;
  EXPECT_GE(branched * 3, asked) << branched << " of " << asked;
}

/// Whichever number of a certificate is changed, the bound that it proves stays
/// true.
TEST(CaseTree, NoChangedNumberShowsTooMuch) {
  int changes = 0, refused = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    auto given = question(seed);
    if (!given)
      continue;
    Problem problem(given->graph);
    const Certificate good = caseTree(problem, given->budget, given->optimum);
    auto expectTrue = [&](const Certificate &bad) {
      std::string error;
      auto bound = checkCertificate(given->graph, bad, error);
      ++changes;
      refused += !bound;
      EXPECT_LE(bound.value_or(0), given->optimum) << "seed " << seed;
    };
    auto change = [&](auto pick) {
      for (int64_t by : {-1, 1, 2, 1000}) {
        Certificate bad = good;
        auto &number = pick(bad);
        number = decltype(number + 0)(number + by);
        expectTrue(bad);
      }
    };
    for (size_t c = 0; c < good.claims.size(); ++c) {
      change([&](Certificate &bad) -> auto & { return bad.claims[c].first; });
      change([&](Certificate &bad) -> auto & { return bad.claims[c].second; });
    }
    for (size_t t = 0; t < good.tree.size(); ++t) {
      change([&](Certificate &bad) -> auto & { return bad.tree[t].storage; });
      change([&](Certificate &bad) -> auto & { return bad.tree[t].from; });
      for (size_t k = 0; k < good.tree[t].prices.size(); ++k) {
        change([&](Certificate &bad) -> auto & {
          return bad.tree[t].prices[k].first;
        });
        Certificate bad = good;
        bad.tree[t].prices[k].second *= 2;
        expectTrue(bad);
        bad.tree[t].prices[k].second = 0;
        expectTrue(bad);
      }
    }
    change([&](Certificate &bad) -> auto & { return bad.scaleBits; });
  }
  EXPECT_GE(changes, 2000);
  EXPECT_GE(refused, 300);
}

TEST(CaseTree, RefusesTreesThatDoNotCover) {
  Graph graph = chain(4);
  Certificate tree;
  tree.budget = 600;
  tree.tree = {{1, 0, {}}, {-1, -1, {{3, 1}}}};
  std::string error;
  EXPECT_FALSE(checkCertificate(graph, tree, error));
  EXPECT_NE(error.find("fewer cases"), std::string::npos);
  tree.tree.push_back({});
  EXPECT_TRUE(checkCertificate(graph, tree, error)) << error;
  tree.tree.push_back({});
  EXPECT_FALSE(checkCertificate(graph, tree, error));
  EXPECT_NE(error.find("more cases"), std::string::npos);
  tree.tree = {{1, 0, {}}, {}, {1, 0, {}}, {}, {}};
  EXPECT_FALSE(checkCertificate(graph, tree, error));
  EXPECT_NE(error.find("asks twice"), std::string::npos);
}

} // namespace
