//===- Sequence.cpp - a sequence of steps that can be edited --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each value has sorted lists of where it is made and read; a copy lives from
// its making to its last need before the next making (a view's needs are its
// base's). An edit changes a few copies' last needs, each a range add in the
// tree of loads; bytes that an output takes over are a credit at its step,
// computed anew for the steps at which a last need changed. Load and cost are
// never less than what simulate() says (pairs that views make impossible now
// and then are left out), and equal it nearly always.
//
//===----------------------------------------------------------------------===//
#include "Model/Sequence.h"

#include <algorithm>
#include <bit>
#include <cassert>

using namespace ckopt::planner;

Sequence::Sequence(const Problem &problem, const std::vector<NodeId> &steps)
    : problem(problem), always(problem.persistentBytes) {
  for (NodeId n = 0; n < problem.numNodes; ++n)
    anyPairs |= !problem.pairs[n].empty();
  std::vector<int32_t> depth(problem.numValues, 0);
  for (ValueId v = 0; v < problem.numValues; ++v) {
    for (ValueId b = problem.base[v]; b >= 0; b = problem.base[b])
      ++depth[v];
    viewsFirst.push_back(v);
  }
  std::sort(viewsFirst.begin(), viewsFirst.end(), [&](ValueId a, ValueId b) {
    return depth[a] != depth[b] ? depth[a] > depth[b] : a < b;
  });
  rebuild(steps);
}

std::vector<NodeId> Sequence::steps() const {
  std::vector<NodeId> result;
  result.reserve(stepCount);
  for (NodeId n : node)
    if (n >= 0)
      result.push_back(n);
  return result;
}

void Sequence::respread() { rebuild(steps()); }

void Sequence::rebuild(const std::vector<NodeId> &steps) {
  building = true;
  slots = int32_t(std::bit_ceil(steps.size() * 2 + 64));
  node.assign(slots, -1);
  filled.assign((slots + 63) / 64, 0);
  credit.assign(slots, 0);
  difference.assign(slots + 1, 0);
  // The lists keep their allocated memory.
  auto empty = [](std::vector<std::vector<int32_t>> &lists, int32_t count) {
    lists.resize(count);
    for (std::vector<int32_t> &list : lists)
      list.clear();
  };
  empty(runsOf, problem.numNodes);
  empty(usesOf, problem.numValues);
  empty(madeAt, problem.numValues);
  totalCost = 0;
  stepCount = int32_t(steps.size());
  for (ValueId v = 0; v < problem.numValues; ++v)
    if (problem.initial[v])
      madeAt[v].push_back(-1);
  for (size_t i = 0; i < steps.size(); ++i) {
    NodeId n = steps[i];
    int32_t slot =
        int32_t((int64_t(i) * 2 + 1) * slots / (int64_t(steps.size()) * 2));
    node[slot] = n;
    filled[slot / 64] |= uint64_t(1) << (slot % 64);
    runsOf[n].push_back(slot);
    totalCost += problem.cost[n];
    for (ValueId v : problem.reads[n])
      usesOf[v].push_back(slot);
    for (ValueId v : problem.outputs[n])
      madeAt[v].push_back(slot);
    difference[slot] += problem.workspace[n];
    difference[slot + 1] -= problem.workspace[n];
  }
  lastOfCopy.resize(problem.numValues);
  for (ValueId v = 0; v < problem.numValues; ++v)
    lastOfCopy[v].assign(madeAt[v].size(), -2);
  for (ValueId v : viewsFirst)
    for (int32_t k = 0; k < int32_t(madeAt[v].size()); ++k) {
      int32_t last = computeLast(v, k);
      lastOfCopy[v][k] = last;
      changeLoad(v, madeAt[v][k], -2, last);
    }
  for (int32_t slot = 0; anyPairs && slot < slots; ++slot)
    if (node[slot] >= 0) {
      credit[slot] = computeCredit(slot);
      difference[slot] -= credit[slot];
      difference[slot + 1] += credit[slot];
    }
  std::vector<int64_t> leaves(slots);
  int64_t load = 0;
  for (int32_t slot = 0; slot < slots; ++slot)
    leaves[slot] = load += difference[slot];
  tree.build(leaves);
  dirty.clear();
  building = false;
}

int32_t Sequence::copyAt(ValueId v, int32_t slot) const {
  const std::vector<int32_t> &made = madeAt[v];
  return int32_t(std::lower_bound(made.begin(), made.end(), slot) -
                 made.begin()) -
         1;
}

int32_t Sequence::computeLast(ValueId v, int32_t copy) const {
  const std::vector<int32_t> &made = madeAt[v];
  bool newest = copy + 1 == int32_t(made.size());
  if (newest && problem.endLive[v])
    return slots;
  int32_t from = made[copy], until = newest ? slots : made[copy + 1];
  const std::vector<int32_t> &uses = usesOf[v];
  auto it = std::lower_bound(uses.begin(), uses.end(), until);
  int32_t last = from;
  if (it != uses.begin())
    last = std::max(last, *(it - 1));
  for (ValueId view : problem.views[v]) {
    // A view made together with the copy, or while it is the latest one.
    const std::vector<int32_t> &viewMade = madeAt[view];
    auto begin = std::lower_bound(viewMade.begin(), viewMade.end(), from);
    auto end = std::lower_bound(viewMade.begin(), viewMade.end(), until);
    for (auto k = begin; k != end; ++k)
      last = std::max(last, lastOfCopy[view][k - viewMade.begin()]);
  }
  return last;
}

/// -2 stands for "no copy", -1 for a copy that is there at the start and never
/// needed: neither has bytes.
void Sequence::changeLoad(ValueId v, int32_t made, int32_t oldLast,
                          int32_t newLast) {
  int64_t bytes = problem.bytes[v];
  if (bytes == 0 || (problem.initial[v] && problem.endLive[v]))
    return;
  int32_t from = std::max(made, 0);
  int32_t oldEnd = oldLast < 0 ? from - 1 : std::min(oldLast, slots - 1);
  int32_t newEnd = newLast < 0 ? from - 1 : std::min(newLast, slots - 1);
  int32_t first = std::min(oldEnd, newEnd) + 1;
  int32_t last = std::max(oldEnd, newEnd);
  if (first > last)
    return;
  int64_t delta = newEnd > oldEnd ? bytes : -bytes;
  if (building) {
    difference[first] += delta;
    difference[last + 1] -= delta;
  } else {
    tree.add(first, last, delta);
  }
}

void Sequence::setLast(ValueId v, int32_t copy, int32_t last) {
  int32_t before = lastOfCopy[v][copy];
  if (last == before)
    return;
  lastOfCopy[v][copy] = last;
  changeLoad(v, madeAt[v][copy], before, last);
  touchCredit(before);
  touchCredit(last);
  if (problem.base[v] >= 0) {
    // Find the base copy that was the latest when the view was made.
    int32_t base = copyAt(problem.base[v], madeAt[v][copy] + 1);
    if (base >= 0)
      refresh(problem.base[v], base);
  }
}

void Sequence::addUse(ValueId v, int32_t slot) {
  std::vector<int32_t> &uses = usesOf[v];
  uses.insert(std::lower_bound(uses.begin(), uses.end(), slot), slot);
  int32_t copy = copyAt(v, slot);
  if (copy >= 0 && lastOfCopy[v][copy] < slot)
    setLast(v, copy, slot);
}

void Sequence::dropUse(ValueId v, int32_t slot) {
  std::vector<int32_t> &uses = usesOf[v];
  uses.erase(std::lower_bound(uses.begin(), uses.end(), slot));
  int32_t copy = copyAt(v, slot);
  if (copy >= 0 && lastOfCopy[v][copy] == slot)
    refresh(v, copy);
}

/// A copy that is made within the life of an older one splits that one in two,
/// so the bytes between are added as one range.
void Sequence::addCopy(ValueId v, int32_t slot) {
  std::vector<int32_t> &made = madeAt[v];
  auto it = std::lower_bound(made.begin(), made.end(), slot);
  int32_t k = int32_t(it - made.begin());
  made.insert(it, slot);
  lastOfCopy[v].insert(lastOfCopy[v].begin() + k, -2);
  if (k > 0 && isPlain(v) && lastOfCopy[v][k - 1] > slot) {
    int32_t whole = lastOfCopy[v][k - 1];
    lastOfCopy[v][k] = whole;
    lastOfCopy[v][k - 1] = computeLast(v, k - 1);
    touchCredit(lastOfCopy[v][k - 1]);
    tree.add(std::max(lastOfCopy[v][k - 1], 0) + 1, slot - 1,
             -problem.bytes[v]);
    return;
  }
  if (k > 0)
    refresh(v, k - 1);
  refresh(v, k);
}

void Sequence::dropCopy(ValueId v, int32_t slot) {
  std::vector<int32_t> &made = madeAt[v];
  int32_t k =
      int32_t(std::lower_bound(made.begin(), made.end(), slot) - made.begin());
  int32_t last = lastOfCopy[v][k];
  if (k > 0 && isPlain(v) && last > slot) {
    int32_t before = lastOfCopy[v][k - 1];
    made.erase(made.begin() + k);
    lastOfCopy[v].erase(lastOfCopy[v].begin() + k);
    lastOfCopy[v][k - 1] = last;
    touchCredit(before);
    tree.add(std::max(before, 0) + 1, slot - 1, problem.bytes[v]);
    return;
  }
  changeLoad(v, slot, last, -2);
  touchCredit(last);
  made.erase(made.begin() + k);
  lastOfCopy[v].erase(lastOfCopy[v].begin() + k);
  if (k > 0)
    refresh(v, k - 1);
  if (problem.base[v] >= 0) {
    int32_t base = copyAt(problem.base[v], slot + 1);
    if (base >= 0)
      refresh(problem.base[v], base);
  }
}

int64_t Sequence::computeCredit(int32_t slot) const {
  return takenOver(problem.pairs[node[slot]], problem.bytes, [&](ValueId v) {
    int32_t copy = copyAt(v, slot);
    return copy >= 0 && madeAt[v][copy] >= 0 && lastOfCopy[v][copy] == slot;
  });
}

void Sequence::settle() {
  for (int32_t slot : dirty) {
    int64_t now = node[slot] >= 0 ? computeCredit(slot) : 0;
    if (now != credit[slot]) {
      tree.add(slot, slot, credit[slot] - now);
      credit[slot] = now;
    }
  }
  dirty.clear();
}

void Sequence::insert(NodeId n, int32_t slot) {
  assert(node[slot] < 0);
  node[slot] = n;
  filled[slot / 64] |= uint64_t(1) << (slot % 64);
  ++stepCount;
  totalCost += problem.cost[n];
  auto put = [slot](std::vector<int32_t> &list) {
    list.insert(std::lower_bound(list.begin(), list.end(), slot), slot);
  };
  put(runsOf[n]);
  for (ValueId v : problem.reads[n])
    addUse(v, slot);
  for (ValueId v : problem.outputs[n])
    addCopy(v, slot);
  tree.add(slot, slot, problem.workspace[n]);
  touchCredit(slot);
  settle();
}

void Sequence::remove(int32_t slot) {
  NodeId n = node[slot];
  node[slot] = -1;
  filled[slot / 64] &= ~(uint64_t(1) << (slot % 64));
  --stepCount;
  totalCost -= problem.cost[n];
  auto take = [slot](std::vector<int32_t> &list) {
    list.erase(std::lower_bound(list.begin(), list.end(), slot));
  };
  take(runsOf[n]);
  auto outputs = problem.outputs[n];
  for (auto it = outputs.rbegin(); it != outputs.rend(); ++it)
    dropCopy(*it, slot);
  for (ValueId v : problem.reads[n])
    dropUse(v, slot);
  tree.add(slot, slot, credit[slot] - problem.workspace[n]);
  credit[slot] = 0;
  settle();
}

/// Replaces one number in a sorted list by another.
static void replaceSorted(std::vector<int32_t> &list, int32_t old,
                          int32_t now) {
  auto it = std::lower_bound(list.begin(), list.end(), old);
  for (; it != list.begin() && *(it - 1) > now; --it)
    *it = *(it - 1);
  for (; it + 1 != list.end() && *(it + 1) < now; ++it)
    *it = *(it + 1);
  *it = now;
}

void Sequence::move(int32_t from, int32_t to) {
  NodeId n = node[from];
  bool plain = problem.pairs[n].empty();
  for (ValueId v : problem.outputs[n])
    plain &= isPlain(v);
  if (!plain) {
    remove(from);
    insert(n, to);
    return;
  }
  node[from] = -1;
  node[to] = n;
  filled[from / 64] &= ~(uint64_t(1) << (from % 64));
  filled[to / 64] |= uint64_t(1) << (to % 64);
  replaceSorted(runsOf[n], from, to);
  for (ValueId v : problem.reads[n]) {
    replaceSorted(usesOf[v], from, to);
    int32_t copy = copyAt(v, to);
    if (lastOfCopy[v][copy] < to)
      setLast(v, copy, to);
    else if (lastOfCopy[v][copy] == from)
      refresh(v, copy);
  }
  for (ValueId v : problem.outputs[n]) {
    int32_t copy = copyAt(v, from + 1);
    madeAt[v][copy] = to;
    int32_t &last = lastOfCopy[v][copy];
    int64_t bytes = problem.bytes[v];
    if (last == from) { // it is never read
      last = to;
      tree.add(from, from, -bytes);
      tree.add(to, to, bytes);
    } else if (to < from) {
      tree.add(to, from - 1, bytes);
    } else {
      tree.add(from, to - 1, -bytes);
    }
  }
  if (int64_t bytes = problem.workspace[n]) {
    tree.add(from, from, -bytes);
    tree.add(to, to, bytes);
  }
  settle();
}

int32_t Sequence::previousStep(int32_t slot) const {
  if (--slot < 0)
    return -1;
  int32_t word = slot / 64;
  uint64_t bits = filled[word] & (~uint64_t(0) >> (63 - slot % 64));
  while (!bits) {
    if (--word < 0)
      return -1;
    bits = filled[word];
  }
  return word * 64 + 63 - std::countl_zero(bits);
}

int32_t Sequence::nextStep(int32_t slot) const {
  if (++slot >= slots)
    return -1;
  int32_t word = slot / 64;
  uint64_t bits = filled[word] & (~uint64_t(0) << (slot % 64));
  while (!bits) {
    if (++word >= int32_t(filled.size()))
      return -1;
    bits = filled[word];
  }
  return word * 64 + std::countr_zero(bits);
}

int32_t Sequence::emptyBefore(int32_t slot) const {
  int32_t before = previousStep(slot);
  return slot - before >= 2 ? before + (slot - before) / 2 : -1;
}

bool Sequence::mayInsert(NodeId n, int32_t slot) const {
  for (ValueId v : problem.reads[n])
    if (copyAt(v, slot) < 0)
      return false;
  for (NodeId blocker : problem.blockers[n])
    if (!runsOf[blocker].empty() && runsOf[blocker].front() < slot)
      return false;
  for (NodeId p : problem.preds[n])
    if (runsOf[p].empty() || runsOf[p].front() > slot)
      return false;
  return true;
}

bool Sequence::mayRemove(int32_t slot) const {
  NodeId n = node[slot];
  const std::vector<int32_t> &runs = runsOf[n];
  if (runs.size() < 2)
    return false;
  if (runs.front() != slot)
    return true; // every reader then finds the copy before
  int32_t next = runs[1];
  for (NodeId s : problem.succs[n])
    if (!runsOf[s].empty() && runsOf[s].front() < next)
      return false;
  for (ValueId v : problem.outputs[n]) {
    auto it = std::upper_bound(usesOf[v].begin(), usesOf[v].end(), slot);
    if (it != usesOf[v].end() && *it < next)
      return false;
  }
  return true;
}
