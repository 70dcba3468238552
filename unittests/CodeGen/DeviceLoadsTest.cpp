//===- DeviceLoadsTest.cpp - loads of contractions on a GPU ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What cannot be timed here is counted: in the text of the PTX, whether all
// loads of a slice stand together, without a branch between them, wherever
// elements lie; in the interpreter, how many sectors of 32 bytes they touch.
//
//===----------------------------------------------------------------------===//
#include "../../test/lib/CudaStandin/Ptx/Memory.h"
#include "KernelJit.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"
#include "ckopt/Target/Cuda/BlockToPTX/BlockToPTX.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::test;
using runtime::ProductPrecision;
using standin::ptx::Traffic;

namespace {

/// The first launch of a kernel, and what it did to global memory.
struct Counted {
  PtxKernel kernel;
  Traffic loads, stores;
};

/// Interprets PTX and keeps the traffic of the first launch.
class Counter : public KernelLauncher {
public:
  Counter(PtxModule made, Counted &counted)
      : module(std::move(made)), counted(counted) {
    program = standin::ptx::parse(module.text, error);
  }
  std::string launch(StringRef symbol, ArrayRef<uint64_t> values,
                     ArrayRef<Range> ranges) override {
    std::vector<standin::ptx::Region> regions;
    for (const Range &range : ranges)
      regions.push_back({reinterpret_cast<uint64_t>(range.begin),
                         uint64_t(range.bytes), range.name});
    memory.setRegions(regions);
    for (const PtxKernel &kernel : module.kernels) {
      if (!program || kernel.symbol != symbol)
        continue;
      error = standin::ptx::launch(
          *program, symbol.str(), uint32_t(kernel.grid), uint32_t(kernel.block),
          values, memory, dynamicSharedBytes(kernel));
      if (symbol == counted.kernel.symbol)
        counted.loads = memory.loads, counted.stores = memory.stores;
    }
    return error;
  }

private:
  PtxModule module;
  Counted &counted;
  std::string error;
  std::unique_ptr<standin::ptx::Program> program;
  standin::ptx::GlobalMemory memory;
};

Counted countOf(const std::string &text, ProductPrecision precision,
                bool runs) {
  Counted counted;
  auto make = [&](ModuleOp blockForm,
                  std::string &) -> std::unique_ptr<KernelLauncher> {
    PtxOptions options;
    options.tf32 = precision == ProductPrecision::TF32;
    auto made = emitPtx(blockForm, options);
    if (!made) {
      ADD_FAILURE() << llvm::toString(made.takeError());
      return nullptr;
    }
    counted.kernel = made->kernels.front();
    return std::make_unique<Counter>(std::move(*made), counted);
  };
  auto jit = KernelJit::launchedBy(make, text, precision);
  EXPECT_TRUE(jit->ok()) << jit->error();
  if (!jit->ok() || !runs)
    return counted;
  for (const std::string &error : jit->launchOnZeros())
    EXPECT_EQ(error, "");
  return counted;
}

std::string tensor(ArrayRef<int64_t> shape, const std::string &element,
                   bool channelsLast = false) {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + element +
         (channelsLast ? ", #ckopt.layout<[0, 2, 3, 1]>>" : ">");
}

std::string product(const std::string &element, int64_t m, int64_t n,
                    int64_t k) {
  std::string a = tensor({1, m, k}, element), b = tensor({1, k, n}, element),
              c = tensor({1, m, n}, element);
  return kernelText("library", "%a: " + a + ", %b: " + b, c,
                    "%0 = ckopt.matmul %a, %b : (" + a + ", " + b + ") -> " +
                        c + "\n return %0 : " + c + "\n");
}

/// The gradient of a pointwise convolution's input, channels last.
std::string pointwiseGrad(int64_t batch, int64_t size, int64_t from,
                          int64_t to) {
  std::string dy = tensor({batch, to, size, size}, "f32", true),
              w = tensor({to, from, 1, 1}, "f32", true),
              dx = tensor({batch, from, size, size}, "f32", true);
  return kernelText(
      "library", "%dy: " + dy + ", %w: " + w, dx,
      "%0 = ckopt.conv_input_grad %dy, %w {strides = array<i64: 1, 1>, "
      "pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, dilations = "
      "array<i64: 1, 1>, groups = 1 : i64} : (" +
          dy + ", " + w + ") -> " + dx + "\n return %0 : " + dx + "\n");
}

/// A convolution of 3x3 with padding of 1, channels last: forward, or the
/// gradient of its input.
std::string convolution(const std::string &op, int64_t size, int64_t channels,
                        int64_t stride) {
  int64_t to = op == "conv" ? size / stride : size * stride;
  std::string x = tensor({4, channels, size, size}, "f32", true),
              w = tensor({channels, channels, 3, 3}, "f32", true),
              y = tensor({4, channels, to, to}, "f32", true),
              by = std::to_string(stride);
  return kernelText(
      "library", "%x: " + x + ", %w: " + w, y,
      "%0 = ckopt." + op + " %x, %w {strides = array<i64: " + by + ", " + by +
          ">, pads_low = array<i64: 1, 1>, pads_high = array<i64: " +
          (stride == 1 ? "1, 1" : "0, 0") +
          ">, dilations = array<i64: 1, 1>, groups = 1 : i64} : (" + x + ", " +
          w + ") -> " + y + "\n return %0 : " + y + "\n");
}

/// All loads of a slice, or copies, stand together: once before the loop over
/// slices, once in it; where two slices are copied ahead, at most three times
/// outside of it.
void expectTogether(const std::string &text, ProductPrecision precision,
                    int64_t loads, bool isCopied = false) {
  PtxKernel kernel = countOf(text, precision, /*runs=*/false).kernel;
  EXPECT_EQ(kernel.mostLoads, loads) << text;
  EXPECT_GE(kernel.loadStretches, 2) << text;
  EXPECT_LE(kernel.loadStretches, isCopied ? 4 : 2) << text;
  EXPECT_EQ(kernel.splitVectors, 0) << text;
  EXPECT_LE(kernel.sharedBytes, 99 * 1024) << text;
}

// A slice of a large tile has 128 x 8 elements of each operand; of TF32 128 x
// 16, of halves 128 x 16 and 256 x 16 (in memory twice as deep). 256 threads
// load 4 elements of f32, or 8 halves, at once. TF32, and halves in memory, are
// copied.
TEST(DeviceLoads, OfASliceTogether) {
  const ProductPrecision f32 = ProductPrecision::F32,
                         tf32 = ProductPrecision::TF32;
  expectTogether(product("f32", 2048, 2048, 1024), f32, 2);
  expectTogether(product("f32", 2048, 2048, 1024), tf32, 4, true);
  expectTogether(product("bf16", 2048, 2048, 1024), f32, 6, true);
  expectTogether(product("f32", 256, 256, 512), f32, 2);
  expectTogether(product("f32", 256, 256, 512), tf32, 2, true);
  expectTogether(product("bf16", 256, 256, 512), f32, 2, true);
}

// Elements outside of the operands are no branches.
TEST(DeviceLoads, AtEdgesTogether) {
  const ProductPrecision f32 = ProductPrecision::F32,
                         tf32 = ProductPrecision::TF32;
  expectTogether(product("f32", 200, 200, 200), f32, 2);
  expectTogether(product("f32", 200, 200, 200), tf32, 2, true);
  expectTogether(product("f32", 70, 65, 37), f32, 8, true);
  expectTogether(product("f32", 70, 65, 37), tf32, 8, true);
}

TEST(DeviceLoads, OfConvolutionsTogether) {
  for (const char *op : {"conv", "conv_input_grad"})
    for (int64_t stride : {1, 2})
      for (auto precision : {ProductPrecision::F32, ProductPrecision::TF32})
        expectTogether(convolution(op, 16, 64, stride), precision, 2,
                       precision == ProductPrecision::TF32);
}

// Window points of 1x1 leave no trace in addresses, which would hide that 16
// bytes lie together.
TEST(DeviceLoads, OfPointwiseGradientsTogether) {
  expectTogether(pointwiseGrad(64, 14, 256, 1024), ProductPrecision::TF32, 4,
                 true);
  expectTogether(pointwiseGrad(8, 14, 64, 256), ProductPrecision::F32, 2);
}

/// Expects blocks, and loads of a slice, of the product of m x k by k x n.
void expectTiles(int64_t m, int64_t n, int64_t k, ProductPrecision precision,
                 int64_t blocks, int64_t loads) {
  Counted found = countOf(product("f32", m, n, k), precision, /*runs=*/false);
  EXPECT_EQ(found.kernel.grid, blocks) << m << " " << n << " " << k;
  EXPECT_EQ(found.kernel.mostLoads, loads) << m << " " << n << " " << k;
}

// Of 132 multiprocessors, with two blocks each, few are idle: tiles of 128 x
// 128; parts of k where tiles are few.
TEST(DeviceLoads, TilesThatFillTheDevice) {
  const ProductPrecision tf32 = ProductPrecision::TF32;
  expectTiles(2048, 3072, 768, tf32, 16 * 24, 4);            // 128 x 128
  expectTiles(2048, 768, 3072, tf32, 16 * 6 * 4, 4);         // quarters of k
  expectTiles(2048, 768, 768, tf32, 16 * 6, 4);              // no parts of k
  expectTiles(768, 768, 2048, tf32, 6 * 6 * 7, 4);           // parts of k
  expectTiles(6304, 768, 768, tf32, 50 * 6, 4);              // more than a wave
  expectTiles(64, 32768, 1024, tf32, 256, 3);                // 64 x 128
  expectTiles(17000, 60, 36, ProductPrecision::F32, 133, 3); // 128 x 64
  expectTiles(60, 17000, 36, ProductPrecision::F32, 133, 3); // 64 x 128
}

/// Launches a kernel of rows on zeros; expects that it loads at most `share` of
/// `bytes`, which it has to read, and `together` loads before one is waited
/// for.
void expectOnce(const std::string &text, uint64_t bytes, double share,
                int64_t together) {
  Counted found = countOf(text, ProductPrecision::F32, /*runs=*/true);
  EXPECT_GE(found.loads.bytes, bytes) << text;
  EXPECT_LE(double(found.loads.bytes), share * double(bytes)) << text;
  EXPECT_GE(found.kernel.mostLoads, together) << text;
}

// Rows of layer norm and softmax stay in registers, all of a row's vectors are
// on their way together, and the long rows of cross entropy are read once.
TEST(DeviceLoads, RowsAreReadOnce) {
  std::string x = "tensor<4x768xf32>", p = "tensor<768xf32>",
              s = "tensor<4xf32>", three = x + ", " + s + ", " + s;
  expectOnce(kernelText("row", "%x: " + x + ", %w: " + p + ", %b: " + p, three,
                        "%0:3 = ckopt.layer_norm %x scale %w bias %b {axis = 1 "
                        ": i64, epsilon = 1.0e-5 : f64} : (" +
                            x + ", " + p + ", " + p + ") -> (" + three +
                            ")\n return %0#0, %0#1, %0#2 : " + three + "\n"),
             4 * 4 * 768 * 3, 1.0, 6);
  expectOnce(kernelText("row", "%x: " + x, x,
                        "%0 = ckopt.softmax %x {axis = 1 : i64} : (" + x +
                            ") -> " + x + "\n return %0 : " + x + "\n"),
             4 * 4 * 768, 1.0, 6);
  std::string l = "tensor<2x20001xf32>", t = "tensor<2xi64>",
              r = "tensor<2xf32>", all = r + ", " + r + ", " + r;
  expectOnce(kernelText("row", "%x: " + l + ", %t: " + t, all,
                        "%0:3 = ckopt.cross_entropy %x, %t {axis = 1 : i64, "
                        "ignore_index = -100 : i64} : (" +
                            l + ", " + t + ") -> (" + all +
                            ")\n return %0#0, %0#1, %0#2 : " + all + "\n"),
             2 * 4 * 20001, 1.1, 8);
}

/// A convolution of 7x7 with strides of 2 that makes 64 channels of few, or the
/// gradient of its weight, channels last.
std::string imageConvolution(const std::string &op, int64_t channels) {
  std::string x = tensor({2, channels, 32, 32}, "f32", true),
              w = tensor({64, channels, 7, 7}, "f32", true),
              y = tensor({2, 64, 16, 16}, "f32", true);
  bool forward = op == "conv";
  std::string first = forward ? x : y, second = forward ? w : x,
              made = forward ? y : w;
  return kernelText(
      "library", "%a: " + first + ", %b: " + second, made,
      "%0 = ckopt." + op + " %a, %b {strides = array<i64: 2, 2>, pads_low = " +
          "array<i64: 3, 3>, pads_high = array<i64: 3, 3>, dilations = "
          "array<i64: 1, 1>, groups = 1 : i64} : (" +
          first + ", " + second + ") -> " + made + "\n return %0 : " + made +
          "\n");
}

// With a fourth channel a convolution of images needs fewer loads, though it
// asks for more bytes, and moves no more than it asks for.
TEST(DeviceLoads, FewChannels) {
  for (const char *op : {"conv", "conv_weight_grad"}) {
    auto count = [&](int64_t channels) {
      Counted found =
          countOf(imageConvolution(op, channels), ProductPrecision::TF32, true);
      EXPECT_LE(found.kernel.loadStretches, 4) << op << channels;
      std::string name = std::string(op) + std::to_string(channels);
      RecordProperty(name + "_requests", int(found.loads.requests));
      RecordProperty(name + "_sectors", int(found.loads.sectors));
      return found.loads;
    };
    Traffic three = count(3), four = count(4);
    EXPECT_LT(3 * four.requests, 2 * three.requests) << op;
    EXPECT_LE(four.overfetch(), 1.1) << op;
    EXPECT_GT(three.overfetch(), 1.2) << op;
  }
}

/// Expects of the first launch that so many loads stand together, and that
/// requests touch at most `share` of the sectors that they ask for.
void expectTraffic(const std::string &text, int64_t together, double share) {
  Counted found = countOf(text, ProductPrecision::F32, /*runs=*/true);
  EXPECT_GT(found.loads.requests, 0u) << text;
  EXPECT_GE(found.kernel.mostLoads, together) << text;
  EXPECT_LE(found.loads.overfetch(), share) << text;
  EXPECT_LE(found.stores.overfetch(), share) << text;
}

// Columns have eight rows on their way, each a vector of a thread, of which 32
// are neighbours; so have gradients of norms and of softmax all of a row.
TEST(DeviceLoads, OfReductions) {
  std::string x = tensor({8, 64, 16, 16}, "f32", true), m = "tensor<64xf32>";
  expectTraffic(kernelText("reduction", "%x: " + x, m,
                           "%0 = ckopt.reduce sum %x {axes = array<i64: 0, 2, "
                           "3>, keepdims = false} : (" +
                               x + ") -> " + m + "\n return %0 : " + m + "\n"),
                8, 1.0);
  expectTraffic(kernelText("reduction", "%x: " + x, m + ", " + m,
                           "%0:2 = ckopt.moments %x {axes = array<i64: 0, 2, "
                           "3>} : (" +
                               x + ") -> (" + m + ", " + m +
                               ")\n return %0#0, %0#1 : " + m + ", " + m +
                               "\n"),
                8, 1.0);
  std::string r = "tensor<4x768xf32>";
  expectTraffic(kernelText("row", "%g: " + r + ", %y: " + r, r,
                           "%0 = ckopt.softmax_grad %g, %y {axis = 1 : i64} : "
                           "(" +
                               r + ", " + r + ") -> " + r +
                               "\n return %0 : " + r + "\n"),
                12, 1.0);
}

// Rows that are added to a table of embeddings are read as vectors; of the
// indices each is one sector at most.
TEST(DeviceLoads, OfScatters) {
  std::string table = "tensor<64x256xf32>", rows = "tensor<32x256xf32>",
              at = "tensor<32xi64>";
  expectTraffic(kernelText("structured",
                           "%t: " + table + ", %i: " + at + ", %u: " + rows,
                           table,
                           "%0 = ckopt.scatter_add %t, %i, %u {axis = 0 : i64} "
                           ": (" +
                               table + ", " + at + ", " + rows + ") -> " +
                               table + "\n return %0 : " + table + "\n"),
                1, 8.0);
}

// What is moved is what is asked for where vectors lie along k or n; zeros that
// stand for padding are one sector more a request.
TEST(DeviceLoads, Sectors) {
  Counted whole =
      countOf(product("f32", 128, 128, 64), ProductPrecision::TF32, true);
  EXPECT_EQ(whole.loads.bytes, 4u * (2 * 128 + 2 * 128) * 64u);
  EXPECT_EQ(whole.loads.overfetch(), 1.0);
  EXPECT_EQ(whole.stores.bytes, 4u * 128 * 128);
  EXPECT_EQ(whole.stores.overfetch(), 1.0);
  for (const char *op : {"conv", "conv_input_grad"}) {
    Counted padded =
        countOf(convolution(op, 8, 32, 1), ProductPrecision::TF32, true);
    EXPECT_GT(padded.loads.requests, 0u);
    EXPECT_LE(padded.loads.overfetch(), 1.1) << op;
  }
}

} // namespace
