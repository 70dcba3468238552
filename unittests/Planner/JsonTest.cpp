//===- JsonTest.cpp - reading and writing graph and plan files ------------===//
#include "TestGraphs.h"
#include "ckopt/Planner/GraphJson.h"
#include "ckopt/Planner/Verifier.h"

#include <gtest/gtest.h>

using namespace ckopt::planner;
using namespace ckopt::planner::test;

namespace {

TEST(GraphJson, RoundTrips) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Graph graph = randomGraph(seed, 25, seed % 2);
    graph.nodes[3].group = "layer \"1\"";
    std::string text = printGraph(graph), error;
    std::optional<Graph> again = parseGraph(text, error);
    ASSERT_TRUE(again) << error;
    EXPECT_EQ(printGraph(*again), text);
    EXPECT_EQ(again->alignment, graph.alignment);
    EXPECT_EQ(again->nodes[3].group, graph.nodes[3].group);
  }
}

TEST(GraphJson, WritesPlansThatReadBack) {
  Graph graph = chain(8);
  Options options;
  options.budget = 600;
  options.pack = true;
  Result result = solve(graph, options);
  ASSERT_TRUE(result.hasPlan()) << result.message;
  std::string error;
  std::optional<Plan> plan =
      parsePlan(printPlan(graph, result, options.budget), error);
  ASSERT_TRUE(plan) << error;
  EXPECT_EQ(plan->steps, result.plan.steps);
  EXPECT_EQ(plan->offsets, result.plan.offsets);
  EXPECT_EQ(verify(graph, *plan, options.budget), "");
}

TEST(GraphJson, NamesEachError) {
  auto error = [](const std::string &text) {
    std::string message;
    EXPECT_FALSE(parseGraph(text, message));
    return message;
  };
  auto has = [](const std::string &text, const char *part) {
    return text.find(part) != std::string::npos;
  };
  const std::string head = R"({"format": "ckopt-graph/1", )";
  EXPECT_TRUE(has(error(""), "not JSON"));
  EXPECT_TRUE(has(error("[1, 2"), "not JSON"));
  EXPECT_TRUE(has(error("\xff\xfe"), "UTF-8"));
  EXPECT_TRUE(has(error("[]"), "not a JSON object"));
  EXPECT_TRUE(has(error(R"({"format": "x"})"), "ckopt-graph/1"));
  EXPECT_TRUE(has(error(head + R"("nodes": []})"), "\"values\" is missing"));
  EXPECT_TRUE(
      has(error(head + R"("values": 3, "nodes": []})"), "must be a list"));
  EXPECT_TRUE(has(error(head + R"("values": [7], "nodes": []})"),
                  "values[0] must be an object"));
  EXPECT_TRUE(
      has(error(head + R"("values": [{"id": 0, "bytes": 1.5, "kind": "temp"}],
                        "nodes": []})"),
          "value 0: \"bytes\" must be an integer"));
  EXPECT_TRUE(
      has(error(head + R"("values": [{"id": 0, "bytes": 1, "kind": "tmp"}],
                        "nodes": []})"),
          "unknown kind \"tmp\""));
  EXPECT_TRUE(
      has(error(head + R"("values": [{"id": 0, "bytes": 1, "kind": "temp"},
                                     {"id": 0, "bytes": 1, "kind": "temp"}],
                        "nodes": []})"),
          "listed twice"));
  EXPECT_TRUE(has(error(head + R"("values": [], "nodes": [
                        {"id": 0, "cost": 1, "inputs": [5], "outputs": []}]})"),
                  "node 0: \"inputs\": unknown value 5"));
  EXPECT_TRUE(has(error(head + R"("values": [], "nodes": [
                        {"id": 0, "cost": 1, "inputs": [], "outputs": [],
                         "alternatives": []}]})"),
                  "not supported"));
  EXPECT_TRUE(has(error(head + R"("values": [], "nodes": [
                        {"id": 1, "cost": 1, "inputs": [], "outputs": []}]})"),
                  "0 is missing"));
}

/// Whatever the bytes are, the reader says no and does not crash.
TEST(GraphJson, SurvivesGarbage) {
  std::string error;
  EXPECT_FALSE(parseGraph(std::string(1000000, '['), error));
  std::string text = printGraph(randomGraph(5, 12));
  std::mt19937_64 rng(1);
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = text;
    for (int k = 0; k < 3; ++k)
      damaged[rng() % damaged.size()] = "0123456789-{}[],:\"ax"[rng() % 20];
    if (i % 3 == 0)
      damaged.resize(rng() % damaged.size());
    std::optional<Graph> graph = parseGraph(damaged, error);
    EXPECT_TRUE(graph || !error.empty());
    std::optional<Plan> plan = parsePlan(damaged, error);
    EXPECT_TRUE(plan || !error.empty());
  }
}

} // namespace
