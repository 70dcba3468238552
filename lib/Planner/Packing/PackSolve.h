//===- PackSolve.h - a packing problem from model to offsets ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_PACKING_PACKSOLVE_H
#define CKOPT_LIB_PLANNER_PACKING_PACKSOLVE_H

#include "Packing/PackFit.h"

namespace ckopt::planner {

struct PackAnswer {
  std::vector<int64_t> offsets; ///< by unit
  int64_t arena = 0;
  int64_t lowerBound = 0; ///< no arena is smaller
  /// Set if a search proved lowerBound, which then exceeds the load.
  bool searched = false;
};

/// Packs the units of a model until the arena is within `target` bytes (0: as
/// small as possible), until that is proven impossible, or until the deadline
/// passes.
PackAnswer packModel(const PackModel &model, int64_t target, uint64_t seed,
                     Deadline &deadline);

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_PACKING_PACKSOLVE_H
