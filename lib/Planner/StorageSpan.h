//===- StorageSpan.h - uses of storages around the turn ---------*- C++ -*-===//
//
// Private to lib/Planner: what constructions that cut a step into a forward and
// a backward part ask of each storage.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_STORAGESPAN_H
#define CKOPT_LIB_PLANNER_STORAGESPAN_H

#include "Problem.h"

namespace ckopt::planner {

/// What the first runs do with a storage; positions of the order.
struct StorageSpan {
  int32_t made = -1; ///< -1: not by a node
  /// Last use in the forward part, or where it is made there.
  int32_t lastBefore = -1;
  int32_t firstAfter = -1; ///< first use beyond; -1: none
  int32_t lastUse = -1;    ///< numNodes: it is there at the end
};

/// By value, those of storages being filled in; `order` holds every node once,
/// `turn` is the last position of its forward part. O(graph).
std::vector<StorageSpan> storageSpans(const Problem &problem,
                                      const std::vector<NodeId> &order,
                                      int32_t turn);

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_STORAGESPAN_H
