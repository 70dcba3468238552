//===- MatmulPrecisionTest.cpp - products by TF32, bf16 and f16 -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How products of f32 round their operands, number by number. That sums and
// addresses are right, test/Kernels/product-precision.mlir shows.
//
//===----------------------------------------------------------------------===//
#include "KernelJit.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

using namespace ckopt;
using namespace ckopt::test;
using runtime::ProductPrecision;

/// Each number times one, by `precision`.
static reference::Tensor rounded(const std::vector<double> &numbers,
                                 ProductPrecision precision) {
  std::string t = "tensor<" + std::to_string(numbers.size()) + "x1xf32>";
  std::string text =
      kernelText("library", "%a: " + t + ", %b: tensor<1x1xf32>", t,
                 "%0 = ckopt.matmul %a, %b : (" + t + ", tensor<1x1xf32>) -> " +
                     t + "\n return %0 : " + t + "\n");
  auto up = KernelJit::onDevice(text, precision);
  auto down = up->reversed();
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
  const double t = 0x1p-10; // the last bit kept of 1
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
}

// A requested precision changes results, and only f32 keeps all bits.
TEST(MatmulPrecision, DiffersFromF32) {
  std::vector<double> numbers{1 + 0x1p-12, 1 + 0x1p-8};
  EXPECT_EQ(rounded(numbers, ProductPrecision::TF32).real(0), 1);
  EXPECT_EQ(rounded(numbers, ProductPrecision::F32).real(0), numbers[0]);
  EXPECT_EQ(rounded(numbers, ProductPrecision::TF32).real(1), numbers[1]);
}
