//===- GapProblem.h - what a fixed order must keep or make again -*- C++ -*-==//
//
// Private to lib/Planner. Between two neighbouring accesses of a storage by
// first runs (a gap), a copy of it is either resident throughout or made again
// in between, and different gaps need different runs. The builder lists all
// gaps of an order and the load at each position if all of them are kept; the
// bounds, the exact tier and the constructive tier share it.
//
// A run of a storage's maker in a gap needs the maker's inputs. Where such an
// input has no first-run access any more, nothing else charges for it: it is
// kept from its last access on or made again, too. So that it is charged once,
// each storage is claimed by one storage at most (`claimedBy`) whose maker
// reads it. `Claims` lists them the other way round.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_GAPPROBLEM_H
#define CKOPT_LIB_PLANNER_GAPPROBLEM_H

#include "Problem.h"

namespace ckopt::planner {

/// One gap of a storage: accessed at `from` and `to` and nowhere in between.
struct Gap {
  ValueId storage;
  NodeId node;      ///< makes it (again)
  int32_t from, to; ///< positions; `to` is the number of nodes for the end
  /// Positions where the bytes count only if the gap is kept: from + 1, or
  /// `from` itself where the node there could otherwise write its result over
  /// them, to to - 1. Never empty.
  int32_t first, last;
  int64_t bytes; ///< aligned
  /// What making it again costs, the node's cost shared among its results by
  /// size.
  double cost;
};

struct GapProblem {
  /// `order`: all nodes, a valid order of first runs. O(graph).
  GapProblem(const Problem &problem, const std::vector<NodeId> &order);

  const Problem &problem;
  const std::vector<NodeId> order;
  /// Nodes and the end: position p < numNodes is the first run of order[p].
  int32_t numPositions;
  /// By storage, and by position of their start within one storage.
  std::vector<Gap> gaps;
  /// By position: load (aligned bytes) with all gaps kept, and with none.
  std::vector<int64_t> kept, dropped;
  /// By storage: position of its last first-run access; numNodes for what must
  /// be there at the end, -1 if there is none.
  std::vector<int32_t> lastAccess;
  /// By storage: share of its maker's cost (by size among all results).
  std::vector<double> share;
  /// By storage: the storage whose replay pays for this one after its last
  /// access, or -1.
  std::vector<ValueId> claimedBy;
  Csr claims; ///< storage -> what it claims

  /// By position: bytes that must be saved there, negative where there is room.
  std::vector<int64_t> need(int64_t budget) const;

private:
  void collectAccesses();
  void addStorage(ValueId storage);
  void addGap(ValueId storage, int32_t from, int32_t to);
  void addTakenOver(int32_t position);
  bool readLater(ValueId storage, int32_t position) const;
  void chooseClaims();
  void addFixed(int32_t from, int32_t to, int64_t bytes);

  std::vector<std::vector<int32_t>> accesses;
  /// (storage, position) where a kept gap keeps the node's result from taking
  /// the storage's bytes over; sorted.
  std::vector<std::pair<ValueId, int32_t>> heads;
};

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_GAPPROBLEM_H
