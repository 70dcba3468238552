//===- EdgeGradientTest.cpp - gradients where functions have kinks --------===//
//
// What differences cannot tell: ties, zeros, bounds. PyTorch's conventions but
// where the op says otherwise.
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
  // Nothing but a warning: there is no gradient to return.
  EXPECT_TRUE(
      gradientsOf({"", {values({2}, {0.3, 1.7})}, unaryBuild<FloorOp>()})
          .empty());
}
