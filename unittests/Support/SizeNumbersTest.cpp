//===- SizeNumbersTest.cpp - what explains a number at all sizes
//------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/SizeNumbers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "gtest/gtest.h"

#include <cmath>
#include <limits>

using namespace ckopt;

static constexpr SizePoint kPoints[] = {
    {4093, 523}, {4091, 569}, {4079, 521}, {4073, 547}};

static std::optional<SizePolynomial>
ofBoth(llvm::function_ref<int64_t(int64_t, int64_t)> f) {
  return polynomialThrough(kPoints,
                           llvm::map_to_vector(kPoints, [&](SizePoint p) {
                             return f(p.size, p.rows);
                           }));
}

static std::optional<SizePolynomial>
of(llvm::function_ref<int64_t(int64_t)> f) {
  return ofBoth([&](int64_t n, int64_t) { return f(n); });
}

TEST(SizePolynomial, FindsWhatExplainsAllSizes) {
  auto tokens = of([](int64_t n) { return 3 * n * n - 64 * n + 7; });
  ASSERT_TRUE(tokens);
  EXPECT_EQ(tokens->at({1}), -54);
  EXPECT_EQ(tokens->at({1 << 20}), 3 * (int64_t(1) << 40) - (64 << 20) + 7);
  auto same = of([](int64_t) { return 5; });
  ASSERT_TRUE(same);
  EXPECT_TRUE(same->isConstant());
}

TEST(SizePolynomial, RefusesOtherNumbers) {
  EXPECT_FALSE(of([](int64_t n) { return n / 16; }));
  EXPECT_FALSE(of([](int64_t n) { return n * n * n; }));
  EXPECT_FALSE(of([](int64_t n) { return std::min<int64_t>(n, 4080); }));
  EXPECT_FALSE(of([](int64_t n) { return n * (n + 1) / 2; }))
      << "of whole numbers alone";
  EXPECT_FALSE(of([](int64_t n) { return n == 4073 ? 1 : 0; }))
      << "the last size has to confirm it";
}

TEST(SizePolynomial, OutlivesLargeNumbers) {
  EXPECT_FALSE(of([](int64_t n) {
    return n % 4 == 1 ? std::numeric_limits<int64_t>::max()
                      : std::numeric_limits<int64_t>::min();
  }));
  auto large = of([](int64_t n) { return n * (int64_t(1) << 40); });
  ASSERT_TRUE(large);
  EXPECT_EQ(large->linear, int64_t(1) << 40);
}

TEST(SizePolynomial, FollowsTheRowsOfABlock) {
  auto logits = ofBoth([](int64_t, int64_t r) { return 50257 * r; });
  ASSERT_TRUE(logits);
  EXPECT_EQ(logits->at({9, 3}), 50257 * 3);
  auto filled = ofBoth([](int64_t n, int64_t r) { return 8 * r - n + 5; });
  ASSERT_TRUE(filled);
  EXPECT_EQ(filled->at({30, 4}), 7);
  EXPECT_TRUE(ofBoth([](int64_t, int64_t r) { return r * r; }));
  EXPECT_FALSE(ofBoth([](int64_t n, int64_t r) { return n * r; }));
  EXPECT_FALSE(ofBoth([](int64_t n, int64_t r) { return n * n + r; }));
}

TEST(RowBlocks, HoldAllRows) {
  RowBlocks blocks{8, 0, 2};
  for (int64_t size : {1, 3, 4, 37, 4096}) {
    SizePoint point = blocks.at(size);
    EXPECT_EQ(point.size, size);
    EXPECT_GE(8 * point.rows, 2 * size);
    EXPECT_LT(8 * (point.rows - 1), 2 * size);
  }
  EXPECT_EQ(RowBlocks().at(7).rows, 0);
}

static std::optional<SizeReal> real(llvm::function_ref<float(int64_t)> f) {
  return SizeReal::through(kPoints,
                           llvm::map_to_vector(kPoints, [&](SizePoint p) {
                             return llvm::APFloat(f(p.size));
                           }));
}

TEST(SizeReal, HasTheBitsOfCountsAndTheirReciprocals) {
  auto mean = real([](int64_t n) { return float(1 / double(8 * n)); });
  ASSERT_TRUE(mean);
  for (int64_t n : {1, 3, 37, 4096})
    EXPECT_EQ(mean->at({n}, llvm::APFloat(0.0f)).convertToFloat(),
              float(1 / double(8 * n)));
  auto count = real([](int64_t n) { return float(n); });
  ASSERT_TRUE(count);
  EXPECT_EQ(count->at({12}), 12);
  auto share = real([](int64_t n) { return float(0.1 / double(n)); });
  ASSERT_TRUE(share);
  EXPECT_EQ(share->at({100}, llvm::APFloat(0.0f)).convertToFloat(),
            float(0.1 / 100));
}

TEST(SizeReal, RefusesOtherNumbers) {
  EXPECT_FALSE(real([](int64_t n) { return float(std::sqrt(double(n))); }));
  EXPECT_FALSE(real([](int64_t n) { return n == 4091 ? 0.5f : 0.25f; }));
  EXPECT_FALSE(real([](int64_t) { return 0.0f; }));
}
