//===- RowKernelTest.cpp - softmax, layer norm, cross entropy -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "KernelJit.h"
#include <gtest/gtest.h>

using namespace ckopt;
using namespace ckopt::test;
using reference::Tensor;

static std::string softmax(const std::string &op, const std::string &type,
                           int axis, bool grad) {
  std::string t = "tensor<" + type + ">";
  std::string args = grad ? "%g: " + t + ", %x: " + t : "%x: " + t;
  std::string types = grad ? t + ", " + t : t;
  return kernelText("row", args, t,
                    "%0 = ckopt." + op + (grad ? " %g, %x" : " %x") +
                        " {axis = " + std::to_string(axis) + " : i64} : (" +
                        types + ") -> " + t + "\n return %0 : " + t + "\n");
}

TEST(RowKernel, Softmax) {
  KernelOptions options;
  options.low = -5;
  options.high = 5;
  options.relative = 1e-5;
  for (const char *type : {"5x1xf32", "5x10xf32", "3x16xf32", "3x100xf32",
                           "2x3x65xf32", "2x1000xf32", "5x33xf64"}) {
    std::string text = type;
    int axis = int(llvm::StringRef(text).count('x')) - 1;
    for (const char *op : {"softmax", "log_softmax"})
      checkKernel(softmax(op, type, axis, false), options);
    for (const char *op : {"softmax_grad", "log_softmax_grad"}) {
      KernelOptions small = options;
      small.low = -1;
      small.high = 1;
      small.absolute = 1e-4;
      checkKernel(softmax(op, type, axis, true), small);
    }
  }
}

// The axis is not the innermost dimension: lanes run over columns.
TEST(RowKernel, SoftmaxAlongChannels) {
  KernelOptions options;
  options.relative = 1e-5;
  for (const char *op : {"softmax", "log_softmax"}) {
    checkKernel(softmax(op, "2x10x5x5xf32", 1, false), options);
    checkKernel(softmax(op, "2x10x37xf64", 1, false), options);
    checkKernel(softmax(op, "7x3xf32", 0, false), options);
  }
  checkKernel(
      softmax("softmax", "2x20x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>", 1, false),
      options);
  checkKernel(softmax("softmax_grad", "2x10x37xf32", 1, true), options);
}

// Attention's mask and scale inside of the softmax kernel.
TEST(RowKernel, SoftmaxWithPrologue) {
  std::string t = "tensor<2x3x8x40xf32>", m = "tensor<8x40xf32>";
  KernelOptions options;
  options.relative = 1e-5;
  checkKernel(kernelText("row", "%x: " + t + ", %m: " + m, t,
                         "%s = ckopt.constant dense<0.125> : tensor<f32>\n"
                         "%0 = ckopt.mul %x, %s : (" +
                             t + ", tensor<f32>) -> " + t +
                             "\n%1 = ckopt.add %0, %m : (" + t + ", " + m +
                             ") -> " + t +
                             "\n%2 = ckopt.softmax %1 {axis = 3 : i64} : (" +
                             t + ") -> " + t + "\n return %2 : " + t + "\n"),
              options);
}

TEST(RowKernel, LayerNorm) {
  KernelOptions options;
  options.relative = 1e-4;
  options.absolute = 2e-5;
  for (const char *n : {"3", "16", "70", "768"})
    for (const char *type : {"f32", "f64"}) {
      std::string row = std::string(n) + "x" + type,
                  x = "tensor<4x5x" + row + ">", s = "tensor<" + row + ">",
                  m = std::string("tensor<4x5x") + type + ">";
      checkKernel(
          kernelText("row", "%x: " + x + ", %s: " + s + ", %b: " + s,
                     x + ", " + m + ", " + m,
                     "%0:3 = ckopt.layer_norm %x scale %s bias %b {axis = 2 : "
                     "i64, epsilon = 1.0e-5 : f64} : (" +
                         x + ", " + s + ", " + s + ") -> (" + x + ", " + m +
                         ", " + m + ")\n return %0#0, %0#1, %0#2 : " + x +
                         ", " + m + ", " + m + "\n"),
          options);
      KernelOptions grad = options;
      grad.low = 0.1;
      grad.absolute = 1e-4;
      checkKernel(
          kernelText(
              "row",
              "%g: " + x + ", %x: " + x + ", %m: " + m + ", %r: " + m +
                  ", %s: " + s,
              x,
              "%0 = ckopt.layer_norm_grad %g, %x, %m, %r scale %s {axis = 2 : "
              "i64} : (" +
                  x + ", " + x + ", " + m + ", " + m + ", " + s + ") -> " + x +
                  "\n return %0 : " + x + "\n"),
          grad);
    }
  // Rows of two dimensions, no scale.
  std::string x = "tensor<4x5x33xf32>", m = "tensor<4xf32>";
  checkKernel(kernelText("row", "%x: " + x, x,
                         "%0:3 = ckopt.layer_norm %x {axis = 1 : i64, epsilon "
                         "= 1.0e-5 : f64} : (" +
                             x + ") -> (" + x + ", " + m + ", " + m +
                             ")\n return %0#0 : " + x + "\n"),
              options);
}

static void crossEntropy(const std::string &shape, const std::string &outer,
                         int axis, const std::string &layout = "") {
  std::string x = "tensor<" + shape + "xf32" + layout + ">",
              t = "tensor<" + outer + "xi64>", y = "tensor<" + outer + "xf32>";
  std::string at =
      "{axis = " + std::to_string(axis) + " : i64, ignore_index = 2 : i64}";
  KernelOptions options;
  options.relative = 2e-5;
  options.intHigh = 5;
  options.low = -4;
  options.high = 4;
  checkKernel(kernelText("row", "%x: " + x + ", %t: " + t, y + ", " + y,
                         "%0:2 = ckopt.cross_entropy %x, %t " + at + " : (" +
                             x + ", " + t + ") -> (" + y + ", " + y +
                             ")\n return %0#0, %0#1 : " + y + ", " + y + "\n"),
              options);
  checkKernel(
      kernelText("row", "%g: " + y + ", %x: " + x + ", %t: " + t + ", %l: " + y,
                 x,
                 "%0 = ckopt.cross_entropy_grad %g, %x, %t, %l " + at + " : (" +
                     y + ", " + x + ", " + t + ", " + y + ") -> " + x +
                     "\n return %0 : " + x + "\n"),
      options);
}

TEST(RowKernel, CrossEntropy) {
  crossEntropy("6x5", "6", 1);
  crossEntropy("6x37", "6", 1);
  crossEntropy("2x3x100", "2x3", 2);
  crossEntropy("2x7x4x5", "2x4x5", 1);
  crossEntropy("2x7x4x5", "2x4x5", 1, ", #ckopt.layout<[0, 2, 3, 1]>");
}
