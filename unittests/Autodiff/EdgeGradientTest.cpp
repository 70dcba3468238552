//===- EdgeGradientTest.cpp - gradients where functions have kinks --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients that differences cannot check: ties, zeros, bounds. The conventions
// are PyTorch's unless the op states others.
//
//===----------------------------------------------------------------------===//
#include "GradientCheck.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::test;
using Numbers = std::vector<double>;

template <typename OpT> static Build unaryBuild() {
  return [](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
    return {b.make<OpT>(args[0])};
  };
}
template <typename OpT> static Build binaryBuild() {
  return [](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
    return {b.make<OpT>(args[0], args[1])};
  };
}
static Build reduceBuild(ReduceKind kind) {
  return [=](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
    return {b.make<ReduceOp>(ReduceKindAttr::get(b.builder.getContext(), kind),
                             args[0], b.ints({0}),
                             b.builder.getBoolAttr(false))};
  };
}

TEST(EdgeGradient, ReluStopsAtZero) {
  EXPECT_EQ(gradientsOf({"", {values({3}, {-1, 0, 2})}, unaryBuild<ReluOp>()}),
            std::vector<Numbers>({{0, 0, 1}}));
}

TEST(EdgeGradient, AbsIsFlatAtZero) {
  EXPECT_EQ(gradientsOf({"", {values({3}, {-1, 0, 2})}, unaryBuild<AbsOp>()}),
            std::vector<Numbers>({{-1, 0, 1}}));
}

TEST(EdgeGradient, ClipPassesAtItsBounds) {
  EXPECT_EQ(
      gradientsOf({"",
                   {values({4}, {-1.5, -1, 2, 2.5})},
                   [](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
                     return {b.make<ClipOp>(args[0],
                                            b.builder.getF64FloatAttr(-1),
                                            b.builder.getF64FloatAttr(2))};
                   }}),
      std::vector<Numbers>({{0, 1, 1, 0}}));
}

TEST(EdgeGradient, TiesShareInHalves) {
  for (Build build : {binaryBuild<MaximumOp>(), binaryBuild<MinimumOp>()}) {
    std::vector<Numbers> found =
        gradientsOf({"", {values({2}, {1, 3}), values({2}, {1, 3})}, build});
    EXPECT_EQ(found, std::vector<Numbers>({{0.5, 0.5}, {0.5, 0.5}}));
  }
}

TEST(EdgeGradient, EqualExtremesShareEvenly) {
  EXPECT_EQ(
      gradientsOf(
          {"", {values({4}, {2, 5, 5, 5})}, reduceBuild(ReduceKind::Max)}),
      std::vector<Numbers>({{0, 1 / 3.0, 1 / 3.0, 1 / 3.0}}));
  EXPECT_EQ(
      gradientsOf({"", {values({3}, {2, 2, 5})}, reduceBuild(ReduceKind::Min)}),
      std::vector<Numbers>({{0.5, 0.5, 0}}));
}

TEST(EdgeGradient, ProductWithZeros) {
  EXPECT_EQ(gradientsOf(
                {"", {values({3}, {2, 3, 5})}, reduceBuild(ReduceKind::Prod)}),
            std::vector<Numbers>({{15, 10, 6}}));
  EXPECT_EQ(gradientsOf(
                {"", {values({3}, {2, 0, 5})}, reduceBuild(ReduceKind::Prod)}),
            std::vector<Numbers>({{0, 10, 0}}));
  EXPECT_EQ(gradientsOf(
                {"", {values({3}, {0, 0, 5})}, reduceBuild(ReduceKind::Prod)}),
            std::vector<Numbers>({{0, 0, 0}}));
}

TEST(EdgeGradient, PowersOfZeroAreFinite) {
  // d/dx x^e at x = 0: e = 0 flat, e = 1 slope 1, e = 2 slope 0.
  // d/de 0^e: 0.
  std::vector<Numbers> found =
      gradientsOf({"",
                   {values({3}, {0, 0, 0}), values({3}, {0, 1, 2})},
                   binaryBuild<PowOp>()});
  EXPECT_EQ(found, std::vector<Numbers>({{0, 1, 0}, {0, 0, 0}}));
}

TEST(EdgeGradient, SoftplusStaysFinite) {
  std::vector<Numbers> found =
      gradientsOf({"", {values({2}, {-800, 800})}, unaryBuild<SoftplusOp>()});
  EXPECT_EQ(found, std::vector<Numbers>({{0, 1}}));
}

TEST(EdgeGradient, ZeroDerivativesGiveNoGradient) {
  // This only warns, because there is no gradient to return.
  EXPECT_TRUE(
      gradientsOf({"", {values({2}, {0.3, 1.7})}, unaryBuild<FloorOp>()})
          .empty());
}

//===----------------------------------------------------------------------===//
// Poles behind masks: 0 times an infinite derivative is 0
//===----------------------------------------------------------------------===//

using Formula = llvm::function_ref<Value(TensorBuilder &, ValueRange)>;

/// The gradients of where(x > 0, f(x, ...), 0), x the first argument.
static std::vector<Numbers> maskedGradients(std::vector<Arg> args, Formula f) {
  return gradientsOf(
      {"", std::move(args),
       [&](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
         return {
             b.where(b.compare(ComparePredicate::GT, args[0], 0), f(b, args))};
       }});
}

template <typename OpT> static Value apply(TensorBuilder &b, ValueRange args) {
  return b.make<OpT>(args[0]);
}

TEST(EdgeGradient, MaskedPolesOfFunctions) {
  Arg x = values({3}, {0, -1, 4}); // a pole, outside of the domain, inside
  std::vector<std::pair<Formula, double>> cases = {
      {apply<LogOp>, 1 / 4.0},
      {apply<SqrtOp>, 1 / 4.0},
      {apply<RsqrtOp>, -1 / 16.0},
      {apply<ReciprocalOp>, -1 / 16.0}};
  for (auto [formula, slope] : cases)
    EXPECT_EQ(maskedGradients({x}, formula),
              std::vector<Numbers>({{0, 0, slope}}));
}

TEST(EdgeGradient, MaskedPolesOfPowers) {
  Arg x = values({3}, {0, -1, 4});
  for (auto [exponent, slope] :
       {std::pair(0.5, 0.25), {-1.0, -1 / 16.0}, {1.5, 3.0}}) {
    double e = exponent;
    EXPECT_EQ(maskedGradients({x},
                              [=](TensorBuilder &b, ValueRange args) {
                                return b.make<PowOp>(args[0],
                                                     b.number(args[0], e));
                              }),
              std::vector<Numbers>({{0, 0, slope}}))
        << exponent;
  }
}

TEST(EdgeGradient, MaskedQuotientsAndProducts) {
  Arg x = values({2}, {0, 2}), y = values({2}, {3, 8});
  EXPECT_EQ(maskedGradients({x, y},
                            [](TensorBuilder &b, ValueRange args) {
                              return b.div(args[1], args[0]);
                            }),
            std::vector<Numbers>({{0, -2}, {0, 0.5}}));
  // The factor is infinite where the mask is off.
  EXPECT_EQ(maskedGradients({x, y},
                            [](TensorBuilder &b, ValueRange args) {
                              Value pole = b.make<ReciprocalOp>(args[0]);
                              return b.mul(args[1], pole);
                            }),
            std::vector<Numbers>({{0, -2}, {0, 0.5}}));
}

TEST(EdgeGradient, OverflowBehindAMask) {
  // Elu as exporters write it: e^x - 1 is infinite where x is taken.
  std::vector<Numbers> found =
      gradientsOf({"",
                   {values({2}, {1e4, 0.5})},
                   [](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
                     Value x = args[0];
                     return {b.select(b.compare(ComparePredicate::GT, x, 0), x,
                                      b.add(b.make<ExpOp>(x), -1))};
                   }});
  EXPECT_EQ(found, std::vector<Numbers>({{1, 1}}));
}

TEST(EdgeGradient, ClippedLogarithmIsFlat) {
  // Binary cross entropy clips log(0) so.
  std::vector<Numbers> found = gradientsOf(
      {"",
       {values({2}, {0, 0.5})},
       [](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
         return {b.make<ClipOp>(b.make<LogOp>(args[0]),
                                b.builder.getF64FloatAttr(-100),
                                b.builder.getF64FloatAttr(INFINITY))};
       }});
  EXPECT_EQ(found, std::vector<Numbers>({{0, 2}}));
}

TEST(EdgeGradient, UnmaskedPolesStayInfinite) {
  // As in PyTorch, the derivative is not changed.
  std::vector<Numbers> found =
      gradientsOf({"", {values({1}, {0})}, unaryBuild<SqrtOp>()});
  EXPECT_EQ(found, std::vector<Numbers>({{INFINITY}}));
}

TEST(EdgeGradient, ReplacedRowsOfSoftmaxHaveNoGradient) {
  // A row of -inf alone: softmax is NaN there, and a select takes it out.
  std::vector<Numbers> found =
      gradientsOf({"",
                   {values({2, 2}, {-INFINITY, -INFINITY, 1, 1}),
                    values({2, 2}, {1, 1, 1, 3})},
                   [](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
                     Value y = b.make<SoftmaxOp>(args[0], 1);
                     Value known = b.compare(ComparePredicate::EQ, y, y);
                     return {b.mul(b.where(known, y), args[1])};
                   }});
  EXPECT_EQ(found, std::vector<Numbers>({{0, 0, -0.5, 0.5}, {0, 0, 0.5, 0.5}}));
}

TEST(EdgeGradient, NoGuardWhereNothingIsInfinite) {
  // x / sqrt(mean(x * x) + eps): no select slows it.
  GradientCase test{
      "",
      {real({2, 3})},
      [](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
        Value x = args[0];
        Value mean = b.make<ReduceOp>(
            ReduceKindAttr::get(b.builder.getContext(), ReduceKind::Mean),
            b.mul(x, x), b.ints({1}), b.builder.getBoolAttr(true));
        return {b.mul(x, b.make<RsqrtOp>(b.add(mean, 1e-5)))};
      }};
  TestFunction function(test, Float64Type::get(&testContext()));
  ASSERT_TRUE(function.differentiate());
  int64_t selects = 0;
  function.get().walk([&](SelectOp) { ++selects; });
  EXPECT_EQ(selects, 0);
}
