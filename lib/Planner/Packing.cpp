//===- Packing.cpp - offsets in one arena ---------------------------------===//
//
// Problem: dynamic storage allocation, offline: boxes with given lifetimes and
// free offsets in an arena as small as possible (NP-hard). The front door for
// plans and boxes: makes boxes of a plan's copies and workspaces, packs them
// (PackSolve.cpp) and writes the offsets back. Guarantee: no overlap but for
// in-place pairs that start at one offset; what is said about smaller arenas
// holds for packings that take over wherever the plan does.
//
//===----------------------------------------------------------------------===//
#include "PackSolve.h"
#include "Problem.h"

#include <algorithm>

using namespace ckopt::planner;

int64_t ckopt::planner::packBoxes(const std::vector<Box> &boxes,
                                  int64_t alignment,
                                  std::vector<int64_t> &offsets, double effort,
                                  PackProof *proof) {
  PackModel model(boxes, alignment);
  double units = effort * std::min(2e7, 1e4 * double(boxes.size()) + 1e5);
  Deadline deadline(0, std::max<int64_t>(1, int64_t(units)));
  PackAnswer answer = packModel(model, 0, 1, deadline);
  offsets.resize(boxes.size());
  for (size_t i = 0; i < boxes.size(); ++i)
    offsets[i] = answer.offsets[model.unitOf[i]];
  if (proof)
    *proof = answer.proof;
  return answer.arena;
}

PackProof ckopt::planner::packPlan(const Graph &graph, Plan &plan,
                                   bool holdsAll, double effort) {
  Simulation simulation = simulate(graph, plan.steps, true);
  std::vector<Box> boxes;
  std::vector<int32_t> boxOf(simulation.copies.size(), -1);
  for (size_t c = 0; c < simulation.copies.size(); ++c) {
    const Copy &copy = simulation.copies[c];
    if (copy.base >= 0 || copy.last < 0 || (copy.made < 0 && !holdsAll))
      continue;
    boxOf[c] = int32_t(boxes.size());
    Box box{std::max(copy.made, 0), copy.last, graph.values[copy.value].bytes,
            -1};
    if (copy.taken >= 0)
      box.inPlaceOf = boxOf[copy.taken];
    boxes.push_back(box);
  }
  std::vector<int32_t> scratchBox(plan.steps.size(), -1);
  for (size_t t = 0; t < plan.steps.size(); ++t) {
    int64_t bytes = graph.nodes[plan.steps[t]].workspace;
    if (bytes == 0)
      continue;
    scratchBox[t] = int32_t(boxes.size());
    boxes.push_back({int32_t(t), int32_t(t), bytes, -1});
  }
  std::vector<int64_t> offsets;
  PackProof proof = PackProof::None;
  plan.arena = packBoxes(boxes, graph.alignment, offsets, effort, &proof);
  plan.initial.clear();
  plan.offsets.assign(plan.steps.size(), {});
  for (size_t c = 0; c < simulation.copies.size(); ++c) {
    const Copy &copy = simulation.copies[c];
    int32_t owner = int32_t(c);
    while (simulation.copies[owner].base >= 0)
      owner = simulation.copies[owner].base;
    int64_t at = boxOf[owner] >= 0 ? offsets[boxOf[owner]] : 0;
    if (copy.made >= 0)
      plan.offsets[copy.made].push_back(at);
    else if (boxOf[c] >= 0)
      plan.initial.push_back({copy.value, at});
  }
  for (size_t t = 0; t < plan.steps.size(); ++t)
    if (scratchBox[t] >= 0)
      plan.offsets[t].push_back(offsets[scratchBox[t]]);
  return proof;
}
