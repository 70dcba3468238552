//===- CertificateGraph.h - the graph as the checker reads it ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The planning graph as the checker of certificates sees it; private to the
// checker, which shares no code with solvers.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_CHECK_CERTIFICATEGRAPH_H
#define CKOPT_LIB_PLANNER_CHECK_CERTIFICATEGRAPH_H

#include "ckopt/Planner/Graph.h"

namespace ckopt::planner {

/// Storages are values that are not views. The end is an extra node, which
/// accesses the values that must be there then.
struct CertificateGraph {
  explicit CertificateGraph(const Graph &graph);

  struct Node {
    double cost = 0;
    int64_t workspace = 0;        ///< aligned
    int64_t bytes = 0;            ///< of all results, aligned
    std::vector<NodeId> before;   ///< nodes that must run first
    std::vector<ValueId> reads;   ///< storages, ascending
    std::vector<ValueId> touches; ///< storages read or made, ascending
    /// Pairs (input, result) that may share bytes.
    std::vector<std::pair<ValueId, ValueId>> pairs;
  };
  std::vector<Node> nodes;
  std::vector<int64_t> bytes; ///< by value, aligned, 0 for views
  std::vector<ValueId> root;
  std::vector<NodeId> maker; ///< -1 if it is there at the start
  std::vector<char> stays;   ///< by value: it is never made again

private:
  void readNode(const Graph &graph, NodeId n);
  void orderWrites(const Graph &graph);
};

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_CHECK_CERTIFICATEGRAPH_H
