//===- Packing.cpp - offsets in one arena ---------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: dynamic storage allocation, offline: boxes with given lifetimes and
// free offsets in an arena as small as possible (NP-hard). The front door for
// plans and boxes. Method: makes boxes of a plan's copies and workspaces, packs
// them (PackSolve.cpp) and writes the offsets back. Guarantee: no overlap but
// for in-place pairs that start at one offset; what is said about smaller
// arenas holds for packings that take over wherever the plan does. Gives up:
// with the packer. Complexity: linear in steps and operands beside it.
//
//===----------------------------------------------------------------------===//
#include "Model/Problem.h"
#include "Packing/PackSolve.h"

#include <algorithm>

using namespace ckopt::planner;

namespace {

/// The boxes of a plan.
struct PlanBoxes {
  std::vector<Box> boxes;
  std::vector<int32_t> boxOf;      ///< by copy; -1 if it has no box of its own
  std::vector<int32_t> scratchBox; ///< by step; -1 if it has no workspace
};

/// `inside` says, by value, whether a copy that is there at the start lies in
/// the arena.
PlanBoxes boxesOf(const Graph &graph, const std::vector<NodeId> &steps,
                  const Simulation &simulation,
                  const std::vector<char> &inside) {
  PlanBoxes result;
  result.boxOf.assign(simulation.copies.size(), -1);
  for (size_t c = 0; c < simulation.copies.size(); ++c) {
    const Copy &copy = simulation.copies[c];
    if (copy.base >= 0 || copy.last < 0 ||
        (copy.made < 0 && !inside[copy.value]))
      continue;
    result.boxOf[c] = int32_t(result.boxes.size());
    Box box{std::max(copy.made, 0), copy.last, graph.values[copy.value].bytes,
            -1};
    if (copy.taken >= 0)
      box.inPlaceOf = result.boxOf[copy.taken];
    result.boxes.push_back(box);
  }
  result.scratchBox.assign(steps.size(), -1);
  for (size_t t = 0; t < steps.size(); ++t) {
    int64_t bytes = graph.nodes[steps[t]].workspace;
    if (bytes == 0)
      continue;
    result.scratchBox[t] = int32_t(result.boxes.size());
    result.boxes.push_back({int32_t(t), int32_t(t), bytes, -1});
  }
  return result;
}

} // namespace

int64_t ckopt::planner::packBoxes(const std::vector<Box> &boxes,
                                  int64_t alignment,
                                  std::vector<int64_t> &offsets, double effort,
                                  PackingFacts *facts) {
  PackModel model(boxes, alignment);
  double units = effort * std::min(2e7, 1e4 * double(boxes.size()) + 4e6);
  Deadline deadline(0, std::max<int64_t>(1, int64_t(units)));
  PackAnswer answer = packModel(model, 0, 1, deadline);
  offsets.resize(boxes.size());
  for (size_t i = 0; i < boxes.size(); ++i)
    offsets[i] = answer.offsets[model.unitOf[i]];
  if (facts)
    *facts = {model.load, answer.lowerBound, answer.searched};
  return answer.arena;
}

PackingFacts ckopt::planner::packingFacts(const Graph &graph, const Plan &plan,
                                          double effort, int64_t *arena) {
  std::vector<char> inside(graph.values.size(), 0);
  for (auto [value, offset] : plan.initial)
    inside[value] = 1;
  PlanBoxes made =
      boxesOf(graph, plan.steps, simulate(graph, plan.steps, true), inside);
  PackingFacts facts;
  std::vector<int64_t> offsets;
  int64_t found = -1;
  if (effort > 0) {
    found = packBoxes(made.boxes, graph.alignment, offsets, effort, &facts);
  } else {
    PackModel model(made.boxes, graph.alignment);
    facts = {model.load, model.load, false};
  }
  if (arena)
    *arena = found;
  return facts;
}

PackProof ckopt::planner::packPlan(const Graph &graph, Plan &plan,
                                   bool holdsAll, double effort) {
  Simulation simulation = simulate(graph, plan.steps, true);
  PlanBoxes made =
      boxesOf(graph, plan.steps, simulation,
              std::vector<char>(graph.values.size(), holdsAll ? 1 : 0));
  std::vector<int64_t> offsets;
  plan.arena =
      packBoxes(made.boxes, graph.alignment, offsets, effort, &plan.packing);
  plan.initial.clear();
  plan.offsets.assign(plan.steps.size(), {});
  for (size_t c = 0; c < simulation.copies.size(); ++c) {
    const Copy &copy = simulation.copies[c];
    int32_t owner = int32_t(c);
    while (simulation.copies[owner].base >= 0)
      owner = simulation.copies[owner].base;
    int64_t at = made.boxOf[owner] >= 0 ? offsets[made.boxOf[owner]] : 0;
    if (copy.made >= 0)
      plan.offsets[copy.made].push_back(at);
    else if (made.boxOf[c] >= 0)
      plan.initial.push_back({copy.value, at});
  }
  for (size_t t = 0; t < plan.steps.size(); ++t)
    if (made.scratchBox[t] >= 0)
      plan.offsets[t].push_back(offsets[made.scratchBox[t]]);
  return plan.packing.proof(plan.arena);
}
