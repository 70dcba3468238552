//===- MaximalSets.h - what to keep of what fits ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to lib/Planner. Problem: of things of so many bytes each, the subsets
// that fit into some room and are inclusion-maximal: a search that may let go
// of anything at any time never needs to keep less. Method: branching on one
// thing after another; as soon as all that is left fits, it stays, and the set
// counts if nothing that went fits as well. Guarantee: each maximal subset
// once, those with the first things first. Complexity: O(things) for each set
// that is found or turned down; with the largest things first few are.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_EXACT_MAXIMALSETS_H
#define CKOPT_LIB_PLANNER_EXACT_MAXIMALSETS_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace ckopt::planner {

/// `goOn(branches)` is asked wherever the search comes to, with whether it
/// would branch there: it counts the work and may cut the search off.
/// `found(stays)` is told each set, one flag a thing.
template <typename GoOn, typename Found> class MaximalSets {
public:
  MaximalSets(std::vector<int64_t> bytes, GoOn goOn, Found found)
      : bytes(std::move(bytes)), stays(this->bytes.size(), 0), goOn(goOn),
        found(found) {}

  /// Visits the maximal subsets of at most `room` bytes.
  void within(int64_t room) {
    int64_t rest = 0;
    for (int64_t size : bytes)
      rest += size;
    choose(0, room, rest);
  }

private:
  /// Chooses from thing k on what stays, `rest` bytes in all; `room` is left.
  void choose(size_t k, int64_t room, int64_t rest) {
    if (!goOn(rest > room))
      return;
    if (rest <= room) {
      keepRest(k, room - rest);
      return;
    }
    if (bytes[k] <= room) {
      stays[k] = 1;
      choose(k + 1, room - bytes[k], rest - bytes[k]);
      stays[k] = 0;
    }
    choose(k + 1, room, rest - bytes[k]);
  }
  /// All from k on stays, which leaves `room`. Nothing that went may still fit.
  void keepRest(size_t k, int64_t room) {
    for (size_t i = 0; i < k; ++i)
      if (!stays[i] && bytes[i] <= room)
        return;
    std::fill(stays.begin() + k, stays.end(), 1);
    found(std::as_const(stays));
    std::fill(stays.begin() + k, stays.end(), 0);
  }

  std::vector<int64_t> bytes;
  std::vector<char> stays;
  GoOn goOn;
  Found found;
};

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_EXACT_MAXIMALSETS_H
