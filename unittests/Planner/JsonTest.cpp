//===- JsonTest.cpp - reading and writing graph and plan files ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
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
  Result result = BudgetPlanner(graph).solve(options);
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
                        {"id": 0, "outputs": [], "alternatives": [
                         {"inputs": [], "cost": 1}]}]})"),
                  "node 0: \"alternatives\" are not supported: choose one and "
                  "write its \"inputs\" and \"cost\" as the node's own"));
  EXPECT_TRUE(
      has(error(head + R"("values": [{"id": 1e30, "bytes": 1, "kind": "temp"}],
                        "nodes": []})"),
          "values[0]: \"id\" must be an integer of 64 bits"));
  EXPECT_TRUE(has(error(head + R"("values": [], "nodes": [
                        {"id": 0, "cost": 1e999, "inputs": [], "outputs": []}
                        ]})"),
                  "node 0: \"cost\" must be a finite number"));
}

/// One reading names the problems of all values and nodes, up to twenty.
TEST(GraphJson, ListsAllProblems) {
  std::string error, many;
  EXPECT_FALSE(parseGraph(R"({"format": "ckopt-graph/1", "values": [
      {"id": 0, "bytes": -1, "kind": "temp"}, {"id": 1, "bytes": 1}],
      "nodes": [{"id": 0, "cost": 1, "inputs": [9], "outputs": [0]},
                {"id": 0, "inputs": [], "outputs": []}]})",
                          error));
  EXPECT_EQ(error, "value 0: negative size -1\n"
                   "value 1: \"kind\" is missing or no string\n"
                   "node 0: \"inputs\": unknown value 9\n"
                   "node 0: \"cost\" is missing\n"
                   "node 0 is listed twice");
  for (int i = 0; i < 50; ++i)
    many += std::string(i ? "," : "") + "{}";
  EXPECT_FALSE(parseGraph(
      R"({"format": "ckopt-graph/1", "nodes": [], "values": [)" + many + "]}",
      error));
  EXPECT_EQ(std::count(error.begin(), error.end(), '\n'), 19);
  EXPECT_TRUE(error.ends_with("... and more"));
}

/// Sums that 64 bits do not hold are found before anything is added up.
TEST(GraphJson, NamesMisspeltKeysOfTheGraph) {
  std::string error;
  EXPECT_FALSE(parseGraph(R"({"format": "ckopt-graph/1", "aligment": 64,
      "made_by": "a tool", "values": [], "nodes": []})",
                          error));
  EXPECT_EQ(error, "graph: unknown key \"aligment\"; did you mean "
                   "\"alignment\"?");
}

TEST(GraphJson, RefusesSumsThatOverflow) {
  auto load = [](int64_t bytes, int views) {
    Graph graph;
    ValueId base = addValue(graph, bytes);
    addNode(graph, 1, {}, {base});
    for (int i = 0; i < views; ++i)
      addNode(graph, 1, {base},
              {addValue(graph, bytes, ValueKind::Temp, base)});
    return validate(graph);
  };
  EXPECT_EQ(load(int64_t(1) << 57, 0), "");
  EXPECT_NE(load(int64_t(1) << 61, 0), "");
  EXPECT_NE(load(INT64_MAX, 0), "");
  // Eight views can hold eight copies beside the current one.
  EXPECT_NE(load(int64_t(1) << 57, 8), "");
  Graph costly = chain(3);
  for (Node &node : costly.nodes)
    node.cost = 1e308;
  EXPECT_NE(validate(costly).find("costs of all nodes"), std::string::npos);
}

/// Ids in files may have gaps and come in any order; program order is theirs.
TEST(GraphJson, KeepsTheIdsOfTheFile) {
  std::string error;
  auto graph = parseGraph(R"({"format": "ckopt-graph/1", "values": [
      {"id": 70, "bytes": 3, "kind": "output"},
      {"id": -5, "bytes": 2, "kind": "input"},
      {"id": 8, "bytes": 2, "kind": "temp"}],
      "nodes": [{"id": 900, "cost": 1, "inputs": [8], "outputs": [70],
                 "after": [20], "mutates": [8]},
                {"id": 20, "cost": 1, "inputs": [-5], "outputs": [8]}]})",
                          error);
  ASSERT_TRUE(graph) << error;
  EXPECT_EQ(graph->nodes[1].after, std::vector<NodeId>{0});
  EXPECT_EQ(graph->nodes[0].inputs, std::vector<ValueId>{0});
  auto again = parseGraph(printGraph(*graph), error);
  ASSERT_TRUE(again) << error;
  EXPECT_EQ(printGraph(*again), printGraph(*graph));
  Result result = BudgetPlanner(*graph).solve({});
  ASSERT_TRUE(result.hasPlan()) << result.message;
  std::string text = printPlan(*graph, result, 0);
  EXPECT_NE(text.find("\"steps\":[20,900]"), std::string::npos) << text;
  auto plan = parsePlan(text, *graph, error);
  ASSERT_TRUE(plan) << error;
  EXPECT_EQ(plan->plan.steps, result.plan.steps);
  EXPECT_FALSE(parsePlan(R"({"format": "ckopt-plan/1", "cost": 2,
      "steps": [20, 1], "choices": {"20": 4}})",
                         *graph, error));
  EXPECT_EQ(error, "steps: unknown node 1\n"
                   "\"choices\" are not supported: nodes have no alternatives");
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
