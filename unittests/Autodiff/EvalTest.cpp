//===- EvalTest.cpp - the evaluation form computes what inference does ----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "GradientCheck.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Normalize/Normalize.h"
#include "ckopt/Reference/Interpreter.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include <cmath>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::test;
using ckopt::reference::Tensor;

/// Dropout, then batch norm with an unbiased running variance.
static const char *trainingText = R"(
func.func @forward(
    %x: tensor<4x3xf64> {ckopt.name = "x", ckopt.role = "input"},
    %scale: tensor<3xf64> {ckopt.name = "scale", ckopt.role = "parameter"},
    %bias: tensor<3xf64> {ckopt.name = "bias", ckopt.role = "parameter"},
    %mean: tensor<3xf64> {ckopt.name = "mean", ckopt.role = "state"},
    %var: tensor<3xf64> {ckopt.name = "var", ckopt.role = "state"},
    %seed: tensor<i64> {ckopt.name = "seed", ckopt.role = "seed"},
    %step: tensor<i64> {ckopt.name = "step", ckopt.role = "step"})
    -> (tensor<4x3xf64> {ckopt.name = "y"},
        tensor<3xf64> {ckopt.updates = 3 : i64},
        tensor<3xf64> {ckopt.updates = 4 : i64}) {
  %d = ckopt.dropout %x, %seed, %step {ratio = 0.5, site = 0 : i64}
    : (tensor<4x3xf64>, tensor<i64>, tensor<i64>) -> tensor<4x3xf64>
  %y, %m, %v = ckopt.batch_norm %d, %scale, %bias {epsilon = 0.25}
    : (tensor<4x3xf64>, tensor<3xf64>, tensor<3xf64>)
    -> (tensor<4x3xf64>, tensor<3xf64>, tensor<3xf64>)
  %factor = ckopt.constant dense<1.3333333333333333> : tensor<f64>
  %unbiased = ckopt.mul %v, %factor : (tensor<3xf64>, tensor<f64>) -> tensor<3xf64>
  %newMean = ckopt.moving_average %mean, %m {momentum = 0.9}
    : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %newVar = ckopt.moving_average %var, %unbiased {momentum = 0.9}
    : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  return %y, %newMean, %newVar : tensor<4x3xf64>, tensor<3xf64>, tensor<3xf64>
})";

TEST(MakeEval, UsesRunningStatisticsAndNoDropout) {
  auto module = parseSourceString<ModuleOp>(trainingText, &testContext());
  ASSERT_TRUE(module);
  auto forward = module->lookupSymbol<func::FuncOp>("forward");
  FailureOr<func::FuncOp> eval = makeEval(forward, "eval");
  ASSERT_TRUE(succeeded(eval));
  ASSERT_TRUE(succeeded(mlir::verify(module.get())));
  ASSERT_EQ(eval->getNumResults(), 1u);
  ASSERT_EQ(eval->getArgumentTypes(), forward.getArgumentTypes());
  EXPECT_EQ(eval->getAllArgAttrs(), forward.getAllArgAttrs());
  EXPECT_EQ(forward.getNumResults(), 3u);

  SmallVector<Tensor> args, plain, decomposed;
  for (auto [i, type] : llvm::enumerate(eval->getArgumentTypes()))
    args.push_back(Tensor::random(cast<RankedTensorType>(type), i, 0.5, 2));
  ASSERT_TRUE(succeeded(reference::evaluate(*eval, args, plain)));
  for (int64_t n = 0; n < 4; ++n)
    for (int64_t c = 0; c < 3; ++c) {
      double rstd = 1 / std::sqrt(args[4].real(c) + 0.25);
      double want =
          (args[0].real(n * 3 + c) - args[3].real(c)) * rstd * args[1].real(c) +
          args[2].real(c);
      EXPECT_NEAR(plain[0].real(n * 3 + c), want, 1e-14);
    }
  decompose(*eval);
  ASSERT_TRUE(succeeded(mlir::verify(module.get())));
  ASSERT_TRUE(succeeded(reference::evaluate(*eval, args, decomposed)));
  EXPECT_TRUE(reference::allClose(plain[0], decomposed[0], 1e-13, 1e-13));
}

TEST(Normalize, KeepsTheValuesOfProducts) {
  const char *text = R"(
func.func @f(%x: tensor<2x3x4xf64>, %w: tensor<5x4xf64>, %v: tensor<1x5x2xf64>)
    -> tensor<2x3x2xf64> {
  %0 = ckopt.matmul %x, %w {transpose_rhs}
    : (tensor<2x3x4xf64>, tensor<5x4xf64>) -> tensor<2x3x5xf64>
  %1 = ckopt.matmul %0, %v
    : (tensor<2x3x5xf64>, tensor<1x5x2xf64>) -> tensor<2x3x2xf64>
  return %1 : tensor<2x3x2xf64>
})";
  auto module = parseSourceString<ModuleOp>(text, &testContext());
  ASSERT_TRUE(module);
  auto function = module->lookupSymbol<func::FuncOp>("f");
  SmallVector<Tensor> args, before, after;
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes()))
    args.push_back(Tensor::random(cast<RankedTensorType>(type), i));
  ASSERT_TRUE(succeeded(reference::evaluate(function, args, before)));
  ASSERT_TRUE(succeeded(normalize(function)));
  ASSERT_TRUE(succeeded(mlir::verify(module.get())));
  for (MatMulOp op : function.getOps<MatMulOp>())
    EXPECT_EQ(op.getType().getRank(), 2);
  ASSERT_TRUE(succeeded(reference::evaluate(function, args, after)));
  EXPECT_TRUE(reference::allClose(before[0], after[0], 0, 0));
}
