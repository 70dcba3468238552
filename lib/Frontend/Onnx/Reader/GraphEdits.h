//===- GraphEdits.h - changes of a graph that write back --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Edits that repair an exported graph, kept as data, so that they apply both to
// the model in memory and to the file that trained weights are written to.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_FRONTEND_ONNX_READER_GRAPHEDITS_H
#define CKOPT_LIB_FRONTEND_ONNX_READER_GRAPHEDITS_H

#include "OnnxModel.h"
#include <set>

namespace ckopt::onnx_frontend {

struct GraphEdits {
  /// Lets operand `operand` of node `node` (by its number in the graph) read
  /// `to`; it may be one past the node's last operand.
  struct Rewire {
    size_t node, operand;
    std::string to;
  };
  std::vector<Tensor> added;     ///< initializers
  std::set<std::string> removed; ///< initializers without readers
  std::vector<Node> nodes;       ///< new nodes, before all others
  std::vector<Rewire> rewired;
  std::set<size_t> dropped; ///< nodes that are removed
  /// Pairs of node and operand through which no gradient flows. They exist in
  /// memory only, since no operator of ONNX expresses them.
  std::vector<std::pair<size_t, size_t>> stopped;

  bool empty() const {
    return added.empty() && removed.empty() && nodes.empty() &&
           rewired.empty() && dropped.empty();
  }
};

void applyEdits(const GraphEdits &edits, Graph &graph);

} // namespace ckopt::onnx_frontend

#endif // CKOPT_LIB_FRONTEND_ONNX_READER_GRAPHEDITS_H
