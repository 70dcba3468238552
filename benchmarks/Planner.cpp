//===- Planner.cpp - time of plans ----------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plans of random training graphs: what a search finds within its work, and the
// time that the work takes. test/bench compares strategies on real graphs.
//
//===----------------------------------------------------------------------===//
#include "Benchmarks.h"
#include "GraphFamilies.h"
#include "ckopt/Planner/Simulator.h"
#include <benchmark/benchmark.h>
#include <numeric>

using namespace ckopt::planner;

namespace {

Graph graphOf(int64_t nodes) {
  return ckopt::planner::test::trainingGraph(1, int(nodes));
}

/// What the program order needs, all bytes aligned.
int64_t programPeak(const Graph &graph) {
  std::vector<NodeId> order(graph.nodes.size());
  std::iota(order.begin(), order.end(), 0);
  return simulate(graph, order, true).peak;
}

Options options(double effort, bool pack) {
  Options made;
  made.timeLimitSeconds = 0;
  made.threads = 1;
  made.effort = effort;
  made.pack = pack;
  return made;
}

/// Arguments: nodes, budget in percent of what the program order needs.
void planWithin(benchmark::State &state, double effort, bool pack) {
  Graph graph = graphOf(state.range(0));
  Options made = options(effort, pack);
  made.budget = programPeak(graph) / 100 * state.range(1);
  double cost = 0;
  for (auto _ : state) {
    Result result = BudgetPlanner(graph).solve(made);
    if (!result.hasPlan())
      return state.SkipWithError("no plan was found");
    cost = result.plan.cost;
  }
  double all = 0;
  for (const Node &node : graph.nodes)
    all += node.cost;
  state.counters["nodes"] = double(graph.nodes.size());
  state.counters["extra_cost_%"] = 100 * (cost / all - 1);
}

/// Argument: nodes.
void smallestBudget(benchmark::State &state) {
  Graph graph = graphOf(state.range(0));
  Options made = options(0.1, false);
  int64_t smallest = 0;
  for (auto _ : state)
    smallest = BudgetPlanner(graph).minimize(made).plan.minimumBudget;
  state.counters["share_%"] =
      100 * double(smallest) / double(programPeak(graph));
}

} // namespace

void ckopt::benchmarks::registerPlanner() {
  auto add = [](const char *name, double effort, bool pack) {
    benchmark::RegisterBenchmark(name, planWithin, effort, pack)
        ->ArgNames({"nodes", "budget%"})
        ->ArgsProduct({{60, 300}, {85, 70}})
        ->Unit(benchmark::kMillisecond);
  };
  add("plan/construct", 0, false);
  add("plan/search", 0.1, false); // a tenth of the default effort
  add("plan/pack", 0.1, true);
  benchmark::RegisterBenchmark("plan/construct/large", planWithin, 0.0, false)
      ->ArgNames({"nodes", "budget%"})
      ->Args({10000, 70})
      ->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("plan/minimize", smallestBudget)
      ->ArgNames({"nodes"})
      ->Arg(60)
      ->Arg(300)
      ->Unit(benchmark::kMillisecond);
}
