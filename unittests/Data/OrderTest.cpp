//===- OrderTest.cpp - the order of samples is the same everywhere --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Train/Data/Permutation.h"
#include "gtest/gtest.h"
#include <algorithm>

using namespace ckopt;

TEST(Permutation, IsTheSameOnEveryMachine) {
  // Computed by a separate implementation in Python.
  EXPECT_EQ(epochPermutation(10, 42, 0),
            (std::vector<int64_t>{1, 0, 5, 3, 2, 9, 4, 8, 7, 6}));
  EXPECT_EQ(epochPermutation(10, 42, 1),
            (std::vector<int64_t>{1, 0, 6, 5, 8, 2, 3, 4, 9, 7}));
  EXPECT_EQ(epochPermutation(10, 43, 0),
            (std::vector<int64_t>{2, 7, 1, 6, 4, 0, 9, 3, 5, 8}));
  EXPECT_EQ(randomPermutation(10, 42, RandomUse::Holdout, 0),
            (std::vector<int64_t>{7, 8, 2, 4, 0, 9, 3, 1, 6, 5}));
}

TEST(Permutation, HoldsEachSampleOnce) {
  for (int64_t count : {0, 1, 2, 1000}) {
    std::vector<int64_t> order = epochPermutation(count, 7, 3);
    std::sort(order.begin(), order.end());
    ASSERT_EQ(int64_t(order.size()), count);
    for (int64_t i = 0; i < count; ++i)
      EXPECT_EQ(order[size_t(i)], i);
  }
}

TEST(Permutation, EveryPlaceIsEquallyLikely) {
  int counts[4][4] = {};
  for (int64_t epoch = 0; epoch < 8000; ++epoch) {
    const std::vector<int64_t> order = epochPermutation(4, 11, epoch);
    for (int i = 0; i < 4; ++i)
      ++counts[i][order[size_t(i)]];
  }
  for (auto &row : counts)
    for (int count : row)
      EXPECT_NEAR(count, 2000, 180);
}
