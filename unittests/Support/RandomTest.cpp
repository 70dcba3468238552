//===- RandomTest.cpp - Philox against published numbers ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Base/Philox.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <cmath>

using namespace ckopt;

TEST(Philox, KnownAnswers) {
  // From the authors' Random123 distribution, kat_vectors.
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox4x32({ones, ones, ones, ones}, {ones, ones}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                       {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, StreamsAreTheirDefinition) {
  // Computed by a separate implementation in Python.
  PhiloxStream stream((uint64_t(1) << 40) + 7, RandomUse::Test, 9);
  for (uint32_t wanted : {545349810u, 3780767354u, 3033645397u, 2270671733u,
                          1040644800u, 1299622676u})
    EXPECT_EQ(stream.next32(), wanted);
}

TEST(Philox, UniformAndNormalHaveTheirMoments) {
  PhiloxStream stream(1, RandomUse::Test, 0);
  double sum = 0, squares = 0, low = 1, high = 0, normal = 0, normal2 = 0;
  const int count = 200000;
  for (int i = 0; i < count; ++i) {
    const double u = stream.uniform();
    low = std::min(low, u);
    high = std::max(high, u);
    sum += u;
    squares += u * u;
    const double n = stream.normal();
    normal += n;
    normal2 += n * n;
  }
  EXPECT_GE(low, 0.0);
  EXPECT_LT(high, 1.0);
  EXPECT_NEAR(sum / count, 0.5, 0.003);
  EXPECT_NEAR(squares / count, 1.0 / 3, 0.003);
  EXPECT_NEAR(normal / count, 0, 0.01);
  EXPECT_NEAR(normal2 / count, 1, 0.015);
}

TEST(Philox, BelowIsInRangeAndEven) {
  PhiloxStream stream(3, RandomUse::Test, 1);
  int counts[7] = {};
  for (int i = 0; i < 70000; ++i)
    ++counts[stream.below(7)];
  for (int count : counts)
    EXPECT_NEAR(count, 10000, 400);
  EXPECT_EQ(stream.below(1), 0u);
}
