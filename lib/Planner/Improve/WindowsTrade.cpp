//===- WindowsTrade.cpp - trades a replay for cheaper ones ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Annealing takes one run out or puts one in at a time; to keep what is large,
// many small values have to go at once, and every step of the way there is
// over the budget or dearer. Here the whole trade is made before it is judged:
// a run goes together with what only it needed, then, place by place, what is
// resident and not read is let go of by rising cost per byte, where the cost
// counts all the runs that it takes to make it again. O(values) a place.
//
//===----------------------------------------------------------------------===//
#include "Improve/WindowsTrade.h"

#include <algorithm>
#include <limits>

using namespace ckopt::planner;

/// Runs that a trade may put in for one value.
static constexpr int32_t mostRuns = 200;
static constexpr double never = std::numeric_limits<double>::infinity();

/// The first step behind `slot` that reads the copy which is there in `slot`
/// and not read in it; -1: none.
int32_t Trader::readAfter(ValueId value, int32_t slot) const {
  int32_t copy = sequence.copyAt(value, slot);
  if (copy < 0 || sequence.lastOf(value, copy) <= slot)
    return -1;
  const std::vector<int32_t> &uses = sequence.uses(value);
  auto it = std::lower_bound(uses.begin(), uses.end(), slot);
  return it == uses.end() || *it == slot ? -1 : *it;
}

/// What it costs to make a value just before a slot if nothing more may be
/// resident in the slot `over`; infinity if it cannot be, or if it takes more
/// than `patience` runs: inputs shared by many paths would be counted once for
/// each path, and there may be exponentially many.
double Trader::replayCost(ValueId value, int32_t over, int32_t before,
                          int depth) {
  NodeId node = problem.producer[value];
  ++work;
  if (node < 0 || !problem.recompute[node] || depth > 24 || --patience < 0)
    return never;
  double sum = problem.cost[node];
  for (ValueId v : problem.reads[node]) {
    if (problem.initial[problem.root[v]])
      continue;
    int32_t copy = sequence.copyAt(v, before);
    if (copy < 0)
      return never;
    if (sequence.lastOf(v, copy) < over)
      sum += replayCost(v, over, before, depth + 1);
  }
  return sum;
}

bool Trader::make(ValueId value, int32_t over, int32_t before, int depth) {
  NodeId node = problem.producer[value];
  if (node < 0 || !problem.recompute[node] || depth > 24)
    return false;
  // Slots may move when they are spread anew, so there must be room.
  int32_t at = sequence.emptyBefore(before);
  if (at < 0 || !sequence.mayInsert(node, at))
    return false;
  std::vector<ValueId> gone;
  for (ValueId v : problem.reads[node]) {
    int32_t copy = sequence.copyAt(v, at);
    if (!problem.initial[problem.root[v]] && sequence.lastOf(v, copy) < over)
      gone.push_back(v);
  }
  sequence.insert(node, at);
  work += 16;
  for (ValueId v : gone) {
    int32_t copy = sequence.copyAt(v, at);
    if (copy < 0 || sequence.makes(v)[copy] > over)
      continue; // Made by the replay of another input.
    if (!make(v, over, at, depth + 1))
      return false;
  }
  return true;
}

bool Trader::letGo(ValueId value, int32_t over) {
  int32_t before = readAfter(value, over);
  return before >= 0 && make(value, over, before, 0);
}

bool Trader::removeDead(NodeId of, int32_t slot, int depth) {
  for (ValueId v : problem.reads[of]) {
    NodeId maker = problem.producer[v];
    if (depth > 64 || maker < 0 || sequence.runs(maker).size() < 2)
      continue;
    int32_t copy = sequence.copyAt(v, slot);
    int32_t made = copy < 0 ? -1 : sequence.makes(v)[copy];
    if (made < 0 || made == sequence.runs(maker).front() ||
        !sequence.mayRemove(made))
      continue;
    bool dead = true;
    for (ValueId out : problem.outputs[maker])
      dead &= sequence.lastOf(out, sequence.copyAt(out, made + 1)) <= made;
    if (!dead)
      continue;
    sequence.remove(made);
    removeDead(maker, made, depth + 1);
  }
  work += 16;
  return true;
}

bool Trader::keep(NodeId node, int32_t run) {
  if (size_t(run) >= sequence.runs(node).size())
    return false;
  int32_t slot = sequence.runs(node)[run];
  if (!sequence.mayRemove(slot) || (fixedOrder && run == 0))
    return false;
  sequence.remove(slot);
  return removeDead(node, slot, 0);
}

bool Trader::repair(double noise, double atMost, Random &random) {
  for (int round = 0; round < 96; ++round) {
    if (sequence.peak() <= budget)
      return true;
    if (sequence.cost() > atMost)
      return false;
    int32_t over = sequence.peakSlot();
    ValueId best = -1;
    double bestRatio = never;
    for (ValueId v = 0; v < problem.numValues; ++v) {
      ++work;
      if (problem.bytes[v] == 0 || problem.initial[v])
        continue;
      int32_t before = readAfter(v, over);
      if (before < 0)
        continue;
      patience = mostRuns;
      double ratio = replayCost(v, over, before, 0) / double(problem.bytes[v]) *
                     (1 + (noise - 1) * random.unit());
      if (ratio < bestRatio) {
        bestRatio = ratio;
        best = v;
      }
    }
    if (best < 0)
      return false;
    if (!letGo(best, over)) {
      // No empty slot near: spread the steps and try once more.
      sequence.respread();
      if (!letGo(best, sequence.peakSlot()))
        return false;
    }
  }
  return false;
}
