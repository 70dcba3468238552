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

/// A range of labels that consists of equal blocks.
struct Repeat {
  int32_t first = 0, period = 0, count = 0;
};

/// Finds repeated blocks in a sequence of labels: the range of the largest
/// weight, then those to its left and right; at least two periods of at least
/// `leastPeriod` labels. `cuts[i]` is the number of bytes that are live just
/// before label i; blocks begin where that is least. Results are ascending and
/// disjoint. O(labels * longest period) for each range.
std::vector<Repeat> findRepeats(const std::vector<int32_t> &labels,
                                const std::vector<double> &weights,
                                const std::vector<int64_t> &cuts,
                                int32_t leastPeriod = 2);

} // namespace ckopt::planner

#endif // CKOPT_PLANNER_REPEATS_H
