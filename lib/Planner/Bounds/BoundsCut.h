//===- BoundsCut.h - what must be resident for the rest to run --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to lib/Planner. While node n first runs, n and all nodes after it
// have yet to run, and nodes that run once and came before it cannot run again.
// So the resident values must cut every path, along which values can be made
// from each other later, from a value that cannot be made again (an input, or a
// result of an earlier node that runs once) to a value that nodes after n read
// or that must be there at the end. The least bytes of such a cut, beside the
// operands of n itself, are a minimum vertex cut, found by maximum flow with
// Dinic's algorithm.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_BOUNDS_BOUNDSCUT_H
#define CKOPT_LIB_PLANNER_BOUNDS_BOUNDSCUT_H

#include "Model/Problem.h"

#include <functional>

namespace ckopt::planner {

/// Returns the least bytes, beside persistent values and the operands of
/// `node`, that are resident while it first runs. `before(a, b)` says that node
/// a comes before node b in every order. Adds its work to `work`. O(V E) at
/// most, mostly a few times E.
int64_t leastWaitingBytes(const Problem &problem, NodeId node,
                          const std::function<bool(NodeId, NodeId)> &before,
                          int64_t &work);

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_BOUNDS_BOUNDSCUT_H
