//===- Repeats.h - equal blocks in a sequence of labels ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_PLANNER_REPEATS_H
#define CKOPT_PLANNER_REPEATS_H

#include <cstdint>
#include <vector>

namespace ckopt::planner {

/// A stretch of labels that consists of equal pieces.
struct Repeat {
  int32_t first = 0, period = 0, count = 0;
};

/// Finds repeated blocks in a sequence of labels: the stretch of the largest
/// weight, then what lies left and right of it; periods of at least
/// `leastPeriod` labels, at least two of them. `cuts[i]`: bytes that live
/// across the place before label i; blocks begin where that is least.
/// Ascending, disjoint. O(labels * longest period) a stretch.
std::vector<Repeat> findRepeats(const std::vector<int32_t> &labels,
                                const std::vector<double> &weights,
                                const std::vector<int64_t> &cuts,
                                int32_t leastPeriod = 2);

} // namespace ckopt::planner

#endif // CKOPT_PLANNER_REPEATS_H
