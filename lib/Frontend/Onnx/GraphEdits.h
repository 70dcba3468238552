//===- GraphEdits.h - changes of a graph that write back --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What mending an export changes is kept as data, so that the model in memory
// and the file that trained weights are written to become the same graph.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_FRONTEND_ONNX_GRAPHEDITS_H
#define CKOPT_LIB_FRONTEND_ONNX_GRAPHEDITS_H

#include "OnnxModel.h"
#include <set>

namespace ckopt::onnx_frontend {

/// A node that stands behind the one whose first result is `original`.
struct NodeCopy {
  std::string original;
  Node node;
};

struct GraphEdits {
  /// Made first: what follows numbers the nodes of the graph that has them.
  std::vector<NodeCopy> copies;
  /// Operand `operand` of node `node` (by its number in the graph) reads `to`;
  /// a node may get one operand more than it has.
  struct Rewire {
    size_t node, operand;
    std::string to;
  };
  /// Readers of copies, which analyzeExport() rewired in memory.
  std::vector<Rewire> copyReads;
  std::vector<Tensor> added;     ///< initializers
  std::set<std::string> removed; ///< initializers that nothing reads any more
  std::vector<Node> nodes;       ///< in front of all others
  std::vector<Rewire> rewired;
  std::set<size_t> dropped; ///< nodes of the file that go
  /// Node and operand: no gradient flows back there. In memory alone, as no
  /// operator of ONNX says so.
  std::vector<std::pair<size_t, size_t>> stopped;

  bool empty() const {
    return copies.empty() && added.empty() && removed.empty() &&
           nodes.empty() && rewired.empty() && dropped.empty();
  }
};

void applyEdits(const GraphEdits &edits, Graph &graph);

} // namespace ckopt::onnx_frontend

#endif // CKOPT_LIB_FRONTEND_ONNX_GRAPHEDITS_H
