//===- Packing.cpp - offsets for the values of a plan ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: values of a plan with given lifetimes and free offsets in an arena
// as small as possible. Method: makes buffers of a plan's copies and
// workspaces, packs them (PackProblem.cpp) and writes the offsets back.
// Guarantee: no overlap but for in-place pairs that start at one offset; what
// is said about smaller arenas holds for packings that take over wherever the
// plan does. Gives up: with the packer. Complexity: linear in steps and
// operands beside it.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Planner/Packing.h"
#include "Model/Problem.h"

#include <algorithm>

using namespace ckopt::planner;

namespace {

/// The buffers of a plan.
struct PlanBuffers {
  PackProblem problem;
  std::vector<int32_t> ofCopy;      ///< -1: it has no buffer of its own
  std::vector<int32_t> ofWorkspace; ///< by step; -1 if it has no workspace
};

/// `inside` says, by value, whether a copy that is there at the start lies in
/// the arena.
PlanBuffers buffersOf(const Graph &graph, const std::vector<NodeId> &steps,
                      const Simulation &simulation,
                      const std::vector<char> &inside) {
  PlanBuffers result;
  result.problem.alignment = graph.alignment;
  std::vector<Buffer> &buffers = result.problem.buffers;
  result.ofCopy.assign(simulation.copies.size(), -1);
  for (size_t c = 0; c < simulation.copies.size(); ++c) {
    const Copy &copy = simulation.copies[c];
    if (copy.base >= 0 || copy.last < 0 ||
        (copy.made < 0 && !inside[copy.value]))
      continue;
    result.ofCopy[c] = int32_t(buffers.size());
    Buffer buffer{{std::max(copy.made, 0), int64_t(copy.last) + 1},
                  graph.values[copy.value].bytes};
    if (copy.taken >= 0)
      buffer.inPlaceOf = result.ofCopy[copy.taken];
    buffers.push_back(buffer);
  }
  result.ofWorkspace.assign(steps.size(), -1);
  for (size_t t = 0; t < steps.size(); ++t) {
    int64_t bytes = graph.nodes[steps[t]].workspace;
    if (bytes == 0)
      continue;
    result.ofWorkspace[t] = int32_t(buffers.size());
    buffers.push_back({{int64_t(t), int64_t(t) + 1}, bytes});
  }
  return result;
}

} // namespace

PackProblem ckopt::planner::packingOf(const Graph &graph, const Plan &plan) {
  std::vector<char> inside(graph.values.size(), 0);
  for (auto [value, offset] : plan.initial)
    inside[value] = 1;
  return buffersOf(graph, plan.steps, simulate(graph, plan.steps, true), inside)
      .problem;
}

PackOptions ckopt::planner::planPacking(const PackProblem &problem,
                                        double effort) {
  double buffers = double(problem.buffers.size());
  PackOptions options;
  options.rankTimes = false;
  options.workLimit = std::max<int64_t>(
      1, int64_t(effort * std::min(2e7, 1e4 * buffers + 4e6)));
  return options;
}

void ckopt::planner::packPlan(const Graph &graph, Plan &plan, bool holdsAll,
                              double effort) {
  Simulation simulation = simulate(graph, plan.steps, true);
  PlanBuffers made =
      buffersOf(graph, plan.steps, simulation,
                std::vector<char>(graph.values.size(), holdsAll ? 1 : 0));
  PackResult packed = pack(made.problem, planPacking(made.problem, effort));
  plan.arena = packed.height;
  plan.packing = packed.facts;
  plan.initial.clear();
  plan.offsets.assign(plan.steps.size(), {});
  for (size_t c = 0; c < simulation.copies.size(); ++c) {
    const Copy &copy = simulation.copies[c];
    int32_t owner = int32_t(c);
    while (simulation.copies[owner].base >= 0)
      owner = simulation.copies[owner].base;
    int32_t buffer = made.ofCopy[owner];
    int64_t at = buffer >= 0 ? packed.offsets[buffer] : 0;
    if (copy.made >= 0)
      plan.offsets[copy.made].push_back(at);
    else if (made.ofCopy[c] >= 0)
      plan.initial.push_back({copy.value, at});
  }
  for (size_t t = 0; t < plan.steps.size(); ++t)
    if (made.ofWorkspace[t] >= 0)
      plan.offsets[t].push_back(packed.offsets[made.ofWorkspace[t]]);
}
