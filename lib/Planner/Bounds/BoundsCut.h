//===- BoundsCut.h - what must be resident for the rest to run --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to lib/Planner. While node n first runs, n and all nodes after it
// have yet to run, and what ran once before it cannot run again. So the values
// that are resident must cut every path, along which values could be made from
// each other later, from a value that cannot be made again (an input, or a
// result of a node before n that runs once) to what nodes after n read or what
// must be there at the end. The least bytes of such a cut, beside what n itself
// reads, are a minimum vertex cut: maximum flow by Dinic's algorithm.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_BOUNDS_BOUNDSCUT_H
#define CKOPT_LIB_PLANNER_BOUNDS_BOUNDSCUT_H

#include "Model/Problem.h"

#include <functional>

namespace ckopt::planner {

/// Bytes, beside persistent values and what `node` reads, that are resident
/// while it first runs. `before(a, b)`: node a comes before node b in every
/// order. Adds what it did to `work`. O(V E) at most, mostly a few times E.
int64_t leastWaitingBytes(const Problem &problem, NodeId node,
                          const std::function<bool(NodeId, NodeId)> &before,
                          int64_t &work);

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_BOUNDS_BOUNDSCUT_H
