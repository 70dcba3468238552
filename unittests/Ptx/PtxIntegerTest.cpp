//===- PtxIntegerTest.cpp - integers and bits of PTX ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Answers worked out by hand from the sections of the PTX ISA.
//
//===----------------------------------------------------------------------===//
#include "PtxFixture.h"

using namespace standin::ptx::test;

namespace {

// Sums and products wrap; the parts of a product are those of its type.
TEST(PtxInteger, Arithmetic) {
  EXPECT_EQ(evaluate("add.s32", "b32", {b32(0xFFFFFFFF), b32(2)}), 1u);
  EXPECT_EQ(evaluate("sub.s16", "b16", {b16(0), b16(1)}), 0xFFFFu);
  EXPECT_EQ(evaluate("add.s64", "b64", {b64(~0ull), b64(1)}), 0u);
  EXPECT_EQ(evaluate("mul.lo.s16", "b16", {b16(0xFFFF), b16(0xFFFF)}), 1u);
  EXPECT_EQ(evaluate("mul.hi.u16", "b16", {b16(0xFFFF), b16(0xFFFF)}), 0xFFFEu);
  EXPECT_EQ(evaluate("mul.hi.s32", "b32", {b32(0xFFFFFFFF), b32(5)}),
            0xFFFFFFFFu);
  EXPECT_EQ(evaluate("mul.hi.u32", "b32", {b32(0xFFFFFFFF), b32(5)}), 4u);
  EXPECT_EQ(evaluate("mul.hi.u64", "b64", {b64(1ull << 63), b64(6)}), 3u);
  EXPECT_EQ(evaluate("mul.wide.s32", "b64", {b32(0xFFFFFFFE), b32(3)}),
            uint64_t(-6));
  EXPECT_EQ(evaluate("mul.wide.u32", "b64", {b32(0xFFFFFFFF), b32(2)}),
            0x1FFFFFFFEull);
  EXPECT_EQ(evaluate("mul.wide.u16", "b32", {b16(0xFFFF), b16(2)}), 0x1FFFEu);
  EXPECT_EQ(evaluate("mad.lo.s64", "b64", {b64(7), b64(6), b64(uint64_t(-2))}),
            40u);
  EXPECT_EQ(
      evaluate("mad.wide.s32", "b64", {b32(uint32_t(-2)), b32(3), b64(1)}),
      uint64_t(-5));
  EXPECT_EQ(evaluate("mad.hi.u32", "b32", {b32(1u << 31), b32(4), b32(1)}), 3u);
}

TEST(PtxInteger, QuotientsAndOrder) {
  EXPECT_EQ(evaluate("div.s32", "b32", {b32(uint32_t(-7)), b32(2)}),
            uint32_t(-3));
  EXPECT_EQ(evaluate("rem.s32", "b32", {b32(uint32_t(-7)), b32(2)}),
            uint32_t(-1));
  EXPECT_EQ(evaluate("div.s32", "b32", {b32(1u << 31), b32(uint32_t(-1))}),
            1u << 31);
  EXPECT_EQ(evaluate("div.u64", "b64", {b64(~0ull), b64(2)}), ~0ull >> 1);
  EXPECT_EQ(evaluate("min.s32", "b32", {b32(uint32_t(-1)), b32(1)}),
            uint32_t(-1));
  EXPECT_EQ(evaluate("min.u32", "b32", {b32(uint32_t(-1)), b32(1)}), 1u);
  EXPECT_EQ(evaluate("max.s64", "b64", {b64(~0ull), b64(1)}), 1u);
  EXPECT_EQ(evaluate("max.u16", "b16", {b16(0xFFFF), b16(1)}), 0xFFFFu);
  EXPECT_EQ(evaluate("abs.s32", "b32", {b32(uint32_t(-4))}), 4u);
  EXPECT_EQ(evaluate("neg.s16", "b16", {b16(3)}), 0xFFFDu);
}

// "Shift amounts greater than the register width N are clamped to N."
TEST(PtxInteger, Shifts) {
  EXPECT_EQ(evaluate("shl.b32", "b32", {b32(3), b32(31)}), 1u << 31);
  EXPECT_EQ(evaluate("shl.b32", "b32", {b32(3), b32(32)}), 0u);
  EXPECT_EQ(evaluate("shl.b64", "b64", {b64(3), b32(63)}), 1ull << 63);
  EXPECT_EQ(evaluate("shl.b16", "b16", {b16(3), b32(17)}), 0u);
  EXPECT_EQ(evaluate("shr.u32", "b32", {b32(1u << 31), b32(40)}), 0u);
  EXPECT_EQ(evaluate("shr.s32", "b32", {b32(uint32_t(-8)), b32(1)}),
            uint32_t(-4));
  EXPECT_EQ(evaluate("shr.s32", "b32", {b32(uint32_t(-8)), b32(1000)}),
            uint32_t(-1));
  EXPECT_EQ(evaluate("shr.s16", "b16", {b16(0x8000), b32(15)}), 0xFFFFu);
  EXPECT_EQ(evaluate("shf.l.wrap.b32", "b32",
                     {b32(0x89ABCDEF), b32(0x01234567), b32(36)}),
            0x12345678u);
  EXPECT_EQ(evaluate("shf.r.clamp.b32", "b32",
                     {b32(0x89ABCDEF), b32(0x01234567), b32(36)}),
            0x01234567u);
}

TEST(PtxInteger, BitsAndFields) {
  EXPECT_EQ(evaluate("and.b16", "b16", {b16(0xF0F0), b16(0xFF00)}), 0xF000u);
  EXPECT_EQ(evaluate("xor.b64", "b64", {b64(~0ull), b64(1)}), ~1ull);
  EXPECT_EQ(evaluate("not.b32", "b32", {b32(0)}), 0xFFFFFFFFu);
  EXPECT_EQ(
      evaluate("lop3.b32", "b32", {b32(0xF0), b32(0xCC), b32(0xAA), b32(0x96)}),
      (0xF0u ^ 0xCC ^ 0xAA));
  EXPECT_EQ(evaluate("popc.b64", "b32", {b64(0xF0000000000000FFull)}), 12u);
  EXPECT_EQ(evaluate("clz.b32", "b32", {b32(0)}), 32u);
  EXPECT_EQ(evaluate("clz.b64", "b32", {b64(1)}), 63u);
  EXPECT_EQ(evaluate("brev.b32", "b32", {b32(0x80000001)}), 0x80000001u);
  EXPECT_EQ(evaluate("bfind.u32", "b32", {b32(0x10)}), 4u);
  EXPECT_EQ(evaluate("bfind.s32", "b32", {b32(0xFFFFFFFF)}), 0xFFFFFFFFu);
  EXPECT_EQ(evaluate("bfe.u32", "b32", {b32(0x12345678), b32(8), b32(12)}),
            0x456u);
  EXPECT_EQ(evaluate("bfe.s32", "b32", {b32(0x00000800), b32(8), b32(4)}),
            0xFFFFFFF8u);
  EXPECT_EQ(evaluate("bfe.s32", "b32", {b32(0x80000000), b32(31), b32(0)}), 0u);
  EXPECT_EQ(evaluate("bfe.u64", "b64", {b64(~0ull), b32(60), b32(20)}), 15u);
  EXPECT_EQ(
      evaluate("bfi.b32", "b32", {b32(0xFF), b32(0x11111111), b32(8), b32(4)}),
      0x11111F11u);
  EXPECT_EQ(evaluate("prmt.b32", "b32",
                     {b32(0x03020100), b32(0x07060504), b32(0x5410)}),
            0x05040100u);
  EXPECT_EQ(evaluate("prmt.b32", "b32", {b32(0x8000), b32(0), b32(0x8990)}),
            0x00FFFF00u);
}

TEST(PtxInteger, Conversions) {
  EXPECT_EQ(evaluate("cvt.s64.s32", "b64", {b32(uint32_t(-2))}), uint64_t(-2));
  EXPECT_EQ(evaluate("cvt.u64.u32", "b64", {b32(uint32_t(-2))}), 0xFFFFFFFEu);
  EXPECT_EQ(evaluate("cvt.u32.u64", "b32", {b64(0x123456789ull)}), 0x23456789u);
  EXPECT_EQ(evaluate("cvt.u16.u32", "b16", {b32(0x12345)}), 0x2345u);
  EXPECT_EQ(evaluate("cvt.s32.s8", "b32", {b32(0x1FF)}), 0xFFFFFFFFu);
  EXPECT_EQ(evaluate("cvt.s32.s16", "b32", {b16(0x8000)}), 0xFFFF8000u);
  EXPECT_EQ(evaluate("cvt.s8.s32", "b16", {b32(0x1FF)}), 0xFFFFu);
  EXPECT_EQ(evaluate("cvt.u8.u32", "b16", {b32(0x1FF)}), 0xFFu);
  EXPECT_EQ(evaluate("cvt.sat.u8.s32", "b32", {b32(300)}), 255u);
  EXPECT_EQ(evaluate("cvt.sat.u8.s32", "b32", {b32(uint32_t(-5))}), 0u);
}

// A register may be wider than the type: of a source its low bits count, a
// result fills it.
TEST(PtxInteger, ConversionsInWiderRegisters) {
  EXPECT_EQ(evaluate("cvt.s64.s8", "b64", {b64(0x1280)}), uint64_t(-128));
  EXPECT_EQ(evaluate("cvt.s64.s16", "b64", {b64(0x18001)}), uint64_t(-32767));
  EXPECT_EQ(evaluate("cvt.s64.s32", "b64", {b64(0x180000000)}),
            0xFFFFFFFF80000000u);
  EXPECT_EQ(evaluate("cvt.u64.u8", "b64", {b64(0x1280)}), 0x80u);
  EXPECT_EQ(evaluate("cvt.s16.s8", "b16", {b64(0x1280)}), 0xFF80u);
  EXPECT_EQ(evaluate("cvt.s32.s16", "b32", {b32(0x18001)}), 0xFFFF8001u);
  EXPECT_EQ(evaluate("cvt.s16.s8", "b16", {b16(0x1280)}), 0xFF80u);
  EXPECT_EQ(evaluate("cvt.s32.s8", "b64", {b16(0x80)}), uint64_t(-128));
  EXPECT_EQ(evaluate("cvt.u32.s8", "b64", {b16(0x80)}), 0xFFFFFF80u);
  EXPECT_EQ(evaluate("cvt.sat.s8.s64", "b64", {b64(uint64_t(-300))}),
            uint64_t(-128));
  EXPECT_EQ(evaluate("cvt.rn.f32.s8", "b32", {b64(0x1280)}), f32(-128).bits);
  EXPECT_EQ(evaluate("cvt.rzi.s8.f32", "b32", {f32(-300)}), 0xFFFFFF80u);
}

// Words put together and taken apart: the first part is the low one.
TEST(PtxInteger, Vectors) {
  Kernel1 kernel;
  kernel.body = "mov.b16 %rs1, 0x1122;\nmov.b16 %rs2, 0x3344;\n"
                "mov.b32 %r2, {%rs1, %rs2};\nmov.b64 %rd3, {%r2, %r1};\n"
                "mov.b64 {%r3, _}, %rd3;\nmov.b32 {%rs3, %rs4}, %r3;\n"
                "cvt.u32.u16 %r4, %rs4;\nshr.u64 %rd4, %rd3, 32;\n"
                "cvt.u32.u64 %r5, %rd4;\n"
                "st.global.v4.b32 [%rd2], {%r2, %r3, %r4, %r5};\n";
  Outcome outcome = run(kernel);
  ASSERT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.out[4 * 7 + 0], 0x33441122u);
  EXPECT_EQ(outcome.out[4 * 7 + 1], 0x33441122u);
  EXPECT_EQ(outcome.out[4 * 7 + 2], 0x3344u);
  EXPECT_EQ(outcome.out[4 * 7 + 3], 7u);
}

} // namespace
