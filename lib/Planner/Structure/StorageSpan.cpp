//===- StorageSpan.cpp - uses of storages around the turn -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds where each storage is made and used in the forward and the backward
// part of an order of first runs. Method: one pass over the order; a view's
// uses are those of its storage. Exact. O(graph).
//
//===----------------------------------------------------------------------===//
#include "Structure/Structure.h"

using namespace ckopt::planner;

std::vector<StorageSpan>
ckopt::planner::storageSpans(const Problem &problem,
                             const std::vector<NodeId> &order, int32_t turn) {
  std::vector<StorageSpan> spans(problem.numValues);
  for (int32_t p = 0; p < problem.numNodes; ++p) {
    for (ValueId v : problem.outputs[order[p]])
      if (problem.root[v] == v)
        spans[v] = {p, p <= turn ? p : -1, -1};
    for (ValueId v : problem.reads[order[p]]) {
      StorageSpan &span = spans[problem.root[v]];
      if (p <= turn)
        span.lastBefore = p;
      else if (span.firstAfter < 0)
        span.firstAfter = p;
    }
  }
  return spans;
}
