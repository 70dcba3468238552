//===- ExactOrder.cpp - strategy "exact-order": proof for the program order ==//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: the cheapest plan whose first runs follow the program order, and a
// proof that it is. Method: GapMilp.h bounds from below and proposes gaps to
// drop; each proposal is expanded just in time (GapExpand.h), replays that the
// budget does not need are taken out (fillReplays), and what costs more than
// the model says goes on as the cutoff of the next program. Where bound and
// plan meet, the plan is optimal for the order. Guarantee: what is stated as
// proven holds for every plan of the order. Gives up: at counts of tree nodes
// and work, and at once on programs with too many gaps. Complexity: exponential
// within them.
//
//===----------------------------------------------------------------------===//
#include "ExactOrder/ExactOrder.h"
#include "Bounds/Gaps.h"
#include "Construct/Construct.h"
#include "ExactOrder/GapExpand.h"
#include "ExactOrder/GapMilp.h"
#include "Model/Order.h"

#include <algorithm>
#include <limits>

using namespace ckopt::planner;

/// Programs with more gaps than this are not solved exactly; the strategies of
/// Improve have them.
static constexpr size_t mostGaps = 1500;
/// Units at effort 1 (0.4 s), and the most efforts: what does not end by then
/// rarely ends at all.
static constexpr double proofWork = 8e6, mostEfforts = 20;

void ckopt::planner::runExactOrder(StrategyContext &context) {
  const Problem &problem = context.problem;
  // Proofs must hold for all plans of the format.
  Problem format(problem.graph, Rules::Format);
  GapProblem gaps(format, programOrder(problem));
  if (gaps.gaps.size() > mostGaps)
    return;
  int64_t budget = context.budget;
  std::vector<double> price = pricesByNode(context);
  double best = std::numeric_limits<double>::infinity();
  auto consider = [&](std::vector<NodeId> steps) {
    Simulation simulation = simulate(problem, steps, true);
    if (simulation.peak <= budget)
      best = std::min(best, simulation.cost - problem.baseCost);
    context.report(std::move(steps));
  };
  for (const Candidate &candidate : context.known)
    if (candidate.peak <= budget && isProgramOrder(problem, candidate.steps))
      best = std::min(best, candidate.cost - problem.baseCost);
  Deadline part = context.deadline.part(
      int64_t(proofWork * std::clamp(context.effort, 0.1, mostEfforts)));
  GapMilpOptions options;
  options.treeNodes = 4000;
  options.known = best < 1e300 ? best : 1e300;
  options.proposed = [&](const GapDecision &decision) {
    auto steps = expandGaps(gaps, decision.dropped, budget);
    if (steps) {
      std::vector<NodeId> filled =
          fillReplays(problem, *steps, budget, price, part);
      consider(std::move(filled));
    }
    return best < 1e300 ? best : 1e300;
  };
  GapDecision decision = decideGaps(gaps, budget, options, part);
  context.deadline.spend(part.spent());
  if (decision.kind == MilpResult::Infeasible)
    context.prove(std::numeric_limits<double>::infinity(), true);
  else if (decision.bound > 0)
    context.prove(problem.baseCost + decision.bound, true);
}
