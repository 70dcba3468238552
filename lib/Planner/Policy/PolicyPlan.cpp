//===- PolicyPlan.cpp - plans of the larger graph, read back --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: convert a plan of the graph that applyPolicy() made to one of the
// given graph. Method: its steps without marks, with each node replaced by its
// origin; cost and load by simulation. Guarantee: offsets that are kept were
// verified. Complexity: that of simulating, verifying and, rarely, packing.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Planner/Packing.h"
#include "ckopt/Planner/Policy.h"
#include "ckopt/Planner/Simulator.h"
#include "ckopt/Planner/Verifier.h"

using namespace ckopt::planner;

Plan ckopt::planner::restorePlan(const Graph &graph,
                                 const PolicyGraph &constrained,
                                 const Plan &plan, bool holdsAll) {
  Plan result = plan;
  // The certificates name nodes of the larger graph; what they prove holds for
  // plans that obey the policy.
  result.certificates.clear();
  result.steps.clear();
  result.offsets.clear();
  result.packing = {};
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    NodeId node = constrained.origin[size_t(plan.steps[i])];
    if (node < 0)
      continue;
    result.steps.push_back(node);
    if (!plan.offsets.empty())
      result.offsets.push_back(plan.offsets[i]);
  }
  Simulation simulation = simulate(graph, result.steps);
  result.cost = simulation.cost;
  result.peak = simulation.peak;
  // Where the planner recomputed more, a step may read a different copy, so
  // verify the offsets.
  if (!result.offsets.empty() && !verify(graph, result, 0).empty())
    packPlan(graph, result, holdsAll);
  else if (!result.offsets.empty()) // marks may have had offsets
    result.packing = pack(packingOf(graph, result), {.search = false}).facts;
  return result;
}
