//===- CertificateTest.cpp - the checker believes nothing -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "StateSearch.h"
#include "TestGraphs.h"
#include "ckopt/Planner/Bounds.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>

using namespace ckopt::planner;
using namespace ckopt::planner::test;

namespace {

std::string problem(const Graph &graph, const Certificate &certificate) {
  std::string error;
  EXPECT_FALSE(checkCertificate(graph, certificate, error));
  return error;
}

/// Any prices and any claims that the checker accepts prove a true bound.
TEST(Certificate, NoPricesProveTooMuch) {
  int strong = 0, checked = 0;
  for (uint64_t seed = 0; seed < 250; ++seed) {
    Graph graph = seed % 2 ? chain(3 + int(seed % 3), 1 + int64_t(seed % 5))
                           : randomGraph(seed, 5 + int(seed % 3));
    std::mt19937_64 rng(seed);
    Problem problem(graph);
    std::vector<NodeId> program(problem.numNodes);
    std::iota(program.begin(), program.end(), 0);
    Deadline deadline(0);
    ExactResult least =
        exactLeastPeak(problem, true, 0, program, deadline, 100000);
    if (least.kind != ExactResult::Optimal)
      continue;
    ExactResult truth =
        exactSearch(problem, least.leastPeak, true, deadline, 100000);
    if (truth.kind != ExactResult::Optimal)
      continue;
    for (int k = 0; k < 8; ++k) {
      Certificate certificate;
      certificate.budget = least.leastPeak;
      certificate.scaleBits = 20;
      for (int32_t row = 0; row <= problem.numNodes; ++row)
        if (rng() % 3 == 0)
          certificate.prices.push_back(
              {row, int64_t(rng() % (1 << 16)) >> (rng() % 8)});
      for (ValueId u = 0; u < problem.numValues; ++u) {
        ValueId by = ValueId(rng() % problem.numValues);
        if (by == u || problem.root[u] != u || problem.root[by] != by ||
            problem.producer[by] < 0)
          continue;
        bool reads = false;
        for (ValueId v : problem.reads[problem.producer[by]])
          reads |= problem.root[v] == u;
        if (reads)
          certificate.claims.push_back({u, by});
      }
      std::string error;
      auto bound = checkCertificate(graph, certificate, error);
      ASSERT_TRUE(bound) << error;
      EXPECT_LE(*bound, truth.cost) << "seed " << seed << " try " << k;
      strong += *bound > problem.baseCost;
      ++checked;
    }
  }
  EXPECT_GE(checked, 1000);
  EXPECT_GE(strong, 50);
}

TEST(Certificate, RefusesWhatProvesNothing) {
  Graph graph = chain(4);
  Certificate good;
  double bound = costBound(graph, 600, &good);
  std::string error;
  EXPECT_EQ(checkCertificate(graph, good, error), bound);
  ASSERT_GT(good.rows.size(), 3u);

  Certificate bad = good;
  std::swap(bad.rows[0], bad.rows[1]);
  EXPECT_NE(problem(graph, bad).find("not a path"), std::string::npos);
  bad = good;
  bad.rows[1] = 99;
  EXPECT_NE(problem(graph, bad).find("unknown node"), std::string::npos);
  bad = good;
  bad.anyOrder = false;
  bad.rows.pop_back();
  EXPECT_NE(problem(graph, bad).find("do not name all"), std::string::npos);
  bad = good;
  bad.prices = {{1, -5}};
  EXPECT_NE(problem(graph, bad).find("prices"), std::string::npos);
  bad.prices = {{2, 5}, {2, 5}};
  EXPECT_NE(problem(graph, bad).find("prices"), std::string::npos);
  bad.prices = {{0, std::numeric_limits<int64_t>::max()}};
  EXPECT_NE(problem(graph, bad).find("2^62"), std::string::npos);
  bad = good;
  bad.claims = {{0, 0}};
  EXPECT_NE(problem(graph, bad).find("claims"), std::string::npos);
  bad.claims = {{1, 4}};
  EXPECT_NE(problem(graph, bad).find("claims"), std::string::npos);
  bad = good;
  bad.scaleBits = 62;
  EXPECT_NE(problem(graph, bad).find("too fine"), std::string::npos);
}

} // namespace
