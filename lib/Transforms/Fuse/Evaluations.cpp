//===- Evaluations.cpp - how often a kernel computes an op ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Evaluations.h"
#include "OpKinds.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::fuse;

static void addPoint(Points &points, unsigned point) {
  auto at = llvm::lower_bound(points, point);
  if (at == points.end() || *at != point)
    points.insert(at, point);
}

Points PointTable::readsOf(Operation *op, const PointsOfOps &points) {
  Points result;
  for (OpOperand &use : op->getUses()) {
    auto user = points.find(use.getOwner());
    if (user == points.end())
      continue;
    bool moves = kindOf(use.getOwner()) == KernelKind::Indexed &&
                 !isTrivial(use.getOwner());
    for (unsigned point : user->second) {
      if (moves)
        point =
            moved.try_emplace({&use, point}, moved.size() + 1).first->second;
      addPoint(result, point);
    }
  }
  return result;
}

PointsOfOps PointTable::ofKernel(ArrayRef<Operation *> body,
                                 ArrayRef<Operation *> roots) {
  PointsOfOps points;
  for (Operation *op : llvm::reverse(body)) {
    Points own = readsOf(op, points);
    if (llvm::is_contained(roots, op))
      addPoint(own, 0);
    points[op] = std::move(own);
  }
  return points;
}
