// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Plans a chain of four layers and their gradients: unconstrained, then at the
// smallest budget that the planner finds.
#include "ckopt/Planner/Solve.h"

#include <cstdio>

using namespace ckopt::planner;

int main() {
  Graph graph;
  graph.name = "chain";
  const int layers = 4;
  // Activations 0..3, then gradients 4..7; gradient i reads activation i.
  for (int i = 0; i < 2 * layers; ++i)
    graph.values.push_back(
        {/*bytes=*/1 << 20,
         i == 2 * layers - 1 ? ValueKind::Output : ValueKind::Temp, -1,
         "v" + std::to_string(i)});
  for (int i = 0; i < layers; ++i) {
    Node node;
    node.name = "forward" + std::to_string(i);
    node.cost = 1;
    if (i)
      node.inputs = {i - 1};
    node.outputs = {i};
    graph.nodes.push_back(node);
  }
  for (int i = 0; i < layers; ++i) {
    Node node;
    node.name = "backward" + std::to_string(i);
    node.cost = 2;
    node.inputs = {layers - 1 - i};
    if (i)
      node.inputs.push_back(layers + i - 1);
    node.outputs = {layers + i};
    graph.nodes.push_back(node);
  }
  Options options;
  options.pack = true;
  BudgetPlanner planner(graph);
  Result free = planner.solve(options);
  Result least = planner.minimize(options);
  if (!free.hasPlan() || !least.hasPlan())
    return 1;
  std::printf("unconstrained: %lld bytes, cost %g\n",
              (long long)free.plan.arena, free.plan.cost);
  std::printf("minimum: %lld bytes, cost %g\n", (long long)least.plan.arena,
              least.plan.cost);
  return least.plan.arena <= free.plan.arena ? 0 : 1;
}
