//===- GapProblem.h - what must be kept or made again -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to lib/Planner. Rows are nodes whose first runs follow each other in
// this order in every plan that is considered: all nodes, where the order of
// first runs is given, or a chain of the dependence graph, where it is free. A
// last row stands for the end. Between two neighbouring accesses of a storage
// by first runs (a gap), a copy of it is either resident throughout or made
// again in between, and different gaps need different runs. The builder lists
// the gaps and the load at each row if all of them are kept; the bounds, the
// exact tier and the constructive tier share it.
//
// A run of a storage's maker in a gap needs the maker's inputs. If such an
// input has no later access by a first run, no gap accounts for it: it is kept
// from its last access on or made again, too. So that its cost is counted once,
// each storage is claimed by at most one storage (`claimedBy`) whose maker
// reads it. `claims` lists the same pairs from the other side.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_BOUNDS_GAPPROBLEM_H
#define CKOPT_LIB_PLANNER_BOUNDS_GAPPROBLEM_H

#include "Model/Problem.h"

namespace ckopt::planner {

/// Returns pairs (input, result) of a node that share bytes in some plan.
/// Unlike Problem::pairs they include inputs that must be there at the end,
/// since a copy that is made again later is not the last one.
std::vector<std::pair<ValueId, ValueId>> sharingPairs(const Problem &problem,
                                                      NodeId node);

/// One gap of a storage: it is accessed at `from` and `to` and, by those
/// accesses whose row is known, nowhere in between.
struct Gap {
  ValueId storage;
  NodeId node; ///< makes the storage
  /// Rows of the accesses; `to` is the number of rows less one for the end.
  /// With a chain: the last row that is not after the first access, and the
  /// first row that is not before the second.
  int32_t from, to;
  /// Rows whose load includes the bytes only if the gap is kept: those strictly
  /// between the accesses, and `from` itself if its node could otherwise write
  /// its result over them. Never empty.
  int32_t first, last;
  int32_t after; ///< first row strictly after the first access
  int64_t bytes; ///< aligned
  /// The cost of making it again; a node's cost is divided among its results by
  /// size.
  double cost;
};

struct GapProblem {
  /// `order` holds all nodes in a valid order of first runs. O(graph).
  GapProblem(const Problem &problem, const std::vector<NodeId> &order);

  /// Builds the problem for any order: the rows are a longest chain of the
  /// dependence graph. O(graph).
  static GapProblem anyOrder(const Problem &problem);

  const Problem &problem;
  /// Row r < order.size() is the first run of order[r].
  std::vector<NodeId> order;
  /// Rows and the end: order.size() + 1.
  int32_t numPositions;
  /// By node: the last row not after its first run, and the first one not
  /// before it; both are its own row if it has one.
  std::vector<int32_t> low, high;
  /// Gaps by storage, and by position of their start within a storage.
  std::vector<Gap> gaps;
  /// By position: load (aligned bytes) with all gaps kept, and with none.
  std::vector<int64_t> kept, dropped;
  /// By storage: the last row up to which it is certainly read; order.size()
  /// for values that must be there at the end, -1 if there is none.
  std::vector<int32_t> lastAccess;
  /// By storage: its share of its maker's cost (by size among all results).
  std::vector<double> share;
  /// By storage: the storage whose replays pay for this one after its last
  /// access, or -1.
  std::vector<ValueId> claimedBy;
  /// By storage: the first row `from` of gaps in which the claim holds.
  std::vector<int32_t> claimFrom;
  Csr claims; ///< storage -> the storages that it claims

  /// Returns by position the bytes that must be saved there, negative if there
  /// is room.
  std::vector<int64_t> need(int64_t budget) const;

private:
  explicit GapProblem(const Problem &problem);
  void build();
  void collectAccesses();
  void addStorage(ValueId storage);
  void addGap(ValueId storage, NodeId from, NodeId to);
  void addTakenOver(int32_t row);
  void chooseClaims();
  void addFixed(int32_t from, int32_t to, int64_t bytes);
  bool isRow(NodeId node) const { return low[node] == high[node]; }
  int32_t rowBefore(NodeId node) const { return low[node] - isRow(node); }
  int32_t rowAfter(NodeId node) const { return high[node] + isRow(node); }
  int32_t numRows() const { return int32_t(order.size()); }

  std::vector<std::vector<NodeId>> accesses;
  /// By storage: last row strictly before one of its readers.
  std::vector<int32_t> readAfter;
  /// Pairs (storage, row) where a kept gap keeps the node's result from taking
  /// the storage's bytes; sorted.
  std::vector<std::pair<ValueId, int32_t>> heads;
};

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_BOUNDS_GAPPROBLEM_H
