//===- MaximalSets.h - what to keep of what fits ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to lib/Planner. Problem: enumerate the inclusion-maximal subsets of
// items with given sizes that fit into some room: a search that may drop
// anything at any time never needs to keep less. Method: branch on one item
// after another; as soon as all remaining items fit, they stay, and the set
// counts if no dropped item fits as well. Guarantee: each maximal subset is
// visited once, those with the first items first. Complexity: O(items) for each
// set that is found or rejected; if the largest items come first, few are
// rejected.
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

/// `goOn(branches)` is called at each node of the search, with whether it would
/// branch there: it counts the work and may end the search. `found(stays)` is
/// called for each set, with one flag for each item.
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
  /// Decides from item k on which ones stay, `rest` bytes in all; `room` is
  /// left.
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
  /// Keeps all items from k on, which leaves `room`. The set counts if no
  /// dropped item still fits.
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
