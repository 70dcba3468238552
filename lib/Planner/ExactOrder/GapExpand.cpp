//===- GapExpand.cpp - steps from the gaps that a plan drops --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: a set of dropped gaps says which storages are made again, but not
// when, and not which values the replays themselves keep. Method: replay just
// in time (which loads memory for the shortest time), in two passes: the first
// one records at which positions replays read which storage, so that the second
// one keeps a storage for a later replay where the load of the kept gaps leaves
// room. Guarantee: valid steps. Complexity: linear in the steps, times the
// length of the kept ranges.
//
//===----------------------------------------------------------------------===//
#include "ExactOrder/GapExpand.h"

#include <algorithm>

using namespace ckopt::planner;

namespace {

class Expander {
public:
  Expander(const GapProblem &gaps, const std::vector<char> &dropped,
           int64_t budget)
      : gaps(gaps), problem(gaps.problem), budget(budget),
        gapAt(problem.numValues), wanted(problem.numValues) {
    for (size_t g = 0; g < gaps.gaps.size(); ++g)
      gapAt[gaps.gaps[g].storage].push_back({gaps.gaps[g].to, dropped[g]});
    load = gaps.kept;
    for (size_t g = 0; g < gaps.gaps.size(); ++g)
      if (dropped[g])
        for (int32_t p = gaps.gaps[g].first; p <= gaps.gaps[g].last; ++p)
          load[p] -= gaps.gaps[g].bytes;
    start = load;
  }
  std::optional<std::vector<NodeId>> run();

private:
  bool pass();
  bool make(ValueId value, int32_t position);
  void emit(NodeId node, int32_t position, bool first);
  void settle(ValueId storage, int32_t position, bool first);
  int32_t nextWanted(ValueId storage, int32_t position) const;
  bool takeRoom(ValueId storage, int32_t from, int32_t to);
  void release(ValueId storage);

  const GapProblem &gaps;
  const Problem &problem;
  int64_t budget;
  /// By storage: (end of a gap, dropped).
  std::vector<std::vector<std::pair<int32_t, char>>> gapAt;
  /// By storage: positions before which replays read it, in the pass before.
  std::vector<std::vector<int32_t>> wanted, seen;
  std::vector<int64_t> load, start;
  std::vector<char> valid, ran;
  std::vector<NodeId> steps;
  int depth = 0;
};

void Expander::release(ValueId storage) {
  if (problem.initial[storage])
    return;
  problem.forget(storage, valid);
}

/// Returns the next position before which a replay reads the storage.
int32_t Expander::nextWanted(ValueId storage, int32_t position) const {
  const std::vector<int32_t> &list = wanted[storage];
  auto it = std::upper_bound(list.begin(), list.end(), position);
  return it == list.end() ? -1 : *it;
}

/// Reserves bytes over the positions from ... to - 1 if they are free.
bool Expander::takeRoom(ValueId storage, int32_t from, int32_t to) {
  int64_t bytes = problem.bytes[storage];
  for (int32_t p = from; p < to; ++p)
    if (load[p] > budget - bytes)
      return false;
  for (int32_t p = from; p < to; ++p)
    load[p] += bytes;
  return true;
}

/// Decides whether a storage stays after a position that touched it. A first
/// run touches it at the position; a replay touches it just before.
void Expander::settle(ValueId storage, int32_t position, bool first) {
  if (problem.initial[storage] || !valid[storage])
    return;
  // Find the gap that contains the position.
  const auto &list = gapAt[storage];
  int32_t from = first ? position + 1 : position;
  auto it = std::lower_bound(
      list.begin(), list.end(), from,
      [](const auto &gap, int32_t p) { return gap.first < p; });
  bool tail = gaps.lastAccess[storage] < from;
  if (!tail) {
    if (it == list.end() || !it->second)
      return; // kept, or the next access is the very next step
    if (!first && it->first > position && takeRoom(storage, from, it->first))
      return; // made early and kept to the access
    if (!first && it->first == position)
      return;
  }
  int32_t next = nextWanted(storage, first ? position : position);
  if (next >= 0 && (tail || next <= it->first) && takeRoom(storage, from, next))
    return;
  release(storage);
}

void Expander::emit(NodeId node, int32_t position, bool first) {
  steps.push_back(node);
  ran[node] = 1;
  for (ValueId v : problem.outputs[node])
    valid[v] = 1;
  for (ValueId v : problem.reads[node])
    if (!first) {
      std::vector<int32_t> &list = seen[problem.root[v]];
      if (list.empty() || list.back() != position)
        list.push_back(position);
    }
}

bool Expander::make(ValueId value, int32_t position) {
  // Replays of replays can double with every level: such plans are useless.
  if (steps.size() > size_t(problem.numNodes) * 6 + 1000)
    return false;
  NodeId node = problem.producer[value];
  if (node < 0 || !ran[node] || !problem.recompute[node] || depth > 2000)
    return false;
  for (NodeId blocker : problem.blockers[node])
    if (ran[blocker])
      return false;
  ++depth;
  // One input's replay may evict what another's needs, so repeat.
  for (int round = 0; round < 3; ++round)
    for (ValueId v : problem.reads[node])
      if (!valid[v] && !make(v, position))
        return false;
  --depth;
  emit(node, position, false);
  for (ValueId v : problem.reads[node])
    settle(problem.root[v], position, false);
  return true;
}

bool Expander::pass() {
  steps.clear();
  load = start;
  valid.assign(problem.numValues, 0);
  ran.assign(problem.numNodes, 0);
  seen.assign(problem.numValues, {});
  for (ValueId v = 0; v < problem.numValues; ++v)
    valid[v] = problem.initial[v];
  for (int32_t p = 0; p < problem.numNodes; ++p) {
    NodeId node = gaps.order[p];
    for (int round = 0; round < 3; ++round)
      for (ValueId v : problem.reads[node])
        if (!valid[v] && !make(v, p))
          return false;
    for (ValueId v : problem.reads[node])
      if (!valid[v])
        return false;
    emit(node, p, true);
    for (ValueId v : problem.reads[node])
      settle(problem.root[v], p, true);
    for (ValueId v : problem.outputs[node])
      settle(problem.root[v], p, true);
  }
  // Make again the values that must be there at the end and were dropped after
  // their last access.
  for (ValueId v = 0; v < problem.numValues; ++v)
    if (problem.endLive[v] && !valid[v] && !make(v, problem.numNodes))
      return false;
  return true;
}

std::optional<std::vector<NodeId>> Expander::run() {
  for (int round = 0; round < 3; ++round) {
    if (!pass())
      return std::nullopt;
    for (size_t v = 0; v < seen.size(); ++v)
      wanted[v] = seen[v];
  }
  return steps;
}

} // namespace

std::optional<std::vector<NodeId>>
ckopt::planner::expandGaps(const GapProblem &gaps,
                           const std::vector<char> &dropped, int64_t budget) {
  return Expander(gaps, dropped, budget).run();
}
