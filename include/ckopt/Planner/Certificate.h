//===- Certificate.h - what proves a bound on cost --------------*- C++ -*-===//
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
  /// (row, units a byte), rows ascending, the number of rows for the end; what
  /// is not named is 0.
  using Prices = std::vector<std::pair<int32_t, int64_t>>;

  int64_t budget = 0; ///< bytes
  /// False: the bound holds for plans whose first runs follow `rows`, which are
  /// all nodes (empty: the program order). True: for all plans; the rows are
  /// then a path of the dependence graph.
  bool anyOrder = false;
  std::vector<NodeId> rows;
  /// Costs are counted in units of 2^-scaleBits, rounded down.
  int32_t scaleBits = 0;
  Prices prices; ///< where there is no tree
  /// (storage, the storage whose replays pay for making or keeping it after its
  /// last access); storages ascending.
  std::vector<std::pair<ValueId, ValueId>> claims;

  /// A tree of cases. A branch names a gap: the storage, and the node by whose
  /// access it starts. All plans that keep the storage there are in the case
  /// that comes next, those that make it again in the one after. A case that is
  /// no branch has prices of its own.
  struct Case {
    ValueId storage = -1; ///< -1: no branch
    NodeId from = -1;
    Prices prices;
  };
  std::vector<Case> tree; ///< in preorder; empty: one case
};

/// The bound that the certificate proves, in the graph's unit of cost: at least
/// the sum of all costs (rounded down). Integer arithmetic, linear time for
/// each case, and no code shared with the solvers. Nothing, and `error` says
/// why, if the certificate is malformed.
std::optional<double> checkCertificate(const Graph &graph,
                                       const Certificate &certificate,
                                       std::string &error);

} // namespace ckopt::planner

#endif // CKOPT_PLANNER_CERTIFICATE_H
