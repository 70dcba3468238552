//===- AttentionGradientTest.cpp - gradients of attention -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "GradientCheck.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::test;

namespace {
class AttentionGradient : public testing::TestWithParam<GradientCase> {};
TEST_P(AttentionGradient, MatchesDifferences) { checkGradients(GetParam()); }

using Ints = std::vector<int64_t>;

/// What an attention has beside query, key and value.
struct Extras {
  std::optional<Ints> bias = {}, mask = {}; ///< their shapes
  std::optional<double> fill = {};
  std::optional<int64_t> causal = {}, window = {};
  std::optional<Ints> segments = {}; ///< their numbers, of all samples
  bool zeroEmptyRows = false, lse = false;
  double ratio = 0; ///< of a dropout
  std::optional<double> cap = {};
};

GradientCase attention(std::string name, Ints query, Ints key, Ints value,
                       Extras extras = {}) {
  std::vector<Arg> args{real(query), real(key), real(value)};
  if (extras.bias)
    args.push_back(real(*extras.bias));
  if (extras.mask)
    args.push_back(ints(*extras.mask, 0, 3)); // 0 is masked
  auto build = [=](TensorBuilder &b, ValueRange in) -> SmallVector<Value> {
    Value bias = extras.bias ? in[3] : Value(), mask;
    if (bias && getElementTypeOrSelf(bias).getIntOrFloatBitWidth() == 16)
      bias = b.cast(bias, b.builder.getF32Type());
    if (extras.mask)
      mask = b.compare(ComparePredicate::NE, in.back(), 0);
    OpBuilder &ops = b.builder;
    bool drops = extras.ratio > 0;
    auto scalar = [&](int64_t value) -> Value {
      auto type = RankedTensorType::get({}, ops.getI64Type());
      return drops ? b.make<ConstantOp>(DenseElementsAttr::get(type, {value}))
                   : Value();
    };
    Value segments;
    if (extras.segments) {
      auto type = RankedTensorType::get({1, int64_t(extras.segments->size())},
                                        ops.getI64Type());
      segments = b.make<ConstantOp>(
          DenseElementsAttr::get(type, ArrayRef(*extras.segments)));
    }
    auto op = AttentionOp::create(
        ops, b.loc, in[0], in[1], in[2], bias, mask, segments, scalar(3),
        scalar(5), ops.getF64FloatAttr(0.7),
        extras.cap ? ops.getF64FloatAttr(*extras.cap) : FloatAttr(),
        extras.fill ? ops.getF64FloatAttr(*extras.fill) : FloatAttr(),
        extras.causal ? ops.getI64IntegerAttr(*extras.causal) : IntegerAttr(),
        extras.window ? ops.getI64IntegerAttr(*extras.window) : IntegerAttr(),
        extras.zeroEmptyRows ? ops.getUnitAttr() : UnitAttr(),
        drops ? ops.getF64FloatAttr(extras.ratio) : FloatAttr(),
        drops ? ops.getI64IntegerAttr(7) : IntegerAttr());
    if (extras.lse)
      return {op.getOutput(), op.getLse()};
    return {op.getOutput()};
  };
  return {std::move(name), std::move(args), build};
}

std::vector<GradientCase> attentionCases() {
  Ints q{2, 4, 5, 3}, k{2, 4, 6, 3}, v{2, 4, 6, 2}, k2{2, 2, 6, 3},
      v2{2, 2, 6, 2}, v5{2, 4, 5, 2};
  return {
      attention("plain", q, k, v),
      attention("rank3", {4, 5, 3}, {4, 6, 3}, {4, 6, 2}),
      attention("causal", q, k, v, {.causal = 1}),
      attention("causal_with_empty_rows", q, k, v,
                {.causal = -2, .zeroEmptyRows = true}),
      attention("groups", q, k2, v2, {.causal = 0}),
      attention("bias", q, k, v, {.bias = Ints{4, 1, 6}}),
      attention("bias_of_groups", q, k2, v2,
                {.bias = Ints{2, 4, 5, 6}, .causal = 0}),
      attention("mask", q, k, v,
                {.mask = Ints{2, 1, 5, 6}, .zeroEmptyRows = true}),
      attention("mask_by_key", q, k, v, {.mask = Ints{2, 1, 1, 6}}),
      attention("finite_fill", q, k, v,
                {.mask = Ints{2, 1, 5, 6}, .fill = -1.5}),
      attention("finite_fill_and_bias", q, k, v,
                {.bias = Ints{6}, .mask = Ints{5, 6}, .fill = 0.5}),
      attention("dropout", q, k, v, {.causal = 1, .ratio = 0.4}),
      attention("dropout_of_groups_and_bias", q, k2, v2,
                {.bias = Ints{2, 4, 5, 6}, .ratio = 0.3}),
      attention("window", q, k, v, {.causal = 1, .window = 2}),
      attention("window_alone", q, k, v, {.window = 1}),
      attention("segments", q, q, v5,
                {.causal = 0, .segments = Ints{1, 1, 2, 2, 0}}),
      attention("segments_and_bias", q, q, v5,
                {.bias = Ints{4, 5, 5}, .segments = Ints{1, 0, 1, 0, 0}}),
      attention("lse_of_bounds", q, q, v5,
                {.causal = 0,
                 .window = 3,
                 .segments = Ints{1, 1, 1, 1, 4},
                 .lse = true}),
      attention("cap", q, k, v, {.cap = 1.5}),
      attention("cap_of_groups_and_bias", q, k2, v2,
                {.bias = Ints{2, 4, 5, 6}, .causal = 0, .cap = 0.8}),
      attention("cap_and_finite_fill", q, k, v,
                {.mask = Ints{2, 1, 5, 6}, .fill = -1.5, .cap = 2}),
      attention("cap_and_dropout", q, q, v5,
                {.causal = 0,
                 .window = 3,
                 .segments = Ints{1, 1, 1, 1, 4},
                 .ratio = 0.3,
                 .cap = 1}),
      attention("cap_and_lse", q, k2, v2,
                {.bias = Ints{5, 6}, .lse = true, .cap = 1.2}),
      attention("lse", q, k2, v2, {.bias = Ints{5, 6}, .lse = true}),
  };
}

INSTANTIATE_TEST_SUITE_P(Attention, AttentionGradient,
                         testing::ValuesIn(attentionCases()), caseName);
} // namespace
