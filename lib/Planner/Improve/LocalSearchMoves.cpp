//===- LocalSearchMoves.cpp - the moves of the annealer -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Objective: proposals that keep sequences valid. Method: put a run in just
// before a read, with the runs that it would else keep values for; take one
// out, with the runs that only it needed; exchange one for another at the place
// where the load became too large; move a repeated run; move a first run
// between what must come before and after it. Each says whether it edited the
// sequence, and edits only if cost and loads nearby do not already rule the
// outcome out. Gives up: a draw that finds no place proposes nothing.
// Complexity: as of Annealer's moves.
//
//===----------------------------------------------------------------------===//
#include "Improve/LocalSearchAnnealer.h"

#include <algorithm>

using namespace ckopt::planner;

int32_t Annealer::randomStep() {
  const std::vector<int32_t> &runs =
      sequence.runs(random.below(problem.numNodes));
  return runs.size() == 1 ? runs[0] : runs[random.below(int32_t(runs.size()))];
}

/// Picks a run of a node that has several.
int32_t Annealer::randomRun() {
  const std::vector<int32_t> &runs =
      sequence.runs(multi[random.below(int32_t(multi.size()))]);
  return runs[random.below(int32_t(runs.size()))];
}

/// Returns whether nothing needs the results of the run in the slot.
bool Annealer::isDeadRun(int32_t slot) const {
  for (ValueId v : problem.outputs[sequence.at(slot)]) {
    int32_t copy = sequence.copyAt(v, slot + 1);
    if (sequence.lastOf(v, copy) > slot)
      return false;
  }
  return true;
}

/// After a run of `of` left `slot`: removes the runs that only it needed.
void Annealer::removeDead(NodeId of, int32_t slot, int depth) {
  if (depth > 64)
    return;
  for (ValueId v : problem.reads[of]) {
    if (problem.producer[v] < 0 ||
        sequence.runs(problem.producer[v]).size() < 2)
      continue;
    int32_t copy = sequence.copyAt(v, slot);
    if (copy < 0)
      continue;
    int32_t made = sequence.makes(v)[copy];
    if (made < 0 || !isDeadRun(made) || !sequence.mayRemove(made) ||
        (goal.fixedOrder && made == sequence.runs(problem.producer[v]).front()))
      continue;
    NodeId maker = sequence.at(made);
    remove(made);
    removeDead(maker, made, depth + 1);
  }
}

/// Returns false if the load is certain to be too large without the run in the
/// slot, because the copies before have to last until its readers.
bool Annealer::removalFits(int32_t slot) const {
  NodeId n = sequence.at(slot);
  int64_t most = affordable(-problem.cost[n]);
  int64_t delta = 0;
  int32_t from = -1;
  for (ValueId v : problem.outputs[n]) {
    int32_t copy = sequence.copyAt(v, slot + 1);
    if (copy <= 0 || problem.bytes[v] == 0 || sequence.lastOf(v, copy) <= slot)
      continue;
    delta += problem.bytes[v];
    from = std::max(from, sequence.lastOf(v, copy - 1));
  }
  if (delta == 0)
    return true;
  // Its inputs may be dropped earlier, if it is their last reader.
  for (ValueId v : problem.reads[n]) {
    int32_t copy = sequence.copyAt(v, slot);
    if (sequence.lastOf(v, copy) == slot)
      delta -= problem.bytes[problem.root[v]];
  }
  return sequence.peakIn(from + 1, slot - 1) + delta <= most;
}

/// Returns whether neither readers nor the order need the run.
bool Annealer::mayDrop(int32_t slot) const {
  return sequence.mayRemove(slot) &&
         !(goal.fixedOrder && slot == sequence.runs(sequence.at(slot)).front());
}

bool Annealer::proposeRemove() {
  if (multi.empty())
    return false;
  int32_t slot = randomRun();
  NodeId n = sequence.at(slot);
  work += 2;
  if (!mayDrop(slot) || !removalFits(slot))
    return false;
  remove(slot);
  removeDead(n, slot, 0);
  return true;
}

/// Removes a run and inserts cheaper ones where the load is then too large.
bool Annealer::proposeExchange() {
  if (multi.empty())
    return false;
  int32_t slot = randomRun();
  NodeId n = sequence.at(slot);
  work += 2;
  if (!mayDrop(slot))
    return false;
  remove(slot);
  removeDead(n, slot, 0);
  for (int round = 0; round < 3 && sequence.peak() > goal.budget; ++round)
    if (!insertAt(sequence.peakSlot(), limit - sequence.cost()))
      break;
  return true;
}

/// Inserts a run that makes `value` just before the step in `slot`, and
/// sometimes runs that make operands which this one would keep alive for long.
/// Adds at most `atMost` to the cost.
bool Annealer::insertBefore(ValueId value, int32_t slot, double atMost,
                            int depth) {
  NodeId n = problem.producer[value];
  if (n < 0 || !problem.recompute[n] || problem.cost[n] > atMost)
    return false;
  int32_t at = sequence.emptyBefore(slot);
  if (at < 0) {
    crowded = true;
    return false;
  }
  if (!sequence.mayInsert(n, at))
    return false;
  // Find the last step that needed each input's copy before.
  std::vector<ValueId> stretched;
  if (depth < 24) {
    int32_t previous = sequence.previousStep(at);
    for (ValueId v : problem.reads[n]) {
      int32_t copy = sequence.copyAt(v, at);
      if (!problem.initial[problem.root[v]] &&
          sequence.lastOf(v, copy) < previous)
        stretched.push_back(v);
    }
  }
  double rest = sequence.cost() + atMost;
  insert(n, at);
  for (ValueId v : stretched)
    if (random.below(5) < 3)
      insertBefore(v, at, rest - sequence.cost(), depth + 1);
  return true;
}

/// Drops a value over the step in `target` and makes it again for its next
/// read, at a cost of at most `atMost`.
bool Annealer::insertAt(int32_t target, double atMost) {
  int32_t count = int32_t(tables.byRatio.size());
  if (count == 0 || atMost < 0)
    return false;
  for (int attempt = 0; attempt < 24; ++attempt) {
    // Samples two candidates and keeps the cheaper.
    int32_t index = std::min(random.below(count), random.below(count));
    ValueId v = tables.byRatio[index];
    ++work;
    if (problem.cost[problem.producer[v]] > atMost)
      continue;
    int32_t copy = sequence.copyAt(v, target);
    if (copy < 0 || sequence.lastOf(v, copy) <= target)
      continue;
    const std::vector<int32_t> &uses = sequence.uses(v);
    auto it = std::lower_bound(uses.begin(), uses.end(), target);
    if (it == uses.end() || *it == target)
      continue;
    return insertBefore(v, *it, atMost, 0);
  }
  return false;
}

bool Annealer::proposeInsert() {
  double atMost = limit - sequence.cost();
  if (sequence.peak() > goal.budget)
    return insertAt(sequence.peakSlot(), atMost);
  int32_t count = int32_t(tables.byRatio.size());
  if (count == 0)
    return false;
  ValueId v =
      tables.byRatio[std::min(random.below(count), random.below(count))];
  NodeId maker = problem.producer[v];
  ++work;
  if (problem.cost[maker] > atMost)
    return false;
  const std::vector<int32_t> &uses = sequence.uses(v);
  if (uses.empty())
    return false;
  int32_t k = random.below(int32_t(uses.size())), slot = uses[k];
  int32_t before = sequence.makes(v)[sequence.copyAt(v, slot)];
  if (k > 0)
    before = std::max(before, uses[k - 1]);
  if (sequence.nextStep(before) >= slot)
    return false;
  return insertBefore(v, slot, atMost, 0);
}

/// Moves a repeated run to another place, before which other copies may be
/// resident.
bool Annealer::proposeShift() {
  if (multi.empty())
    return false;
  NodeId n = multi[random.below(int32_t(multi.size()))];
  const std::vector<int32_t> &runs = sequence.runs(n);
  size_t k = 1 + random.below(int32_t(runs.size()) - 1);
  int32_t slot = runs[k];
  // From the previous run to the first reader, or to the end.
  Window window{runs[k - 1], sequence.numSlots()};
  for (ValueId v : problem.outputs[n]) {
    const std::vector<int32_t> &uses = sequence.uses(v);
    auto it = std::upper_bound(uses.begin(), uses.end(), slot);
    if (it != uses.end())
      window.high = std::min(window.high, *it);
  }
  work += 2;
  int32_t at = targetIn(window, slot);
  if (at < 0 || !sequence.mayInsert(n, at))
    return false;
  remove(slot);
  insert(n, at);
  return true;
}

/// Returns the slots to which the run may move such that all reads and readers
/// find the same copies.
Annealer::Window Annealer::windowOf(int32_t slot) const {
  NodeId n = sequence.at(slot);
  Window window{-1, sequence.numSlots()};
  auto &[low, high] = window;
  for (ValueId v : problem.reads[n]) {
    int32_t copy = sequence.copyAt(v, slot);
    const std::vector<int32_t> &made = sequence.makes(v);
    low = std::max(low, made[copy]);
    if (copy + 1 < int32_t(made.size()))
      high = std::min(high, made[copy + 1]);
  }
  for (ValueId v : problem.outputs[n]) {
    const std::vector<int32_t> &uses = sequence.uses(v);
    auto it = std::upper_bound(uses.begin(), uses.end(), slot);
    if (it != uses.end())
      high = std::min(high, *it);
    const std::vector<int32_t> &made = sequence.makes(v);
    if (made.size() == 1)
      continue;
    // Stay after the readers of the previous copy, and before those of the next
    // one.
    int32_t copy = sequence.copyAt(v, slot);
    if (copy >= 0)
      low = std::max({low, made[copy], sequence.lastOf(v, copy)});
    if (copy + 2 < int32_t(made.size()))
      high = std::min(high, made[copy + 2]);
  }
  if (sequence.runs(n).front() == slot) {
    // A node that overwrites a value follows all runs that read it.
    bool writes = !problem.graph.nodes[n].mutates.empty();
    auto preds = writes ? problem.preds[n] : tables.extraPreds[n];
    for (NodeId p : preds)
      low = std::max(low, writes ? sequence.runs(p).back()
                                 : sequence.runs(p).front());
    for (NodeId s : tables.extraSuccs[n])
      high = std::min(high, sequence.runs(s).front());
  }
  for (NodeId b : problem.blockers[n])
    high = std::min(high, sequence.runs(b).front());
  return window;
}

/// Picks an empty slot within the window for the run in `slot`; -1: none.
int32_t Annealer::targetIn(Window window, int32_t slot) {
  auto [low, high] = window;
  if (high - low < 3)
    return -1;
  int32_t target = slot;
  uint64_t bits = random.next();
  switch (bits & 3) {
  case 0:
    target = sequence.nextStep(low);
    break;
  case 1:
    target = high;
    break;
  case 2:
    target = sequence.nextStep(low + random.below(high - low));
    break;
  default: { // a few steps away
    int32_t hops = int32_t((bits >> 2) & 7) + 1;
    bool back = (bits >> 5) & 1;
    for (int32_t h = 0; h < hops + !back; ++h) {
      int32_t next =
          back ? sequence.previousStep(target) : sequence.nextStep(target);
      if (next < 0 || next <= low || next > high)
        break;
      target = next;
    }
  }
  }
  if (target < 0 || target > high || target == slot)
    return -1;
  if (target >= sequence.numSlots()) {
    int32_t before = sequence.previousStep(target);
    return before + 1 < sequence.numSlots() && before != slot ? before + 1 : -1;
  }
  int32_t at = sequence.emptyBefore(target);
  if (at < 0) {
    crowded = true;
    return -1;
  }
  return at > low && at < high && sequence.previousStep(at) != slot ? at : -1;
}

/// Returns false if the load is certain to be too large once the run has moved.
bool Annealer::moveFits(int32_t from, int32_t to) const {
  NodeId n = sequence.at(from);
  int64_t most = affordable(0), delta = 0;
  for (ValueId v : problem.outputs[n])
    if (sequence.lastOf(v, sequence.copyAt(v, from + 1)) > from)
      delta += to < from ? problem.bytes[v] : -problem.bytes[v];
  for (ValueId v : problem.reads[n]) {
    ValueId root = problem.root[v];
    int32_t copy = sequence.copyAt(v, from), last = sequence.lastOf(v, copy);
    if (to < from && last == from)
      delta -= problem.bytes[root];
    else if (to > from && last == from && root == v)
      delta += problem.bytes[v];
  }
  // Bytes may be taken over in the step itself, so that step is left out.
  if (to < from)
    return delta <= 0 ||
           sequence.peakIn(to + !problem.pairs[n].empty(), from - 1) + delta <=
               most;
  return delta <= 0 || sequence.peakIn(from + 1, to - 1) + delta <= most;
}

/// Moves a run between the steps that it must follow and precede.
bool Annealer::proposeMove() {
  int32_t slot = randomStep();
  work += int64_t(problem.reads[sequence.at(slot)].size());
  int32_t at = targetIn(windowOf(slot), slot);
  if (at < 0 || !moveFits(slot, at))
    return false;
  move(slot, at);
  return true;
}
