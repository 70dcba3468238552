//===- CertificateRows.h - the graph as the checker reads it ----*- C++ -*-===//
//
// Private to the checker of certificates, which shares no code with solvers.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_CERTIFICATEROWS_H
#define CKOPT_LIB_PLANNER_CERTIFICATEROWS_H

#include "ckopt/Planner/Certificate.h"

#include <algorithm>

namespace ckopt::planner {

/// Storages, who touches them, and where each node lies among a certificate's
/// rows. Storages are values that are no views.
struct CertificateRows {
  /// Of a node's alternatives, what all of them read, at the least cost.
  explicit CertificateRows(const Graph &graph);

  /// Returns why the certificate's rows do not follow each other in every plan
  /// in question, or an empty string.
  std::string place(const Certificate &given);
  /// Whether the node is a row's own.
  bool isRow(NodeId n) const { return low[n] == high[n]; }

  const Graph graph;
  int32_t nodes, values, rows = 0;
  std::vector<int64_t> bytes; ///< by value, aligned, 0 for views
  std::vector<ValueId> root;
  std::vector<NodeId> maker;
  std::vector<char> once;                    ///< by node: never runs again
  std::vector<char> atEnd;                   ///< by storage
  std::vector<std::vector<ValueId>> touches; ///< node -> storages, makes too
  std::vector<std::vector<ValueId>> reads;   ///< node -> storages
  std::vector<std::vector<ValueId>> inputs;  ///< the same, given ones only
  std::vector<NodeId> order;
  std::vector<int32_t> low, high; ///< last row not after, first not before

private:
  void spreadLow();
  void spreadHigh();
  bool linked(NodeId before, NodeId after) const;
};

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_CERTIFICATEROWS_H
