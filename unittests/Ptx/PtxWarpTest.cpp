//===- PtxWarpTest.cpp - lanes of a warp: shuffles, votes, products -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "PtxFixture.h"

#include <algorithm>

using namespace standin::ptx::test;

namespace {

/// shfl.sync.OP of lane * 10, and whether the lane was in range: 100 more.
std::vector<uint32_t> shuffle(const std::string &op, const std::string &b,
                              const std::string &c) {
  Kernel1 kernel;
  kernel.body = "mul.lo.s32 %r2, %r1, 10;\nshfl.sync." + op +
                ".b32 %r3|%p1, %r2, " + b + ", " + c +
                ", -1;\n@%p1 add.s32 %r3, %r3, 100;\n"
                "st.global.b32 [%rd2], %r3;\n";
  Outcome outcome = run(kernel);
  EXPECT_EQ(outcome.error, "");
  std::vector<uint32_t> lanes;
  for (size_t l = 0; l < 32; ++l)
    lanes.push_back(outcome.out[4 * l]);
  return lanes;
}

// A lane whose partner is out of range keeps its own value.
TEST(PtxWarp, Shuffles) {
  auto down = shuffle("down", "8", "31"), up = shuffle("up", "1", "0"),
       butterfly = shuffle("bfly", "5", "31"),
       index = shuffle("idx", "3", "31");
  // Segments of 16 lanes: the mask of the upper bit.
  auto half = shuffle("down", "1", "0x101F"),
       zero = shuffle("idx", "0", "0x101F");
  for (uint32_t l = 0; l < 32; ++l) {
    EXPECT_EQ(down[l], l < 24 ? (l + 8) * 10 + 100 : l * 10) << l;
    EXPECT_EQ(up[l], l > 0 ? (l - 1) * 10 + 100 : 0) << l;
    EXPECT_EQ(butterfly[l], (l ^ 5) * 10 + 100) << l;
    EXPECT_EQ(index[l], 130u) << l;
    EXPECT_EQ(half[l], l % 16 < 15 ? (l + 1) * 10 + 100 : l * 10) << l;
    EXPECT_EQ(zero[l], l / 16 * 160 + 100) << l;
  }
}

TEST(PtxWarp, Votes) {
  Kernel1 kernel;
  kernel.body = "setp.lt.u32 %p1, %r1, 4;\nvote.sync.ballot.b32 %r2, %p1, -1;\n"
                "vote.sync.any.pred %p2, %p1, -1;\n"
                "vote.sync.all.pred %p3, %p1, -1;\nselp.b32 %r3, 1, 0, %p2;\n"
                "selp.b32 %r4, 1, 0, %p3;\nmov.b32 %r5, 0;\n"
                "@%p1 activemask.b32 %r5;\n"
                "st.global.v4.b32 [%rd2], {%r2, %r3, %r4, %r5};\n";
  Outcome outcome = run(kernel);
  ASSERT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.out[0], 15u);
  EXPECT_EQ(outcome.out[1], 1u);
  EXPECT_EQ(outcome.out[2], 0u);
  EXPECT_EQ(outcome.out[3], 15u);
  EXPECT_EQ(outcome.out[4 * 9 + 3], 0u);
}

// Lanes that part go on together behind the branch, also where the code of one
// side lies behind the end, and out of a loop that each leaves in its time.
TEST(PtxWarp, PartsAndMeetsAgain) {
  Kernel1 kernel;
  kernel.body =
      "and.b32 %r2, %r1, 3;\nsetp.eq.b32 %p1, %r2, 0;\n"
      "mov.b32 %r3, 0;\nbra.uni $start;\n$odd:\nadd.s32 %r3, %r3, 7;\n"
      "bra $meet;\n$start:\n@!%p1 bra $odd;\nadd.s32 %r3, %r3, 1;\n"
      "$meet:\nactivemask.b32 %r4;\n"
      "$loop:\nadd.s32 %r3, %r3, 10;\nsub.s32 %r2, %r2, 1;\n"
      "setp.ge.s32 %p2, %r2, 0;\n@%p2 bra $loop;\n"
      "activemask.b32 %r5;\nmov.b32 %r6, 0;\n"
      "st.global.v4.b32 [%rd2], {%r3, %r4, %r5, %r6};\n";
  Outcome outcome = run(kernel);
  ASSERT_EQ(outcome.error, "");
  for (size_t l = 0; l < 32; ++l) {
    EXPECT_EQ(outcome.out[4 * l], (l % 4 ? 7 : 1) + 10 * (l % 4 + 1)) << l;
    EXPECT_EQ(outcome.out[4 * l + 1], 0xFFFFFFFFu) << l;
    EXPECT_EQ(outcome.out[4 * l + 2], 0xFFFFFFFFu) << l;
  }
}

TEST(PtxWarp, JumpsByIndex) {
  Kernel1 kernel;
  kernel.body = "and.b32 %r2, %r1, 1;\n"
                "$list: .branchtargets $a, $b;\nbrx.idx %r2, $list;\n"
                "$a:\nmov.b32 %r3, 100;\nbra $end;\n$b:\nmov.b32 %r3, 200;\n"
                "$end:\nst.global.b32 [%rd2], %r3;\n";
  Outcome outcome = run(kernel);
  ASSERT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.out[0], 100u);
  EXPECT_EQ(outcome.out[4], 200u);
}

/// Small whole numbers, exact in every format.
int aAt(unsigned row, unsigned k) { return int(row * 3 + k * 5) % 11 - 5; }
int bAt(unsigned k, unsigned column) { return int(k * 7 + column * 2) % 9 - 4; }

/// Bits of x as f16, bf16 or tf32.
uint32_t bitsOf(int x, const std::string &type) {
  auto bits = std::bit_cast<uint32_t>(float(x));
  if (type == "tf32")
    return bits;
  if (type == "bf16")
    return bits >> 16;
  return x == 0 ? 0
                : (bits >> 16 & 0x8000) | ((bits >> 13 & 0x3FFFF) - 0x1C000);
}

/// One product; each lane's words are taken from a table in constant memory
/// that is laid out as the manual's figures are.
void checkMma(const std::string &type, unsigned k) {
  SCOPED_TRACE(type + " k" + std::to_string(k));
  bool pairs = type != "tf32";
  unsigned perWord = pairs ? 2 : 1, aWords = 16 * k / 32 / perWord,
           bWords = 8 * k / 32 / perWord;
  std::vector<uint32_t> table(32 * (aWords + bWords));
  for (unsigned lane = 0; lane < 32; ++lane) {
    uint32_t *words = &table[lane * (aWords + bWords)];
    unsigned group = lane >> 2, place = lane % 4;
    for (unsigned i = 0; i < aWords * perWord; ++i) {
      // "row = groupID for 0 <= i < 2 || 4 <= i < 6, else groupID + 8",
      // "col = threadID_in_group * 2 + (i & 1), + 8 for i >= 4"; for tf32 "row
      // = groupID for a0 and a2", "col = threadID_in_group, + 4 for a2, a3".
      unsigned row = pairs ? (i < 2 || (i >= 4 && i < 6) ? group : group + 8)
                           : (i % 2 == 0 ? group : group + 8);
      unsigned column = pairs ? place * 2 + (i & 1) + (i >= 4 ? 8 : 0)
                              : place + (i >= 2 ? 4 : 0);
      words[i / perWord] |= bitsOf(aAt(row, column), type)
                            << (16 * (i % perWord));
    }
    for (unsigned i = 0; i < bWords * perWord; ++i) {
      unsigned row =
          pairs ? place * 2 + (i & 1) + (i >= 2 ? 8 : 0) : place + 4 * i;
      words[aWords + i / perWord] |= bitsOf(bAt(row, group), type)
                                     << (16 * (i % perWord));
    }
  }
  std::string values, a, b;
  for (uint32_t word : table)
    values += (values.empty() ? "" : ", ") + std::to_string(word);
  Kernel1 kernel;
  kernel.body = "mov.b64 %rd3, table;\nmad.wide.u32 %rd3, %r1, " +
                std::to_string(4 * (aWords + bWords)) + ", %rd3;\n";
  for (unsigned i = 0; i < aWords + bWords; ++i) {
    std::string name = "%r" + std::to_string(10 + i);
    kernel.body +=
        "ld.const.b32 " + name + ", [%rd3+" + std::to_string(4 * i) + "];\n";
    std::string &list = i < aWords ? a : b;
    list += (list.empty() ? "" : ", ") + name;
  }
  kernel.body += "mov.b32 %r30, 0f3F800000;\nmma.sync.aligned.m16n8k" +
                 std::to_string(k) + ".row.col.f32." + type + "." + type +
                 ".f32 {%r2, %r3, %r4, %r5}, {" + a + "}, {" + b +
                 "}, {%r30, %r30, %r30, %r30};\n"
                 "st.global.v4.b32 [%rd2], {%r2, %r3, %r4, %r5};\n";
  std::string text = kernel.text(), error;
  size_t at = text.find(".visible");
  text.insert(at, ".const .align 4 .b32 table[" + std::to_string(table.size()) +
                      "] = {" + values + "};\n");
  auto program = standin::ptx::parse(text, error);
  ASSERT_TRUE(program) << error;
  alignas(16) float out[128] = {};
  standin::ptx::GlobalMemory memory;
  auto begin = reinterpret_cast<uint64_t>(out);
  memory.setRegions({{begin, sizeof out, "out"}});
  ASSERT_EQ(standin::ptx::launch(*program, "k", 1, 32, {begin}, memory), "");
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned i = 0; i < 4; ++i) {
      unsigned row = (lane >> 2) + (i < 2 ? 0 : 8);
      unsigned column = lane % 4 * 2 + (i & 1);
      int sum = 1;
      for (unsigned j = 0; j < k; ++j)
        sum += aAt(row, j) * bAt(j, column);
      EXPECT_EQ(out[4 * lane + i], float(sum)) << row << ", " << column;
    }
}

TEST(PtxWarp, ProductsOfTiles) {
  for (const char *type : {"f16", "bf16"}) {
    checkMma(type, 16);
    checkMma(type, 8);
  }
  checkMma("tf32", 8);
  checkMma("tf32", 4);
}

} // namespace
