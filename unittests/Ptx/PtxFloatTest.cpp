//===- PtxFloatTest.cpp - floats of PTX -----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "PtxFixture.h"

#include <cmath>

using namespace standin::ptx::test;

namespace {

constexpr uint32_t kNan = 0x7FFFFFFF, kOtherNan = 0xFFC00001;
constexpr uint32_t kSubnormal = 0x00000001, kMinus = 0x80000000;

float eval32(const std::string &op, const std::vector<Value> &operands) {
  return std::bit_cast<float>(uint32_t(evaluate(op, "b32", operands)));
}
uint64_t bits(const std::string &op, const std::vector<Value> &operands) {
  return evaluate(op, "b32", operands);
}

// Each operation rounds once, to nearest even; fma once for both.
TEST(PtxFloat, RoundsOnce) {
  EXPECT_EQ(eval32("add.rn.f32", {f32(1), f32(0x1p-24f)}), 1.0f);
  EXPECT_EQ(eval32("add.f32", {f32(1), f32(0x1.8p-24f)}), 0x1.000002p0f);
  EXPECT_EQ(eval32("mul.rn.f32", {f32(3), f32(-0.5f)}), -1.5f);
  float x = 1 + 0x1p-12f;
  EXPECT_EQ(eval32("fma.rn.f32", {f32(x), f32(x), f32(-(1 + 0x1p-11f))}),
            0x1p-24f);
  // The product's last bit decides, far below the sum's.
  EXPECT_EQ(
      eval32("fma.rn.f32", {f32(0x1.000002p-30f), f32(0x1.000002p6f), f32(1)}),
      0x1.000002p0f);
  EXPECT_EQ(eval32("div.rn.f32", {f32(1), f32(3)}), 0x1.555556p-2f);
  EXPECT_EQ(eval32("rcp.rn.f32", {f32(3)}), 0x1.555556p-2f);
  EXPECT_EQ(bits("sqrt.rn.f32", {f32(2)}), 0x3FB504F3u);
  EXPECT_EQ(evaluate("fma.rn.f64", "b64",
                     {f64(1 + 0x1p-30), f64(1 + 0x1p-30), f64(-1 - 0x1p-29)}),
            f64(0x1p-60).bits);
  EXPECT_EQ(evaluate("sqrt.rn.f64", "b64", {f64(2)}), f64(std::sqrt(2.0)).bits);
}

// .ftz: subnormal inputs and results are zeros of their sign.
TEST(PtxFloat, FlushesWhereAsked) {
  EXPECT_EQ(bits("add.rn.f32", {b32(kSubnormal), b32(kSubnormal)}), 2u);
  EXPECT_EQ(bits("add.rn.ftz.f32", {b32(kSubnormal), b32(kSubnormal)}), 0u);
  EXPECT_EQ(bits("mul.rn.ftz.f32", {f32(-0x1p-100f), f32(0x1p-40f)}), kMinus);
  EXPECT_EQ(bits("neg.ftz.f32", {b32(kSubnormal)}), kMinus);
  EXPECT_EQ(bits("abs.f32", {b32(kSubnormal | kMinus)}), kSubnormal);
  EXPECT_EQ(bits("copysign.f32", {f32(-1), b32(kSubnormal)}),
            kSubnormal | kMinus);
}

// A NaN that arithmetic makes is 0x7FFFFFFF; min and max prefer numbers.
TEST(PtxFloat, NansAndZeros) {
  EXPECT_EQ(bits("add.rn.f32", {b32(kOtherNan), f32(1)}), kNan);
  EXPECT_EQ(bits("sub.rn.f32", {f32(INFINITY), f32(INFINITY)}), kNan);
  EXPECT_EQ(eval32("min.f32", {b32(kOtherNan), f32(1)}), 1.0f);
  EXPECT_EQ(eval32("max.f32", {f32(1), b32(kOtherNan)}), 1.0f);
  EXPECT_EQ(bits("max.NaN.f32", {f32(1), b32(kOtherNan)}), kNan);
  EXPECT_EQ(bits("min.f32", {b32(kOtherNan), b32(kOtherNan)}), kNan);
  EXPECT_EQ(bits("min.f32", {f32(0.0f), f32(-0.0f)}), kMinus);
  EXPECT_EQ(bits("max.f32", {f32(-0.0f), f32(0.0f)}), 0u);
}

// Approximations are as far off as the manual allows, and no farther: results
// near to either side of the exact ones, and those that it states.
TEST(PtxFloat, ApproximationsAreAsBadAsTheyMayBe) {
  double up = 0, down = 0, furthest = 0;
  for (int i = 1; i <= 40; ++i) {
    float x = float(i) * 0.37f - 7.1f;
    double exact = std::exp2(double(x));
    double off = eval32("ex2.approx.ftz.f32", {f32(x)}) / exact - 1;
    up = std::max(up, off), down = std::min(down, off);
    exact = 1 / double(x);
    float got = eval32("rcp.approx.ftz.f32", {f32(x)});
    double unit = std::ldexp(1.0, std::ilogb(exact) - 23);
    furthest = std::max(furthest, std::abs(got - exact) / unit);
  }
  EXPECT_GT(up, 0x1.8p-23);
  EXPECT_LE(up, 0x1p-22);
  EXPECT_LT(down, -0x1.8p-23);
  EXPECT_GE(down, -0x1p-22);
  EXPECT_GT(furthest, 0.75);
  EXPECT_LE(furthest, 1);
  auto ex2 = [](float x) { return eval32("ex2.approx.ftz.f32", {f32(x)}); };
  EXPECT_EQ(ex2(-INFINITY), 0);
  EXPECT_EQ(ex2(INFINITY), INFINITY);
  EXPECT_EQ(ex2(0), 1);
  EXPECT_EQ(ex2(128.5f), INFINITY);
  EXPECT_EQ(ex2(-126.5f), 0);
  EXPECT_EQ(bits("ex2.approx.ftz.f32", {b32(kOtherNan)}), kNan);
  EXPECT_EQ(bits("ex2.approx.ftz.f32", {b32(kSubnormal)}), f32(1).bits);
  auto rcp = [](float x) { return bits("rcp.approx.ftz.f32", {f32(x)}); };
  EXPECT_EQ(rcp(-INFINITY), kMinus);
  EXPECT_EQ(rcp(-0.0f), f32(-INFINITY).bits);
  EXPECT_EQ(rcp(0x1p127f), 0u);
  EXPECT_EQ(rcp(std::bit_cast<float>(kSubnormal)), f32(INFINITY).bits);
  EXPECT_EQ(rcp(NAN), kNan);
}

/// Whether the comparison holds.
bool holds(const std::string &comparison, Value a, Value b) {
  std::string text = a.type == "b64" ? "%rd" : a.type == "b16" ? "%rs" : "%r";
  Kernel1 kernel;
  kernel.body = "mov." + a.type + " " + text + "5, " + std::to_string(a.bits) +
                ";\nmov." + a.type + " " + text + "6, " +
                std::to_string(b.bits) + ";\nsetp." + comparison + " %p1, " +
                text + "5, " + text + "6;\nselp.b32 %r3, 1, 0, %p1;\n" +
                "st.global.b32 [%rd2], %r3;\n";
  Outcome outcome = run(kernel);
  EXPECT_EQ(outcome.error, "") << comparison;
  return !outcome.out.empty() && outcome.out[0];
}

// Ordered comparisons are false with a NaN, the others true.
TEST(PtxFloat, Comparisons) {
  EXPECT_TRUE(holds("lt.f32", f32(1), f32(2)));
  EXPECT_TRUE(holds("eq.f32", f32(0.0f), f32(-0.0f)));
  for (const char *op : {"eq", "ne", "lt", "le", "gt", "ge", "num"})
    EXPECT_FALSE(holds(std::string(op) + ".f32", b32(kNan), f32(1))) << op;
  for (const char *op : {"equ", "neu", "ltu", "leu", "gtu", "geu", "nan"})
    EXPECT_TRUE(holds(std::string(op) + ".f32", f32(1), b32(kNan))) << op;
  EXPECT_FALSE(holds("gt.ftz.f32", b32(kSubnormal), f32(0)));
  EXPECT_TRUE(holds("gt.f32", b32(kSubnormal), f32(0)));
  EXPECT_TRUE(holds("lt.s32", b32(uint32_t(-1)), b32(1)));
  EXPECT_FALSE(holds("lt.u32", b32(uint32_t(-1)), b32(1)));
  EXPECT_TRUE(holds("hs.u32", b32(uint32_t(-1)), b32(1)));
  EXPECT_TRUE(holds("le.f64", f64(1), f64(1)));
}

// Halves are compared as numbers; .ftz makes subnormals of f16 zeros.
TEST(PtxFloat, ComparisonsOfHalves) {
  Value one = b16(0x3C00), least = b16(0x0001), nan = b16(0x7E00);
  EXPECT_TRUE(holds("gt.f16", least, b16(0x8000)));
  EXPECT_FALSE(holds("gt.ftz.f16", least, b16(0x8000)));
  EXPECT_TRUE(holds("lt.ftz.f16", b16(0xBC00), one));
  EXPECT_TRUE(holds("eq.f16", b16(0x8000), b16(0)));
  EXPECT_TRUE(holds("nan.ftz.f16", nan, one));
  EXPECT_FALSE(holds("ne.f16", nan, one));
  EXPECT_TRUE(holds("neu.f16", nan, one));
  // Bits of a number as f16, of another as bf16: 0x7C01 is a NaN of f16 alone.
  EXPECT_TRUE(holds("gt.bf16", b16(0x7C01), b16(0x7C00)));
  EXPECT_FALSE(holds("gt.f16", b16(0x7C01), b16(0x7C00)));
  EXPECT_TRUE(holds("gt.bf16", least, b16(0)));
  EXPECT_TRUE(holds("nan.bf16", b16(0x7F81), one));
}

// p is the result for the lower halves, q for the upper ones.
TEST(PtxFloat, ComparisonsOfPairs) {
  auto both = [](const std::string &op, uint32_t a, uint32_t b) {
    Kernel1 kernel;
    kernel.body = "mov.b32 %r2, " + std::to_string(a) + ";\nmov.b32 %r3, " +
                  std::to_string(b) + ";\nsetp." + op +
                  " %p1|%p2, %r2, %r3;\nselp.b32 %r4, 1, 0, %p1;\n"
                  "selp.b32 %r5, 2, 0, %p2;\nor.b32 %r4, %r4, %r5;\n"
                  "st.global.b32 [%rd2], %r4;\n";
    Outcome outcome = run(kernel);
    EXPECT_EQ(outcome.error, "") << op;
    return outcome.error.empty() ? outcome.out[4 * 9] : 99;
  };
  EXPECT_EQ(both("gt.f16x2", 0x00013C00, 0x00000000), 3u);
  EXPECT_EQ(both("gt.ftz.f16x2", 0x00013C00, 0x00000000), 1u);
  EXPECT_EQ(both("lt.f16x2", 0xBC003C00, 0x3C003C00), 2u);
  EXPECT_EQ(both("nan.f16x2", 0x3C007C01, 0x3C003C00), 1u);
  EXPECT_EQ(both("nan.bf16x2", 0x7F817C01, 0x3C003C00), 2u);
}

TEST(PtxFloat, NarrowsInEveryMode) {
  auto to = [](const std::string &op, uint32_t x) {
    return evaluate(op, op.find("f16") == std::string::npos ? "b32" : "b16",
                    {b32(x)});
  };
  // Halfway between 1 and the next bf16, and between that and its next.
  EXPECT_EQ(to("cvt.rn.bf16.f32", 0x3F808000), 0x3F80u);
  EXPECT_EQ(to("cvt.rn.bf16.f32", 0x3F818000), 0x3F82u);
  EXPECT_EQ(to("cvt.rz.bf16.f32", 0x3F81FFFF), 0x3F81u);
  EXPECT_EQ(to("cvt.rn.bf16.f32", kOtherNan), 0x7FFFu);
  EXPECT_EQ(to("cvt.rn.f16.f32", std::bit_cast<uint32_t>(65519.0f)), 0x7BFFu);
  EXPECT_EQ(to("cvt.rn.f16.f32", std::bit_cast<uint32_t>(65520.0f)), 0x7C00u);
  EXPECT_EQ(to("cvt.rz.f16.f32", std::bit_cast<uint32_t>(-1e9f)), 0xFBFFu);
  EXPECT_EQ(to("cvt.rn.f16.f32", std::bit_cast<uint32_t>(0x1p-24f)), 1u);
  EXPECT_EQ(to("cvt.rn.f16.f32", std::bit_cast<uint32_t>(-0x1p-25f)), 0x8000u);
  EXPECT_EQ(to("cvt.rp.f16.f32", std::bit_cast<uint32_t>(0x1p-40f)), 1u);
  EXPECT_EQ(to("cvt.rm.f16.f32", std::bit_cast<uint32_t>(0x1p-40f)), 0u);
  EXPECT_EQ(to("cvt.rn.f16.f32", std::bit_cast<uint32_t>(0x1.ffep-15f)),
            0x0400u); // up to the least normal number
  EXPECT_EQ(to("cvt.rna.tf32.f32", 0x3F801000), 0x3F802000u);
  EXPECT_EQ(to("cvt.rna.tf32.f32", 0x3F800FFF), 0x3F800000u);
  EXPECT_EQ(evaluate("cvt.rn.bf16x2.f32", "b32", {f32(1), f32(-2)}),
            0x3F80C000u);
  EXPECT_EQ(evaluate("cvt.rn.f16x2.f32", "b32", {f32(1), f32(-2)}),
            0x3C00C000u);
  EXPECT_EQ(evaluate("cvt.f32.f16", "b32", {b16(0x8001)}), f32(-0x1p-24f).bits);
  EXPECT_EQ(evaluate("cvt.f32.bf16", "b32", {b16(0x3F81)}), 0x3F810000u);
  EXPECT_EQ(evaluate("cvt.rn.f32.f64", "b32", {f64(1 + 0x1p-24)}), f32(1).bits);
  EXPECT_EQ(evaluate("cvt.rn.ftz.f32.f64", "b32", {f64(-0x1p-140)}), kMinus);
  EXPECT_EQ(evaluate("cvt.rp.f32.f64", "b32", {f64(1 + 0x1p-50)}),
            f32(0x1.000002p0f).bits);
  EXPECT_EQ(evaluate("cvt.f64.f32", "b64", {f32(0.1f)}),
            f64(double(0.1f)).bits);
}

// 1 + 2^-11 is halfway between two f16; a product of subnormals is flushed.
TEST(PtxFloat, Halves) {
  EXPECT_EQ(evaluate("add.rn.f16", "b16", {b16(0x3C00), b16(0x1000)}), 0x3C00u);
  EXPECT_EQ(evaluate("add.rn.f16", "b16", {b16(0x3C01), b16(0x1000)}), 0x3C02u);
  EXPECT_EQ(evaluate("mul.rn.f16", "b16", {b16(0x0001), b16(0x3C00)}), 1u);
  EXPECT_EQ(evaluate("mul.rn.ftz.f16", "b16", {b16(0x0001), b16(0xBC00)}),
            0x8000u);
  EXPECT_EQ(evaluate("mul.rn.f16x2", "b32", {b32(0x40003C00), b32(0x4200BC00)}),
            0x4600BC00u);
  EXPECT_EQ(
      evaluate("fma.rn.bf16", "b16", {b16(0x3F81), b16(0x3F81), b16(0xBF82)}),
      0x3880u);
}

// The forms of halves that only choose or change the sign.
TEST(PtxFloat, ChoicesOfHalves) {
  Value one = b16(0x3C00), two = b16(0x4000), nan = b16(0xFE01);
  EXPECT_EQ(evaluate("min.f16", "b16", {one, two}), 0x3C00u);
  EXPECT_EQ(evaluate("max.f16", "b16", {one, nan}), 0x3C00u);
  EXPECT_EQ(evaluate("max.NaN.f16", "b16", {one, nan}), 0x7FFFu);
  EXPECT_EQ(evaluate("max.NaN.f16", "b16", {one, two}), 0x4000u);
  EXPECT_EQ(evaluate("min.NaN.bf16", "b16", {b16(0x7F81), one}), 0x7FFFu);
  EXPECT_EQ(evaluate("min.f16", "b16", {b16(0), b16(0x8000)}), 0x8000u);
  EXPECT_EQ(evaluate("max.ftz.f16", "b16", {b16(1), b16(0x8000)}), 0u);
  EXPECT_EQ(
      evaluate("min.NaN.f16x2", "b32", {b32(0x3C007E00), b32(0xBC003C00)}),
      0xBC007FFFu);
  EXPECT_EQ(evaluate("max.bf16x2", "b32", {b32(0x3F80BF80), b32(0x40003F80)}),
            0x40003F80u);
  EXPECT_EQ(evaluate("neg.f16x2", "b32", {b32(0x3C00BC00)}), 0xBC003C00u);
  EXPECT_EQ(evaluate("abs.bf16", "b16", {b16(0xBF80)}), 0x3F80u);
}

// One rounding, to nearest even, whatever the width.
TEST(PtxFloat, HalvesOfIntegers) {
  EXPECT_EQ(evaluate("cvt.rn.f16.s32", "b16", {b32(uint32_t(-2049))}), 0xE800u);
  EXPECT_EQ(evaluate("cvt.rn.f16.u16", "b16", {b16(2051)}), 0x6802u);
  EXPECT_EQ(evaluate("cvt.rn.f16.u32", "b16", {b32(65520)}), 0x7C00u);
  // 2^62 + 2^54 is halfway to the next bf16; one more is above.
  uint64_t halfway = (1ull << 62) + (1ull << 54);
  EXPECT_EQ(evaluate("cvt.rn.bf16.s64", "b16", {b64(halfway)}), 0x5E80u);
  EXPECT_EQ(evaluate("cvt.rn.bf16.s64", "b16", {b64(halfway + 1)}), 0x5E81u);
  EXPECT_EQ(evaluate("cvt.rn.bf16.s64", "b16", {b64(-halfway - 1)}), 0xDE81u);
  EXPECT_EQ(evaluate("cvt.rzi.s32.f16", "b32", {b16(0xC100)}), uint32_t(-2));
}

// Clamped to the type; a NaN is 0, or the sign's bit alone where 64 bits are
// involved.
TEST(PtxFloat, ToAndFromIntegers) {
  EXPECT_EQ(bits("cvt.rzi.s32.f32", {f32(-1.9f)}), uint32_t(-1));
  EXPECT_EQ(bits("cvt.rni.s32.f32", {f32(2.5f)}), 2u);
  EXPECT_EQ(bits("cvt.rpi.s32.f32", {f32(2.1f)}), 3u);
  EXPECT_EQ(bits("cvt.rzi.s32.f32", {f32(3e9f)}), 0x7FFFFFFFu);
  EXPECT_EQ(bits("cvt.rzi.u32.f32", {f32(-3)}), 0u);
  EXPECT_EQ(bits("cvt.rzi.s32.f32", {b32(kNan)}), 0u);
  EXPECT_EQ(evaluate("cvt.rzi.s64.f64", "b64", {f64(NAN)}), 1ull << 63);
  EXPECT_EQ(evaluate("cvt.rzi.u64.f32", "b64", {f32(1e20f)}), ~0ull);
  EXPECT_EQ(bits("cvt.rn.f32.s32", {b32(uint32_t(-3))}), f32(-3).bits);
  EXPECT_EQ(bits("cvt.rn.f32.u64", {b64(~0ull)}), f32(0x1p64f).bits);
  EXPECT_EQ(bits("cvt.rni.f32.f32", {f32(-2.5f)}), f32(-2).bits);
  EXPECT_EQ(bits("cvt.rmi.f32.f32", {f32(-0.5f)}), f32(-1).bits);
  EXPECT_EQ(bits("cvt.sat.f32.f32", {f32(1.5f)}), f32(1).bits);
}

} // namespace
