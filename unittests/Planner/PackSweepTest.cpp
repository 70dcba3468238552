//===- PackSweepTest.cpp - placement of very many boxes -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Packing/PackSweep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

using namespace ckopt::planner;

namespace {

TEST(PackSweep, PlacesManyWithoutOverlap) {
  // Buffers and, for every tenth, one that takes its bytes over.
  std::mt19937 rng(3);
  std::vector<Buffer> buffers;
  for (int32_t i = 0; i < 20000; ++i) {
    Buffer buffer{{i, i + 2 + int32_t(rng() % 200)},
                  int64_t(64 + rng() % 5000)};
    buffers.push_back(buffer);
  }
  for (int32_t i = 0; i < 20000; i += 10) {
    int64_t last = buffers[i].lifespan.upper - 1;
    buffers.push_back({{last, last + 1 + int32_t(rng() % 100)},
                       buffers[i].size / int64_t(1 + rng() % 3),
                       i});
  }
  PackModel model(buffers, 64);
  for (bool backwards : {false, true}) {
    std::vector<int64_t> offsets = sweepUnits(model, backwards);
    ASSERT_EQ(offsets.size(), model.units.size());
    // Scan by time: live ranges are disjoint, except for bytes that are taken
    // over.
    std::vector<size_t> order(offsets.size());
    for (size_t u = 0; u < order.size(); ++u)
      order[u] = u;
    auto start = [&](size_t u) {
      const PackUnit &unit = model.units[u];
      bool taken =
          unit.before >= 0 && offsets[size_t(unit.before)] == offsets[u];
      return unit.first + (taken ? 1 : 0);
    };
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return start(a) < start(b); });
    std::map<int64_t, size_t> live;
    std::multimap<int32_t, size_t> ends;
    int64_t height = 0;
    for (size_t u : order) {
      const PackUnit &unit = model.units[u];
      if (start(u) > unit.last)
        continue;
      while (!ends.empty() && ends.begin()->first < start(u)) {
        live.erase(offsets[ends.begin()->second]);
        ends.erase(ends.begin());
      }
      auto next = live.lower_bound(offsets[u]);
      if (next != live.end())
        ASSERT_GE(next->first, offsets[u] + unit.bytes);
      if (next != live.begin()) {
        auto below = std::prev(next);
        ASSERT_LE(below->first + model.units[below->second].bytes, offsets[u]);
      }
      live[offsets[u]] = u;
      ends.insert({unit.last, u});
      height = std::max(height, offsets[u] + unit.bytes);
    }
    EXPECT_LE(double(height), 1.3 * double(model.load));
  }
}

} // namespace
