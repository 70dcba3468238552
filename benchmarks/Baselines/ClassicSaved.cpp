//===- ClassicSaved.cpp - all, mincut and lowerset ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Objective: a set of values to save within the budget; all other values that
// the backward part needs are made again, once. Methods:
//   all: saves nothing but what cannot be made again.
//   mincut: the set of the fewest bytes from which all that is wanted follows,
//     a minimum cut between forward and backward part (Chen and Horace He,
//     2022; PyTorch's partitioner), where nodes that are costly for the bytes
//     they make may not run again. As many of those as the budget asks for,
//     the cheapest for their bytes first, are then set free (its activation
//     memory budget, with the real load in place of a ratio).
//   lowerset: a chain of lower sets of the forward part; each one's boundary is
//     saved and what lies between two of them made again (Kusumoto et al., A
//     Graph Theoretic Framework of Recomputation, 2019). The approximate form
//     of the dynamic program: lower sets are the stages' ends, time is counted
//     in 256 units, and the least memory is kept for each.
// Guarantee: valid plans; the budget is met only where a report says so. Gives
// up: after the last setting. A cut
// takes O(V^2 E) at worst, near-linear in practice; the dynamic program
// O(stages^2 * units).
//
//===----------------------------------------------------------------------===//
#include "Baselines/Classic.h"
#include "Math/MaximumFlow.h"

#include <algorithm>
#include <limits>
#include <numeric>

using namespace ckopt::planner;

namespace {

constexpr int64_t endless = MaximumFlow::unlimited;

/// Returns the saved set of the fewest bytes if the `banned` nodes run only
/// once.
std::vector<char> cheapestCut(const ForwardPart &forward,
                              const std::vector<char> &banned) {
  const Problem &problem = forward.problem;
  int32_t values = problem.numValues, nodes = problem.numNodes;
  int32_t source = 2 * values + nodes, sink = source + 1;
  // A storage is an edge with its bytes as capacity; a node connects it to the
  // node's results.
  MaximumFlow flow(sink + 1);
  for (int32_t p = 0; p <= forward.turn; ++p) {
    NodeId node = forward.order[p];
    int32_t middle = 2 * values + node;
    if (banned[node])
      flow.connect(source, middle, endless);
    for (ValueId v : problem.reads[node]) {
      ValueId r = problem.root[v];
      if (forward.made[r] >= 0 && problem.producer[r] != node)
        flow.connect(2 * r + 1, middle, endless);
    }
    for (ValueId v : problem.outputs[node])
      flow.connect(middle, 2 * problem.root[v], endless);
  }
  for (ValueId v = 0; v < values; ++v) {
    if (forward.made[v] < 0)
      continue;
    flow.connect(2 * v, 2 * v + 1, problem.bytes[v]);
    if (forward.wanted(v))
      flow.connect(2 * v + 1, sink, endless);
  }
  int64_t work = 0;
  flow.run(source, sink, work);
  std::vector<char> saved(values, 0);
  for (ValueId v = 0; v < values; ++v)
    saved[v] =
        forward.made[v] >= 0 && flow.reached(2 * v) && !flow.reached(2 * v + 1);
  return saved;
}

class LowerSets {
public:
  LowerSets(StrategyContext &context, const ForwardPart &forward)
      : context(context), forward(forward) {}
  void run();

private:
  static constexpr int32_t units = 256;
  struct Cell {
    int64_t memory = endless; ///< bytes saved so far
    int32_t from = -1, time = 0;
  };
  void fill(int64_t room);
  std::vector<char> saved(int32_t time) const;

  StrategyContext &context;
  const ForwardPart &forward;
  std::vector<std::vector<Cell>> table; ///< by end of a lower set, and time
};

/// Computes the least memory for each lower set and time, where the values that
/// a segment makes again must fit `room` beside the saved ones.
void LowerSets::fill(int64_t room) {
  int32_t stages = forward.stages();
  std::vector<int64_t> enters = forward.crossingBytes();
  std::vector<int64_t> keeps = forward.wantedBytes();
  std::vector<double> cost = forward.stageCost();
  enters.push_back(0);
  double whole = std::accumulate(cost.begin(), cost.end(), 1e-300);
  table.assign(stages + 1, std::vector<Cell>(units + 1));
  table[0][0].memory = 0;
  for (int32_t from = 0; from < stages; ++from) {
    int64_t inside = 0;
    double again = 0;
    for (int32_t to = from + 1; to <= stages; ++to) {
      inside += keeps[to - 1];
      again += cost[to - 1];
      // The last segment runs once, because the backward part follows at once.
      int32_t more = to == stages ? 0 : int32_t(again / whole * units + 0.999);
      if (!context.deadline.spend(units / 16))
        return;
      for (int32_t time = 0; time + more <= units; ++time) {
        int64_t memory = table[from][time].memory;
        if (memory == endless || memory + inside > room)
          continue;
        Cell &next = table[to][time + more];
        if (memory + enters[to] < next.memory)
          next = {memory + enters[to], from, time};
      }
    }
  }
}

std::vector<char> LowerSets::saved(int32_t time) const {
  std::vector<char> result(forward.problem.numValues, 0);
  for (int32_t at = forward.stages(), t = time; at > 0;) {
    const Cell &cell = table[at][t];
    for (ValueId v = 0; v < forward.problem.numValues; ++v) {
      if (forward.made[v] < 0)
        continue;
      bool last = at == forward.stages() && forward.stageOf[v] >= cell.from;
      if (last || (at < forward.stages() && forward.crosses(v, at)))
        result[v] = 1;
    }
    at = cell.from;
    t = cell.time;
  }
  return result;
}

void LowerSets::run() {
  std::vector<int64_t> keeps = forward.wantedBytes();
  int64_t whole = 1;
  for (int64_t bytes : keeps)
    whole += bytes;
  // The method's model ignores other live values, so try it with less and less
  // room.
  for (double share = 1; share > 0.01; share *= 0.9) {
    fill(int64_t(double(whole) * share));
    for (int32_t time = 0; time <= units; ++time) {
      if (table[forward.stages()][time].memory == endless)
        continue;
      if (!context.deadline.spend(forward.problem.numNodes))
        return;
      if (context.report(runSaved(forward, saved(time))))
        return;
      break;
    }
  }
}

} // namespace

void ckopt::planner::runAll(StrategyContext &context) {
  for (size_t k = 0; k < ordersOf(context); ++k) {
    ForwardPart forward(context.problem, context.orders[k], 1);
    context.report(
        runSaved(forward, std::vector<char>(context.problem.numValues, 0)));
  }
}

void ckopt::planner::runMinCut(StrategyContext &context) {
  const Problem &problem = context.problem;
  ForwardPart forward(problem, context.orders.front(), 1);
  std::vector<std::pair<double, NodeId>> ranked;
  for (int32_t p = 0; p <= forward.turn; ++p) {
    NodeId n = forward.order[p];
    double bytes = 1;
    for (ValueId v : problem.outputs[n])
      bytes += double(problem.bytes[v]);
    ranked.push_back({problem.cost[n] / bytes, n});
  }
  std::sort(ranked.begin(), ranked.end());
  // Free as few nodes as meet the budget.
  constexpr size_t tries = 24;
  for (size_t t = 0; t <= tries; ++t) {
    size_t free = ranked.size() * t / tries;
    std::vector<char> banned(problem.numNodes, 0);
    for (size_t k = 0; k < ranked.size(); ++k)
      banned[ranked[k].second] =
          k >= free || !problem.recompute[ranked[k].second];
    if (!context.deadline.spend(20 * problem.numNodes) ||
        context.report(runSaved(forward, cheapestCut(forward, banned))))
      return;
  }
}

void ckopt::planner::runLowerSet(StrategyContext &context) {
  for (size_t k = 0; k < ordersOf(context); ++k) {
    ForwardPart forward(context.problem, context.orders[k], 128);
    if (forward.stages() > 0 && forward.turn >= 0)
      LowerSets(context, forward).run();
  }
}
