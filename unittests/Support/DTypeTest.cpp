//===- DTypeTest.cpp - 16-bit floats against their definition -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Base/DType.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace ckopt;

namespace {
/// The value by the definition: sign, exponent, fraction.
double define(unsigned bits, int mantissaBits, int bias) {
  const int exponent = int((bits & 0x7fff) >> mantissaBits);
  const double fraction =
      double(bits & ((1u << mantissaBits) - 1)) / std::ldexp(1.0, mantissaBits);
  double value = exponent == 0 ? std::ldexp(fraction, 1 - bias)
                               : std::ldexp(1 + fraction, exponent - bias);
  if (exponent == 2 * bias + 1)
    value = fraction == 0 ? INFINITY : NAN;
  return bits & 0x8000 ? -value : value;
}

template <typename Small> void checkAll(int mantissaBits, int bias) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const double wanted = define(bits, mantissaBits, bias);
    const double got = double(Small::fromBits(uint16_t(bits)));
    if (std::isnan(wanted)) {
      ASSERT_TRUE(std::isnan(got)) << bits;
      ASSERT_TRUE(std::isnan(double(Small(got)))) << bits;
      continue;
    }
    ASSERT_EQ(got, wanted) << bits;
    ASSERT_EQ(std::signbit(got), std::signbit(wanted)) << bits;
    ASSERT_EQ(Small(got).bits, bits);
  }
}

/// Between each value and the next: below the middle down, above it up, on it
/// to the even one.
template <typename Small> void checkRounding(unsigned infinity) {
  for (unsigned bits = 0; bits + 1 < infinity; ++bits) {
    const double low = double(Small::fromBits(uint16_t(bits)));
    const double high = double(Small::fromBits(uint16_t(bits + 1)));
    const double middle = (low + high) / 2; // exact in double
    ASSERT_EQ(Small(std::nextafter(middle, 0.0)).bits, bits);
    ASSERT_EQ(Small(std::nextafter(middle, INFINITY)).bits, bits + 1);
    ASSERT_EQ(Small(middle).bits, bits & 1 ? bits + 1 : bits);
    ASSERT_EQ(Small(-middle).bits, 0x8000 | (bits & 1 ? bits + 1 : bits));
  }
}
} // namespace

TEST(DType, HalfIsBinary16) { checkAll<Half>(10, 15); }
TEST(DType, BFloat16IsTheUpperHalfOfFloat) { checkAll<BFloat16>(7, 127); }
TEST(DType, HalfRoundsToNearestEven) { checkRounding<Half>(0x7c00); }
TEST(DType, BFloat16RoundsToNearestEven) { checkRounding<BFloat16>(0x7f80); }

TEST(DType, OverflowGoesToInfinity) {
  EXPECT_EQ(Half(65519.99).bits, 0x7bff);
  EXPECT_EQ(Half(65520.0).bits, 0x7c00);
  EXPECT_EQ(Half(-1e300).bits, 0xfc00);
  EXPECT_EQ(BFloat16(3.4e38).bits, 0x7f80);
  EXPECT_EQ(BFloat16(1e-60).bits, 0);
  EXPECT_EQ(Half(-1e-320).bits, 0x8000);
}

TEST(DType, FloatHelpers) {
  EXPECT_EQ(floatToHalf(1.0f), 0x3c00);
  EXPECT_EQ(halfToFloat(0xc000), -2.0f);
  EXPECT_EQ(floatToBFloat16(1.0f), 0x3f80);
  EXPECT_EQ(bfloat16ToFloat(0x4049), 3.140625f);
}

TEST(DType, NamesAndSizes) {
  for (unsigned i = 0; i < numDTypes; ++i)
    EXPECT_EQ(parseDType(dtypeName(DType(i))), DType(i));
  EXPECT_EQ(parseDType("float32"), DType::F32);
  EXPECT_EQ(parseDType("bfloat16"), DType::BF16);
  EXPECT_EQ(parseDType("uint8"), DType::U8);
  EXPECT_EQ(parseDType("float8"), std::nullopt);
  EXPECT_EQ(parseDType(""), std::nullopt);
  EXPECT_EQ(dtypeSize(DType::F64), 8);
  EXPECT_EQ(dtypeSize(DType::BF16), 2);
  EXPECT_EQ(dtypeSize(DType::Bool), 1);
  EXPECT_TRUE(isFloat(DType::BF16));
  EXPECT_FALSE(isFloat(DType::I64));
  EXPECT_FALSE(isInteger(DType::Bool));
  EXPECT_TRUE(isSignedInteger(DType::I8));
  EXPECT_FALSE(isSignedInteger(DType::U64));
}
