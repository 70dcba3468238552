//===- GapProblem.cpp - what a fixed order must keep or make again --------===//
//
// In-place pairs: while a node runs, a result that may take an input's bytes
// over is not counted, which is the most that any plan can save, with two
// exceptions that make it exact in the common case. An input that cannot be
// made again and is read later is never taken over. Where one input of the same
// size is the only candidate, keeping its gap open costs the result's bytes at
// the node itself, so that gap starts at the node, not after it: a copy that is
// read later is not at its last use, and one that is made again in the gap was.
//
// Linear in the graph but for sorting each storage's accesses.
//
//===----------------------------------------------------------------------===//
#include "GapProblem.h"

#include <algorithm>

using namespace ckopt::planner;

GapProblem::GapProblem(const Problem &problem, const std::vector<NodeId> &order)
    : problem(problem), order(order), numPositions(problem.numNodes + 1),
      dropped(numPositions + 1, 0), lastAccess(problem.numValues, -1),
      share(problem.numValues, 0), claimedBy(problem.numValues, -1),
      accesses(problem.numValues) {
  collectAccesses();
  for (int32_t p = 0; p < problem.numNodes; ++p)
    addTakenOver(p);
  std::sort(heads.begin(), heads.end());
  for (ValueId v = 0; v < problem.numValues; ++v)
    if (problem.root[v] == v && problem.bytes[v] > 0)
      addStorage(v);
  for (int32_t p = 1; p < numPositions; ++p)
    dropped[p] += dropped[p - 1];
  dropped.resize(numPositions);
  kept.assign(numPositions + 1, 0);
  for (const Gap &gap : gaps) {
    kept[gap.first] += gap.bytes;
    kept[gap.last + 1] -= gap.bytes;
  }
  kept.resize(numPositions);
  for (int32_t p = 1; p < numPositions; ++p)
    kept[p] += kept[p - 1];
  for (int32_t p = 0; p < numPositions; ++p)
    kept[p] += dropped[p];
  chooseClaims();
  accesses = {};
}

std::vector<int64_t> GapProblem::need(int64_t budget) const {
  std::vector<int64_t> result = kept;
  for (int64_t &bytes : result)
    bytes -= budget;
  return result;
}

void GapProblem::addFixed(int32_t from, int32_t to, int64_t bytes) {
  if (from > to)
    return;
  dropped[from] += bytes;
  dropped[to + 1] -= bytes;
}

void GapProblem::collectAccesses() {
  for (int32_t p = 0; p < problem.numNodes; ++p) {
    auto access = [&](ValueId v) {
      std::vector<int32_t> &list = accesses[problem.root[v]];
      if (list.empty() || list.back() != p)
        list.push_back(p);
    };
    for (ValueId v : problem.reads[order[p]])
      access(v);
    for (ValueId v : problem.outputs[order[p]])
      access(v);
    addFixed(p, p, problem.workspace[order[p]]);
  }
  // A view that must be there at the end keeps its storage.
  for (ValueId v = 0; v < problem.numValues; ++v) {
    ValueId root = problem.root[v];
    if (problem.endLive[v])
      lastAccess[root] = problem.numNodes;
    else if (lastAccess[root] < 0 && !accesses[root].empty())
      lastAccess[root] = accesses[root].back();
  }
}

bool GapProblem::readLater(ValueId storage, int32_t position) const {
  return lastAccess[storage] > position;
}

void GapProblem::addTakenOver(int32_t position) {
  const auto &pairs = problem.pairs[order[position]];
  for (size_t k = 0; k < pairs.size(); ++k) {
    ValueId result = pairs[k].second;
    int candidates = 0;
    bool first = true, shared = false;
    ValueId source = -1;
    for (size_t j = 0; j < pairs.size(); ++j) {
      auto [i, o] = pairs[j];
      if (o != result)
        continue;
      first &= j >= k;
      NodeId maker = problem.producer[i];
      if (readLater(i, position) && !problem.recompute[maker])
        continue;
      ++candidates;
      source = i;
      for (auto [i2, o2] : pairs)
        shared |= i2 == i && o2 != result;
    }
    if (!first || candidates == 0)
      continue;
    addFixed(position, position, -problem.bytes[result]);
    if (candidates == 1 && !shared && readLater(source, position) &&
        problem.bytes[source] == problem.bytes[result])
      heads.push_back({source, position});
  }
}

void GapProblem::addGap(ValueId storage, int32_t from, int32_t to) {
  int64_t bytes = problem.bytes[storage];
  NodeId node = problem.producer[storage];
  if (!problem.recompute[node]) {
    addFixed(from + 1, to - 1, bytes);
    return;
  }
  bool head =
      std::binary_search(heads.begin(), heads.end(), std::pair(storage, from));
  int32_t first = head ? from : from + 1;
  if (first < to)
    gaps.push_back({storage, node, from, to, first, to - 1, bytes,
                    problem.cost[node] * share[storage]});
}

void GapProblem::addStorage(ValueId storage) {
  const std::vector<int32_t> &list = accesses[storage];
  int64_t bytes = problem.bytes[storage];
  if (problem.initial[storage]) {
    if (problem.endLive[storage] || !list.empty())
      addFixed(0, lastAccess[storage], bytes);
    return;
  }
  NodeId node = problem.producer[storage];
  if (node < 0)
    return;
  double total = 0;
  for (ValueId v : problem.outputs[node])
    total += double(problem.bytes[v]);
  share[storage] = double(bytes) / total;
  for (int32_t p : list)
    addFixed(p, p, bytes);
  for (size_t i = 0; i + 1 < list.size(); ++i)
    addGap(storage, list[i], list[i + 1]);
  // Of an output only the last copy must be there at the end.
  if (lastAccess[storage] == problem.numNodes) {
    addGap(storage, list.back(), problem.numNodes);
    addFixed(problem.numNodes, problem.numNodes, bytes);
  }
}

/// Each storage goes to the reader's result with the longest gap that starts
/// where the storage is read for the last time, or later.
void GapProblem::chooseClaims() {
  std::vector<int64_t> best(problem.numValues, 0);
  std::vector<ValueId> inputs;
  for (const Gap &gap : gaps) {
    int64_t weight = int64_t(gap.to - gap.from);
    for (ValueId v : problem.reads[gap.node]) {
      ValueId input = problem.root[v];
      if (input != gap.storage && problem.bytes[input] > 0 &&
          lastAccess[input] <= gap.from && weight > best[input]) {
        best[input] = weight;
        claimedBy[input] = gap.storage;
      }
    }
  }
  // What a claimed storage itself needs once it is made again.
  for (int32_t p = problem.numNodes - 1; p >= 0; --p)
    for (ValueId v : problem.outputs[order[p]]) {
      if (problem.root[v] != v || claimedBy[v] < 0 ||
          !problem.recompute[order[p]])
        continue;
      for (ValueId u : problem.reads[order[p]]) {
        ValueId input = problem.root[u];
        if (input != v && problem.bytes[input] > 0 && claimedBy[input] < 0 &&
            lastAccess[input] <= lastAccess[v])
          claimedBy[input] = v;
      }
    }
  std::vector<std::vector<int32_t>> lists(problem.numValues);
  for (ValueId v = 0; v < problem.numValues; ++v)
    if (claimedBy[v] >= 0)
      lists[claimedBy[v]].push_back(v);
  claims = Csr::from(lists);
}
