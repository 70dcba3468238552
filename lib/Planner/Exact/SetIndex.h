//===- SetIndex.h - sets asked for one that includes another ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to lib/Planner. Answers whether a stored set includes a given one.
// For each number, bits say which sets contain it: a query combines the bits of
// its numbers, 64 sets at a time.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_EXACT_SETINDEX_H
#define CKOPT_LIB_PLANNER_EXACT_SETINDEX_H

#include "Exact/ExactBits.h"

#include <vector>

namespace ckopt::planner {

/// Sets of numbers below 64 * Words, in the order of add().
template <int Words> class SetIndex {
public:
  using Set = Bits<Words>;

  size_t size() const { return count; }
  void add(const Set &set) {
    if (count % 64 == 0)
      for (std::vector<uint64_t> &row : rows)
        row.push_back(0);
    if (rows.empty())
      rows.assign(size_t(Words) * 64, {0});
    set.each(
        [&](int32_t i) { rows[i][count / 64] |= uint64_t(1) << (count % 64); });
    ++count;
  }
  /// Returns whether one of the sets from `first` on includes `set`.
  bool covers(const Set &set, size_t first = 0) const {
    const uint64_t *list[size_t(Words) * 64];
    int size = 0;
    if (count > 0)
      set.each([&](int32_t i) { list[size++] = rows[i].data(); });
    for (size_t w = first / 64; w < (count + 63) / 64; ++w) {
      uint64_t left = ~uint64_t(0);
      if (w == first / 64)
        left <<= first % 64;
      if (w == count / 64)
        left &= (uint64_t(1) << (count % 64)) - 1;
      for (int k = 0; k < size && left; ++k)
        left &= list[k][w];
      if (left)
        return true;
    }
    return false;
  }

private:
  size_t count = 0;
  std::vector<std::vector<uint64_t>> rows; ///< by number
};

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_EXACT_SETINDEX_H
