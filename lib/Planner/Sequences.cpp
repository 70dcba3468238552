//===- Sequences.cpp - what holds for a list of steps ---------------------===//
//
// Checks of sequences that come from outside (hints). Linear in the operands.
//
//===----------------------------------------------------------------------===//
#include "GraphPlanner.h"

using namespace ckopt::planner;

bool ckopt::planner::isValidSequence(const Problem &problem,
                                     const std::vector<NodeId> &steps) {
  std::vector<int32_t> runs(problem.numNodes, 0);
  std::vector<char> made(problem.initial.begin(), problem.initial.end());
  for (NodeId n : steps) {
    if (n < 0 || n >= problem.numNodes ||
        (runs[n] > 0 && !problem.recompute[n]))
      return false;
    for (ValueId v : problem.reads[n])
      if (!made[v])
        return false;
    for (NodeId before : problem.preds[n])
      if (!runs[before])
        return false;
    for (NodeId blocker : problem.blockers[n])
      if (runs[blocker])
        return false;
    for (ValueId v : problem.outputs[n])
      made[v] = 1;
    ++runs[n];
  }
  for (int32_t count : runs)
    if (count == 0)
      return false;
  return true;
}

bool ckopt::planner::isProgramOrder(const Problem &problem,
                                    const std::vector<NodeId> &steps) {
  std::vector<char> seen(problem.numNodes, 0);
  NodeId next = 0;
  for (NodeId n : steps)
    if (!seen[n]) {
      if (n != next)
        return false;
      seen[n] = 1;
      ++next;
    }
  return next == problem.numNodes;
}
