//===- ReductionKernelTest.cpp - sums, means, moments ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "KernelJit.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace ckopt;
using namespace ckopt::test;

static std::string reduce(const std::string &kind, const std::string &from,
                          const std::string &axes, const std::string &to,
                          bool keepdims = false) {
  std::string x = "tensor<" + from + ">", y = "tensor<" + to + ">";
  return kernelText(
      "reduction", "%x: " + x, y,
      "%0 = ckopt.reduce " + kind + " %x {axes = array<i64: " + axes +
          ">, keepdims = " + (keepdims ? "true" : "false") + "} : (" + x +
          ") -> " + y + "\n return %0 : " + y + "\n");
}

TEST(ReductionKernel, Rows) {
  KernelOptions options;
  options.absolute = 2e-5;
  for (const char *n :
       {"1", "3", "16", "17", "63", "64", "65", "130", "1000"}) {
    std::string size = n;
    checkKernel(reduce("sum", "5x" + size + "xf32", "1", "5xf32"), options);
    checkKernel(reduce("max", "5x" + size + "xf32", "1", "5x1xf32", true));
    checkKernel(reduce("mean", "70x" + size + "xf64", "1", "70xf64"));
  }
  checkKernel(reduce("min", "3x4x20xf32", "2", "3x4xf32"));
  checkKernel(reduce("prod", "3x20xf32", "1", "3xf32"));
  checkKernel(reduce("sum", "3x20xi64", "1", "3xi64"));
  checkKernel(reduce("max", "3x20xi32", "1", "3xi32"));
  checkKernel(reduce("sum", "3x4x5x6xf32", "1,3", "3x5xf32"));
  checkKernel(reduce("sum", "3x4x5x6xf32", "1,2,3", "3xf32"));
}

TEST(ReductionKernel, Columns) {
  KernelOptions options;
  options.absolute = 2e-5;
  for (const char *n : {"1", "5", "16", "37", "64", "100", "200"}) {
    std::string size = n;
    checkKernel(reduce("sum", "50x" + size + "xf32", "0", size + "xf32"),
                options);
    checkKernel(
        reduce("min", "9x" + size + "xf64", "0", "1x" + size + "xf64", true));
  }
  checkKernel(reduce("sum", "3x40x5x33xf32", "0,2", "40x33xf32"), options);
  checkKernel(reduce("mean", "3x40x33xf32", "1", "3x33xf32"), options);
}

// Long reductions run in chunks with partial results.
TEST(ReductionKernel, Chunks) {
  KernelOptions options;
  options.absolute = 1e-2;
  options.relative = 2e-5;
  checkKernel(reduce("sum", "300000xf32", "0", "f32"), options);
  checkKernel(reduce("mean", "200001xf32", "0", "1xf32", true), options);
  checkKernel(reduce("max", "500x700xf32", "0,1", "f32"), options);
  checkKernel(reduce("sum", "5000x40xf32", "0", "40xf32"), options);
  checkKernel(reduce("sum", "9000x3xf64", "0", "3xf64"), options);
  KernelJit jit(reduce("sum", "5000x40xf32", "0", "40xf32"));
  EXPECT_EQ(jit.code().stages.size(), 2u);
  EXPECT_GT(jit.code().workspaceBytes, 0);
}

static std::string moments(const std::string &x, const std::string &axes,
                           const std::string &y) {
  return kernelText("reduction", "%x: " + x, y + ", " + y,
                    "%0:2 = ckopt.moments %x {axes = array<i64: " + axes +
                        ">} : (" + x + ") -> (" + y + ", " + y +
                        ")\n return %0#0, %0#1 : " + y + ", " + y + "\n");
}

// Means far from zero must not cancel the variance away.
TEST(ReductionKernel, Moments) {
  KernelOptions options;
  options.absolute = 1e-5;
  options.relative = 1e-4;
  std::string nhwc = ", #ckopt.layout<[0, 2, 3, 1]>>";
  for (double offset : {0.0, 100.0}) {
    options.low = offset - 1;
    options.high = offset + 1;
    checkKernel(
        moments("tensor<4x20x7x7xf32" + nhwc, "0,2,3", "tensor<20xf32>"),
        options);
    checkKernel(moments("tensor<4x20x7x7xf32>", "0,2,3", "tensor<20xf32>"),
                options);
    checkKernel(
        moments("tensor<8x24x40x40xf32" + nhwc, "0,2,3", "tensor<24xf32>"),
        options);
    checkKernel(moments("tensor<8x6x40x40xf32>", "0,2,3", "tensor<6xf32>"),
                options);
    checkKernel(moments("tensor<5x33xf64>", "1", "tensor<5xf64>"), options);
    checkKernel(moments("tensor<100000xf32>", "0", "tensor<f32>"), options);
  }
}

// Several reductions with a shared prologue: the batch norm backward pair.
TEST(ReductionKernel, SharedLoopsAndPrologue) {
  std::string x = "tensor<4x20x6x6xf32, #ckopt.layout<[0, 2, 3, 1]>>",
              c = "tensor<20x1x1xf32>", y = "tensor<20xf32>";
  KernelOptions options;
  options.absolute = 1e-4;
  checkKernel(
      kernelText(
          "reduction", "%g: " + x + ", %x: " + x + ", %m: " + c, y + ", " + y,
          "%0 = ckopt.sub %x, %m : (" + x + ", " + c + ") -> " + x +
              "\n%1 = ckopt.mul %g, %0 : (" + x + ", " + x + ") -> " + x +
              "\n%2 = ckopt.reduce sum %1 {axes = array<i64: 0, 2, 3>, "
              "keepdims = false} : (" +
              x + ") -> " + y +
              "\n%3 = ckopt.reduce sum %g {axes = array<i64: 0, 2, 3>, "
              "keepdims = false} : (" +
              x + ") -> " + y + "\n return %2, %3 : " + y + ", " + y + "\n"),
      options);
}

// DenseNet: the statistics of a concatenation of channels.
TEST(ReductionKernel, Concatenation) {
  std::string l = ", #ckopt.layout<[0, 2, 3, 1]>>";
  std::string a = "tensor<2x64x5x5xf32" + l, b = "tensor<2x32x5x5xf32" + l,
              c = "tensor<2x20x5x5xf32" + l, x = "tensor<2x116x5x5xf32" + l,
              y = "tensor<116xf32>";
  KernelOptions options;
  options.absolute = 1e-5;
  checkKernel(kernelText("reduction", "%a: " + a + ", %b: " + b + ", %c: " + c,
                         y + ", " + y,
                         "%0 = ckopt.concat %a, %b, %c {axis = 1 : i64} : (" +
                             a + ", " + b + ", " + c + ") -> " + x +
                             "\n%1:2 = ckopt.moments %0 {axes = array<i64: 0, "
                             "2, 3>} : (" +
                             x + ") -> (" + y + ", " + y +
                             ")\n return %1#0, %1#1 : " + y + ", " + y + "\n"),
              options);
}

// What depends on the channel alone is computed once a range.
TEST(ReductionKernel, ColumnCache) {
  std::string x = "tensor<2x100x5x5xf32, #ckopt.layout<[0, 2, 3, 1]>>",
              c = "tensor<100x1x1xf32>", y = "tensor<100xf32>";
  KernelOptions options;
  options.low = 0.1;
  options.relative = 1e-5;
  std::string body = "%0 = ckopt.rsqrt %m : (" + c + ") -> " + c +
                     "\n%1 = ckopt.mul %x, %0 : (" + x + ", " + c + ") -> " +
                     x + "\n";
  checkKernel(kernelText("reduction", "%x: " + x + ", %m: " + c, y,
                         body +
                             "%2 = ckopt.reduce sum %1 {axes = array<i64: "
                             "0, 2, 3>, keepdims = false} : (" +
                             x + ") -> " + y + "\n return %2 : " + y + "\n"),
              options);
  checkKernel(kernelText("elementwise", "%x: " + x + ", %m: " + c, x,
                         body + " return %1 : " + x + "\n"),
              options);
}

TEST(ReductionKernel, EmptyAndDegenerate) {
  checkKernel(reduce("sum", "0x4xf32", "0", "4xf32"));
  checkKernel(reduce("sum", "4x0xf32", "1", "4xf32"));
  checkKernel(reduce("prod", "0xf32", "0", "f32"));
  checkKernel(reduce("sum", "4x0xf32", "0", "0xf32"));
  checkKernel(reduce("sum", "1x1xf32", "0,1", "f32"));
  checkKernel(reduce("sum", "1x7xf32", "0", "7xf32"));
  checkKernel(reduce("mean", "5x1xf32", "1", "5x1xf32", true));
}

TEST(ReductionKernel, HalfTypes) {
  KernelOptions options;
  checkKernel(reduce("sum", "5x100xf16", "1", "5xf16"), options);
  checkKernel(reduce("mean", "50x100xbf16", "0", "100xbf16"), options);
}

// max and min give NaN where one is, in every lane and accumulator.
TEST(ReductionKernel, NaNs) {
  for (int at : {0, 15, 16, 63, 64, 90, 99}) {
    for (const char *kind : {"max", "min"}) {
      KernelJit jit(reduce(kind, "1x100xf32", "1", "1xf32"));
      ASSERT_TRUE(jit.ok());
      std::vector<float> x(100, 1.0f), y(1);
      x[at] = NAN;
      void *args[] = {x.data(), y.data()};
      jit.run(args, nullptr, nullptr);
      EXPECT_TRUE(std::isnan(y[0])) << kind << " with NaN at " << at;
    }
  }
}
