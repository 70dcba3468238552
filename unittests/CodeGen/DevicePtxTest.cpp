//===- DevicePtxTest.cpp - what contractions become on a GPU --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels as PTX: wide accesses where the shape allows them, sums in registers
// (no local memory: emitPtx refuses it), and the figures of ptxas where it is
// installed.
//
//===----------------------------------------------------------------------===//
#include "KernelJit.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Target/Cuda/BlockToPTX/BlockToPTX.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::test;

static PtxModule
ptxOf(const std::string &text, unsigned sm,
      runtime::ProductPrecision precision = runtime::ProductPrecision::F32) {
  DialectRegistry registry;
  registry.insert<CkoptDialect>();
  registerKernelDialects(registry);
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  auto module = parseSourceString<ModuleOp>(text, &context);
  if (!module) {
    ADD_FAILURE() << "does not parse:\n" << text;
    return {};
  }
  OwningOpRef<ModuleOp> into = ModuleOp::create(module->getLoc());
  auto kernel = module->lookupSymbol<func::FuncOp>("k");
  EXPECT_TRUE(succeeded(emitKernel(kernel, launchOptions(precision), *into)));
  PtxOptions options;
  options.sm = sm;
  options.tf32 = precision == runtime::ProductPrecision::TF32;
  auto ptx = emitPtx(*into, options);
  if (!ptx) {
    ADD_FAILURE() << takeErrorText(ptx.takeError()).text << "\n" << text;
    return {};
  }
  return std::move(*ptx);
}

/// The product of [batch, m, k] and [batch, k, n].
static std::string product(const std::string &element, int64_t batch, int64_t m,
                           int64_t n, int64_t k) {
  auto tensor = [&](int64_t rows, int64_t columns) {
    return "tensor<" + std::to_string(batch) + "x" + std::to_string(rows) +
           "x" + std::to_string(columns) + "x" + element + ">";
  };
  std::string a = tensor(m, k), b = tensor(k, n), c = tensor(m, n);
  return test::kernelText("library", "%a: " + a + ", %b: " + b, c,
                          "%0 = ckopt.matmul %a, %b : (" + a + ", " + b +
                              ") -> " + c + "\n return %0 : " + c + "\n");
}

/// Checks that ptxas accepts it and spills nothing; says loudly if there is no
/// ptxas.
static void expectAssembles(const PtxModule &ptx, int64_t mostRegisters) {
  auto ptxas = findPtxas();
  if (!ptxas) {
    std::cout << "ptxas is not installed: NOT assembled\n";
    return;
  }
  auto kernels = assemble(ptx.text, ptx.sm, *ptxas);
  if (!kernels) {
    ADD_FAILURE() << takeErrorText(kernels.takeError()).text;
    return;
  }
  for (const AssembledKernel &kernel : *kernels) {
    EXPECT_EQ(kernel.spillStoreBytes + kernel.spillLoadBytes, 0);
    EXPECT_EQ(kernel.stackBytes, 0);
    EXPECT_LE(kernel.registers, mostRegisters);
    std::cout << kernel.symbol << ", sm_" << ptx.sm << ": " << kernel.registers
              << " registers, " << kernel.sharedBytes << " bytes shared\n";
  }
}

static size_t count(const std::string &text, const std::string &what) {
  return llvm::StringRef(text).count(what);
}

TEST(DevicePtx, SmallTiles) {
  PtxModule ptx = ptxOf(product("f32", 1, 200, 200, 200), 80);
  ASSERT_EQ(ptx.kernels.size(), 1u);
  EXPECT_EQ(ptx.kernels[0].narrowAccesses, 0);
  EXPECT_EQ(ptx.kernels[0].splitVectors, 0);
  EXPECT_GE(count(ptx.text, "ld.shared.v4"), 2u);
  expectAssembles(ptx, 128);
}

// 8 x 8 sums a thread; two blocks fit at once (256 threads, 65,536 registers).
TEST(DevicePtx, LargeTiles) {
  PtxModule ptx = ptxOf(product("f32", 1, 2048, 2048, 1024), 90);
  ASSERT_EQ(ptx.kernels.size(), 1u);
  EXPECT_EQ(ptx.kernels[0].grid, 256);
  EXPECT_EQ(ptx.kernels[0].narrowAccesses, 0);
  EXPECT_EQ(ptx.kernels[0].splitVectors, 0);
  expectAssembles(ptx, 128);
}

// Addresses under a window take registers, too, beside the sums of large tiles.
TEST(DevicePtx, ConvolutionsInLargeTiles) {
  std::string x = "tensor<64x256x14x14xf32, #ckopt.layout<[0, 2, 3, 1]>>",
              w = "tensor<256x256x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>>";
  for (const char *op : {"conv", "conv_input_grad"}) {
    PtxModule ptx = ptxOf(
        test::kernelText(
            "library", "%x: " + x + ", %w: " + w, x,
            std::string("%0 = ckopt.") + op +
                " %x, %w {strides = array<i64: 1, 1>, pads_low = array<i64: 1, "
                "1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, "
                "1>, groups = 1 : i64} : (" +
                x + ", " + w + ") -> " + x + "\n return %0 : " + x + "\n"),
        90, runtime::ProductPrecision::TF32);
    // Parts of the sums, and a launch that adds them.
    ASSERT_EQ(ptx.kernels.size(), 2u);
    EXPECT_EQ(ptx.kernels[0].grid, 2 * 98 * 2); // of 128 x 128
    expectAssembles(ptx, 255);
  }
}

// Of the input points of a convolution with strides of 2 a window of 1 x 1
// meets a quarter: one launch of four multiplies, the others store zeros.
TEST(DevicePtx, StridedGradientsMultiplyNoZeros) {
  std::string dy = "tensor<4x64x16x16xf32, #ckopt.layout<[0, 2, 3, 1]>>",
              w = "tensor<64x64x1x1xf32, #ckopt.layout<[0, 2, 3, 1]>>",
              dx = "tensor<4x64x32x32xf32, #ckopt.layout<[0, 2, 3, 1]>>";
  PtxModule ptx = ptxOf(
      test::kernelText(
          "library", "%dy: " + dy + ", %w: " + w, dx,
          "%0 = ckopt.conv_input_grad %dy, %w {strides = array<i64: 2, 2>, "
          "pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, "
          "dilations = array<i64: 1, 1>, groups = 1 : i64} : (" +
              dy + ", " + w + ") -> " + dx + "\n return %0 : " + dx + "\n"),
      90, runtime::ProductPrecision::TF32);
  ASSERT_EQ(ptx.kernels.size(), 4u);
  size_t multiply = 0;
  for (const PtxKernel &kernel : ptx.kernels) {
    llvm::StringRef code = llvm::StringRef(ptx.text)
                               .split(".entry " + kernel.symbol)
                               .second.split(".entry ")
                               .first;
    multiply += code.contains("mma.sync");
  }
  EXPECT_EQ(multiply, 1u);
}

// Rows of 37 elements: vectors would not be aligned.
TEST(DevicePtx, NarrowWhereRowsAreNoMultiples) {
  PtxModule ptx = ptxOf(product("f32", 1, 70, 65, 37), 80);
  ASSERT_EQ(ptx.kernels.size(), 1u);
  EXPECT_EQ(ptx.kernels[0].wideAccesses, 0);
  expectAssembles(ptx, 128);
}

TEST(DevicePtx, Doubles) {
  PtxModule ptx = ptxOf(product("f64", 1, 70, 66, 38), 90);
  ASSERT_EQ(ptx.kernels.size(), 1u);
  EXPECT_EQ(ptx.kernels[0].narrowAccesses, 0);
  expectAssembles(ptx, 128);
}

// Tensor cores, with sums in f32: sixteen products of a warp's part of a tile
// for each 32 of k.
TEST(DevicePtx, Halves) {
  for (const char *type : {"f16", "bf16"})
    for (unsigned sm : {80u, 90u}) {
      PtxModule ptx = ptxOf(product(type, 1, 200, 200, 400), sm);
      ASSERT_EQ(ptx.kernels.size(), 1u);
      std::string half = type;
      EXPECT_EQ(count(ptx.text, "mma.sync.aligned.m16n8k16.row.col.f32." +
                                    half + "." + half + ".f32"),
                8u);
      EXPECT_EQ(count(ptx.text, "fma.rn"), 0u);
      EXPECT_EQ(ptx.kernels[0].splitVectors, 0);
      expectAssembles(ptx, 128);
    }
}

TEST(DevicePtx, HalvesInLargeTiles) {
  PtxModule ptx = ptxOf(product("bf16", 1, 2048, 2048, 1024), 90);
  ASSERT_EQ(ptx.kernels.size(), 1u);
  EXPECT_EQ(ptx.kernels[0].grid, 128);
  EXPECT_EQ(ptx.kernels[0].splitVectors, 0);
  // Results alone, in pairs: a thread's 128.
  EXPECT_EQ(count(ptx.text, "st.shared"), 64u);
  // B lies across k, and is transposed when it is read.
  EXPECT_GT(count(ptx.text, "ldmatrix.sync.aligned.m8n8.x2.trans"), 0u);
  expectAssembles(ptx, 255);
}

// Odd rows, so that every element is loaded and stored by itself.
TEST(DevicePtx, HalvesInOddRows) {
  expectAssembles(ptxOf(product("bf16", 2, 70, 65, 37), 80), 128);
}

// f32 by TF32: vectors of 16 bytes are copied to shared memory as they are,
// whichever way an operand lies, and elements are rounded when fragments are
// read: four words of A, two of B for each 16 x 8.
TEST(DevicePtx, RoundedToTf32) {
  for (unsigned sm : {80u, 90u}) {
    PtxModule ptx = ptxOf(product("f32", 1, 200, 200, 200), sm,
                          runtime::ProductPrecision::TF32);
    ASSERT_EQ(ptx.kernels.size(), 1u);
    EXPECT_EQ(
        count(ptx.text, "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"),
        8u);
    EXPECT_EQ(count(ptx.text, "cvt.rna.tf32.f32"), 2 * (4u + 2 * 4u));
    EXPECT_EQ(count(ptx.text, "st.shared"), 8u); // results, in pairs
    EXPECT_EQ(count(ptx.text, "cp.async.cg.shared.global"),
              4 * 2u); // three slices before
    EXPECT_EQ(count(ptx.text, "cp.async.wait_group"), 1u);
    EXPECT_EQ(count(ptx.text, "ldmatrix.sync.aligned.m8n8.x4.shared.b16"), 2u);
    EXPECT_EQ(ptx.kernels[0].splitVectors, 0);
    expectAssembles(ptx, 128);
  }
}

// Two blocks share a multiprocessor's registers.
TEST(DevicePtx, RoundedInLargeTiles) {
  PtxModule ptx = ptxOf(product("f32", 1, 2048, 2048, 1024), 90,
                        runtime::ProductPrecision::TF32);
  ASSERT_EQ(ptx.kernels.size(), 1u);
  EXPECT_EQ(ptx.kernels[0].grid, 256); // 128 x 128
  EXPECT_EQ(ptx.kernels[0].narrowAccesses, 0);
  EXPECT_EQ(ptx.kernels[0].splitVectors, 0);
  EXPECT_LE(ptx.kernels[0].sharedBytes, 99 * 1024);
  expectAssembles(ptx, 128);
}

// Odd rows, so that every element is loaded, rounded and stored by itself.
TEST(DevicePtx, RoundedInOddRows) {
  expectAssembles(
      ptxOf(product("f32", 2, 70, 65, 37), 80, runtime::ProductPrecision::TF32),
      128);
}
