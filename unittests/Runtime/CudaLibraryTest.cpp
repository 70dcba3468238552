//===- CudaLibraryTest.cpp - products and convolutions by libraries -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tests the descriptions that the runtime gives cuBLASLt and cuDNN, by the
// results.
//
//===----------------------------------------------------------------------===//
#include "CudaLibraryFixture.h"

#include "ckopt/Runtime/CudaLibraries.h"

using namespace ckopt::runtime;
using namespace ckopt::runtime::test;

TEST_F(CudaLibrary, ProductsOfAllOrders) {
  MatMulDesc d = plain(5, 7, 3);
  expectEqual(matmul(d));
  d.aRow = 1, d.aCol = 5; // first transposed
  expectEqual(matmul(d));
  d.bRow = 1, d.bCol = 3; // both
  expectEqual(matmul(d));
  d.cRow = 1, d.cCol = 5; // into a column-major result
  expectEqual(matmul(d));
  d = plain(5, 7, 3);
  d.aRow = 10, d.bRow = 9, d.cRow = 8; // padded rows
  expectEqual(matmul(d));
  for (auto [m, n, k] : {std::tuple(1, 7, 3), std::tuple(5, 1, 3),
                         std::tuple(5, 7, 1), std::tuple(1, 1, 1)})
    expectEqual(matmul(plain(m, n, k)));
}

TEST_F(CudaLibrary, ProductsInBatches) {
  MatMulDesc d = plain(2, 3, 4);
  d.batch[1] = 5;
  d.aBatch[1] = 8, d.bBatch[1] = 12, d.cBatch[1] = 6;
  expectEqual(matmul(d));
  EXPECT_EQ(count("cublasLtMatmul\n") + count("execute cublasLtMatmul"), 1);
  d.bBatch[1] = 0; // one operand for all
  expectEqual(matmul(d));
  d = plain(2, 3, 4);
  d.batch[0] = 2, d.batch[1] = 3; // two that fold into one
  d.aBatch[0] = 24, d.bBatch[0] = 36, d.cBatch[0] = 18;
  d.aBatch[1] = 8, d.bBatch[1] = 12, d.cBatch[1] = 6;
  expectEqual(matmul(d));
  EXPECT_EQ(count("execute cublasLtMatmul"), 1);
  // Heads in place: [B, T, H, D] times [B, T, H, D] transposed.
  d = MatMulDesc();
  d.m = 4, d.n = 4, d.k = 3;
  d.batch[0] = 2, d.batch[1] = 5;
  d.aBatch[0] = d.bBatch[0] = 4 * 5 * 3, d.aBatch[1] = d.bBatch[1] = 3;
  d.aRow = 15, d.aCol = 1, d.bRow = 1, d.bCol = 15;
  d.cBatch[0] = 80, d.cBatch[1] = 16, d.cRow = 4, d.cCol = 1;
  expectEqual(matmul(d));
  EXPECT_EQ(count("execute cublasLtMatmul"), 2) << "a launch for each B";
  // 60 floats between them: addresses are multiples of 16 bytes.
  EXPECT_EQ(count("cublasLtMatmulAlgoGetHeuristic workspace 4096 alignment 16"),
            1);
}

// The addend lies elsewhere; it is read in the order of the result.
TEST_F(CudaLibrary, ProductsThatAreAdded) {
  for (DType dtype : {DType::F32, DType::F64, DType::BF16}) {
    PrimitiveDesc desc = matmul(plain(5, 7, 3));
    desc.dtype = dtype;
    desc.accumulate = true;
    EXPECT_EQ(cudaLibraryRefuses(desc), "");
    expectEqual(desc);
    desc.matmul.cRow = 1, desc.matmul.cCol = 5; // into a column-major result
    expectEqual(desc);
    MatMulDesc &d = desc.matmul = plain(2, 3, 4);
    d.batch[0] = 2, d.batch[1] = 3; // two that do not fold
    d.aBatch[0] = 8, d.aBatch[1] = 16, d.bBatch[0] = 36, d.cBatch[0] = 18;
    d.bBatch[1] = 12, d.cBatch[1] = 6;
    expectEqual(desc);
    EXPECT_EQ(count("execute cublasLtMatmul"), 2);
  }
}

// A bias is added by the library's epilogue, whose address each launch sets;
// its descriptor has one of the arena's alignment before.
TEST_F(CudaLibrary, ProductsWithBias) {
  for (DType dtype : {DType::F32, DType::F64, DType::F16, DType::BF16})
    for (bool wide : {false, true})
      for (auto [m, n, k] :
           {std::tuple(5, 7, 3), std::tuple(1, 7, 3), std::tuple(5, 1, 3),
            std::tuple(1, 1, 1), std::tuple(8, 16, 4)}) {
        PrimitiveDesc desc = matmul(plain(m, n, k));
        desc.dtype = dtype;
        desc.accumulate = desc.hasBias = true;
        desc.wideResult = wide;
        if (wide && dtypeSize(dtype) != 2)
          continue;
        EXPECT_EQ(cudaLibraryRefuses(desc), "");
        expectEqual(desc);
        EXPECT_EQ(count("cublasLtMatmulAlgoGetHeuristic workspace 4096 "
                        "alignment 256 bias"),
                  1);
      }
  PrimitiveDesc tf32 = matmul(plain(5, 7, 3));
  tf32.accumulate = tf32.hasBias = true;
  tf32.precision = ProductPrecision::TF32;
  expectEqual(tf32);
}

// A bias is one row, and what it is added to grows a tensor.
TEST_F(CudaLibrary, BiasesOfOtherProductsAreRefused) {
  PrimitiveDesc desc = matmul(plain(5, 7, 3));
  desc.hasBias = true;
  EXPECT_NE(cudaLibraryRefuses(desc), "");
  desc.accumulate = true;
  EXPECT_EQ(cudaLibraryRefuses(desc), "");
  PrimitiveDesc turned = desc, batched = desc;
  turned.matmul.cRow = 1, turned.matmul.cCol = 5;
  EXPECT_NE(cudaLibraryRefuses(turned), "");
  batched.matmul.batch[1] = 2;
  EXPECT_NE(cudaLibraryRefuses(batched), "");
}

// Matrices of halves are summed in f32, and their alignment counts two bytes an
// element.
TEST_F(CudaLibrary, ProductsOfOtherTypes) {
  for (DType dtype : {DType::F64, DType::F16, DType::BF16}) {
    PrimitiveDesc desc = matmul(plain(5, 7, 3));
    desc.dtype = dtype;
    EXPECT_EQ(cudaLibraryRefuses(desc), "");
    expectEqual(desc);
    EXPECT_EQ(count(dtype == DType::F64
                        ? "cublasLtMatmulDescCreate compute 70"
                        : "cublasLtMatmulDescCreate compute 68"),
              1);
    desc.matmul.aRow = 1, desc.matmul.aCol = 5; // transposed
    expectEqual(desc);
    MatMulDesc &d = desc.matmul = plain(2, 3, 4);
    d.batch[1] = 5;
    d.aBatch[1] = 8, d.bBatch[1] = 12, d.cBatch[1] = 6;
    expectEqual(desc);
    d.batch[0] = 2, d.batch[1] = 3; // two that do not fold: B is outside
    d.aBatch[0] = 8, d.aBatch[1] = 16, d.bBatch[0] = 36, d.cBatch[0] = 18;
    expectEqual(desc);
    EXPECT_EQ(count("execute cublasLtMatmul"), 2);
    // 36 and 8 and 18 elements between them.
    int64_t alignment = 2 * dtypeSize(dtype);
    EXPECT_EQ(count("cublasLtMatmulAlgoGetHeuristic workspace 4096 alignment " +
                    std::to_string(alignment)),
              1)
        << log();
  }
}

TEST_F(CudaLibrary, ConvolutionsAndTheirGradients) {
  ConvDesc c;
  c.batch = 2, c.inChannels = 4, c.outChannels = 6;
  c.in[0] = 5, c.in[1] = 7;
  c.kernel[0] = 3, c.kernel[1] = 2;
  c.strides[0] = 2, c.dilations[1] = 2;
  c.padsLo[0] = c.padsHi[0] = 1, c.padsLo[1] = c.padsHi[1] = 1;
  c.out[0] = 3, c.out[1] = 7;
  for (PrimitiveKind kind :
       {PrimitiveKind::ConvForward, PrimitiveKind::ConvInputGrad,
        PrimitiveKind::ConvWeightGrad})
    for (bool channelsLast : {false, true})
      for (int64_t groups : {1, 2}) {
        PrimitiveDesc desc;
        desc.kind = kind;
        desc.conv = c;
        desc.conv.channelsLast = channelsLast;
        desc.conv.groups = groups;
        expectEqual(desc);
        if (channelsLast) {
          desc.conv.weightsLast = true;
          expectEqual(desc);
        }
        EXPECT_EQ(count("execute cudnnBackendExecute"), 1);
      }
  PrimitiveDesc line;
  line.kind = PrimitiveKind::ConvForward;
  line.conv.rank = 1, line.conv.batch = 2;
  line.conv.inChannels = 3, line.conv.outChannels = 2;
  line.conv.in[0] = 9, line.conv.kernel[0] = 3, line.conv.out[0] = 7;
  for (bool channelsLast : {false, true}) {
    line.conv.channelsLast = channelsLast;
    expectEqual(line);
  }
  line.conv.rank = 3;
  line.conv.in[1] = 4, line.conv.kernel[1] = 2, line.conv.out[1] = 3;
  line.conv.in[2] = 3, line.conv.kernel[2] = 3, line.conv.out[2] = 1;
  expectEqual(line);
}

/// A convolution of 3x3 over four channels.
static PrimitiveDesc smallConvolution() {
  PrimitiveDesc desc;
  desc.kind = PrimitiveKind::ConvForward;
  ConvDesc &c = desc.conv;
  c.batch = 2, c.inChannels = 4, c.outChannels = 6;
  c.in[0] = c.in[1] = 5, c.kernel[0] = c.kernel[1] = 3;
  c.out[0] = c.out[1] = 3;
  return desc;
}

// f64 behaves like f32; which convolutions of halves there are depends on the
// device, so the call itself is no reason to refuse them before one is seen.
TEST_F(CudaLibrary, ConvolutionsOfOtherTypes) {
  PrimitiveDesc desc = smallConvolution();
  for (PrimitiveKind kind :
       {PrimitiveKind::ConvForward, PrimitiveKind::ConvInputGrad,
        PrimitiveKind::ConvWeightGrad}) {
    desc.kind = kind;
    desc.dtype = DType::F64;
    for (bool channelsLast : {false, true}) {
      desc.conv.channelsLast = channelsLast;
      EXPECT_EQ(cudaLibraryRefuses(desc), "");
      expectEqual(desc);
    }
    for (DType half : {DType::F16, DType::BF16}) {
      desc.dtype = half;
      EXPECT_EQ(cudaLibraryRefuses(desc), "");
    }
  }
}

// The graph's padding has two numbers a dimension.
TEST_F(CudaLibrary, ConvolutionsWithUnevenPadding) {
  PrimitiveDesc desc = smallConvolution();
  desc.conv.padsHi[0] = 1, desc.conv.out[0] = 4;
  desc.conv.padsLo[1] = 2, desc.conv.out[1] = 5;
  for (PrimitiveKind kind :
       {PrimitiveKind::ConvForward, PrimitiveKind::ConvInputGrad,
        PrimitiveKind::ConvWeightGrad}) {
    desc.kind = kind;
    EXPECT_EQ(cudaLibraryRefuses(desc), "");
    expectEqual(desc);
  }
}

// Gradients of weights keep the sums of 16-bit products unrounded.
TEST_F(CudaLibrary, WideGradientsOfWeights) {
  PrimitiveDesc desc = smallConvolution();
  desc.wideResult = true;
  for (DType half : {DType::F16, DType::BF16}) {
    desc.dtype = half;
    desc.kind = PrimitiveKind::ConvForward;
    EXPECT_NE(cudaLibraryRefuses(desc), "");
    desc.kind = PrimitiveKind::ConvWeightGrad;
    EXPECT_EQ(cudaLibraryRefuses(desc), "");
    expectEqual(desc);
    desc.conv.batch = 500; // bf16 cannot count to it
    expectEqual(desc);
    desc.conv.batch = 2;
  }
}

// The compute type sets the precision of operands; small whole numbers are
// exact in all of them.
TEST_F(CudaLibrary, ProductsByPrecision) {
  for (auto [precision, compute] :
       {std::pair(ProductPrecision::F32, 68), {ProductPrecision::TF32, 77}}) {
    PrimitiveDesc desc = matmul(plain(5, 7, 3));
    desc.precision = precision;
    EXPECT_EQ(cudaLibraryRefuses(desc), "");
    expectEqual(desc);
    EXPECT_EQ(
        count("cublasLtMatmulDescCreate compute " + std::to_string(compute)), 1)
        << compute;
  }
}

// Engines on tensor cores are for TF32; the one that rounds to halves is passed
// over, and the one that may give other bits in another run.
TEST_F(CudaLibrary, ConvolutionsByPrecision) {
  PrimitiveDesc desc = smallConvolution();
  for (PrimitiveKind kind :
       {PrimitiveKind::ConvForward, PrimitiveKind::ConvInputGrad,
        PrimitiveKind::ConvWeightGrad}) {
    desc.kind = kind;
    desc.precision = ProductPrecision::F32;
    expectEqual(desc);
    EXPECT_EQ(count("cudnnBackendExecute engine 4"), 2) << "once before";
    desc.precision = ProductPrecision::TF32;
    EXPECT_EQ(cudaLibraryRefuses(desc), "");
    expectEqual(desc);
    EXPECT_EQ(count("cudnnBackendExecute engine 3"), 2);
  }
}
