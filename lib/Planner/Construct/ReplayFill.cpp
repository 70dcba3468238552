//===- ReplayFill.cpp - takes replays out while memory allows -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: constructions leave memory unused here and there (a segment that
// could have been kept, an eviction that a later one made needless). Method:
// greedy rounding of the gap relaxation from the feasible side. Each replay has
// a density, the cost that goes with it (the replays that it alone needs go
// too) over the price of the bytes that then stay between its value's copies;
// the densest is taken out first if the load stays within the budget. Densities
// are brought up to date when they reach the top (lazy greedy, as for
// submodular functions: Minoux 1978). Guarantee: valid steps of no more cost,
// and no more load than the larger of the budget and before. Gives up: with the
// deadline, with what is then valid. Complexity: O((r + n) log n) for r replays
// with bounded operands.
//
//===----------------------------------------------------------------------===//
#include "Construct/Construct.h"
#include "Model/Order.h"
#include "Model/Sequence.h"
#include "ckopt/Planner/Bounds.h"

#include <algorithm>
#include <queue>

using namespace ckopt::planner;

namespace {

class Filler {
public:
  Filler(const Problem &problem, const std::vector<NodeId> &steps,
         int64_t budget, const std::vector<double> &price, Deadline &deadline)
      : problem(problem), sequence(problem, steps), deadline(deadline),
        limit(std::max(budget, sequence.peak())) {
    sumPrices(price);
  }
  /// Makes one pass over all replays; returns false if it removed none.
  bool pass();
  std::vector<NodeId> steps() const { return sequence.steps(); }

private:
  struct Entry {
    double density;
    NodeId node;
    int32_t slot;
    bool operator<(const Entry &other) const {
      return density != other.density ? density < other.density
                                      : slot > other.slot;
    }
  };
  void sumPrices(const std::vector<double> &price);
  bool isReplay(NodeId node, int32_t slot) const;
  /// Collects the runs to remove with the one in the slot: those that only it
  /// needs.
  void collect(int32_t slot);
  bool needless(int32_t slot) const;
  double density(int32_t slot);
  double priceBetween(int32_t from, int32_t to) const;
  bool take(int32_t slot);

  const Problem &problem;
  Sequence sequence;
  Deadline &deadline;
  int64_t limit;
  std::vector<double> sums; ///< of prices before each slot
  std::vector<std::pair<NodeId, int32_t>> going;
};

void Filler::sumPrices(const std::vector<double> &price) {
  sums.assign(sequence.numSlots() + 1, 0);
  double now = 0;
  for (int32_t slot = 0; slot < sequence.numSlots(); ++slot) {
    sums[slot + 1] = sums[slot];
    NodeId n = sequence.at(slot);
    if (n < 0)
      continue;
    if (price.empty())
      now = 1;
    else if (sequence.runs(n).front() == slot)
      now = price[n];
    // The relaxation has no prices at the time of a replay.
    if (price.empty() || sequence.runs(n).front() == slot)
      sums[slot + 1] += now;
  }
}

bool Filler::isReplay(NodeId node, int32_t slot) const {
  return sequence.at(slot) == node && sequence.runs(node).front() != slot;
}

double Filler::priceBetween(int32_t from, int32_t to) const {
  from = std::clamp(from, 0, sequence.numSlots());
  to = std::clamp(to, from, sequence.numSlots());
  return sums[to] - sums[from];
}

/// Returns whether only runs that are being removed read the results of the run
/// in the slot.
bool Filler::needless(int32_t slot) const {
  NodeId n = sequence.at(slot);
  for (ValueId v : problem.outputs[n]) {
    int32_t copy = sequence.copyAt(v, slot + 1);
    int32_t last = sequence.lastOf(v, copy);
    if (last >= sequence.numSlots())
      return false;
    const std::vector<int32_t> &uses = sequence.uses(v);
    for (auto it = std::upper_bound(uses.begin(), uses.end(), slot);
         it != uses.end() && *it <= last; ++it) {
      bool goes = false;
      for (auto [other, at] : going)
        goes |= at == *it;
      if (!goes)
        return false;
    }
    // A view of it may be in use.
    if (!problem.views[v].empty() && last > slot)
      return false;
  }
  return true;
}

void Filler::collect(int32_t slot) {
  going.assign(1, {sequence.at(slot), slot});
  for (size_t i = 0; i < going.size() && going.size() < 64; ++i)
    for (ValueId v : problem.reads[going[i].first]) {
      NodeId maker = problem.producer[v];
      if (maker < 0 || sequence.runs(maker).size() < 2)
        continue;
      int32_t made = sequence.makes(v)[sequence.copyAt(v, going[i].second)];
      if (made < 0 || !isReplay(maker, made) || !needless(made))
        continue;
      bool known = false;
      for (auto [node, at] : going)
        known |= at == made;
      if (!known)
        going.push_back({maker, made});
    }
}

double Filler::density(int32_t slot) {
  collect(slot);
  double saved = 0, paid = 0;
  for (auto [node, at] : going) {
    saved += problem.cost[node];
    for (ValueId v : problem.outputs[node]) {
      int32_t copy = sequence.copyAt(v, at + 1);
      if (at != slot)
        continue; // nothing reads it any more
      if (copy > 0 && sequence.lastOf(v, copy) > at)
        paid += double(problem.bytes[problem.root[v]]) *
                priceBetween(sequence.lastOf(v, copy - 1) + 1, at);
    }
    for (ValueId v : problem.reads[node]) {
      int32_t copy = sequence.copyAt(v, at);
      if (problem.initial[v] || sequence.lastOf(v, copy) != at)
        continue;
      const std::vector<int32_t> &uses = sequence.uses(v);
      auto it = std::lower_bound(uses.begin(), uses.end(), at);
      int32_t before = sequence.makes(v)[copy];
      if (it != uses.begin())
        before = std::max(before, *(it - 1));
      paid -= double(problem.bytes[v]) * priceBetween(before + 1, at);
    }
  }
  deadline.spend(int64_t(8 * going.size()));
  return saved / std::max(paid, 1e-9 * saved + 1e-300);
}

bool Filler::take(int32_t slot) {
  collect(slot);
  size_t done = 0;
  for (; done < going.size(); ++done) {
    if (!sequence.mayRemove(going[done].second))
      break;
    sequence.remove(going[done].second);
  }
  deadline.spend(int64_t(64 * going.size()));
  if (done > 0 && sequence.peak() <= limit)
    return true;
  while (done-- > 0)
    sequence.insert(going[done].first, going[done].second);
  return false;
}

bool Filler::pass() {
  std::priority_queue<Entry> queue;
  for (NodeId n = 0; n < problem.numNodes; ++n)
    for (size_t k = 1; k < sequence.runs(n).size(); ++k) {
      int32_t slot = sequence.runs(n)[k];
      queue.push({density(slot), n, slot});
    }
  bool any = false;
  while (!queue.empty() && !deadline.passed()) {
    Entry entry = queue.top();
    queue.pop();
    if (!isReplay(entry.node, entry.slot))
      continue;
    double now = density(entry.slot);
    if (!queue.empty() && now < queue.top().density * (1 - 1e-9)) {
      queue.push({now, entry.node, entry.slot});
      continue;
    }
    any |= take(entry.slot);
  }
  return any;
}

} // namespace

std::vector<NodeId> ckopt::planner::fillReplays(
    const Problem &problem, const std::vector<NodeId> &steps, int64_t budget,
    const std::vector<double> &price, Deadline &deadline) {
  if (int32_t(steps.size()) <= problem.numNodes)
    return steps;
  Filler filler(problem, steps, budget, price, deadline);
  for (int round = 0; round < 3 && filler.pass(); ++round)
    ;
  return filler.steps();
}

bool ckopt::planner::reportFilled(StrategyContext &context,
                                  std::vector<NodeId> steps,
                                  const std::vector<double> &price) {
  bool replays = int32_t(steps.size()) > context.problem.numNodes;
  if (!context.report(steps))
    return false;
  if (replays)
    context.report(fillReplays(context.problem, steps, context.budget, price,
                               context.deadline));
  return true;
}

std::vector<double>
ckopt::planner::pricesByNode(const StrategyContext &context) {
  std::vector<double> price;
  if (context.prices)
    price = context.prices();
  if (price.empty())
    orderBound(context.problem.graph, programOrder(context.problem),
               context.budget, &price);
  price.resize(context.problem.numNodes);
  return price;
}
