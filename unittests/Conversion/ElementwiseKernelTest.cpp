//===- ElementwiseKernelTest.cpp - pointwise and indexed kernels ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "KernelJit.h"
#include <gtest/gtest.h>

using namespace ckopt;
using namespace ckopt::test;

/// A kernel of one op on tensors of one type.
static std::string unary(const std::string &op, const std::string &type,
                         const std::string &attributes = "") {
  std::string t = "tensor<" + type + ">";
  return kernelText("elementwise", "%x: " + t, t,
                    "%0 = ckopt." + op + " %x " + attributes + " : (" + t +
                        ") -> " + t + "\n return %0 : " + t + "\n");
}

static std::string binary(const std::string &op, const std::string &a,
                          const std::string &b, const std::string &c,
                          const std::string &attributes = "") {
  std::string x = "tensor<" + a + ">", y = "tensor<" + b + ">",
              z = "tensor<" + c + ">";
  return kernelText("elementwise", "%x: " + x + ", %y: " + y, z,
                    "%0 = ckopt." + op + " %x, %y " + attributes + " : (" + x +
                        ", " + y + ") -> " + z + "\n return %0 : " + z + "\n");
}

// Small f16 are numbers to a GPU as well, also where two are compared.
TEST(ElementwiseKernel, SmallHalvesAreCompared) {
  KernelOptions options;
  options.low = -5e-5;
  options.high = 5e-5;
  for (std::string type : {"tensor<6x40xf16>", "tensor<6x40xbf16>"})
    checkKernel(kernelText("elementwise", "%a: " + type + ", %b: " + type, type,
                           "%0 = ckopt.maximum %a, %b : (" + type + ", " +
                               type + ") -> " + type +
                               "\n return %0 : " + type + "\n"),
                options);
}

// Lengths around one vector, its multiples and the block size.
TEST(ElementwiseKernel, Lengths) {
  for (const char *length : {"1", "2", "7", "15", "16", "17", "31", "33", "100",
                             "4095", "4096", "4097", "20000"}) {
    checkKernel(unary("exp", std::string(length) + "xf32"));
    checkKernel(unary("neg", std::string(length) + "xf64"));
  }
}

TEST(ElementwiseKernel, Unary) {
  for (const char *op :
       {"neg", "abs", "sign", "exp", "sqrt", "rsqrt", "reciprocal", "tanh",
        "sigmoid", "erf", "sin", "cos", "atan", "floor", "ceil", "round",
        "relu", "softplus", "gelu"})
    for (llvm::StringRef type : {"3x37xf32", "2x19xf64"}) {
      KernelOptions options;
      if (llvm::is_contained({"sqrt", "rsqrt", "reciprocal"},
                             llvm::StringRef(op)))
        options.low = 0.1;
      if (type.ends_with("f32"))
        checkKernel(unary(op, type.str()), options);
      options.high = 20;
      options.relative = 1e-5;
      checkKernel(unary(op, type.str()), options);
    }
  KernelOptions positive;
  positive.low = 1e-3;
  positive.high = 50;
  checkKernel(unary("log", "77xf32"), positive);
  checkKernel(unary("log", "77xf64"), positive);
  checkKernel(unary("gelu", "40xf32", "{tanh}"));
  checkKernel(unary("clip", "40xf32", "{min = -0.5, max = 0.25}"));
  for (const char *type : {"50xi64", "50xi32", "50xi8", "50xi16"})
    for (const char *op : {"neg", "abs", "sign", "relu"}) {
      KernelOptions options;
      options.intLow = -5;
      options.intHigh = 5;
      checkKernel(unary(op, type), options);
    }
  checkKernel(unary("not", "50xi1"));
}

TEST(ElementwiseKernel, BroadcastBinary) {
  struct Shapes {
    const char *a, *b, *c;
  };
  // The shapes decide addresses, whatever the op.
  for (const char *op : {"sub", "add", "mul", "div", "maximum", "minimum"})
    for (Shapes s : {Shapes{"5x21", "5x21", "5x21"},
                     {"5x21", "21", "5x21"},
                     {"5x21", "5x1", "5x21"},
                     {"5x1", "1x21", "5x21"},
                     {"1", "5x21", "5x21"},
                     {"2x3x4x5", "3x1x1", "2x3x4x5"},
                     {"2x3x17", "1x17", "2x3x17"},
                     {"", "33", "33"},
                     {"2x1x20x20", "20x20", "2x1x20x20"},
                     {"", "", ""}})
      for (const char *type : {"f32", "f64"}) {
        if (op != llvm::StringRef("sub") && s.b != llvm::StringRef("5x1"))
          continue;
        auto full = [&](std::string shape) {
          return shape.empty() ? type : shape + "x" + type;
        };
        KernelOptions options;
        options.low = 0.5;
        options.high = 2;
        checkKernel(binary(op, full(s.a), full(s.b), full(s.c)), options);
      }
}

TEST(ElementwiseKernel, Integers) {
  KernelOptions options;
  options.intLow = -6;
  options.intHigh = 7; // zero divisors, too
  for (const char *op : {"add", "sub", "mul", "div", "mod", "maximum"})
    for (const char *type : {"70xi64", "70xi32"})
      checkKernel(binary(op, type, type, type), options);
  checkKernel(binary("mod", "70xi64", "70xi64", "70xi64", "{fmod}"), options);
  options.low = 0.5;
  options.high = 3;
  checkKernel(binary("mod", "70xf32", "70xf32", "70xf32", "{fmod}"), options);
  checkKernel(binary("pow", "70xf32", "70xf32", "70xf32"), options);
  checkKernel(binary("pow", "70xf64", "70xf64", "70xf64"), options);
}

// Of each bit; a shift may be of any number of bits, which leaves zeros, or the
// sign where a signed number goes right. A negative shift counts as a huge one.
TEST(ElementwiseKernel, BitsOfIntegers) {
  for (const char *type : {"70xi64", "70xi32", "70xi16", "70xi8", "70xui64",
                           "70xui32", "70xui16", "70xui8"}) {
    bool isSigned = !std::string(type).find("70xi");
    KernelOptions options;
    options.intLow = isSigned ? -128 : 0;
    options.intHigh = isSigned ? 127 : 255;
    checkKernel(unary("not", type), options);
    if (isSigned)
      checkKernel(binary("xor", type, type, type), options);
    options.intLow = isSigned ? -9 : 0;
    options.intHigh = 70;
    for (const char *op : {"shift_left", "shift_right"})
      checkKernel(binary(op, type, type, type), options);
  }
  checkKernel(binary("shift_left", "3x70xi32", "70xi32", "3x70xi32"));
  for (const char *op : {"and", "or"})
    for (const char *type : {"50xi1", "50xi8"})
      checkKernel(binary(op, type, type, type));
}

TEST(ElementwiseKernel, ComparisonsAndSelection) {
  for (const char *p : {"eq", "ne", "lt", "le", "gt", "ge"}) {
    checkKernel(kernelText(
        "elementwise", "%x: tensor<3x30xi32>, %y: tensor<30xi32>",
        "tensor<3x30xi1>",
        std::string("%0 = ckopt.compare ") + p +
            " %x, %y : (tensor<3x30xi32>, tensor<30xi32>) -> tensor<3x30xi1>\n"
            "return %0 : tensor<3x30xi1>\n"));
    checkKernel(kernelText(
        "elementwise", "%x: tensor<40xf32>, %y: tensor<40xf32>",
        "tensor<40xf32>",
        std::string("%0 = ckopt.compare ") + p +
            " %x, %y : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xi1>\n"
            "%1 = ckopt.select %0, %x, %y : (tensor<40xi1>, tensor<40xf32>, "
            "tensor<40xf32>) -> tensor<40xf32>\n"
            "return %1 : tensor<40xf32>\n"));
  }
}

TEST(ElementwiseKernel, Casts) {
  for (auto [from, to] :
       std::vector<std::pair<std::string, std::string>>{{"f32", "f64"},
                                                        {"f64", "f32"},
                                                        {"f32", "i32"},
                                                        {"i64", "f32"},
                                                        {"i32", "i64"},
                                                        {"i64", "i8"},
                                                        {"i1", "f32"},
                                                        {"f32", "i1"},
                                                        {"i32", "i1"},
                                                        {"i1", "i64"},
                                                        {"f32", "f16"},
                                                        {"bf16", "f32"},
                                                        {"f16", "f32"},
                                                        {"f32", "bf16"},
                                                        {"i8", "f32"}}) {
    KernelOptions options;
    options.low = -9;
    options.high = 9;
    options.relative = 1e-6;
    std::string x = "tensor<3x29x" + from + ">", y = "tensor<3x29x" + to + ">";
    checkKernel(kernelText("elementwise", "%x: " + x, y,
                           "%0 = ckopt.cast %x : (" + x + ") -> " + y +
                               "\n return %0 : " + y + "\n"),
                options);
  }
}

// Channels-last operands against row-major ones, and per-channel vectors.
TEST(ElementwiseKernel, Layouts) {
  std::string nhwc = "tensor<2x20x3x5xf32, #ckopt.layout<[0, 2, 3, 1]>>",
              nchw = "tensor<2x20x3x5xf32>", c = "tensor<20x1x1xf32>";
  for (const std::string &a : {nhwc, nchw})
    for (const std::string &b : {nhwc, nchw})
      for (const std::string &out : {nhwc, nchw})
        checkKernel(kernelText(
            "elementwise", "%x: " + a + ", %y: " + b + ", %c: " + c, out,
            "%0 = ckopt.add %x, %y : (" + a + ", " + b + ") -> " + out +
                "\n%1 = ckopt.mul %0, %c : (" + out + ", " + c + ") -> " + out +
                "\n return %1 : " + out + "\n"));
  checkKernel(kernelText("elementwise", "%x: " + nchw, nhwc,
                         "%0 = ckopt.relayout %x : (" + nchw + ") -> " + nhwc +
                             "\n return %0 : " + nhwc + "\n"));
}

// A channel's bias behind a concatenation has fewer columns than the result: it
// ends at an inaccessible page, and what is computed ahead must end there, too.
TEST(ElementwiseKernel, ColumnsOfConcatenated) {
  std::string x = "tensor<2x24x4x4xf32, #ckopt.layout<[0, 2, 3, 1]>>",
              y = "tensor<2x48x4x4xf32, #ckopt.layout<[0, 2, 3, 1]>>",
              c = "tensor<24xf32>", d = "tensor<24x1x1xf32>";
  checkKernel(
      kernelText("elementwise", "%c: " + c + ", %x: " + x + ", %y: " + x, y,
                 "%0 = ckopt.reshape %c : (" + c + ") -> " + d +
                     "\n%1 = ckopt.add %x, %0 : (" + x + ", " + d + ") -> " +
                     x + "\n%2 = ckopt.concat %1, %y {axis = 1 : i64} : (" + x +
                     ", " + x + ") -> " + y + "\n return %2 : " + y + "\n"));
}

TEST(ElementwiseKernel, SeveralResultsInPlace) {
  std::string t = "tensor<5x100xf32>";
  checkKernel(kernelText("elementwise", "%x: " + t + ", %y: " + t, t + ", " + t,
                         "%0 = ckopt.add %x, %y : (" + t + ", " + t + ") -> " +
                             t + "\n%1 = ckopt.mul %x, %0 : (" + t + ", " + t +
                             ") -> " + t + "\n return %0, %1 : " + t + ", " +
                             t + "\n"));
  KernelJit jit(unary("relu", "64xf32"));
  ASSERT_EQ(jit.code().reuse.size(), 1u);
  // The transposed operand is read at other points: no reuse.
  KernelJit moved(kernelText(
      "elementwise", "%x: tensor<8x8xf32>", "tensor<8x8xf32>",
      "%0 = ckopt.transpose %x {permutation = array<i64: 1, 0>} : "
      "(tensor<8x8xf32>) -> tensor<8x8xf32>\n"
      "%1 = ckopt.add %x, %0 : (tensor<8x8xf32>, tensor<8x8xf32>) -> "
      "tensor<8x8xf32>\n return %1 : tensor<8x8xf32>\n"));
  EXPECT_TRUE(moved.code().reuse.empty());
}

//===----------------------------------------------------------------------===//
// Indexed ops
//===----------------------------------------------------------------------===//

static std::string one(const std::string &from, const std::string &to,
                       const std::string &op) {
  std::string x = "tensor<" + from + ">", y = "tensor<" + to + ">";
  return kernelText("elementwise", "%x: " + x, y,
                    "%0 = ckopt." + op + " : (" + x + ") -> " + y +
                        "\n return %0 : " + y + "\n");
}

TEST(IndexedKernel, Transpose) {
  checkKernel(one("3x40xf32", "40x3xf32",
                  "transpose %x {permutation = array<i64: 1, 0>}"));
  checkKernel(one("33x40xf32", "40x33xf32",
                  "transpose %x {permutation = array<i64: 1, 0>}"));
  checkKernel(one("2x3x4x5xf64", "2x4x3x5xf64",
                  "transpose %x {permutation = array<i64: 0, 2, 1, 3>}"));
  checkKernel(one("2x7x3x32xf32", "2x3x7x32xf32",
                  "transpose %x {permutation = array<i64: 0, 2, 1, 3>}"));
  checkKernel(one("6x5x4xi64", "4x6x5xi64",
                  "transpose %x {permutation = array<i64: 2, 0, 1>}"));
}

TEST(IndexedKernel, SliceExpandReshape) {
  checkKernel(one("5x40xf32", "3x20xf32",
                  "slice %x {starts = array<i64: 1, 3>, sizes = array<i64: 3, "
                  "20>, steps = array<i64: 1, 1>}"));
  checkKernel(one("5x40xf32", "5x13xf32",
                  "slice %x {starts = array<i64: 4, 39>, sizes = array<i64: 5, "
                  "13>, steps = array<i64: -1, -3>}"));
  checkKernel(one("3x1x20xf32", "2x3x4x20xf32", "expand %x"));
  checkKernel(one("1xf32", "3x33xf32", "expand %x"));
  checkKernel(one("3x1x20xf32", "1x3x20x1xf32", "reshape %x"));
  checkKernel(one("6x20xf32", "4x30xf32", "reshape %x"));
}

TEST(IndexedKernel, Pad) {
  checkKernel(one("3x20xf32", "6x25xf32",
                  "pad %x {low = array<i64: 1, 2>, high = array<i64: 2, 3>, "
                  "interior = array<i64: 0, 0>, value = 7.0 : f64}"));
  checkKernel(one("3x20xf32", "8x58xf32",
                  "pad %x {low = array<i64: 1, 0>, high = array<i64: 2, 0>, "
                  "interior = array<i64: 1, 2>}"));
  checkKernel(one("2x20x3x3xf32", "2x20x5x5xf32",
                  "pad %x {low = array<i64: 0, 0, 1, 1>, high = array<i64: 0, "
                  "0, 1, 1>, interior = array<i64: 0, 0, 0, 0>}"));
}

TEST(IndexedKernel, Concat) {
  for (auto [a, b, c, d, axis] :
       std::vector<std::tuple<std::string, std::string, std::string,
                              std::string, std::string>>{
           {"2x5xf32", "2x20xf32", "2x3xf32", "2x28xf32", "1"},
           {"2x25xf32", "1x25xf32", "4x25xf32", "7x25xf32", "0"},
           {"2x16xf32", "2x48xf32", "2x3xf32", "2x67xf32", "1"},
           {"3x64xf64", "3x16xf64", "3x100xf64", "3x180xf64", "1"},
           {"2x3x4xf32", "2x1x4xf32", "2x2x4xf32", "2x6x4xf32", "1"}}) {
    std::string types = "(tensor<" + a + ">, tensor<" + b + ">, tensor<" + c +
                        ">) -> tensor<" + d + ">";
    checkKernel(kernelText(
        "elementwise",
        "%x: tensor<" + a + ">, %y: tensor<" + b + ">, %z: tensor<" + c + ">",
        "tensor<" + d + ">",
        "%0 = ckopt.concat %x, %y, %z {axis = " + axis + " : i64} : " + types +
            "\n return %0 : tensor<" + d + ">\n"));
  }
}

TEST(IndexedKernel, Gather) {
  std::string text = kernelText(
      "elementwise", "%x: tensor<9x37xf32>, %i: tensor<2x3xi64>",
      "tensor<2x3x37xf32>",
      "%0 = ckopt.gather %x, %i {axis = 0 : i64} : (tensor<9x37xf32>, "
      "tensor<2x3xi64>) -> tensor<2x3x37xf32>\n"
      " return %0 : tensor<2x3x37xf32>\n");
  KernelOptions options;
  options.intLow = -9;
  options.intHigh = 9;
  checkKernel(text, options);
  checkKernel(
      kernelText("elementwise", "%x: tensor<4x9xf32>, %i: tensor<21xi32>",
                 "tensor<4x21xf32>",
                 "%0 = ckopt.gather %x, %i {axis = 1 : i64} : "
                 "(tensor<4x9xf32>, tensor<21xi32>) -> tensor<4x21xf32>\n"
                 " return %0 : tensor<4x21xf32>\n"),
      options);
}

TEST(IndexedKernel, TriluIotaConstants) {
  checkKernel(one("2x20x20xf32", "2x20x20xf32",
                  "trilu %x {upper = true, k = 1 : i64}"));
  checkKernel(one("2x20x33xf32", "2x20x33xf32", "trilu %x {upper = false}"));
  checkKernel(kernelText(
      "elementwise", "%x: tensor<3x20xf32>", "tensor<3x20xf32>",
      "%0 = ckopt.iota {axis = 1 : i64, start = 2.0 : f64, delta = 0.5 : f64} "
      ": tensor<3x20xf32>\n%c = ckopt.constant dense<[[1.0], [2.0], [3.0]]> : "
      "tensor<3x1xf32>\n%s = ckopt.constant dense<0.5> : tensor<f32>\n"
      "%1 = ckopt.mul %0, %x : (tensor<3x20xf32>, tensor<3x20xf32>) -> "
      "tensor<3x20xf32>\n%2 = ckopt.add %1, %c : (tensor<3x20xf32>, "
      "tensor<3x1xf32>) -> tensor<3x20xf32>\n%3 = ckopt.mul %2, %s : "
      "(tensor<3x20xf32>, tensor<f32>) -> tensor<3x20xf32>\n"
      "return %3 : tensor<3x20xf32>\n"));
  checkKernel(kernelText("elementwise", "", "tensor<7x9xi64>",
                         "%0 = ckopt.iota {axis = 0 : i64, start = 3.0 : f64, "
                         "delta = -2.0 : f64} : tensor<7x9xi64>\n"
                         "return %0 : tensor<7x9xi64>\n"));
}

// Narrower machines run the same emitter with fewer lanes, or as scalars.
TEST(ElementwiseKernel, OtherVectorWidths) {
  for (unsigned bits : {0u, 128u, 256u}) {
    KernelOptions options;
    options.vectorBits = bits;
    checkKernel(unary("tanh", "3x37xf32"), options);
    checkKernel(unary("tanh", "3x37xf64"), options);
  }
}

// Contiguous accesses are unit loads; a channels-last bias is one, too.
TEST(ElementwiseKernel, Vectorizes) {
  KernelJit jit(binary("add", "8x30xf32", "30xf32", "8x30xf32"));
  EXPECT_EQ(jit.report().lanes, 16u);
  EXPECT_EQ(jit.report().gathers, 0u);
  EXPECT_EQ(jit.report().libmCalls, 0u);
  KernelJit heads(one("2x7x3x32xf32", "2x3x7x32xf32",
                      "transpose %x {permutation = array<i64: 0, 2, 1, 3>}"));
  EXPECT_EQ(heads.report().gathers, 0u);
}

// Nothing to do is done, without a trap.
TEST(ElementwiseKernel, Empty) {
  checkKernel(unary("exp", "0xf32"));
  checkKernel(unary("exp", "3x0xf32"));
  checkKernel(binary("add", "0x4xf32", "4xf32", "0x4xf32"));
}

// Halves are read and written as such and computed in f32.
TEST(ElementwiseKernel, HalfTypes) {
  for (const char *type : {"3x37xf16", "3x37xbf16"}) {
    checkKernel(unary("gelu", type));
    checkKernel(binary("mul", type, type, type));
  }
}
