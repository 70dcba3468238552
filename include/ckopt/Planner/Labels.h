//===- Labels.h - names of nodes and values in messages ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_PLANNER_LABELS_H
#define CKOPT_PLANNER_LABELS_H

#include "ckopt/Planner/Graph.h"

#include <set>
#include <string_view>

namespace ckopt::planner {

/// Names of nodes and values for messages. If several have the same name, each
/// is followed by its id: "conv #12".
class Labels {
public:
  explicit Labels(const Graph &graph);
  /// Returns the name, or "node 12".
  std::string node(NodeId node) const;
  /// Returns the name, or "value 3 of conv1" if `producer` (-1: none) has a
  /// name, or "value 3".
  std::string value(ValueId value, NodeId producer) const;

private:
  const Graph &graph;
  std::set<std::string_view> sharedNodes, sharedValues;
};

} // namespace ckopt::planner

#endif // CKOPT_PLANNER_LABELS_H
