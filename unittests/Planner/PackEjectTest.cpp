//===- PackEjectTest.cpp - packing by ejection ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Packing/PackEject.h"

#include <gtest/gtest.h>

#include <numeric>

using namespace ckopt::planner;

namespace {

/// Cuts a rectangle of `steps` by `height` into buffers that fill it
/// completely.
void cut(std::vector<Buffer> &buffers, PackRandom &random, int32_t first,
         int32_t last, int64_t low, int64_t high, int depth) {
  bool wide = last - first >= 3, tall = high - low >= 4;
  if (depth == 0 || (!wide && !tall)) {
    buffers.push_back({{first, last + 1}, high - low});
    return;
  }
  if (wide && (!tall || random.next() % 2)) {
    int32_t at = first + 1 + int32_t(random.next() % uint32_t(last - first));
    cut(buffers, random, first, at - 1, low, high, depth - 1);
    cut(buffers, random, at, last, low, high, depth - 1);
  } else {
    int64_t at = low + 1 + random.next() % uint32_t(high - low - 1);
    cut(buffers, random, first, last, low, at, depth - 1);
    cut(buffers, random, first, last, at, high, depth - 1);
  }
}

std::vector<Buffer> perfect(uint64_t seed, int depth) {
  PackRandom random{seed};
  for (int i = 0; i < 4; ++i)
    random.next();
  std::vector<Buffer> buffers;
  cut(buffers, random, 0, 199, 0, 100000, depth);
  return buffers;
}

std::vector<int32_t> allOf(const PackModel &model) {
  std::vector<int32_t> ids(model.units.size());
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

/// Expects that no buffers overlap, and none exceeds the capacity.
void expectValid(const PackModel &model, const PackEject &packer,
                 int64_t capacity) {
  std::vector<int32_t> ids = packer.placedIds();
  std::vector<int64_t> at = packer.placedAt();
  ASSERT_EQ(ids.size(), at.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    const PackUnit &a = model.units[ids[i]];
    EXPECT_GE(at[i], 0);
    EXPECT_LE(at[i] + a.bytes, capacity);
    for (size_t j = 0; j < i; ++j) {
      const PackUnit &b = model.units[ids[j]];
      EXPECT_FALSE(a.first <= b.last && b.first <= a.last &&
                   at[i] < at[j] + b.bytes && at[j] < at[i] + a.bytes)
          << ids[i] << " and " << ids[j];
    }
  }
}

TEST(PackEject, PlacesAllWithLittleRoom) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    PackModel model(perfect(seed, 8), 1);
    PackEject packer(model, allOf(model), seed);
    Deadline deadline(0, 20'000'000);
    int64_t capacity = model.load + model.load / 12;
    EXPECT_TRUE(packer.run(capacity, {}, seed % 2 == 0, deadline));
    EXPECT_EQ(packer.placedIds().size(), model.units.size());
    expectValid(model, packer, capacity);
  }
}

TEST(PackEject, KeepsWhatItPlacedWhereNotAllFits) {
  PackModel model(perfect(3, 6), 1);
  PackEject packer(model, allOf(model), 1);
  Deadline deadline(0, 200'000);
  int64_t capacity = model.load - model.load / 10;
  EXPECT_FALSE(packer.run(capacity, {}, false, deadline));
  EXPECT_LT(packer.placedIds().size(), model.units.size());
  EXPECT_GT(packer.placedIds().size(), 0u);
  expectValid(model, packer, capacity);
}

TEST(PackEject, StartsFromAPackingAndIsTheSameEachTime) {
  PackModel model(perfect(5, 7), 1);
  std::vector<int64_t> start(model.units.size(), model.load * 2);
  std::vector<int32_t> ids[2];
  std::vector<int64_t> at[2];
  for (int i : {0, 1}) {
    PackEject packer(model, allOf(model), 9);
    Deadline deadline(0, 300'000);
    packer.run(model.load, start, false, deadline);
    ids[i] = packer.placedIds();
    at[i] = packer.placedAt();
  }
  EXPECT_EQ(ids[0], ids[1]);
  EXPECT_EQ(at[0], at[1]);
}

} // namespace
