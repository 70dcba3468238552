//===- PackSearch.h - packing of few boxes ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_PACKING_PACKSEARCH_H
#define CKOPT_LIB_PLANNER_PACKING_PACKSEARCH_H

#include "Model/Deadline.h"

#include <vector>

namespace ckopt::planner {

/// A height over the sections [first, last] of time.
struct SearchPiece {
  int32_t first, last;
  int32_t size;
};

/// A shape that has one offset: a rectangle or, for in-place chains, a
/// staircase. Pieces follow each other in time without gaps; sizes are above 0.
using SearchShape = std::vector<SearchPiece>;

enum class SearchOutcome : uint8_t {
  Found,     ///< offsets are set
  Exhausted, ///< no packing within the capacity exists
  Limit,     ///< the work limit was reached
};

/// Searches for offsets of the shapes within `capacity` until the deadline
/// passes. Sizes and capacity are in units of the caller's choice, the capacity
/// and the sum of sizes in each section below 2^30. The same seed and work
/// limit give the same answer.
SearchOutcome searchPacking(const std::vector<SearchShape> &shapes,
                            int32_t capacity, uint64_t seed, Deadline &deadline,
                            std::vector<int32_t> &offsets);

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_PACKING_PACKSEARCH_H
