//===- IndexKernelTest.cpp - elements by index, running sums, selection ---===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "KernelJit.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>

using namespace ckopt;
using namespace ckopt::test;

static std::string tensor(const std::string &type) {
  return "tensor<" + type + ">";
}

//===----------------------------------------------------------------------===//
// gather, gather_elements
//===----------------------------------------------------------------------===//

static std::string gather(const std::string &op, const std::string &data,
                          const std::string &indices, int axis,
                          const std::string &result) {
  return kernelText(
      "elementwise", "%x: " + tensor(data) + ", %i: " + tensor(indices),
      tensor(result),
      "%0 = ckopt." + op + " %x, %i {axis = " + std::to_string(axis) +
          " : i64} : (" + tensor(data) + ", " + tensor(indices) + ") -> " +
          tensor(result) + "\n return %0 : " + tensor(result) + "\n");
}

TEST(GatherElementsKernel, ShapesAndTypes) {
  struct Case {
    const char *data, *indices;
    int axis;
    const char *result;
    int size;
  };
  for (Case c : {Case{"9x37xf32", "20x37xi64", 0, "20x37xf32", 9},
                 {"9x37xf32", "9x50xi32", 1, "9x50xf32", 37},
                 // Fewer indices than elements along the other dimensions.
                 {"4x9x37xf32", "3x5x33xi64", 1, "3x5x33xf32", 9},
                 {"4x9x37xf64", "2x5x40xi32", 2, "2x5x40xf64", 37},
                 {"300xf32", "40xi64", 0, "40xf32", 300},
                 {"7x3xf16", "5x3xi64", 0, "5x3xf16", 7},
                 {"7x3xbf16", "7x2xi32", 1, "7x2xbf16", 3},
                 {"6x5xi64", "6x20xi64", 1, "6x20xi64", 5},
                 {"6x5xi8", "6x20xi32", 1, "6x20xi8", 5},
                 {"6x5xui16", "9x5xi64", 0, "9x5xui16", 6},
                 {"6x20xi1", "9x20xi64", 0, "9x20xi1", 6},
                 {"1x20xf32", "9x20xi64", 0, "9x20xf32", 1},
                 {"6x20xf32", "0x20xi64", 0, "0x20xf32", 6},
                 {"0x4xf32", "0x4xi64", 0, "0x4xf32", 0}}) {
    KernelOptions options;
    options.intLow = -c.size;
    options.intHigh = c.size;
    checkKernel(gather("gather_elements", c.data, c.indices, c.axis, c.result),
                options);
  }
}

// The data may lie in another order than the result.
TEST(GatherElementsKernel, Layouts) {
  KernelOptions options;
  options.intLow = -5;
  options.intHigh = 5;
  checkKernel(gather("gather_elements",
                     "2x5x3x4xf32, #ckopt.layout<[0, 2, 3, 1]>", "2x7x3x4xi64",
                     1, "2x7x3x4xf32"),
              options);
}

// Lanes over the gathered dimension itself, scalars, indices of both widths.
TEST(GatherKernel, LastAxis) {
  for (std::string width : {"i32", "i64"}) {
    KernelOptions options;
    options.intLow = -9;
    options.intHigh = 9;
    checkKernel(gather("gather", "9xf32", "70x" + width, 0, "70xf32"), options);
    checkKernel(gather("gather", "9xi64", width, 0, "i64"), options);
    checkKernel(gather("gather", "3x9xf32", width, 1, "3xf32"), options);
    checkKernel(gather("gather", "5x2x9xf16", "17x" + width, 2, "5x2x17xf16"),
                options);
    checkKernel(gather("gather", "9x3xf32", "0x" + width, 0, "0x3xf32"),
                options);
  }
}

// Whatever an index is, nothing outside of the tensor is read: the nearest
// element is. The same in lanes (width 70) and in scalars (width 1).
TEST(GatherKernel, BadIndicesAreClamped) {
  constexpr int64_t low = std::numeric_limits<int64_t>::min(),
                    high = std::numeric_limits<int64_t>::max(),
                    wide = int64_t(1) << 32;
  const std::vector<int64_t> bad{low, -wide, -5, -4,   -1,       0,
                                 3,   4,     5,  wide, wide + 1, high};
  const std::vector<float> want{0, 0, 0, 0, 3, 0, 3, 3, 3, 3, 3, 3};
  for (std::string op : {"gather", "gather_elements"})
    for (size_t count : {size_t(1), size_t(70)}) {
      std::string n = std::to_string(count);
      KernelJit jit(gather(op, "4xf32", n + "xi64", 0, n + "xf32"));
      ASSERT_TRUE(jit.ok());
      for (size_t shift = 0; shift < bad.size(); ++shift) {
        std::vector<float> data{0, 1, 2, 3}, got(count, -1);
        std::vector<int64_t> indices;
        for (size_t i = 0; i < count; ++i)
          indices.push_back(bad[(i + shift) % bad.size()]);
        void *args[] = {data.data(), indices.data(), got.data()};
        jit.run(args, nullptr, nullptr);
        for (size_t i = 0; i < count; ++i)
          EXPECT_EQ(got[i], want[(i + shift) % bad.size()])
              << op << " at " << indices[i];
      }
    }
}

//===----------------------------------------------------------------------===//
// scatter_elements
//===----------------------------------------------------------------------===//

static std::string scatter(const std::string &kind, const std::string &init,
                           const std::string &indices,
                           const std::string &updates, int axis) {
  return kernelText("structured",
                    "%x: " + tensor(init) + ", %i: " + tensor(indices) +
                        ", %u: " + tensor(updates),
                    tensor(init),
                    "%0 = ckopt.scatter_elements " + kind +
                        " %x, %i, %u {axis = " + std::to_string(axis) +
                        " : i64} : (" + tensor(init) + ", " + tensor(indices) +
                        ", " + tensor(updates) + ") -> " + tensor(init) +
                        "\n return %0 : " + tensor(init) + "\n");
}

namespace {
struct ScatterCase {
  const char *init, *indices, *updates;
  int axis, size;
};
} // namespace

static void checkScatter(const std::string &kind, const ScatterCase &c) {
  KernelOptions options;
  options.intLow = -c.size;
  options.intHigh = c.size;
  checkKernel(scatter(kind, c.init, c.indices, c.updates, c.axis), options);
}

// Many updates meet at few elements.
TEST(ScatterElementsKernel, Kinds) {
  for (std::string kind : {"set", "add", "mul", "max", "min"})
    for (ScatterCase c :
         {ScatterCase{"5x37xf32", "12x37xi64", "12x37xf32", 0, 5},
          {"5x3xui8", "9x3xi64", "9x3xui8", 0, 5}})
      checkScatter(kind, c);
  checkScatter("min", {"4x6xi32", "4x15xi32", "4x15xi32", 1, 6});
  checkScatter("mul", {"5x20xf16", "9x20xi64", "9x20xf16", 0, 5});
  checkScatter("max", {"5x20xf16", "9x20xi64", "9x20xf16", 0, 5});
}

TEST(ScatterElementsKernel, ShapesAndTypes) {
  for (ScatterCase c :
       {// Fewer indices than elements along the other dimensions, with lanes,
        // with more than one block of columns, and in rows.
        ScatterCase{"4x5x37xf32", "3x9x20xi64", "3x9x20xf32", 1, 5},
        {"5x1000xf32", "7x400xi64", "7x400xf32", 0, 5},
        {"5x1000xf32", "7x384xi64", "7x384xf32", 0, 5},
        {"5x400xf32", "7x1xi64", "7x1xf32", 0, 5},
        {"4x3x9xf64", "2x3x20xi32", "2x3x20xf64", 2, 9},
        {"30xf32", "50xi64", "50xf32", 0, 30},
        {"6x5xi64", "6x9xi64", "6x9xi64", 1, 5},
        {"6x5xf16", "6x9xi64", "6x9xf16", 1, 5},
        {"5x3x2xf16", "7x2x2xi32", "7x2x2xf16", 0, 5},
        {"1x20xf32", "9x20xi64", "9x20xf32", 0, 1},
        {"6x20xf32", "0x20xi64", "0x20xf32", 0, 6},
        {"6x20xf32", "3x0xi64", "3x0xf32", 0, 6},
        {"0x4xf32", "0x4xi64", "0x4xf32", 0, 1}}) {
    checkScatter("add", c);
  }
  checkScatter("set", {"4x5x37xf32", "3x9x20xi64", "3x9x20xf32", 1, 5});
  checkScatter("set", {"6x20xi1", "9x20xi64", "9x20xi1", 0, 6});
}

// Sums of halves are rounded once: 4,096 additions of one would end at 2,048.
TEST(ScatterElementsKernel, HalvesAreSummedInFloat) {
  mlir::MLIRContext context;
  auto type = [&](mlir::Type element) {
    return mlir::RankedTensorType::get({4096}, element);
  };
  mlir::Builder b(&context);
  for (std::string text :
       {scatter("add", "1xf16", "4096xi64", "4096xf16", 0),
        kernelText("structured",
                   "%x: tensor<1xf16>, %i: tensor<4096xi64>, %u: "
                   "tensor<4096xf16>",
                   "tensor<1xf16>",
                   "%0 = ckopt.scatter_add %x, %i, %u {axis = 0 : i64} : "
                   "(tensor<1xf16>, tensor<4096xi64>, tensor<4096xf16>) -> "
                   "tensor<1xf16>\n return %0 : tensor<1xf16>\n")}) {
    KernelOptions options;
    options.given = {{0, reference::Tensor(
                             mlir::RankedTensorType::get({1}, b.getF16Type()))},
                     {1, reference::Tensor(type(b.getI64Type()))},
                     {2, reference::Tensor::splat(type(b.getF16Type()), 1)}};
    std::vector<reference::Tensor> got = checkKernel(text, options);
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].real(0), 4096);
  }
}

// max and min give NaN where one is, whatever comes before or after it.
TEST(ScatterElementsKernel, NaNs) {
  for (std::string kind : {"max", "min"})
    for (int at = 0; at < 4; ++at) {
      KernelJit jit(scatter(kind, "2xf32", "3xi64", "3xf32", 0));
      ASSERT_TRUE(jit.ok());
      std::vector<float> numbers(4, 1.0f), got(2);
      numbers[size_t(at)] = NAN;
      std::vector<float> init{numbers[0], 5},
          updates(numbers.begin() + 1, numbers.end());
      std::vector<int64_t> indices(3, 0);
      void *args[] = {init.data(), indices.data(), updates.data(), got.data()};
      jit.run(args, nullptr, nullptr);
      EXPECT_TRUE(std::isnan(got[0])) << kind << " with NaN at " << at;
      EXPECT_EQ(got[1], 5);
    }
}

// Constants as any of the operands are made inside of the kernel.
TEST(ScatterElementsKernel, ConstantOperands) {
  checkKernel(kernelText(
      "structured", "%x: tensor<5x20xf32>", "tensor<5x20xf32>",
      "%z = ckopt.constant dense<0.0> : tensor<3x20xf32>\n"
      "%i = ckopt.iota {axis = 0 : i64, start = 1.0 : f64} : tensor<3x20xi64>\n"
      "%0 = ckopt.scatter_elements set %x, %i, %z {axis = 0 : i64} : "
      "(tensor<5x20xf32>, tensor<3x20xi64>, tensor<3x20xf32>) -> "
      "tensor<5x20xf32>\n return %0 : tensor<5x20xf32>\n"));
  checkKernel(kernelText(
      "structured", "%u: tensor<3x4xi64>", "tensor<3x2xi64>",
      "%z = ckopt.constant dense<-1> : tensor<3x2xi64>\n"
      "%i = ckopt.constant dense<[[0, 1, 0, 1], [1, 1, 1, 1], [-1, 0, 0, 0]]> "
      ": tensor<3x4xi64>\n"
      "%0 = ckopt.scatter_elements max %z, %i, %u {axis = 1 : i64} : "
      "(tensor<3x2xi64>, tensor<3x4xi64>, tensor<3x4xi64>) -> "
      "tensor<3x2xi64>\n return %0 : tensor<3x2xi64>\n"));
}

// A scalar of bf16 is stored and cast without a call of a library's function
// that the JIT does not find: rounded to nearest even, NaN staying NaN. (The
// block form keeps the conversion, which a GPU has an instruction for.)
TEST(HalfScalars, AreRoundedInline) {
  KernelJit jit(kernelText(
      "elementwise", "%x: tensor<1xf32>", "tensor<1xbf16>, tensor<1xf32>",
      "%0 = ckopt.cast %x : (tensor<1xf32>) -> tensor<1xbf16>\n"
      "%1 = ckopt.cast %0 : (tensor<1xbf16>) -> tensor<1xf32>\n"
      " return %0, %1 : tensor<1xbf16>, tensor<1xf32>\n"));
  ASSERT_TRUE(jit.ok());
  for (auto [value, bits] : {std::pair<float, uint16_t>(-3.3f, 0xC053),
                             {1.00390625f, 0x3F80},
                             {1.01171875f, 0x3F82},
                             {INFINITY, 0x7F80},
                             {NAN, 0x7FC0}}) {
    float x = value, widened = 0;
    uint16_t stored = 0;
    void *args[] = {&x, &stored, &widened};
    jit.run(args, nullptr, nullptr);
    EXPECT_EQ(stored, bits) << value;
    uint32_t wide = 0;
    memcpy(&wide, &widened, sizeof(wide));
    EXPECT_EQ(wide, uint32_t(bits) << 16) << value;
  }
}
