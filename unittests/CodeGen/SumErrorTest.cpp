//===- SumErrorTest.cpp - what long sums lose to rounding -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sums of about a million positive terms of f32 against those in double, over
// every form of loops: rows, columns, everything in one loop or in several,
// with an operand that keeps loops apart. The terms are 1 and a bit, so that a
// long chain of additions drops the bits, always in one direction.
//
//===----------------------------------------------------------------------===//
#include "KernelJit.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace ckopt;
using namespace ckopt::test;

/// A sum, or moments, of `shape` over `axes`, to `result`; `layout`: how the
/// operand lies in memory. If `bias` is not empty, an operand of this shape is
/// added to the terms first.
struct LongSum {
  std::string shape, axes, result, layout, bias;
};

static std::string sumText(const LongSum &sum, const std::string &op) {
  std::string x = "tensor<" + sum.shape + "xf32" +
                  (sum.layout.empty() ? ""
                                      : ", #ckopt.layout<" + sum.layout + ">") +
                  ">",
              y = "tensor<" + sum.result + "f32>", args = "%x: " + x, body,
              in = "%x", results = y;
  if (!sum.bias.empty()) {
    std::string b = "tensor<" + sum.bias + "xf32>";
    args += ", %b: " + b;
    body = "%s = ckopt.add %x, %b : (" + x + ", " + b + ") -> " + x + "\n";
    in = "%s";
  }
  std::string axes = "axes = array<i64: " + sum.axes + ">";
  if (op == "moments") {
    results += ", " + y;
    body += "%0:2 = ckopt.moments " + in + " {" + axes + "} : (" + x +
            ") -> (" + results + ")\n return %0#0, %0#1 : " + results + "\n";
  } else {
    body += "%0 = ckopt.reduce " + op + " " + in + " {" + axes +
            ", keepdims = false} : (" + x + ") -> " + y +
            "\n return %0 : " + y + "\n";
  }
  return kernelText("reduction", args, results, body);
}

/// Returns the largest relative error of the first result.
static double worstError(const LongSum &sum, const std::string &op) {
  KernelJit jit(sumText(sum, op));
  EXPECT_TRUE(jit.ok()) << jit.error();
  if (!jit.ok())
    return INFINITY;
  KernelOptions options;
  options.low = 1;
  options.high = 1 + 0x1p-9;
  std::vector<reference::Tensor> inputs = makeInputs(jit.kernel(), options),
                                 wanted, got = runKernel(jit, inputs);
  EXPECT_TRUE(succeeded(evaluateKernel(jit.kernel(), inputs, {}, wanted)));
  double worst = 0;
  for (int64_t i = 0; i < wanted[0].size(); ++i)
    worst = std::max(worst, std::abs(got[0].get(i) / wanted[0].get(i) - 1));
  return worst;
}

TEST(LongSums, LoseNoMoreThanShortOnes) {
  const LongSum sums[] = {
      {"1000000", "0", "", "", ""},
      {"1000x1003", "0, 1", "", "", ""},
      {"2x500x1003", "1, 2", "2x", "", ""},
      {"70x100000", "1", "70x", "", ""},
      {"1000000x1", "0", "1x", "", ""},
      {"300000x3", "0", "3x", "", ""},
      {"50000x20", "0", "20x", "", ""},
      {"10000x100", "0", "100x", "", ""},
      {"64x4000x70", "1", "64x70x", "", ""},
      {"1000x5000", "0", "5000x", "", ""},
      // Images whose channels have a bias, in both orders.
      {"2x5x320x317", "0, 1, 2, 3", "", "", "1x5x1x1"},
      {"2x5x320x317", "0, 1, 2, 3", "", "[0, 2, 3, 1]", "1x5x1x1"},
      {"2x5x320x317", "0, 2, 3", "5x", "", "1x5x1x1"},
      {"2x5x320x317", "0, 2, 3", "5x", "[0, 2, 3, 1]", "1x5x1x1"},
      {"2x70x120x117", "0, 1, 2, 3", "", "[0, 2, 3, 1]", "1x70x1x1"},
      {"2x3x4x200x217", "0, 2, 3, 4", "3x", "[0, 2, 3, 4, 1]", "2x3x1x200x1"},
  };
  for (const LongSum &sum : sums)
    for (const char *op : {"sum", "moments"})
      EXPECT_LE(worstError(sum, op), 4e-7)
          << op << " of " << sum.shape << " over " << sum.axes << " "
          << sum.layout << (sum.bias.empty() ? "" : " with bias ") << sum.bias;
}
