//===- LocalSearch.cpp - simulated annealing on the sequence --------------===//
//
// Improves what the constructive strategies found. Method: simulated annealing
// on the sequence of steps as in FastSA (Imanishi et al., NeurIPS 2023): put a
// run in, take one out, move one; here seeded with a good plan instead of the
// program order, with moves that take whole replays (a run together with the
// runs that it alone needs) and with a penalty for bytes over the budget
// instead of a product of peak and cost. Guarantee: reports valid sequences
// only. The number of moves depends on the graph's size and the effort alone,
// so the result is reproducible; a move costs O(log n) for each operand.
//
//===----------------------------------------------------------------------===//
#include "LocalSearchAnnealer.h"

#include <algorithm>
#include <cmath>

using namespace ckopt::planner;

void ckopt::planner::runLocalSearch(StrategyContext &context) {
  const Problem &problem = context.problem;
  if (context.effort <= 0 || problem.numNodes == 0)
    return;
  // Starts: the cheapest within the budget, else those nearest to it.
  std::vector<const Candidate *> starts;
  for (const Candidate &candidate : context.known)
    starts.push_back(&candidate);
  auto rank = [&](const Candidate *c) {
    bool fits = c->peak <= context.budget;
    return std::make_pair(fits ? 0 : 1, fits ? c->cost : double(c->peak));
  };
  std::sort(starts.begin(), starts.end(),
            [&](const Candidate *a, const Candidate *b) {
              return rank(a) < rank(b);
            });
  if (starts.empty())
    return;
  bool fits = starts.front()->peak <= context.budget;
  if (fits && starts.front()->cost <= problem.baseCost)
    return;
  // The best one cool and hot (structured graphs want the one, irregular ones
  // the other), then one with a little less load or more cost: another basin.
  double costly =
      problem.baseCost + (starts.front()->cost - problem.baseCost) * 1.3;
  std::vector<NodeId> first = starts.front()->steps, second = first;
  for (size_t i = starts.size() - 1; i > 0; --i)
    if (!fits ||
        (starts[i]->peak <= context.budget && starts[i]->cost <= costly))
      second = starts[i]->steps;
  struct Chain {
    const std::vector<NodeId> &start;
    double hot; ///< in mean costs of a node
  };
  double size = problem.numNodes;
  int64_t moves = int64_t(
      context.effort * (std::min(250000.0, 80000 + 1500 * size) + 100 * size));
  double mean = problem.baseCost / problem.numNodes;
  uint64_t salt = 17;
  AnnealingTables tables(problem);
  AnnealingGoal goal{context.budget, context.fixedOrder, false,
                     4 * problem.baseCost /
                         std::max<double>(1, double(context.budget))};
  for (Chain chain : {Chain{first, 0.15}, Chain{first, 2}, Chain{second, 1}}) {
    Annealer annealer(problem, tables, goal, chain.start,
                      context.seed * 7919 + salt++);
    annealer.run(moves, mean * chain.hot, mean * 0.0005, context.deadline);
    context.report(annealer.best());
  }
}
