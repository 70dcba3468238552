//===- Blocks.cpp - equal blocks of a training graph ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: deep networks repeat a block; find the blocks of the forward pass.
// Method: nodes get labels by structural hashing of shapes (a round of
// Weisfeiler-Leman refinement along operands), the forward pass becomes a word
// of labels, and repeats in it are blocks (Repeats.cpp). Guarantee: blocks of a
// group have the same labels, node by node, unless they were named by
// Node::group with as many nodes each. O(graph log graph) but for
// findRepeats().
//
//===----------------------------------------------------------------------===//
#include "Structure/Structure.h"
#include "ckopt/Planner/Repeats.h"

#include <algorithm>
#include <map>

using namespace ckopt::planner;

namespace {

uint64_t mix(uint64_t hash, uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15 + (hash << 6) + (hash >> 2);
  hash *= 0xbf58476d1ce4e5b9;
  return hash ^ (hash >> 29);
}

/// Hashes the properties of a value itself.
uint64_t valueHash(const Problem &problem, ValueId v) {
  uint64_t kind = uint64_t(problem.graph.values[v].kind);
  return mix(mix(kind, uint64_t(problem.bytes[problem.root[v]])),
             uint64_t(problem.base[v] >= 0));
}

BlockGroups namedBlocks(const Problem &problem,
                        const std::vector<NodeId> &order, int32_t turn,
                        const std::vector<int32_t> &labels) {
  std::map<std::string, size_t> known;
  std::vector<std::vector<NodeId>> blocks;
  for (int32_t p = 0; p <= turn; ++p) {
    const std::string &name = problem.graph.nodes[order[p]].group;
    if (name.empty())
      continue;
    auto [it, fresh] = known.insert({name, blocks.size()});
    if (fresh)
      blocks.emplace_back();
    blocks[it->second].push_back(order[p]);
  }
  // Blocks match if they have as many nodes and end alike: the first block of a
  // network often begins differently, since no node makes its input.
  std::map<std::pair<size_t, int32_t>, size_t> kinds;
  BlockGroups groups;
  for (std::vector<NodeId> &block : blocks) {
    std::pair<size_t, int32_t> kind{block.size(), labels[block.back()]};
    auto [it, fresh] = kinds.insert({kind, groups.size()});
    if (fresh)
      groups.emplace_back();
    groups[it->second].push_back(std::move(block));
  }
  return groups;
}

BlockGroups repeatedBlocks(const Problem &problem,
                           const std::vector<NodeId> &order, int32_t turn,
                           const std::vector<int32_t> &labels) {
  std::vector<int32_t> word;
  std::vector<double> weights;
  std::vector<int64_t> cuts(turn + 3, 0); // differences, then sums
  std::vector<int32_t> made(problem.numValues, -1), last(problem.numValues, -1);
  for (int32_t p = 0; p <= turn; ++p) {
    word.push_back(labels[order[p]]);
    weights.push_back(problem.cost[order[p]]);
    for (ValueId v : problem.outputs[order[p]])
      made[v] = p;
    for (ValueId v : problem.reads[order[p]])
      last[problem.root[v]] = p;
  }
  for (ValueId v = 0; v < problem.numValues; ++v)
    if (made[v] >= 0 && last[v] > made[v]) {
      cuts[made[v] + 1] += problem.bytes[v];
      cuts[last[v] + 1] -= problem.bytes[v];
    }
  for (size_t i = 1; i < cuts.size(); ++i)
    cuts[i] += cuts[i - 1];
  cuts.resize(word.size() + 1);
  BlockGroups groups;
  for (const Repeat &repeat : findRepeats(word, weights, cuts)) {
    groups.emplace_back();
    for (int32_t k = 0; k < repeat.count; ++k) {
      auto first = order.begin() + repeat.first + k * repeat.period;
      groups.back().emplace_back(first, first + repeat.period);
    }
  }
  return groups;
}

} // namespace

std::vector<int32_t> ckopt::planner::structuralLabels(const Problem &problem,
                                                      int rounds) {
  std::vector<uint64_t> hash(problem.numNodes), next(problem.numNodes);
  for (NodeId n = 0; n < problem.numNodes; ++n) {
    uint64_t h = mix(2, uint64_t(problem.recompute[n]));
    for (ValueId v : problem.graph.nodes[n].inputs)
      h = mix(h, valueHash(problem, v));
    h = mix(h, 1);
    for (ValueId v : problem.outputs[n])
      h = mix(h, valueHash(problem, v));
    hash[n] = h;
  }
  for (int round = 0; round < rounds; ++round) {
    for (NodeId n = 0; n < problem.numNodes; ++n) {
      uint64_t h = hash[n];
      for (ValueId v : problem.graph.nodes[n].inputs)
        if (problem.producer[v] >= 0)
          h = mix(h, hash[problem.producer[v]]);
      next[n] = h;
    }
    hash.swap(next);
  }
  std::map<uint64_t, int32_t> dense;
  std::vector<int32_t> labels(problem.numNodes);
  for (NodeId n = 0; n < problem.numNodes; ++n)
    labels[n] = dense.insert({hash[n], int32_t(dense.size())}).first->second;
  return labels;
}

BlockGroups ckopt::planner::findRepeatedBlocks(const Problem &problem,
                                               const std::vector<NodeId> &order,
                                               int32_t turn) {
  if (problem.numNodes == 0 || turn < 0)
    return {};
  turn = std::min(turn, problem.numNodes - 1); // a peak may be at the end
  bool named = false;
  for (const Node &node : problem.graph.nodes)
    named |= !node.group.empty();
  std::vector<int32_t> labels = structuralLabels(problem, named ? 0 : 1);
  BlockGroups groups = named ? namedBlocks(problem, order, turn, labels)
                             : repeatedBlocks(problem, order, turn, labels);
  std::erase_if(groups, [](const auto &group) { return group.size() < 2; });
  return groups;
}
