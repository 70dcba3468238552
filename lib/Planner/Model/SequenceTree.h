//===- SequenceTree.h - loads under range additions -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to lib/Planner. A segment tree for range add and range maximum. Each
// subtree stores its maximum less that of its parent: an addition then changes
// only the few nodes that cover the range, and the way up ends where no maximum
// changes any more. O(log n) for each operation, usually much less.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_MODEL_SEQUENCETREE_H
#define CKOPT_LIB_PLANNER_MODEL_SEQUENCETREE_H

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace ckopt::planner {

class LoadTree {
public:
  /// Sets the loads of the slots 0, 1, ...; one slot that is never added to
  /// lies at each end, so that ranges can be open.
  void build(const std::vector<int64_t> &loads) {
    size = int32_t(std::bit_ceil(loads.size() + 2));
    rise.assign(2 * size_t(size), lowest);
    std::copy(loads.begin(), loads.end(), rise.begin() + size + 1);
    for (int32_t p = size - 1; p >= 1; --p) {
      rise[p] = std::max(rise[2 * p], rise[2 * p + 1]);
      rise[2 * p] -= rise[p];
      rise[2 * p + 1] -= rise[p];
    }
  }

  /// Returns the largest load of all.
  int64_t max() const { return rise[1]; }

  /// Adds to the loads of the slots [first, last].
  void add(int32_t first, int32_t last, int64_t delta) {
    if (first > last || delta == 0)
      return;
    int32_t l = first + size, r = last + size + 2;
    // Go up until the two paths meet; a level's maxima are updated as the paths
    // leave it.
    while ((l ^ r) != 1) {
      if (!(l & 1))
        rise[l ^ 1] += delta;
      if (r & 1)
        rise[r ^ 1] += delta;
      settle(l >>= 1);
      settle(r >>= 1);
    }
    while (l > 1)
      if (settle(l >>= 1) == 0)
        return;
  }

  /// Returns the largest load of the slots [first, last], which must not be
  /// empty.
  int64_t maxIn(int32_t first, int32_t last) const {
    int32_t l = first + size, r = last + size + 2;
    int64_t left = lowest, right = lowest;
    while ((l ^ r) != 1) {
      if (!(l & 1))
        left = std::max(left, rise[l ^ 1]);
      if (r & 1)
        right = std::max(right, rise[r ^ 1]);
      left += rise[l >>= 1];
      right += rise[r >>= 1];
    }
    int64_t result = std::max(left, right);
    while (l > 1)
      result += rise[l >>= 1];
    return result;
  }

  /// Returns the first slot at which the maximum is reached.
  int32_t argmax() const {
    int32_t p = 1;
    while (p < size)
      p = 2 * p + (rise[2 * p] == 0 ? 0 : 1);
    return p - size - 1;
  }

private:
  /// Moves the common part of both halves up to their parent, and returns it.
  int64_t settle(int32_t p) {
    int64_t most = std::max(rise[2 * p], rise[2 * p + 1]);
    rise[2 * p] -= most;
    rise[2 * p + 1] -= most;
    rise[p] += most;
    return most;
  }

  /// Below every load, yet so far from the smallest integer that a few
  /// differences can be added without overflow.
  static constexpr int64_t lowest = -(int64_t(1) << 61);
  int32_t size = 1;
  std::vector<int64_t> rise;
};

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_MODEL_SEQUENCETREE_H
