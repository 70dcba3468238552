//===- ExactModel.cpp - a graph as bits for the state search --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: build the smallest search state, because fewer bits mean fewer
// states. Method: leave out what no decision depends on. Guarantee: the least
// cost and the least load are those of the graph. Complexity: linear, except
// for the comparison of reader lists.
//
//===----------------------------------------------------------------------===//
#include "Exact/ExactModel.h"

#include <algorithm>
#include <map>
#include <numeric>

using namespace ckopt::planner;

ExactModel::ExactModel(const Problem &problem)
    : nodes(problem.numNodes), always(problem.persistentBytes),
      itemOf(problem.numValues, -1) {
  buildItems(problem);
  linkViews(problem);
  for (NodeId n = 0; n < problem.numNodes; ++n)
    buildNode(problem, n);
  findGranule(problem);
}

std::vector<int32_t> ExactNode::pairInputs() const {
  std::vector<int32_t> inputs;
  for (const Pair &pair : pairs)
    if (std::find(inputs.begin(), inputs.end(), pair.input) == inputs.end())
      inputs.push_back(pair.input);
  return inputs;
}

void ExactModel::buildItems(const Problem &problem) {
  // A storage is remembered if any value in it is needed later.
  std::vector<char> needed(problem.numValues, 0), plain(problem.numValues, 1);
  for (ValueId v = 0; v < problem.numValues; ++v) {
    bool there = problem.initial[v] && problem.endLive[v];
    if (!there && (problem.endLive[v] || !problem.readers[v].empty()) &&
        (problem.initial[v] || problem.producer[v] >= 0)) {
      needed[v] = 1;
      ValueId r = problem.root[v];
      if (!(problem.initial[r] && problem.endLive[r]))
        needed[r] = 1;
    }
    if (problem.root[v] != v)
      plain[v] = plain[problem.root[v]] = 0;
  }
  for (const Node &node : problem.graph.nodes) {
    for (auto [i, o] : node.reuse)
      plain[i] = plain[o] = 0;
    for (ValueId v : node.mutates)
      plain[v] = 0;
  }
  std::map<std::tuple<NodeId, bool, std::vector<NodeId>>, int32_t> same;
  for (ValueId v = 0; v < problem.numValues; ++v) {
    if (!needed[v])
      continue;
    auto readers = problem.readers[v];
    ExactItem item;
    item.bytes = problem.bytes[v];
    item.producer = problem.producer[v];
    item.endLive = problem.endLive[v];
    item.readers.assign(readers.begin(), readers.end());
    if (plain[v]) {
      auto [it, fresh] = same.insert(
          {{item.producer, item.endLive, item.readers}, int32_t(items.size())});
      if (!fresh) {
        itemOf[v] = it->second;
        items[it->second].bytes += item.bytes;
        continue;
      }
    }
    itemOf[v] = int32_t(items.size());
    items.push_back(std::move(item));
  }
}

/// Finds which items share bytes, and which nodes overwrite them.
void ExactModel::linkViews(const Problem &problem) {
  for (ValueId v = 0; v < problem.numValues; ++v) {
    if (itemOf[v] < 0)
      continue;
    ValueId root = problem.root[v];
    int32_t r = itemOf[root];
    if (r >= 0 && items[r].bytes > 0)
      items[itemOf[v]].root = r;
    // Skip views in between that no node needs, because they share the bytes.
    for (ValueId b = problem.base[v]; b >= 0; b = problem.base[b])
      if (itemOf[b] >= 0) {
        items[itemOf[v]].base = itemOf[b];
        break;
      }
    auto writers = problem.writers[root];
    if (items[itemOf[v]].root >= 0 &&
        problem.producer[v] == problem.producer[root])
      items[itemOf[v]].spoilers.assign(writers.begin(), writers.end());
  }
}

void ExactModel::buildNode(const Problem &problem, NodeId n) {
  ExactNode &node = nodes[n];
  const Node &source = problem.graph.nodes[n];
  node.cost = problem.cost[n];
  node.rerun = problem.recompute[n];
  node.bytes = problem.workspace[n];
  auto addOnce = [](std::vector<int32_t> &list, int32_t item) {
    if (item >= 0 && std::find(list.begin(), list.end(), item) == list.end())
      list.push_back(item);
  };
  for (ValueId v : problem.reads[n])
    addOnce(node.reads, itemOf[v]);
  for (ValueId v : problem.outputs[n]) {
    addOnce(node.makes, itemOf[v]);
    node.bytes += problem.bytes[v];
  }
  for (ValueId v : source.mutates)
    if (itemOf[v] >= 0 && items[itemOf[v]].root >= 0)
      addOnce(node.writes, itemOf[v]);
  auto preds = problem.preds[n], blockers = problem.blockers[n];
  node.preds.assign(preds.begin(), preds.end());
  node.blockers.assign(blockers.begin(), blockers.end());
  for (auto [i, o] : source.reuse) {
    bool possible =
        std::find(source.inputs.begin(), source.inputs.end(), i) !=
            source.inputs.end() &&
        problem.producer[o] == n && problem.base[i] < 0 &&
        problem.base[o] < 0 && !problem.initial[i] &&
        problem.graph.values[o].bytes <= problem.graph.values[i].bytes;
    // A direct view that this node reads or makes prevents the reuse.
    std::vector<int32_t> read;
    for (ValueId view : problem.views[i]) {
      possible &= problem.producer[view] != n;
      if (std::find(source.inputs.begin(), source.inputs.end(), view) !=
          source.inputs.end())
        read.push_back(itemOf[view]);
    }
    if (possible)
      node.pairs.push_back({itemOf[i], o, problem.bytes[o], std::move(read)});
  }
}

void ExactModel::findGranule(const Problem &problem) {
  granule = 0;
  for (int64_t bytes : problem.bytes)
    granule = std::gcd(granule, bytes);
  for (int64_t bytes : problem.workspace)
    granule = std::gcd(granule, bytes);
  granule = std::max<int64_t>(granule, 1);
}
