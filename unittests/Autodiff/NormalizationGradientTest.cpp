//===- NormalizationGradientTest.cpp - layer and batch norm ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "GradientCheck.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::test;

namespace {
class NormalizationGradient : public testing::TestWithParam<GradientCase> {};
TEST_P(NormalizationGradient, MatchesDifferences) {
  checkGradients(GetParam());
}
} // namespace

using Ints = std::vector<int64_t>;

/// `statistics`: mean and rstd are results, too.
static GradientCase layerNorm(std::string name, Ints shape, int64_t axis,
                              std::optional<Ints> scale,
                              std::optional<Ints> bias,
                              bool statistics = false) {
  std::vector<Arg> args{real(shape)};
  if (scale)
    args.push_back(real(*scale));
  if (bias)
    args.push_back(real(*bias));
  bool hasScale = scale.has_value(), hasBias = bias.has_value();
  return {std::move(name), args,
          [=](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
            auto x = cast<RankedTensorType>(args[0].getType());
            Type row = RankedTensorType::get(x.getShape().take_front(axis),
                                             x.getElementType());
            auto op =
                LayerNormOp::create(b.builder, b.loc, x, row, row, args[0],
                                    hasScale ? args[1] : Value(),
                                    hasBias ? args[hasScale ? 2 : 1] : Value(),
                                    b.builder.getI64IntegerAttr(axis),
                                    b.builder.getF64FloatAttr(1e-3));
            if (statistics)
              return {op.getOutput(), op.getMean(), op.getRstd()};
            return {op.getOutput()};
          }};
}

/// `statistics`: rstd is a result, too.
static GradientCase rmsNorm(std::string name, Ints shape, int64_t axis,
                            std::optional<Ints> scale,
                            bool statistics = false) {
  std::vector<Arg> args{real(shape)};
  if (scale)
    args.push_back(real(*scale));
  bool hasScale = scale.has_value();
  return {std::move(name), args,
          [=](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
            auto x = cast<RankedTensorType>(args[0].getType());
            Type row = RankedTensorType::get(x.getShape().take_front(axis),
                                             x.getElementType());
            auto op = RmsNormOp::create(
                b.builder, b.loc, x, row, args[0], hasScale ? args[1] : Value(),
                b.builder.getI64IntegerAttr(axis),
                b.builder.getF64FloatAttr(1e-3), UnitAttr());
            if (statistics)
              return {op.getOutput(), op.getRstd()};
            return {op.getOutput()};
          }};
}

static GradientCase batchNorm(std::string name, Ints shape,
                              bool statistics = false) {
  return {std::move(name),
          {real(shape), real({shape[1]}), real({shape[1]})},
          [=](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
            auto op =
                BatchNormOp::create(b.builder, b.loc, args[0], args[1], args[2],
                                    b.builder.getF64FloatAttr(1e-3));
            if (statistics)
              return {op.getOutput(), op.getMean(), op.getVariance()};
            return {op.getOutput()};
          }};
}

static GradientCase batchNormInference(std::string name, Ints shape) {
  Ints c{shape[1]};
  return {std::move(name),
          {real(shape), real(c), real(c), real(c), real(c, 0.3, 2)},
          [=](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
            return {b.make<BatchNormInferenceOp>(
                args[0], args[1], args[2], args[3], args[4],
                b.builder.getF64FloatAttr(1e-3))};
          }};
}

static std::vector<GradientCase> normalizationCases() {
  return {
      layerNorm("layer_full", {3, 5}, 1, Ints{5}, Ints{5}),
      layerNorm("layer_3d", {2, 3, 4}, 2, Ints{4}, Ints{4}),
      layerNorm("layer_two_axes", {2, 3, 4}, 1, Ints{3, 4}, Ints{3, 4}),
      layerNorm("layer_broadcast", {2, 3, 4}, 1, Ints{3, 1}, Ints{4}),
      layerNorm("layer_plain", {3, 5}, 1, std::nullopt, std::nullopt),
      layerNorm("layer_scale", {3, 5}, 1, Ints{5}, std::nullopt),
      layerNorm("layer_bias", {3, 5}, 1, std::nullopt, Ints{5}),
      layerNorm("layer_statistics", {3, 5}, 1, Ints{5}, Ints{5}, true),
      rmsNorm("rms_full", {3, 5}, 1, Ints{5}),
      rmsNorm("rms_two_axes", {2, 3, 4}, 1, Ints{3, 4}),
      rmsNorm("rms_broadcast", {2, 3, 4}, 1, Ints{3, 1}),
      rmsNorm("rms_plain", {3, 5}, 1, std::nullopt),
      rmsNorm("rms_statistics", {3, 5}, 1, Ints{5}, true),
      batchNorm("batch_2d", {6, 3}),
      batchNorm("batch_4d", {2, 3, 2, 3}),
      batchNorm("batch_one_channel", {2, 1, 4}),
      batchNorm("batch_statistics", {3, 2, 2}, true),
      batchNormInference("inference_2d", {3, 2}),
      batchNormInference("inference_4d", {2, 3, 2, 2}),
  };
}

INSTANTIATE_TEST_SUITE_P(All, NormalizationGradient,
                         testing::ValuesIn(normalizationCases()), caseName);
