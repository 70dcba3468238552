//===- PackModel.cpp - buffers as units to place --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Objective: buffers in a form that all packers share. Method: merges in-place
// chains, sums loads and finds each unit's tension, the largest load that it
// meets (a sparse table of range maxima). Exact, so there is nothing to give
// up. Complexity: O(n log n).
//
//===----------------------------------------------------------------------===//
#include "Packing/PackModel.h"

#include <algorithm>
#include <bit>

using namespace ckopt::planner;

PackModel::PackModel(const std::vector<Buffer> &buffers, int64_t alignment)
    : alignment(alignment) {
  makeUnits(buffers);
  measure();
}

void PackModel::makeUnits(const std::vector<Buffer> &buffers) {
  unitOf.assign(buffers.size(), -1);
  // A buffer is chained to one follower only; buffers are in order of time.
  std::vector<char> followed(buffers.size(), 0);
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer &buffer = buffers[i];
    int32_t first = int32_t(buffer.lifespan.lower);
    int32_t last = int32_t(buffer.lifespan.upper - 1);
    int64_t bytes = alignTo(buffer.size, alignment);
    int32_t from = buffer.inPlaceOf;
    if (from >= 0 && !followed[from]) {
      followed[from] = 1;
      PackUnit &unit = units[unitOf[from]];
      if (unit.last == first && bytes == unit.bytes) {
        unit.last = last;
        unitOf[i] = unitOf[from];
        continue;
      }
    } else {
      from = -1;
    }
    unitOf[i] = int32_t(units.size());
    units.push_back({first, last, bytes, -1});
    if (from >= 0 && units[unitOf[from]].last == first)
      units.back().before = unitOf[from];
  }
  // A chain that grew past the step in which bytes were taken over does not end
  // there any more.
  followers.resize(units.size());
  for (size_t u = 0; u < units.size(); ++u) {
    int32_t before = units[u].before;
    if (before >= 0 && units[before].last != units[u].first)
      units[u].before = -1;
    else if (before >= 0) {
      followers[before].push_back(int32_t(u));
      linked = true;
    }
  }
}

void PackModel::measure() {
  int32_t steps = 1;
  for (const PackUnit &unit : units)
    steps = std::max(steps, unit.last + 1);
  std::vector<std::vector<int64_t>> table(
      1, std::vector<int64_t>(size_t(steps) + 1, 0));
  std::vector<int64_t> &sums = table[0];
  for (const PackUnit &unit : units) {
    int32_t from = unit.first + (unit.before >= 0 ? 1 : 0);
    if (from > unit.last)
      continue;
    sums[from] += unit.bytes;
    sums[unit.last + 1] -= unit.bytes;
  }
  for (int32_t t = 1; t <= steps; ++t)
    sums[t] += sums[t - 1];
  load = *std::max_element(sums.begin(), sums.end());
  for (int32_t half = 1; 2 * half <= steps; half *= 2) {
    const std::vector<int64_t> &below = table.back();
    std::vector<int64_t> next(size_t(steps) - 2 * half + 1);
    for (size_t t = 0; t < next.size(); ++t)
      next[t] = std::max(below[t], below[t + half]);
    table.push_back(std::move(next));
  }
  for (const PackUnit &unit : units) {
    uint32_t length = uint32_t(unit.last - unit.first + 1);
    int level = std::bit_width(length) - 1;
    tension.push_back(std::max(table[level][unit.first],
                               table[level][unit.last + 1 - (1 << level)]));
  }
}
