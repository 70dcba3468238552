//===- LibraryKernelTest.cpp - descriptors of library kernels -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "KernelJit.h"
#include <gtest/gtest.h>

using namespace ckopt;
using namespace ckopt::test;
using runtime::PrimitiveKind;

static KernelCode plan(const std::string &args, const std::string &result,
                       const std::string &op) {
  KernelJit jit(kernelText("library", args, result,
                           "%0 = ckopt." + op + " -> " + result +
                               "\n return %0 : " + result + "\n"));
  EXPECT_TRUE(jit.ok());
  return jit.code();
}

TEST(LibraryKernel, MatMul) {
  KernelCode code =
      plan("%a: tensor<5x7xf32>, %b: tensor<9x7xf32>", "tensor<5x9xf32>",
           "matmul %a, %b {transpose_rhs} : (tensor<5x7xf32>, "
           "tensor<9x7xf32>)");
  ASSERT_TRUE(code.library);
  const auto &m = code.primitive.matmul;
  EXPECT_EQ(m.m, 5);
  EXPECT_EQ(m.n, 9);
  EXPECT_EQ(m.k, 7);
  EXPECT_EQ(m.bRow, 1);
  EXPECT_EQ(m.bCol, 7);
  EXPECT_EQ(m.cRow, 9);
  EXPECT_EQ(code.primitiveArgs, (llvm::SmallVector<unsigned>{0, 1, 2}));
}

// Contiguous batch dimensions merge into one; a broadcast one has stride 0.
TEST(LibraryKernel, MatMulBatches) {
  const auto merged =
      plan("%a: tensor<2x3x5x7xf32>, %b: tensor<2x3x7x9xf32>",
           "tensor<2x3x5x9xf32>",
           "matmul %a, %b : (tensor<2x3x5x7xf32>, tensor<2x3x7x9xf32>)")
          .primitive.matmul;
  EXPECT_EQ(merged.batch[0], 1);
  EXPECT_EQ(merged.batch[1], 6);
  EXPECT_EQ(merged.aBatch[1], 35);
  const auto broadcast =
      plan("%a: tensor<2x3x5x7xf32>, %b: tensor<7x9xf32>",
           "tensor<2x3x5x9xf32>",
           "matmul %a, %b : (tensor<2x3x5x7xf32>, tensor<7x9xf32>)")
          .primitive.matmul;
  EXPECT_EQ(broadcast.batch[1], 6);
  EXPECT_EQ(broadcast.bBatch[1], 0);
  // Heads stay where a [B, T, H, D] tensor has them.
  const auto heads =
      plan("%a: tensor<2x3x5x7xf32, #ckopt.layout<[0, 2, 1, 3]>>, %b: "
           "tensor<2x3x7x9xf32>",
           "tensor<2x3x5x9xf32>",
           "matmul %a, %b : (tensor<2x3x5x7xf32, #ckopt.layout<[0, 2, 1, 3]>>, "
           "tensor<2x3x7x9xf32>)")
          .primitive.matmul;
  EXPECT_EQ(heads.batch[0], 2);
  EXPECT_EQ(heads.batch[1], 3);
  EXPECT_EQ(heads.aBatch[1], 7);
  EXPECT_EQ(heads.aRow, 21);
}

TEST(LibraryKernel, Convolutions) {
  std::string window = "{strides = array<i64: 2, 2>, pads_low = array<i64: 1, "
                       "1>, pads_high = array<i64: 1, 1>, dilations = "
                       "array<i64: 1, 1>, groups = 1 : i64} ";
  std::string cl = ", #ckopt.layout<[0, 2, 3, 1]>>";
  std::string x = "tensor<2x16x8x8xf32" + cl, w = "tensor<32x16x3x3xf32>",
              y = "tensor<2x32x4x4xf32" + cl;
  KernelCode forward =
      plan("%x: " + x + ", %w: " + w, y,
           "conv %x, %w " + window + ": (" + x + ", " + w + ")");
  EXPECT_EQ(forward.primitive.kind, PrimitiveKind::ConvForward);
  EXPECT_TRUE(forward.primitive.conv.channelsLast);
  EXPECT_EQ(forward.primitive.conv.outChannels, 32);
  KernelCode weight =
      plan("%g: " + y + ", %x: " + x, w,
           "conv_weight_grad %g, %x " + window + ": (" + y + ", " + x + ")");
  EXPECT_EQ(weight.primitive.kind, PrimitiveKind::ConvWeightGrad);
  // The primitive wants the input first.
  EXPECT_EQ(weight.primitiveArgs, (llvm::SmallVector<unsigned>{1, 0, 2}));
  KernelCode input =
      plan("%g: " + y + ", %w: " + w, x,
           "conv_input_grad %g, %w " + window + ": (" + y + ", " + w + ")");
  EXPECT_EQ(input.primitive.kind, PrimitiveKind::ConvInputGrad);
  EXPECT_FALSE(input.primitive.conv.weightsLast);
  std::string last = "tensor<32x16x3x3xf32" + cl;
  EXPECT_TRUE(
      plan("%g: " + y + ", %x: " + x, last,
           "conv_weight_grad %g, %x " + window + ": (" + y + ", " + x + ")")
          .primitive.conv.weightsLast);
}

// A sum that grows: the addend is read before the result is written in its
// place, which is what the planner is told.
TEST(LibraryKernel, MatMulAdd) {
  KernelCode code =
      plan("%a: tensor<7x5xf32>, %b: tensor<7x9xf32>, %c: tensor<5x9xf32>",
           "tensor<5x9xf32>",
           "matmul_add %a, %b, %c {transpose_lhs} : (tensor<7x5xf32>, "
           "tensor<7x9xf32>, tensor<5x9xf32>)");
  ASSERT_TRUE(code.library);
  EXPECT_TRUE(code.primitive.accumulate);
  EXPECT_EQ(code.primitive.matmul.k, 7);
  EXPECT_EQ(code.primitiveArgs, (llvm::SmallVector<unsigned>{0, 1, 2, 3}));
  EXPECT_EQ(code.reuse,
            (llvm::SmallVector<std::pair<unsigned, unsigned>>{{2, 0}}));
}
