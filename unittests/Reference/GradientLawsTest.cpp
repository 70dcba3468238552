//===- GradientLawsTest.cpp - linear ops and their gradients are adjoint --===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A convolution is linear in its input and in its weight, average pooling in
// its input, gather in its data: for all x and y, <A x, y> = <x, A* y>. The
// law holds for every geometry, so it is checked on geometries of every kind:
// strides, dilations, uneven padding, groups, one to three dimensions.
//
//===----------------------------------------------------------------------===//
#include "ReferenceFixture.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::reference;

namespace {
struct Geometry {
  std::string input, weight, output; ///< shapes, "1x2x8"
  std::string window;                ///< attributes
};
class ConvLaws : public test::ReferenceFixture,
                 public testing::WithParamInterface<Geometry> {};
class PoolLaws : public test::ReferenceFixture,
                 public testing::WithParamInterface<Geometry> {};
} // namespace

static double dot(const Tensor &a, const Tensor &b) {
  double sum = 0;
  for (int64_t i = 0; i < a.size(); ++i)
    sum += a.real(i) * b.real(i);
  return sum;
}

/// `text` with $I, $W, $O and $A replaced.
static std::string instantiate(std::string text, const Geometry &geometry) {
  auto replace = [&](StringRef key, const std::string &value) {
    for (size_t at; (at = text.find(key.str())) != std::string::npos;)
      text.replace(at, key.size(), value);
  };
  replace("$I", "tensor<" + geometry.input + "xf64>");
  replace("$W", "tensor<" + geometry.weight + "xf64>");
  replace("$O", "tensor<" + geometry.output + "xf64>");
  replace("$X", "tensor<" + geometry.output + "xi8>");
  replace("$A", geometry.window);
  return text;
}

TEST_P(ConvLaws, GradientsAreAdjoint) {
  auto function = parse(instantiate(R"(
    func.func @main(%x: $I, %w: $W, %g: $O) -> ($O, $I, $W) {
      %0 = ckopt.conv %x, %w {$A} : ($I, $W) -> $O
      %1 = ckopt.conv_input_grad %g, %w {$A} : ($O, $W) -> $I
      %2 = ckopt.conv_weight_grad %g, %x {$A} : ($O, $I) -> $W
      return %0, %1, %2 : $O, $I, $W
    })",
                                    GetParam()));
  SmallVector<Tensor> args;
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes()))
    args.push_back(Tensor::random(cast<RankedTensorType>(type), i + 1));
  SmallVector<Tensor> results = run(function, args);
  double product = dot(results[0], args[2]);
  EXPECT_GT(std::abs(product), 1e-3);
  EXPECT_NEAR(product, dot(results[1], args[0]), 1e-12 * args[0].size());
  EXPECT_NEAR(product, dot(results[2], args[1]), 1e-12 * args[0].size());
}

INSTANTIATE_TEST_SUITE_P(
    Geometries, ConvLaws,
    testing::Values(
        Geometry{"2x3x9", "4x3x3", "2x4x7",
                 "strides = array<i64: 1>, pads_low = array<i64: 0>, "
                 "pads_high = array<i64: 0>, dilations = array<i64: 1>, "
                 "groups = 1 : i64"},
        Geometry{"2x4x7x6", "6x2x3x2", "2x6x4x3",
                 "strides = array<i64: 2, 2>, pads_low = array<i64: 1, 0>, "
                 "pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, "
                 "groups = 2 : i64"},
        Geometry{"1x3x8x8", "3x1x3x3", "1x3x4x8",
                 "strides = array<i64: 2, 1>, pads_low = array<i64: 2, 2>, "
                 "pads_high = array<i64: 2, 2>, dilations = array<i64: 2, 2>, "
                 "groups = 3 : i64"},
        Geometry{"1x2x3x4x5", "2x2x2x2x2", "1x2x2x4x2",
                 "strides = array<i64: 1, 1, 2>, pads_low = array<i64: 0, 1, "
                 "0>, pads_high = array<i64: 0, 0, 0>, dilations = array<i64: "
                 "1, 1, 1>, groups = 1 : i64"}));

/// The gradient of max pooling is the adjoint of picking the winners.
TEST_P(PoolLaws, GradientsAreAdjoint) {
  auto function = parse(instantiate(R"(
    func.func @main(%x: $I, %g: $O) -> ($O, $I, $O, $I, $O, $I) {
      %0 = ckopt.avg_pool %x {$A} : ($I) -> $O
      %1 = ckopt.avg_pool_grad %g {$A} : ($O) -> $I
      %2 = ckopt.avg_pool %x {count_include_pad, $A} : ($I) -> $O
      %3 = ckopt.avg_pool_grad %g {count_include_pad, $A} : ($O) -> $I
      %4, %i = ckopt.max_pool %x {$A} : ($I) -> ($O, $X)
      %5 = ckopt.max_pool_grad %g, %i {$A} : ($O, $X) -> $I
      return %0, %1, %2, %3, %4, %5 : $O, $I, $O, $I, $O, $I
    })",
                                    GetParam()));
  SmallVector<Tensor> args;
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes()))
    args.push_back(Tensor::random(cast<RankedTensorType>(type), i + 1));
  SmallVector<Tensor> results = run(function, args);
  for (size_t pool : {0, 2, 4})
    EXPECT_NEAR(dot(results[pool], args[1]), dot(results[pool + 1], args[0]),
                1e-12 * args[0].size());
}

INSTANTIATE_TEST_SUITE_P(
    Geometries, PoolLaws,
    testing::Values(
        Geometry{"2x3x9", "", "2x3x4",
                 "kernel = array<i64: 3>, strides = array<i64: 2>, pads_low = "
                 "array<i64: 0>, pads_high = array<i64: 0>, dilations = "
                 "array<i64: 1>"},
        Geometry{"1x2x7x8", "", "1x2x4x4",
                 "kernel = array<i64: 3, 2>, strides = array<i64: 2, 2>, "
                 "pads_low = array<i64: 1, 0>, pads_high = array<i64: 1, 0>, "
                 "dilations = array<i64: 1, 1>"},
        // Overlapping and dilated.
        Geometry{"1x1x9x9", "", "1x1x5x4",
                 "kernel = array<i64: 3, 3>, strides = array<i64: 1, 2>, "
                 "pads_low = array<i64: 0, 1>, pads_high = array<i64: 0, 1>, "
                 "dilations = array<i64: 2, 2>"}));
