//===- GraphTest.cpp - what a planning graph must satisfy -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "TestGraphs.h"

#include <gtest/gtest.h>

using namespace ckopt::planner;
using namespace ckopt::planner::test;

namespace {

TEST(Graph, AcceptsWholeGraphs) {
  EXPECT_EQ(validate(chain(4)), "");
  for (uint64_t seed = 0; seed < 50; ++seed)
    EXPECT_EQ(validate(randomGraph(seed, 30)), "") << "seed " << seed;
}

/// Each change breaks one rule; the message must name the place.
TEST(Graph, NamesEachDefect) {
  auto broken = [](auto change) {
    Graph graph = chain(3);
    change(graph);
    return validate(graph);
  };
  auto has = [](const std::string &text, const char *part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_TRUE(has(broken([](Graph &g) { g.values[2].bytes = -1; }),
                  "value 2: negative size"));
  EXPECT_TRUE(has(broken([](Graph &g) { g.values[1].bytes = INT64_MAX; }),
                  "more than 2^60"));
  EXPECT_TRUE(has(broken([](Graph &g) { g.values[1].aliasOf = 99; }),
                  "view of unknown value 99"));
  EXPECT_TRUE(has(broken([](Graph &g) {
                    g.values[1].aliasOf = 2;
                    g.values[2].aliasOf = 1;
                  }),
                  "circle"));
  EXPECT_TRUE(has(broken([](Graph &g) { g.values[0].aliasOf = 1; }),
                  "a view must be made by a node"));
  EXPECT_TRUE(has(broken([](Graph &g) { g.nodes[1].inputs = {77}; }),
                  "node 1 (n1): reads unknown value 77"));
  EXPECT_TRUE(has(broken([](Graph &g) { g.nodes[0].inputs = {3}; }),
                  "topological order"));
  EXPECT_TRUE(
      has(broken([](Graph &g) { g.nodes[1].inputs = {addValue(g, 4)}; }),
          "which no node makes"));
  EXPECT_TRUE(has(broken([](Graph &g) { g.nodes[1].outputs.push_back(1); }),
                  "made twice"));
  EXPECT_TRUE(has(broken([](Graph &g) { g.nodes[1].outputs = {0}; }),
                  "there before the first step"));
  EXPECT_TRUE(has(broken([](Graph &g) { addValue(g, 4, ValueKind::Output); }),
                  "is an output, but no node makes it"));
  EXPECT_TRUE(has(broken([](Graph &g) { g.nodes[1].cost = -2; }), "cost"));
  EXPECT_TRUE(
      has(broken([](Graph &g) { g.nodes[1].workspace = -2; }), "workspace"));
  EXPECT_TRUE(has(broken([](Graph &g) { g.nodes[1].after = {1}; }),
                  "'after' names node 1"));
  EXPECT_TRUE(has(broken([](Graph &g) { g.nodes[2].mutates = {0}; }),
                  "neither persistent nor one of its inputs"));
  EXPECT_TRUE(has(broken([](Graph &g) { g.nodes[2].reuse = {{0, 99}}; }),
                  "reuse names an unknown value"));
  EXPECT_TRUE(has(broken([](Graph &g) { g.alignment = 0; }), "alignment"));
}

} // namespace
