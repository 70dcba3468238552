//===- MatmulPrecisionTest.cpp - products by TF32, bf16 and f16 -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products and convolutions of f32 that round their operands, in block form,
// against the interpreter on operands rounded by LLVM's own floats: what
// remains is the rounding of f32 sums. Shapes as in DeviceContractionTest.
//
//===----------------------------------------------------------------------===//
#include "ContractionText.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

using namespace ckopt;
using namespace ckopt::test;
using runtime::ProductPrecision;

static constexpr ProductPrecision kRounding[] = {
    ProductPrecision::TF32, ProductPrecision::BF16, ProductPrecision::F16};

static KernelOptions by(ProductPrecision precision, double absolute = 1e-5,
                        double relative = 2e-6) {
  KernelOptions options = within(absolute, relative);
  options.precision = precision;
  return options;
}

static std::string product(int64_t m, int64_t n, int64_t k) {
  return matmul(tensor({m, k}, "f32"), tensor({k, n}, "f32"),
                tensor({m, n}, "f32"));
}

// Tiles, warps' parts and slices of k that are not full, and such that are.
TEST(MatmulPrecision, ProductsOfAllRemainders) {
  for (ProductPrecision precision : kRounding) {
    for (auto [m, n, k] : {std::array<int64_t, 3>{1, 1, 1},
                           {7, 10, 16},
                           {64, 65, 37},
                           {70, 1, 40},
                           {64, 64, 64},
                           {68, 72, 100}})
      checkDeviceKernel(product(m, n, k), by(precision));
  }
}

// Either operand lies along k or across it, with vectors and without; the two
// lie differently in shared memory.
TEST(MatmulPrecision, TransposedOperands) {
  for (ProductPrecision precision : kRounding)
    for (int64_t k : {33, 36})
      for (const char *attrs : {"{transpose_lhs}", "{transpose_rhs}",
                                "{transpose_lhs, transpose_rhs}"}) {
        bool lhs = std::string(attrs).find("lhs") != std::string::npos,
             rhs = std::string(attrs).find("rhs") != std::string::npos;
        checkDeviceKernel(
            matmul(lhs ? tensor({k, 20}, "f32") : tensor({20, k}, "f32"),
                   rhs ? tensor({12, k}, "f32") : tensor({k, 12}, "f32"),
                   tensor({20, 12}, "f32"), attrs),
            by(precision));
      }
}

// Tiles of 128, the last ones not full; rows with vectors.
TEST(MatmulPrecision, LargeTiles) {
  for (ProductPrecision precision : kRounding)
    checkDeviceKernel(matmul(tensor({128, 120, 12}, "f32"),
                             tensor({128, 12, 116}, "f32"),
                             tensor({128, 120, 116}, "f32")),
                      by(precision));
}

// k is cut into parts, whose sums a second launch adds in f32.
TEST(MatmulPrecision, LongSumsAreCutByShape) {
  for (ProductPrecision precision : kRounding)
    checkDeviceKernel(product(5, 9, 3000), by(precision, 1e-3));
}

TEST(MatmulPrecision, BatchesAndBroadcasts) {
  for (ProductPrecision precision : kRounding)
    checkDeviceKernel(
        matmul(tensor({2, 3, 5, 7}, "f32", "#ckopt.layout<[0, 2, 1, 3]>"),
               tensor({7, 9}, "f32"), tensor({2, 3, 5, 9}, "f32")),
        by(precision));
}

// Strides, padding, groups, dilations, channels outside and inside; the last
// has vectors of channels in every operand. f16 takes the path of bf16.
TEST(MatmulPrecision, Convolutions) {
  std::vector<Conv> convolutions;
  for (bool last : {false, true}) {
    convolutions.push_back({{2, 4, 9, 8},
                            {6, 2, 3, 2},
                            {2, 6, 4, 4},
                            {2, 2},
                            {0, 1},
                            {0, 0},
                            {1, 1},
                            2,
                            last});
    convolutions.push_back(
        {{2, 3, 17}, {4, 3, 5}, {2, 4, 11}, {1}, {2}, {0}, {2}, 1, last});
  }
  convolutions.push_back({{2, 16, 5, 4},
                          {16, 8, 3, 3},
                          {2, 16, 5, 4},
                          {1, 1},
                          {1, 1},
                          {1, 1},
                          {1, 1},
                          2,
                          true});
  for (ProductPrecision precision :
       {ProductPrecision::TF32, ProductPrecision::BF16})
    for (const Conv &conv : convolutions)
      for (const std::string &text : convTexts(conv, "f32"))
        checkDeviceKernel(text, by(precision, 1e-4, 1e-5));
}

// Products of f64 and of halves have no use for the precision: same code.
TEST(MatmulPrecision, OtherTypesAreNotRounded) {
  for (const char *type : {"f64", "bf16"}) {
    std::string text = matmul(tensor({9, 70}, type), tensor({70, 6}, type),
                              tensor({9, 6}, type));
    checkDeviceKernel(text, by(ProductPrecision::F16));
  }
}

/// Each number times one, by `precision`.
static reference::Tensor rounded(const std::vector<double> &numbers,
                                 ProductPrecision precision) {
  std::string text = product(int64_t(numbers.size()), 1, 1);
  auto up = KernelJit::onDevice(text, /*descending=*/false, precision);
  auto down = KernelJit::onDevice(text, /*descending=*/true, precision);
  if (!up->ok() || !down->ok())
    return {};
  mlir::func::FuncOp kernel = up->kernel();
  auto typeOf = [](mlir::Type type) {
    return llvm::cast<mlir::RankedTensorType>(type);
  };
  std::vector<float> a(numbers.begin(), numbers.end()), b{1}, c(numbers.size());
  void *args[] = {a.data(), b.data(), c.data()};
  up->launch(0, args, nullptr, nullptr);
  reference::Tensor result(typeOf(kernel.getResultTypes()[0]));
  for (size_t i = 0; i < c.size(); ++i)
    result.real(int64_t(i)) = c[i];
  std::vector<float> ascending = c;
  down->launch(0, args, nullptr, nullptr);
  EXPECT_EQ(memcmp(ascending.data(), c.data(), c.size() * 4), 0);
  return result;
}

static void expectRounded(ProductPrecision precision,
                          const std::vector<std::pair<double, double>> &pairs) {
  std::vector<double> numbers;
  for (auto [from, to] : pairs)
    numbers.push_back(from);
  reference::Tensor got = rounded(numbers, precision);
  ASSERT_TRUE(bool(got));
  for (auto [i, pair] : llvm::enumerate(pairs)) {
    double x = got.real(int64_t(i));
    EXPECT_TRUE(x == pair.second || (std::isnan(x) && std::isnan(pair.second)))
        << runtime::productPrecisionName(precision) << ": " << pair.first
        << " became " << x << ", not " << pair.second;
  }
}

// Ties, the largest numbers, infinities and NaN, one rounding at a time.
TEST(MatmulPrecision, RoundsAsItSays) {
  const double inf = std::numeric_limits<double>::infinity(),
               nan = std::numeric_limits<double>::quiet_NaN(),
               largest = std::numeric_limits<float>::max();
  const double t = 0x1p-10, b = 0x1p-7; // the last bit kept of 1
  expectRounded(ProductPrecision::TF32, {{1, 1},
                                         {1 + t / 2, 1 + t}, // away from zero
                                         {-1 - t / 2, -1 - t},
                                         {1 + 3 * t / 2, 1 + 2 * t},
                                         {1 + t / 2 - 0x1p-23, 1},
                                         {2 - 0x1p-23, 2},
                                         {0x1.ffcp127, 0x1.ffcp127},
                                         {0x1.ffdffep127, 0x1.ffcp127},
                                         {largest, inf},
                                         {-largest, -inf},
                                         {inf, inf},
                                         {nan, nan},
                                         {0, 0}});
  expectRounded(ProductPrecision::BF16, {{1 + b / 2, 1}, // to even
                                         {1 + 3 * b / 2, 1 + 2 * b},
                                         {-1 - b / 2 - 0x1p-23, -1 - b},
                                         {largest, inf},
                                         {-inf, -inf},
                                         {nan, nan}});
  expectRounded(ProductPrecision::F16, {{1 + t / 2, 1},
                                        {1 + 3 * t / 2, 1 + 2 * t},
                                        {65519, 65504},
                                        {65520, inf},
                                        {-1e30, -inf},
                                        {0x1p-24, 0x1p-24}, // a denormal
                                        {0x1p-26, 0},
                                        {nan, nan}});
}

// What is asked for changes results, and f32 alone keeps all bits.
TEST(MatmulPrecision, DiffersFromF32) {
  std::vector<double> numbers{1 + 0x1p-12, 1 + 0x1p-8};
  for (ProductPrecision precision : kRounding)
    EXPECT_EQ(rounded(numbers, precision).real(0), 1);
  EXPECT_EQ(rounded(numbers, ProductPrecision::F32).real(0), numbers[0]);
  EXPECT_EQ(rounded(numbers, ProductPrecision::TF32).real(1), numbers[1]);
  EXPECT_EQ(rounded(numbers, ProductPrecision::BF16).real(1), 1);
}
