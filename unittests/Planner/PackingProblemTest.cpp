//===- PackingProblemTest.cpp - packing problems of their own -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Planner/Packing.h"

#include <gtest/gtest.h>

#include <random>

using namespace ckopt::planner;

namespace {

/// Buffers that meet in time lie apart, at multiples of the alignment, within
/// the height.
void expectValid(const std::vector<Buffer> &buffers, const PackResult &result,
                 int64_t alignment) {
  ASSERT_EQ(result.offsets.size(), buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    int64_t low = result.offsets[i], high = low + buffers[i].size;
    EXPECT_GE(low, 0);
    EXPECT_EQ(low % alignment, 0);
    EXPECT_LE(high, result.height);
    for (size_t j = 0; j < i; ++j) {
      if (buffers[j].lifespan.lower >= buffers[i].lifespan.upper ||
          buffers[i].lifespan.lower >= buffers[j].lifespan.upper)
        continue;
      if (buffers[i].size == 0 || buffers[j].size == 0)
        continue;
      EXPECT_TRUE(result.offsets[j] >= high ||
                  result.offsets[j] + buffers[j].size <= low)
          << "buffers " << j << " and " << i;
    }
  }
}

/// A full rectangle cut into buffers at random: it packs to the load.
std::vector<Buffer> guillotine(std::mt19937_64 &rng, int cuts, int64_t width,
                               int64_t height) {
  struct Rectangle {
    int64_t left, right, low, high;
  };
  std::vector<Rectangle> parts{{0, width, 0, height}};
  for (int i = 0; i < cuts; ++i) {
    Rectangle &part = parts[rng() % parts.size()];
    Rectangle rest = part;
    if (rng() % 2 && part.right - part.left > 1) {
      int64_t at =
          part.left + 1 + int64_t(rng() % (part.right - part.left - 1));
      part.right = rest.left = at;
    } else if (part.high - part.low > 1) {
      int64_t at = part.low + 1 + int64_t(rng() % (part.high - part.low - 1));
      part.high = rest.low = at;
    } else {
      continue;
    }
    parts.push_back(rest);
  }
  std::vector<Buffer> buffers;
  for (const Rectangle &part : parts)
    buffers.push_back({{part.left, part.right}, part.high - part.low});
  return buffers;
}

TEST(PackingProblem, RandomProblemsArePackedValidly) {
  std::mt19937_64 rng(5);
  for (int round = 0; round < 40; ++round) {
    std::vector<Buffer> buffers = guillotine(rng, 40, 1000, 5000);
    for (Buffer &buffer : buffers) // No longer a full rectangle.
      buffer.size -= int64_t(rng() % 2) * (buffer.size / 3);
    PackProblem problem{buffers, round % 3 ? 1 : 16};
    PackResult result = pack(problem);
    ASSERT_EQ(result.status, PackStatus::Fits) << result.message;
    EXPECT_LE(result.facts.lowerBound, result.height);
    expectValid(buffers, result, problem.alignment);
  }
}

TEST(PackingProblem, TooSmallACapacityIsProvenByTheLoad) {
  PackResult result =
      pack({.buffers = {{{0, 5}, 50}, {{4, 9}, 50}}, .capacity = 99});
  EXPECT_EQ(result.status, PackStatus::TooMuch);
  EXPECT_EQ(result.proof, PackProof::Load);
  EXPECT_EQ(result.facts.lowerBound, 100);
}

TEST(PackingProblem, BadBuffersAreDiagnosed) {
  auto message = [](std::vector<Buffer> buffers, int64_t alignment = 1) {
    return pack({std::move(buffers), alignment}).message;
  };
  EXPECT_NE(message({{{3, 3}, 1}}), "");
  EXPECT_NE(message({{{0, 3}, -1}}), "");
  int64_t huge = int64_t(1) << 61;
  EXPECT_NE(message({{{0, 3}, huge}, {{5, 6}, huge}}), "");
  EXPECT_NE(message({{{0, 3}, 1}}, /*alignment=*/0), "");
  EXPECT_NE(message({{{0, 3}, 1, 0}}), "");
}

TEST(PackingCsv, ColumnsInAnyOrderAndAsTheyWere) {
  std::string error;
  auto csv = parsePackingCsv("size,name,offset,upper,lower\r\n"
                             "64, a b ,7,4,1\r\n\n32,c,9,-1,-3\n",
                             error);
  ASSERT_TRUE(csv.has_value()) << error;
  ASSERT_EQ(csv->buffers.size(), 2u);
  EXPECT_EQ(csv->buffers[0].lifespan.lower, 1);
  EXPECT_EQ(csv->buffers[0].lifespan.upper, 4);
  EXPECT_EQ(csv->buffers[0].size, 64);
  EXPECT_EQ(csv->buffers[1].lifespan.lower, -3);
  EXPECT_EQ(printPackingCsv(*csv, {0, 128}), "size,name,upper,lower,offset\n"
                                             "64,a b,4,1,0\n"
                                             "32,c,-1,-3,128\n");
}

TEST(PackingCsv, BadFilesAreDiagnosed) {
  auto message = [](const char *text) {
    std::string error;
    EXPECT_FALSE(parsePackingCsv(text, error).has_value()) << text;
    return error;
  };
  EXPECT_NE(message("").find("empty"), std::string::npos);
  EXPECT_NE(message("id,lower,size\n").find("'upper'"), std::string::npos);
  EXPECT_NE(message("size,lower,size,upper\n").find("twice"),
            std::string::npos);
  std::string head = "id,lower,upper,size\n";
  EXPECT_EQ(message((head + "0,1,2\n").c_str()),
            "line 2: 3 fields, but the header has 4");
  EXPECT_NE(message((head + "0,1,2,x\n").c_str()).find("whole number"),
            std::string::npos);
  EXPECT_NE(message((head + "0,2,2,1\n").c_str()).find("not before"),
            std::string::npos);
  EXPECT_NE(message((head + "0,1,2,-5\n").c_str()).find("negative"),
            std::string::npos);
  EXPECT_NE(
      message((head + "0,1,2,99999999999999999999\n").c_str()).find("64 bits"),
      std::string::npos);
  EXPECT_NE(message((head + "0,1,2,2000000000000000000\n"
                            "1,1,2,2000000000000000000\n")
                        .c_str())
                .find("line 3: the sizes"),
            std::string::npos);
}

} // namespace
