//===- GapProblem.cpp - what must be kept or made again -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Objective: the gap relaxation of an order, or of all orders along a chain.
// Method: where a node lies among the rows is an interval [low, high]; a row's
// own node has low = high. Of a storage's accesses, those are taken as ends of
// gaps that follow each other in every order: sorted by high, each whose low is
// not before the high of the last one taken (all of them, where the order is
// given). A row's own accesses are always among them, so no row counts a
// storage twice. A gap covers the rows strictly between its ends.
//
// In-place pairs: while a node runs, a result that may take an input's bytes
// over is not counted, which is the most that any plan can save, with two
// exceptions that make it exact in the common case. An input that cannot be
// made again and is read later is never taken over. Where one input of the same
// size is the only candidate, keeping its gap open costs the result's bytes at
// the node itself, so that gap starts at the node, not after it: a copy that is
// read later is not at its last use, and one that is made again in the gap was.
//
// Exact, so there is nothing to give up. Complexity: linear in the graph but
// for sorting each storage's accesses.
//
//===----------------------------------------------------------------------===//
#include "Bounds/GapProblem.h"

#include <algorithm>

using namespace ckopt::planner;

std::vector<std::pair<ValueId, ValueId>>
ckopt::planner::sharingPairs(const Problem &problem, NodeId node) {
  const Graph &graph = problem.graph;
  std::vector<std::pair<ValueId, ValueId>> pairs;
  for (auto [i, o] : graph.nodes[node].reuse) {
    const std::vector<ValueId> &inputs = graph.nodes[node].inputs;
    bool possible = std::find(inputs.begin(), inputs.end(), i) != inputs.end();
    possible &= problem.producer[o] == node && problem.base[i] < 0 &&
                problem.base[o] < 0 && !problem.initial[i] &&
                graph.values[o].bytes <= graph.values[i].bytes;
    if (!possible)
      continue;
    // A direct view of the same copy prevents the reuse; if the input can be
    // made again, the view may show an older copy instead.
    bool again = problem.recompute[problem.producer[i]];
    for (ValueId v : inputs)
      possible &= again || problem.base[v] != i;
    for (ValueId v : problem.outputs[node])
      possible &= problem.base[v] != i;
    if (possible && (again || !problem.endLive[i]))
      pairs.push_back({i, o});
  }
  return pairs;
}

GapProblem::GapProblem(const Problem &problem)
    : problem(problem), low(problem.numNodes, -1), high(problem.numNodes, 0),
      lastAccess(problem.numValues, -1), share(problem.numValues, 0),
      claimedBy(problem.numValues, -1), claimFrom(problem.numValues, -1),
      accesses(problem.numValues), readAfter(problem.numValues, -1) {}

GapProblem::GapProblem(const Problem &problem, const std::vector<NodeId> &order)
    : GapProblem(problem) {
  this->order = order;
  for (int32_t p = 0; p < numRows(); ++p)
    low[order[p]] = high[order[p]] = p;
  build();
}

/// Returns a longest path by number of nodes; ids are a topological order.
static std::vector<NodeId> longestChain(const Problem &problem) {
  int32_t n = problem.numNodes;
  std::vector<int32_t> length(n, 1), previous(n, -1);
  int32_t end = -1;
  for (NodeId v = 0; v < n; ++v) {
    for (NodeId p : problem.preds[v])
      if (length[p] + 1 > length[v]) {
        length[v] = length[p] + 1;
        previous[v] = p;
      }
    if (end < 0 || length[v] > length[end])
      end = v;
  }
  std::vector<NodeId> chain;
  for (NodeId v = end; v >= 0; v = previous[v])
    chain.push_back(v);
  std::reverse(chain.begin(), chain.end());
  return chain;
}

GapProblem GapProblem::anyOrder(const Problem &problem) {
  GapProblem result(problem);
  result.order = longestChain(problem);
  int32_t rows = result.numRows(), n = problem.numNodes;
  std::vector<int32_t> row(n, -1);
  for (int32_t r = 0; r < rows; ++r)
    row[result.order[r]] = r;
  for (NodeId v = 0; v < n; ++v) {
    for (NodeId p : problem.preds[v])
      result.low[v] = std::max(result.low[v], result.low[p]);
    if (row[v] >= 0)
      result.low[v] = row[v];
  }
  for (NodeId v = n - 1; v >= 0; --v) {
    result.high[v] = rows;
    for (NodeId s : problem.succs[v])
      result.high[v] = std::min(result.high[v], result.high[s]);
    if (row[v] >= 0)
      result.high[v] = row[v];
  }
  result.build();
  return result;
}

void GapProblem::build() {
  numPositions = numRows() + 1;
  dropped.assign(numPositions + 1, 0);
  collectAccesses();
  for (int32_t r = 0; r < numRows(); ++r)
    addTakenOver(r);
  std::sort(heads.begin(), heads.end());
  for (ValueId v = 0; v < problem.numValues; ++v)
    if (problem.root[v] == v && problem.bytes[v] > 0)
      addStorage(v);
  kept.assign(numPositions + 1, 0);
  for (const Gap &gap : gaps) {
    kept[gap.first] += gap.bytes;
    kept[gap.last + 1] -= gap.bytes;
  }
  for (int32_t p = 1; p < numPositions; ++p) {
    dropped[p] += dropped[p - 1];
    kept[p] += kept[p - 1];
  }
  dropped.resize(numPositions);
  kept.resize(numPositions);
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
  for (NodeId n = 0; n < problem.numNodes; ++n) {
    auto access = [&](ValueId v) {
      std::vector<NodeId> &list = accesses[problem.root[v]];
      if (list.empty() || list.back() != n)
        list.push_back(n);
    };
    for (ValueId v : problem.reads[n])
      access(v);
    for (ValueId v : problem.outputs[n])
      access(v);
  }
  for (int32_t r = 0; r < numRows(); ++r)
    addFixed(r, r, problem.workspace[order[r]]);
  for (ValueId v = 0; v < problem.numValues; ++v) {
    ValueId root = problem.root[v];
    // A view that must be there at the end keeps its storage.
    if (problem.endLive[v]) {
      lastAccess[root] = numRows();
      readAfter[root] = numRows() - 1;
    }
    if (root != v)
      continue;
    std::sort(accesses[v].begin(), accesses[v].end(), [&](NodeId a, NodeId b) {
      return high[a] != high[b] ? high[a] < high[b]
             : low[a] != low[b] ? low[a] < low[b]
                                : a < b;
    });
    for (NodeId n : accesses[v]) {
      lastAccess[v] = std::max(lastAccess[v], low[n]);
      readAfter[v] = std::max(readAfter[v], rowBefore(n));
    }
  }
}

void GapProblem::addTakenOver(int32_t row) {
  const auto pairs = sharingPairs(problem, order[row]);
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
      if (readAfter[i] >= row && !problem.recompute[problem.producer[i]])
        continue;
      ++candidates;
      source = i;
      for (auto [i2, o2] : pairs)
        shared |= i2 == i && o2 != result;
    }
    if (!first || candidates == 0)
      continue;
    addFixed(row, row, -problem.bytes[result]);
    if (candidates == 1 && !shared &&
        problem.bytes[source] == problem.bytes[result])
      heads.push_back({source, row});
  }
}

/// `to` is the number of nodes for the end.
void GapProblem::addGap(ValueId storage, NodeId from, NodeId to) {
  bool end = to == problem.numNodes;
  int32_t last = end ? numRows() - 1 : rowBefore(to);
  int32_t after = rowAfter(from), first = after;
  if (isRow(from) && std::binary_search(heads.begin(), heads.end(),
                                        std::pair(storage, low[from])))
    first = low[from];
  NodeId node = problem.producer[storage];
  if (first <= last)
    gaps.push_back({storage, node, low[from], end ? numRows() : high[to], first,
                    last, after, problem.bytes[storage],
                    problem.cost[node] * share[storage]});
}

void GapProblem::addStorage(ValueId storage) {
  const std::vector<NodeId> &list = accesses[storage];
  int64_t bytes = problem.bytes[storage];
  NodeId node = problem.producer[storage];
  bool atEnd = lastAccess[storage] == numRows();
  if (node >= 0) {
    double total = 0;
    for (ValueId v : problem.outputs[node])
      total += double(problem.bytes[v]);
    share[storage] = double(bytes) / total;
  }
  if (node < 0 || !problem.recompute[node]) {
    if (atEnd || !list.empty())
      addFixed(node < 0 ? 0 : high[node], lastAccess[storage], bytes);
    return;
  }
  NodeId previous = node;
  if (isRow(node))
    addFixed(low[node], low[node], bytes);
  for (NodeId next : list) {
    if (next == node || low[next] < high[previous])
      continue;
    addGap(storage, previous, next);
    if (isRow(next))
      addFixed(low[next], low[next], bytes);
    previous = next;
  }
  // Only the last copy of an output must be there at the end.
  if (atEnd) {
    addGap(storage, previous, problem.numNodes);
    addFixed(numRows(), numRows(), bytes);
  }
}

/// Assigns each storage to the reader's result with the longest gap in which
/// the claim can hold; storages that a claimed storage needs in turn go to the
/// same result.
void GapProblem::chooseClaims() {
  auto latest = [&](ValueId input, ValueId claimant) {
    if (lastAccess[input] == numRows())
      return numPositions; // in its own gap up to the end
    int32_t row = -1;
    for (NodeId n : accesses[input])
      if (n != problem.producer[input] && n != problem.producer[claimant])
        row = std::max(row, high[n]);
    return row;
  };
  std::vector<int64_t> best(problem.numValues, 0);
  for (const Gap &gap : gaps)
    for (ValueId v : problem.reads[gap.node]) {
      ValueId input = problem.root[v];
      int64_t weight = gap.to - gap.from;
      if (problem.bytes[input] == 0 || weight <= best[input] ||
          input == gap.storage || lastAccess[input] > gap.from)
        continue;
      int32_t start = latest(input, gap.storage);
      if (start > gap.from)
        continue;
      best[input] = weight;
      claimedBy[input] = gap.storage;
      claimFrom[input] = start;
    }
  for (NodeId node = problem.numNodes - 1; node >= 0; --node)
    for (ValueId v : problem.outputs[node]) {
      if (problem.root[v] != v || claimedBy[v] < 0 || !problem.recompute[node])
        continue;
      for (ValueId u : problem.reads[node]) {
        ValueId input = problem.root[u];
        if (input == v || problem.bytes[input] == 0 || claimedBy[input] >= 0)
          continue;
        claimedBy[input] = v;
        claimFrom[input] = latest(input, v);
      }
    }
  std::vector<std::vector<int32_t>> lists(problem.numValues);
  for (ValueId v = 0; v < problem.numValues; ++v)
    if (claimedBy[v] >= 0)
      lists[claimedBy[v]].push_back(v);
  claims = Csr::from(lists);
}
