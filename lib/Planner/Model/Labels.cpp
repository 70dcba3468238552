//===- Labels.cpp - names for people --------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Planner/Labels.h"

#include <algorithm>

using namespace ckopt::planner;

/// Returns the names that occur more than once.
template <typename List>
static std::set<std::string_view> sharedNames(const List &list) {
  std::vector<std::string_view> names;
  for (const auto &entry : list)
    if (!entry.name.empty())
      names.push_back(entry.name);
  std::sort(names.begin(), names.end());
  std::set<std::string_view> shared;
  for (size_t i = 1; i < names.size(); ++i)
    if (names[i] == names[i - 1])
      shared.insert(names[i]);
  return shared;
}

Labels::Labels(const Graph &graph)
    : graph(graph), sharedNodes(sharedNames(graph.nodes)),
      sharedValues(sharedNames(graph.values)) {}

std::string Labels::value(ValueId value, NodeId producer) const {
  const std::string &name = graph.values[value].name;
  std::string id = std::to_string(graph.valueFileId(value));
  if (!name.empty())
    return sharedValues.count(name) ? name + " #" + id : name;
  std::string text = "value " + id;
  if (producer >= 0 && !graph.nodes[producer].name.empty())
    text += " of " + graph.nodes[producer].name;
  return text;
}

std::string Labels::node(NodeId node) const {
  const std::string &name = graph.nodes[node].name;
  std::string id = std::to_string(graph.nodeFileId(node));
  if (name.empty())
    return "node " + id;
  return sharedNodes.count(name) ? name + " #" + id : name;
}
