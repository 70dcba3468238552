//===- DeviceContractionTest.cpp - our own products and convolutions ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each against the interpreter, with threads in both orders. Shapes are chosen
// for their remainders: tiles, slices of k and parts of k that do not come out
// even, one row, one column, windows that leave the input.
//
//===----------------------------------------------------------------------===//
#include "ContractionText.h"
#include <gtest/gtest.h>

using namespace ckopt;
using namespace ckopt::test;

TEST(DeviceContraction, ProductsOfAllRemainders) {
  // Each pair of two of them once.
  const int64_t ms[] = {1, 7, 64, 70}, ns[] = {1, 10, 65}, ks[] = {1, 16, 37};
  for (size_t i = 0; i < 4; ++i)
    for (size_t j = 0; j < 3; ++j) {
      int64_t m = ms[i], n = ns[j], k = ks[(i + j) % 3];
      checkDeviceKernel(matmul(tensor({m, k}, "f32"), tensor({k, n}, "f32"),
                               tensor({m, n}, "f32")),
                        within(1e-5));
    }
}

TEST(DeviceContraction, TransposedOperands) {
  checkDeviceKernel(matmul(tensor({33, 20}, "f32"), tensor({33, 9}, "f32"),
                           tensor({20, 9}, "f32"), "{transpose_lhs}"),
                    within(1e-5));
  checkDeviceKernel(matmul(tensor({20, 33}, "f32"), tensor({9, 33}, "f32"),
                           tensor({20, 9}, "f32"), "{transpose_rhs}"),
                    within(1e-5));
  // Vectors of neighbours along m, and along k of the second operand.
  checkDeviceKernel(matmul(tensor({36, 68}, "f32"), tensor({12, 36}, "f32"),
                           tensor({68, 12}, "f32"),
                           "{transpose_lhs, transpose_rhs}"),
                    within(1e-5));
}

// As many tiles of 128 as fill a GPU; the last ones are not full.
TEST(DeviceContraction, LargeTiles) {
  checkDeviceKernel(matmul(tensor({128, 120, 13}, "f32"),
                           tensor({128, 13, 116}, "f32"),
                           tensor({128, 120, 116}, "f32")),
                    within(1e-5));
}

// The same of convolutions: forward with few channels in, and the gradient of
// an input with many; the last tile of points and that of channels are not
// full.
TEST(DeviceContraction, LargeTilesOfConvolutions) {
  Conv wide = {{4, 3, 61, 67},
               {116, 3, 3, 3},
               {4, 116, 61, 67},
               {1, 1},
               {1, 1},
               {1, 1},
               {1, 1},
               1,
               true};
  checkDeviceKernel(convTexts(wide, "f32")[0], within(1e-5));
  Conv narrow = {{4, 116, 61, 67},
                 {4, 116, 2, 2},
                 {4, 4, 60, 66},
                 {1, 1},
                 {0, 0},
                 {0, 0},
                 {1, 1},
                 1,
                 true};
  checkDeviceKernel(convTexts(narrow, "f32")[1], within(1e-5));
}

// k is cut into parts, whose sums a second launch adds.
TEST(DeviceContraction, LongSumsAreCutByShape) {
  checkDeviceKernel(matmul(tensor({5, 3000}, "f32"), tensor({3000, 9}, "f32"),
                           tensor({5, 9}, "f32")),
                    within(1e-3));
}

TEST(DeviceContraction, BatchesAndBroadcasts) {
  checkDeviceKernel(matmul(tensor({2, 3, 5, 7}, "f32"),
                           tensor({2, 3, 7, 9}, "f32"),
                           tensor({2, 3, 5, 9}, "f32")));
  checkDeviceKernel(matmul(tensor({2, 3, 5, 7}, "f32"), tensor({7, 9}, "f32"),
                           tensor({2, 3, 5, 9}, "f32")));
  std::string heads = "#ckopt.layout<[0, 2, 1, 3]>";
  checkDeviceKernel(matmul(tensor({2, 3, 5, 7}, "f32", heads),
                           tensor({2, 3, 7, 9}, "f32"),
                           tensor({2, 3, 5, 9}, "f32")));
}

TEST(DeviceContraction, Doubles) {
  checkDeviceKernel(matmul(tensor({9, 70}, "f64"), tensor({70, 6}, "f64"),
                           tensor({9, 6}, "f64")));
}

// Sums of halves are kept in f32 and rounded once. Even and odd rows, vectors
// along k, m and n, slices that are not full, parts of k, tiles of 128.
TEST(DeviceContraction, Halves) {
  for (std::string type : {"f16", "bf16"}) {
    checkDeviceKernel(matmul(tensor({9, 70}, type), tensor({70, 6}, type),
                             tensor({9, 6}, type)));
    checkDeviceKernel(matmul(tensor({70, 37}, type), tensor({37, 65}, type),
                             tensor({70, 65}, type)));
    checkDeviceKernel(matmul(tensor({72, 64}, type), tensor({40, 72}, type),
                             tensor({64, 40}, type),
                             "{transpose_lhs, transpose_rhs}"));
    checkDeviceKernel(matmul(tensor({24, 1040}, type), tensor({1040, 16}, type),
                             tensor({24, 16}, type)));
  }
  checkDeviceKernel(matmul(tensor({128, 120, 13}, "bf16"),
                           tensor({128, 13, 116}, "bf16"),
                           tensor({128, 120, 116}, "bf16")));
}

/// The forward op and both gradients.
static void checkConv(const Conv &c, const std::string &type = "f32") {
  for (const std::string &text : convTexts(c, type))
    checkDeviceKernel(text, within(1e-4, 1e-5));
}

TEST(DeviceContraction, Convolutions) {
  for (bool last : {false, true}) {
    checkConv({{2, 3, 9, 7},
               {5, 3, 3, 3},
               {2, 5, 9, 7},
               {1, 1},
               {1, 1},
               {1, 1},
               {1, 1},
               1,
               last});
    checkConv({{2, 4, 9, 8},
               {6, 4, 3, 2},
               {2, 6, 4, 4},
               {2, 2},
               {0, 1},
               {0, 0},
               {1, 1},
               1,
               last});
    checkConv({{1, 4, 11, 11},
               {6, 2, 3, 3},
               {1, 6, 4, 4},
               {2, 2},
               {0, 0},
               {0, 0},
               {2, 2},
               2,
               last});
    checkConv({{2, 6, 5, 5},
               {6, 1, 3, 3},
               {2, 6, 5, 5},
               {1, 1},
               {1, 1},
               {1, 1},
               {1, 1},
               6,
               last}); // by depth
    checkConv({{2, 3, 17}, {4, 3, 5}, {2, 4, 6}, {3}, {2}, {2}, {1}, 1, last});
  }
}

TEST(DeviceContraction, OneByOne) {
  checkConv({{2, 8, 6, 6},
             {4, 8, 1, 1},
             {2, 4, 6, 6},
             {1, 1},
             {0, 0},
             {0, 0},
             {1, 1},
             1,
             true});
  // 16 points an image: vectors of neighbouring points.
  checkConv({{2, 3, 4, 4},
             {5, 3, 1, 1},
             {2, 5, 4, 4},
             {1, 1},
             {0, 0},
             {0, 0},
             {1, 1},
             1,
             false});
}

// Vectors of neighbouring channels, in groups, with windows beyond the input.
TEST(DeviceContraction, ChannelsInVectors) {
  for (const char *type : {"f32", "bf16"})
    checkConv({{2, 16, 5, 4},
               {16, 8, 3, 3},
               {2, 16, 5, 4},
               {1, 1},
               {1, 1},
               {1, 1},
               {1, 1},
               2,
               true},
              type);
}
