//===- LossTest.cpp - losses attached to models ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Losses/Loss.h"
#include "GradientCheck.h"
#include "ckopt/Autodiff/Autodiff.h"
#include "ckopt/Reference/Interpreter.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include <cmath>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::test;
using ckopt::reference::Tensor;

namespace {
class LossGradient : public testing::TestWithParam<GradientCase> {};
TEST_P(LossGradient, MatchesDifferences) { checkGradients(GetParam()); }
} // namespace

static GradientCase crossEntropy(std::string name, std::vector<int64_t> shape,
                                 Arg targets, int64_t axis, int64_t ignore,
                                 bool withLse) {
  return {std::move(name),
          {real(shape, -2, 2), std::move(targets)},
          [=](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
            auto op = CrossEntropyOp::create(b.builder, b.loc, args[0], args[1],
                                             axis, ignore, /*classes=*/nullptr);
            if (withLse)
              return {op.getLoss(), op.getLse()};
            return {op.getLoss()};
          }};
}

INSTANTIATE_TEST_SUITE_P(
    CrossEntropy, LossGradient,
    testing::Values(
        crossEntropy("rank2", {4, 3}, ints({4}, 0, 3), 1, -100, false),
        crossEntropy("lse", {4, 3}, ints({4}, 0, 3), 1, -100, true),
        crossEntropy("image", {2, 3, 2, 2}, ints({2, 2, 2}, 0, 3), 1, -100,
                     false),
        crossEntropy("text", {2, 3, 4}, ints({2, 3}, 0, 4), 2, -100, false),
        crossEntropy("ignored", {4, 3}, intValues({4}, {0, 7, 2, 7}), 1, 7,
                     false)),
    caseName);

/// The check evaluates both the composite ops and what decompose makes of
/// them.
static GradientCase linearCrossEntropy(std::string name, Arg targets,
                                       bool transposed, bool withBias,
                                       int64_t rows, int64_t ignore = -100) {
  std::vector<Arg> args{real({5, 3}), transposed ? real({4, 3}) : real({3, 4}),
                        targets};
  if (withBias)
    args.push_back(real({4}));
  return {std::move(name), std::move(args),
          [=](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
            Value bias = withBias ? args[3] : Value();
            return {b.make<LinearCrossEntropyOp>(
                args[0], args[1], args[2], bias, transposed, rows, ignore)};
          }};
}

INSTANTIATE_TEST_SUITE_P(
    LinearCrossEntropy, LossGradient,
    testing::Values(
        linearCrossEntropy("even", ints({5}, 0, 4), false, false, 1),
        linearCrossEntropy("remainder", ints({5}, 0, 4), true, false, 2),
        linearCrossEntropy("bias", ints({5}, 0, 4), true, true, 3),
        linearCrossEntropy("whole", ints({5}, 0, 4), false, true, 5),
        linearCrossEntropy("ignored", intValues({5}, {7, 7, 1, 3, 7}), false,
                           true, 2, 7)),
    caseName);

namespace {
/// A model whose output is its parameter, with a loss.
struct LossModel {
  LossModel(const std::string &type, const LossOptions &options) {
    std::string text =
        "func.func @forward(%x: " + type +
        " {ckopt.name = \"x\", ckopt.role = \"parameter\"}) -> " + type +
        " {\n  return %x : " + type + "\n}\n";
    module = parseSourceString<ModuleOp>(text, &testContext());
    function = module->lookupSymbol<func::FuncOp>("forward");
    attached = succeeded(attachLoss(function, options)) &&
               succeeded(mlir::verify(module.get()));
  }

  double evaluate(ArrayRef<Tensor> args) {
    reference::Options options;
    options.roundToType = false;
    SmallVector<Tensor> results;
    if (failed(reference::evaluate(function, args, results, options)))
      return NAN;
    return results[0].real(0);
  }
  RankedTensorType type(unsigned arg) {
    return cast<RankedTensorType>(function.getArgumentTypes()[arg]);
  }

  OwningOpRef<ModuleOp> module;
  func::FuncOp function;
  bool attached;
};
} // namespace

TEST(AttachLoss, CrossEntropyIsTheMeanOverCountedTargets) {
  LossModel model("tensor<3x2xf64>", {});
  ASSERT_TRUE(model.attached);
  ASSERT_EQ(model.type(1).getShape(), ArrayRef<int64_t>({3}));
  Tensor logits(model.type(0), std::vector<double>{1, 2, 0.5, -1, 3, 3});
  Tensor targets(model.type(1), std::vector<int64_t>{1, -100, 0});
  double first = std::log(std::exp(1) + std::exp(2)) - 2;
  double third = std::log(2.0);
  EXPECT_NEAR(model.evaluate({logits, targets}), (first + third) / 2, 1e-14);
}

TEST(AttachLoss, ShapesOfTargets) {
  auto shape = [](const std::string &type, LossOptions options) {
    LossModel model(type, options);
    EXPECT_TRUE(model.attached);
    return std::vector<int64_t>(model.type(1).getShape());
  };
  using Ints = std::vector<int64_t>;
  EXPECT_EQ(shape("tensor<2x7xf32>", {}), Ints({2}));
  EXPECT_EQ(shape("tensor<2x5x7xf32>", {}), Ints({2, 5}));
  EXPECT_EQ(shape("tensor<2x7x3x4xf32>", {}), Ints({2, 3, 4}));
  LossOptions channels;
  channels.classAxis = 1;
  EXPECT_EQ(shape("tensor<2x5x7xf32>", channels), Ints({2, 7}));
  LossOptions mse;
  mse.terms.front().kind = "mse";
  EXPECT_EQ(shape("tensor<2x5xf32>", mse), Ints({2, 5}));
}

TEST(AttachLoss, MseIsTheMeanOfSquares) {
  LossOptions options;
  options.terms.front().kind = "mse";
  LossModel model("tensor<2x2xf64>", options);
  ASSERT_TRUE(model.attached);
  Tensor x(model.type(0), std::vector<double>{1, 2, 3, 4});
  Tensor y(model.type(1), std::vector<double>{0, 2, 5, 1});
  EXPECT_NEAR(model.evaluate({x, y}), (1 + 0 + 4 + 9) / 4.0, 1e-14);
  // Its gradient: 2 (x - y) / n.
  ASSERT_TRUE(succeeded(autodiff::differentiate(model.function, {})));
  SmallVector<Tensor> results;
  ASSERT_TRUE(succeeded(reference::evaluate(model.function, {x, y}, results)));
  for (int64_t i = 0; i < 4; ++i)
    EXPECT_NEAR(results[1].real(i), (x.real(i) - y.real(i)) / 2, 1e-14);
}

TEST(AttachLoss, NarrowModelsHaveWideLosses) {
  LossModel model("tensor<2x7xbf16>", {});
  ASSERT_TRUE(model.attached);
  EXPECT_TRUE(getElementTypeOrSelf(model.function.getResultTypes()[0]).isF32());
  ASSERT_TRUE(succeeded(autodiff::differentiate(model.function, {})));
  EXPECT_TRUE(succeeded(mlir::verify(model.module.get())));
}
