//===- PackSweep.cpp - placement of very many boxes -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: a first packing of up to a million boxes, where comparing each with
// all others is out of the question. Method: an allocator that sweeps over
// time, forwards or backwards, and gives each box the smallest gap that holds
// it (best fit). Guarantee: no overlap; nothing on the size. Gives up: never.
// Complexity: O(n log n).
//
//===----------------------------------------------------------------------===//
#include "Packing/PackSweep.h"

#include <algorithm>
#include <map>
#include <set>

using namespace ckopt::planner;

namespace {

/// The free ranges below the top of an arena.
class Gaps {
public:
  int64_t take(int64_t bytes) {
    auto it = bySize.lower_bound({bytes, 0});
    if (it == bySize.end())
      return grow(bytes);
    auto [size, low] = *it;
    bySize.erase(it);
    byLow.erase(low);
    if (size > bytes)
      insert(low + bytes, size - bytes);
    return low;
  }
  void give(int64_t low, int64_t bytes) {
    if (bytes == 0)
      return;
    auto next = byLow.lower_bound(low);
    if (next != byLow.end() && next->first == low + bytes) {
      bytes += next->second;
      next = remove(next);
    }
    if (next != byLow.begin()) {
      auto before = std::prev(next);
      if (before->first + before->second == low) {
        low = before->first;
        bytes += before->second;
        remove(before);
      }
    }
    insert(low, bytes);
  }

private:
  using Map = std::map<int64_t, int64_t>;
  void insert(int64_t low, int64_t bytes) {
    byLow[low] = bytes;
    bySize.insert({bytes, low});
  }
  Map::iterator remove(Map::iterator it) {
    bySize.erase({it->second, it->first});
    return byLow.erase(it);
  }
  /// Nothing fits: extend the gap at the top, or the arena.
  int64_t grow(int64_t bytes) {
    int64_t low = top;
    if (!byLow.empty()) {
      auto last = std::prev(byLow.end());
      if (last->first + last->second == top) {
        low = last->first;
        remove(last);
      }
    }
    top = low + bytes;
    return low;
  }

  int64_t top = 0;
  Map byLow; ///< offset -> bytes
  std::set<std::pair<int64_t, int64_t>> bySize;
};

} // namespace

std::vector<int64_t> ckopt::planner::sweepUnits(const PackModel &model,
                                                bool backwards) {
  const std::vector<PackUnit> &units = model.units;
  auto from = [&](int32_t u) {
    return backwards ? -units[u].last : units[u].first;
  };
  auto to = [&](int32_t u) {
    return backwards ? -units[u].first : units[u].last;
  };
  std::vector<int32_t> order, ending;
  for (int32_t u = 0; u < int32_t(units.size()); ++u)
    if (units[u].bytes > 0)
      order.push_back(u);
  ending = order;
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    if (from(a) != from(b))
      return from(a) < from(b);
    return to(a) != to(b) ? to(a) > to(b) : a < b;
  });
  std::sort(ending.begin(), ending.end(), [&](int32_t a, int32_t b) {
    return to(a) != to(b) ? to(a) < to(b) : a < b;
  });
  std::vector<int64_t> offset(units.size(), 0);
  /// Bytes taken over from other units.
  std::vector<int64_t> inherited(units.size(), 0);
  Gaps gaps;
  size_t ended = 0;
  for (int32_t u : order) {
    for (; ended < ending.size() && to(ending[ended]) < from(u); ++ended) {
      int32_t gone = ending[ended];
      gaps.give(offset[gone] + inherited[gone],
                units[gone].bytes - inherited[gone]);
    }
    int32_t before = units[u].before;
    if (!backwards && before >= 0 && units[before].first < units[u].first &&
        units[before].bytes >= units[u].bytes && inherited[before] == 0) {
      inherited[before] = units[u].bytes;
      offset[u] = offset[before];
    } else {
      offset[u] = gaps.take(units[u].bytes);
    }
  }
  return offset;
}
