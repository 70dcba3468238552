//===- SelectionKernelTest.cpp - running sums, the k best -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "KernelJit.h"
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

using namespace ckopt;
using namespace ckopt::test;

static std::string tensor(const std::string &type) {
  return "tensor<" + type + ">";
}

//===----------------------------------------------------------------------===//
// cumulative_sum
//===----------------------------------------------------------------------===//

static std::string scan(const std::string &type, int axis,
                        const std::string &flags = "") {
  return kernelText(
      "structured", "%x: " + tensor(type), tensor(type),
      "%0 = ckopt.cumulative_sum %x {axis = " + std::to_string(axis) +
          " : i64" + flags + "} : (" + tensor(type) + ") -> " + tensor(type) +
          "\n return %0 : " + tensor(type) + "\n");
}

TEST(ScanKernel, ShapesAndForms) {
  KernelOptions options;
  options.absolute = 1e-5;
  options.intLow = -100;
  options.intHigh = 100;
  for (std::string flags : {"", ", exclusive", ", reverse"})
    checkKernel(scan("9x37xf32", 0, flags), options);
  checkKernel(scan("9x37xf32", 1, ", exclusive, reverse"), options);
  checkKernel(scan("3x9x17xf64", 1), options);
  checkKernel(scan("7x5xi8", 0), options);
  for (const char *type : {"70xi64", "1xf32", "0xf32"})
    checkKernel(scan(type, 0, ", exclusive"), options);
  checkKernel(scan("4x0x5xf32", 2), options);
  checkKernel(scan("4x0x5xf32", 1), options);
  checkKernel(scan("4x5x3x2xui32", 1), options);
  checkKernel(scan("5x33xf16", 0), options);
  checkKernel(scan("5x33xf16", 1), options);
}

// Sums of halves are carried in f32: a sum of ones in f16 would stop at 2,048.
TEST(ScanKernel, HalvesAreSummedInFloat) {
  mlir::MLIRContext context;
  mlir::Builder b(&context);
  KernelOptions options;
  options.given = {
      {0, reference::Tensor::splat(
              mlir::RankedTensorType::get({4096}, b.getF16Type()), 1)}};
  std::vector<reference::Tensor> got =
      checkKernel(scan("4096xf16", 0), options);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].real(4095), 4096);
}

//===----------------------------------------------------------------------===//
// top_k
//===----------------------------------------------------------------------===//

static std::string topK(const std::string &type, int axis, int k,
                        const std::string &result,
                        const std::string &flags = "") {
  return kernelText("structured", "%x: " + tensor(type), tensor(result),
                    "%0 = ckopt.top_k %x {axis = " + std::to_string(axis) +
                        " : i64, k = " + std::to_string(k) + " : i64" + flags +
                        "} : (" + tensor(type) + ") -> " + tensor(result) +
                        "\n return %0 : " + tensor(result) + "\n");
}

// Integers of few values have ties: repeated passes and the heap, in rows and
// columns, must order them by index.
TEST(TopKKernel, EveryK) {
  KernelOptions options;
  options.intLow = -3;
  options.intHigh = 3;
  for (int k : {1, 8, 9, 20}) {
    std::string n = std::to_string(k);
    checkKernel(topK("3x20xi32", 1, k, "3x" + n + "xi64"), options);
    checkKernel(topK("20x18xi32", 0, k, n + "x18xi64", ", last"), options);
  }
  for (int k : {2, 19}) {
    std::string n = std::to_string(k);
    checkKernel(topK("3x20xi32", 1, k, "3x" + n + "xi64", ", smallest"),
                options);
    checkKernel(
        topK("2x20x3xi64", 1, k, "2x" + n + "x3xi64", ", last, smallest"),
        options);
  }
  checkKernel(topK("3x20xf32", 1, 0, "3x0xi64"), options);
}

TEST(TopKKernel, Types) {
  int k = 2;
  for (const char *element :
       {"f64", "f16", "bf16", "i64", "i16", "i8", "ui64", "ui32", "ui8"}) {
    KernelOptions options;
    options.intLow = -1000;
    options.intHigh = 1000;
    k = k == 2 ? 12 : 2; // by a heap, by passes
    checkKernel(topK("2x40x" + std::string(element), 1, k,
                     "2x" + std::to_string(k) + "xi64"),
                options);
  }
}

// Rows of any length, over blocks of threads and short ones.
TEST(TopKKernel, Lengths) {
  for (const char *n : {"1", "17", "1000"})
    checkKernel(topK("5x" + std::string(n) + "xf32", 1, 1, "5x1xi64"));
  checkKernel(topK("17x5xf32", 0, 1, "1x5xi64"));
  checkKernel(topK("2x300xf32", 1, 100, "2x100xi64", ", smallest"));
}

// What numbers alone do not show: NaN is larger than infinity, zeros of both
// signs are equal, the smallest integers are elements like others.
TEST(TopKKernel, SpecialNumbers) {
  mlir::MLIRContext context;
  mlir::Builder b(&context);
  constexpr double inf = std::numeric_limits<double>::infinity();
  const std::vector<double> reals{-0.0, 0.0, NAN, inf,   -inf, 1e-7, -NAN,
                                  0.0,  5,   NAN, -1e-7, inf,  -inf, -0.0};
  constexpr int64_t low = std::numeric_limits<int64_t>::min(),
                    high = std::numeric_limits<int64_t>::max();
  const std::vector<int64_t> ints{low, high, 0,   low, -1,   high, low,
                                  1,   -1,   low, 0,   high, 5,    low};
  auto type = [](mlir::Type element) {
    return mlir::RankedTensorType::get({14}, element);
  };
  auto isUnsigned =
      mlir::IntegerType::get(&context, 64, mlir::IntegerType::Unsigned);
  for (auto &[name, given] :
       {std::pair("f32", reference::Tensor(type(b.getF32Type()), reals)),
        {"f64", reference::Tensor(type(b.getF64Type()), reals)},
        {"i64", reference::Tensor(type(b.getI64Type()), ints)},
        {"ui64", reference::Tensor(type(isUnsigned), ints)}}) {
    KernelOptions options;
    options.given = {{0, given}};
    std::string x = std::string("14x") + name;
    checkKernel(topK(x, 0, 14, "14xi64"), options);
    checkKernel(topK(x, 0, 7, "7xi64", ", smallest"), options);
  }
}

// The indices may not take the bytes of the elements that are still compared.
TEST(TopKKernel, NotInPlace) {
  for (int k : {4, 12}) {
    std::string type = std::to_string(k) + "xi64";
    KernelJit jit(topK(type, 0, k, type));
    ASSERT_TRUE(jit.ok());
    EXPECT_TRUE(jit.code().reuse.empty());
    EXPECT_EQ(jit.code().workspaceBytes, 0);
  }
}
