//===- KernelNumbersTest.cpp - what the interpreter has no numbers for ----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// test/Kernels compares kernels with the reference interpreter. The tests here
// cover inputs that the interpreter refuses (indices out of range) and errors
// that tolerances hide (how a number is rounded).
//
//===----------------------------------------------------------------------===//
#include "KernelJit.h"
#include <bit>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>

using namespace ckopt;
using namespace ckopt::test;

static std::string gather(const std::string &op, const std::string &count) {
  std::string i = "tensor<" + count + "xi64>", y = "tensor<" + count + "xf32>";
  return kernelText("elementwise", "%x: tensor<4xf32>, %i: " + i, y,
                    "%0 = ckopt." + op +
                        " %x, %i {axis = 0 : i64} : (tensor<4xf32>, " + i +
                        ") -> " + y + "\n return %0 : " + y + "\n");
}

// Whatever the index, nothing outside of the tensor is read: the nearest
// element is read instead. The same holds in lanes (width 70) and in scalars
// (width 1).
TEST(GatherKernel, BadIndicesAreClamped) {
  constexpr int64_t low = std::numeric_limits<int64_t>::min(),
                    high = std::numeric_limits<int64_t>::max(),
                    wide = int64_t(1) << 32;
  const std::vector<int64_t> bad{low, -wide, -5, -4,   -1,       0,
                                 3,   4,     5,  wide, wide + 1, high};
  const std::vector<float> want{0, 0, 0, 0, 3, 0, 3, 3, 3, 3, 3, 3};
  for (std::string op : {"gather", "gather_elements"})
    for (size_t count : {size_t(1), size_t(70)}) {
      KernelJit jit(gather(op, std::to_string(count)));
      ASSERT_TRUE(jit.ok()) << jit.error();
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

// A scalar of bf16 is stored and cast without a call of a library's function
// that the JIT does not find: rounded to nearest even, NaN staying NaN. (The
// block form keeps the conversion, which a GPU has an instruction for.)
TEST(HalfScalars, AreRoundedInline) {
  KernelJit jit(kernelText(
      "elementwise", "%x: tensor<1xf32>", "tensor<1xbf16>, tensor<1xf32>",
      "%0 = ckopt.cast %x : (tensor<1xf32>) -> tensor<1xbf16>\n"
      "%1 = ckopt.cast %0 : (tensor<1xbf16>) -> tensor<1xf32>\n"
      " return %0, %1 : tensor<1xbf16>, tensor<1xf32>\n"));
  ASSERT_TRUE(jit.ok()) << jit.error();
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

/// bf16, where a device's tensors may lie.
struct alignas(64) Halves {
  uint16_t bits[16];
};

/// Returns what a kernel of one op makes of x.
static Halves resultOf(const KernelJit &jit, Halves x) {
  Halves y;
  void *args[] = {x.bits, y.bits};
  if (jit.isOnDevice())
    EXPECT_EQ(jit.launch(0, args, nullptr, nullptr), "");
  else
    jit.run(args, nullptr, nullptr);
  return y;
}

// Launches approximate functions where the module says so (a step in 16 bits):
// all elements alike, but row ops only if a tensor is in 16 bits.
TEST(Approximations, AreOfStepsInHalves) {
  auto approximates = [](const std::string &kind, const std::string &op,
                         const std::string &element, bool inHalves) {
    std::string type = "tensor<4x16x" + element + ">";
    std::string text = kernelText(kind, "%x: " + type, type,
                                  "%0 = ckopt." + op + " : (" + type + ") -> " +
                                      type + "\n return %0 : " + type + "\n");
    if (inHalves)
      text = "module attributes {ckopt.approximates} {" + text + "}";
    auto jit = KernelJit::onDevice(text);
    EXPECT_TRUE(jit->ok()) << jit->error();
    return jit->approximates();
  };
  EXPECT_FALSE(approximates("elementwise", "exp %x", "f32", false));
  EXPECT_TRUE(approximates("elementwise", "exp %x", "f32", true));
  const std::string softmax = "softmax %x {axis = 1}";
  EXPECT_FALSE(approximates("row", softmax, "bf16", false));
  EXPECT_FALSE(approximates("row", softmax, "f32", true));
  EXPECT_TRUE(approximates("row", softmax, "bf16", true));
}

// A GPU's approximations overflow, vanish and pass NaN on where the CPU's
// functions do.
TEST(Approximations, KeepTheEndsOfTheRange) {
  constexpr uint16_t inf = 0x7F80, nan = 0x7FC0, minus = 0x8000;
  // 89 and -200; 2^127 and -2^127; zeros.
  const Halves x{{inf, minus | inf, nan, minus | nan, 0x42B2, 0xC348, 0x7F00,
                  0xFF00, minus}};
  const std::string type = "tensor<16xbf16>";
  for (std::string op : {"exp", "sigmoid", "tanh", "gelu", "gelu {tanh}"}) {
    std::string name = op.substr(0, op.find(' ')),
                flags = op.substr(name.size());
    std::string text =
        "module attributes {ckopt.approximates} {" +
        kernelText("elementwise", "%x: " + type, type,
                   "%0 = ckopt." + name + " %x" + flags + " : (" + type +
                       ") -> " + type + "\n return %0 : " + type + "\n") +
        "}";
    KernelJit cpu(text);
    auto ptx = KernelJit::launchedBy(interpretPtx, text);
    ASSERT_TRUE(cpu.ok() && ptx->ok()) << cpu.error() << ptx->error();
    EXPECT_TRUE(ptx->approximates()) << op;
    Halves wanted = resultOf(cpu, x), result = resultOf(*ptx, x);
    for (size_t i = 0; i < std::size(x.bits); ++i) {
      uint16_t want = wanted.bits[i], got = result.bits[i];
      bool isNan = (want & 0x7FFF) > inf;
      EXPECT_EQ((got & 0x7FFF) > inf, isNan) << op << " of " << x.bits[i];
      if (!isNan)
        EXPECT_EQ(got, want) << op << " of " << x.bits[i];
    }
  }
}

/// Returns the mean and variance of the columns of [rows, columns], one after
/// another.
static std::vector<float> columnMoments(int64_t rows, int64_t columns,
                                        std::vector<float> data) {
  std::string in = "tensor<" + std::to_string(rows) + "x" +
                   std::to_string(columns) + "xf32>",
              out = "tensor<" + std::to_string(columns) + "xf32>";
  KernelJit jit(
      kernelText("reduction", "%x: " + in, out + ", " + out,
                 "%0:2 = ckopt.moments %x {axes = array<i64: 0>} : (" + in +
                     ") -> (" + out + ", " + out +
                     ")\n return %0#0, %0#1 : " + out + ", " + out + "\n"));
  EXPECT_TRUE(jit.ok()) << jit.error();
  std::vector<float> got(2 * columns);
  std::vector<char> scratch(jit.code().workspaceBytes + 64);
  void *args[] = {data.data(), got.data(), got.data() + columns};
  jit.run(args, nullptr, scratch.data());
  return got;
}

// Moments of columns take one pass, and are as near to those of f64 as two
// passes: with a mean of a hundred thousand deviations, with a first row far
// from all others, where the mean drifts, and of equal numbers.
TEST(ColumnMoments, AreExactWhateverTheMean) {
  constexpr int64_t rows = 4099;
  for (int64_t columns : {3, 16, 40, 100}) {
    std::vector<float> data(rows * columns);
    uint32_t state = 1;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c) {
        state = state * 1664525u + 1013904223u;
        float x = float(state >> 8) * 0x1p-23f - 1;
        switch (c % 5) {
        case 0: // only what a float near 1e5 holds
          x += 1e5f;
          break;
        case 1:
          x = r ? x : 1e4f;
          break;
        case 2:
          x += 0.01f * float(r);
          break;
        case 3:
          x = 0.1f;
          break;
        }
        data[r * columns + c] = x;
      }
    std::vector<float> got = columnMoments(rows, columns, data);
    for (int64_t c = 0; c < columns; ++c) {
      double mean = 0, squares = 0;
      for (int64_t r = 0; r < rows; ++r)
        mean += data[r * columns + c] / double(rows);
      for (int64_t r = 0; r < rows; ++r)
        squares += std::pow(data[r * columns + c] - mean, 2) / double(rows);
      EXPECT_NEAR(got[c], mean, 5e-7 * (std::abs(mean) + std::sqrt(squares)))
          << c << " of " << columns;
      // A mean is a float; the square of its error is in the variance.
      EXPECT_NEAR(got[columns + c], squares,
                  1e-5 * squares + std::pow(2e-7 * mean, 2))
          << c << " of " << columns;
    }
  }
}
