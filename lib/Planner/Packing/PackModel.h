//===- PackModel.h - buffers as units to place ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to lib/Planner. The packing problem of rectangles: in-place chains of
// equal size become one unit. Where a smaller one takes a larger one's bytes
// over, two units are linked.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_PACKING_PACKMODEL_H
#define CKOPT_LIB_PLANNER_PACKING_PACKMODEL_H

#include "ckopt/Planner/Packing.h"

namespace ckopt::planner {

/// A maximal chain of in-place buffers of equal size, or a single buffer.
struct PackUnit {
  int32_t first = 0, last = 0; ///< times, both included
  int64_t bytes = 0;           ///< aligned
  /// The unit whose bytes its first buffer may take over in step `first`, which
  /// is the last step of that unit; -1: none.
  int32_t before = -1;
};

struct PackModel {
  /// Times are between 0 and 2^31.
  PackModel(const std::vector<Buffer> &buffers, int64_t alignment);

  int64_t alignment;
  std::vector<PackUnit> units;
  std::vector<int32_t> unitOf;                 ///< by buffer
  std::vector<std::vector<int32_t>> followers; ///< units that `before` names
  int64_t load = 0; ///< lower bound of all packings with these take-overs
  /// By unit: the largest load over its steps.
  std::vector<int64_t> tension;
  bool linked = false; ///< some unit has a `before`

private:
  void makeUnits(const std::vector<Buffer> &buffers);
  void measure();
};

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_PACKING_PACKMODEL_H
