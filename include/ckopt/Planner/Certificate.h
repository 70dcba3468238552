//===- Certificate.h - proofs of bounds on cost -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_PLANNER_CERTIFICATE_H
#define CKOPT_PLANNER_CERTIFICATE_H

#include "ckopt/Planner/Graph.h"

#include <optional>

namespace ckopt::planner {

/// Prices of bytes in integers, from which checkCertificate() derives a bound
/// on the cost of every plan within `budget`.
struct Certificate {
  /// Pairs (row, units a byte), in ascending order of rows, where the number of
  /// rows stands for the end; missing rows have price 0.
  using Prices = std::vector<std::pair<int32_t, int64_t>>;

  int64_t budget = 0; ///< bytes
  /// False: the bound holds for plans whose first runs follow `rows`, which are
  /// all nodes (empty: the program order). True: it holds for all plans; the
  /// rows are then a path of the dependence graph.
  bool anyOrder = false;
  std::vector<NodeId> rows;
  /// Costs are counted in units of 2^-scaleBits, rounded down.
  int32_t scaleBits = 0;
  Prices prices; ///< used if there is no tree
  /// Claims (storage, claimed storage): replays of the first pay for making or
  /// keeping the second after its last access. Storages ascend.
  std::vector<std::pair<ValueId, ValueId>> claims;

  /// A node in a tree of cases. A branch names a gap by its storage and the
  /// node whose access starts it. The next case covers all plans that keep the
  /// storage over the gap, the one after it all plans that make it again. A
  /// leaf has prices of its own.
  struct Case {
    ValueId storage = -1; ///< -1 for a leaf
    NodeId from = -1;
    Prices prices;
  };
  std::vector<Case> tree; ///< in preorder; empty if there is only one case
};

/// Returns the bound that the certificate proves, in the graph's unit of cost:
/// at least the sum of all costs (rounded down). It uses integer arithmetic,
/// takes linear time for each case, and shares no code with the solvers.
/// Returns nothing and sets `error` if the certificate is malformed.
std::optional<double> checkCertificate(const Graph &graph,
                                       const Certificate &certificate,
                                       std::string &error);

} // namespace ckopt::planner

#endif // CKOPT_PLANNER_CERTIFICATE_H
