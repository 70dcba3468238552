//===- ElementwiseGradientTest.cpp - unary and broadcasting ops -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "GradientCheck.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::test;

namespace {
class ElementwiseGradient : public testing::TestWithParam<GradientCase> {};
TEST_P(ElementwiseGradient, MatchesDifferences) { checkGradients(GetParam()); }
} // namespace

template <typename OpT>
static GradientCase unary(std::string name, double low, double high) {
  return {std::move(name),
          {real({3, 5}, low, high)},
          [](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
            return {b.make<OpT>(args[0])};
          }};
}

template <typename OpT>
static GradientCase binary(std::string name, ArrayRef<int64_t> lhs,
                           ArrayRef<int64_t> rhs, double low = -1,
                           double high = 1) {
  return {std::move(name),
          {real(lhs, low, high), real(rhs, low, high)},
          [](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
            return {b.make<OpT>(args[0], args[1])};
          }};
}

/// Every way in which two shapes broadcast.
template <typename OpT>
static void addBinary(std::vector<GradientCase> &cases, const std::string &name,
                      double low = -1, double high = 1) {
  cases.push_back(binary<OpT>(name + "_same", {2, 3}, {2, 3}, low, high));
  cases.push_back(binary<OpT>(name + "_suffix", {2, 3}, {3}, low, high));
  cases.push_back(binary<OpT>(name + "_scalar", {2, 3}, {}, low, high));
  cases.push_back(binary<OpT>(name + "_scalarLeft", {}, {2, 3}, low, high));
  cases.push_back(binary<OpT>(name + "_outer", {4, 1}, {1, 3}, low, high));
  cases.push_back(
      binary<OpT>(name + "_channels", {2, 3, 2, 2}, {3, 1, 1}, low, high));
  cases.push_back(binary<OpT>(name + "_both", {2, 1, 3}, {4, 1}, low, high));
  cases.push_back(binary<OpT>(name + "_ones", {1, 1}, {1}, low, high));
}

static GradientCase powers(std::string name, double exponent, double low) {
  return {std::move(name),
          {real({7}, low, 2)},
          [=](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
            return {b.make<PowOp>(args[0], b.number(args[0], exponent))};
          }};
}

static GradientCase dropout(std::string name, double ratio, int64_t site) {
  return {std::move(name),
          {real({4, 9}), intValues({}, {42}), intValues({}, {7})},
          [=](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
            return {b.make<DropoutOp>(args[0], args[1], args[2],
                                      b.builder.getF64FloatAttr(ratio),
                                      b.builder.getI64IntegerAttr(site))};
          }};
}

static GradientCase clip(std::string name, double low, double high) {
  return {std::move(name),
          {real({40}, -2, 2)},
          [=](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
            return {b.make<ClipOp>(args[0], b.builder.getF64FloatAttr(low),
                                   b.builder.getF64FloatAttr(high))};
          }};
}

static GradientCase select(std::string name, ArrayRef<int64_t> condition,
                           ArrayRef<int64_t> lhs, ArrayRef<int64_t> rhs) {
  return {std::move(name),
          {ints(condition, 0, 2), real(lhs), real(rhs)},
          [](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
            Value flag = b.cast(args[0], b.builder.getI1Type());
            return {b.select(flag, args[1], args[2])};
          }};
}

static GradientCase gelu(std::string name, bool tanh) {
  return {std::move(name),
          {real({24}, -4, 4)},
          [=](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
            return {b.make<GeluOp>(args[0], tanh)};
          }};
}

static std::vector<GradientCase> unaryCases() {
  constexpr double inf = std::numeric_limits<double>::infinity();
  return {
      unary<NegOp>("neg", -1, 1),
      unary<AbsOp>("abs", -1, 1),
      unary<SignOp>("sign", -1, 1),
      unary<ExpOp>("exp", -2, 2),
      unary<LogOp>("log", 0.2, 3),
      unary<SqrtOp>("sqrt", 0.2, 3),
      unary<RsqrtOp>("rsqrt", 0.3, 3),
      unary<ReciprocalOp>("reciprocal", 0.3, 3),
      unary<TanhOp>("tanh", -2, 2),
      unary<SigmoidOp>("sigmoid", -4, 4),
      unary<ErfOp>("erf", -2, 2),
      unary<SinOp>("sin", -4, 4),
      unary<CosOp>("cos", -4, 4),
      unary<AtanOp>("atan", -3, 3),
      unary<FloorOp>("floor", 0.1, 0.9),
      unary<CeilOp>("ceil", 0.1, 0.9),
      unary<RoundOp>("round", 0.6, 1.4),
      unary<ReluOp>("relu", -1, 1),
      unary<SoftplusOp>("softplus", -5, 5),
      gelu("gelu", false),
      gelu("gelu_tanh", true),
      clip("clip", -0.5, 1.25),
      clip("clip_below", 0.25, inf),
      clip("clip_above", -inf, 0.25),
      powers("pow_2", 2, -2),
      powers("pow_3", 3, -2),
      powers("pow_1", 1, -2),
      powers("pow_0", 0, -2),
      powers("pow_half", 0.5, 0.2),
      powers("pow_minus1", -1, 0.3),
      powers("pow_5", 5, -1.5),
      powers("pow_1p7", 1.7, 0.2),
      dropout("dropout", 0.4, 3),
      dropout("dropout_0", 0, 0),
      select("select", {2, 3}, {2, 3}, {2, 3}),
      select("select_scalar", {2, 3}, {2, 3}, {}),
      select("select_broadcast", {3}, {2, 1}, {4, 1, 1}),
      {"cast",
       {real({5})},
       [](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
         Value wide = b.cast(args[0], b.builder.getF64Type());
         return {b.mul(wide, wide)};
       }},
      {"cast_to_integer",
       {real({5}, 0.1, 0.9), real({5})},
       [](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
         Value whole = b.cast(args[0], b.builder.getI64Type());
         return {b.mul(b.cast(whole, getElementTypeOrSelf(args[0])), args[1])};
       }},
      {"trilu",
       {real({2, 3, 4})},
       [](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
         return {b.make<TriluOp>(args[0], b.builder.getBoolAttr(true),
                                 b.builder.getI64IntegerAttr(1)),
                 b.make<TriluOp>(args[0], b.builder.getBoolAttr(false),
                                 b.builder.getI64IntegerAttr(-1))};
       }},
      {"moving_average",
       {real({3}), real({3})},
       [](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
         return {b.make<MovingAverageOp>(args[0], args[1],
                                         b.builder.getF64FloatAttr(0.9))};
       }},
      {"assign",
       {real({3}), real({3})},
       [](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
         return {b.make<AssignOp>(args[0], args[1])};
       }},
      {"accumulate",
       {real({3}), real({3})},
       [](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
         return {b.make<AccumulateOp>(args[0], args[1])};
       }},
      {"square",
       {real({3})},
       [](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
         return {b.mul(args[0], args[0])};
       }},
      // One value read in many places: the parts add up.
      {"many_uses",
       {real({2, 3})},
       [](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
         Value x = args[0], t = b.make<TanhOp>(x);
         return {b.add(b.mul(x, t), b.sub(t, x)), b.sub(x, x),
                 b.div(t, b.add(b.mul(x, x), 1))};
       }},
  };
}

static std::vector<GradientCase> binaryCases() {
  std::vector<GradientCase> cases;
  addBinary<AddOp>(cases, "add");
  addBinary<SubOp>(cases, "sub");
  addBinary<MulOp>(cases, "mul");
  addBinary<DivOp>(cases, "div", 0.5, 2);
  addBinary<PowOp>(cases, "pow", 0.5, 2);
  addBinary<MaximumOp>(cases, "maximum");
  addBinary<MinimumOp>(cases, "minimum");
  for (bool fmod : {false, true})
    cases.push_back(
        {fmod ? "fmod" : "mod",
         {values({4}, {5.3, -5.3, 5.3, -0.4}),
          values({4}, {1.7, 1.7, -1.7, 1.1})},
         [=](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
           return {b.make<ModOp>(args[0], args[1], fmod)};
         }});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Unary, ElementwiseGradient,
                         testing::ValuesIn(unaryCases()), caseName);
INSTANTIATE_TEST_SUITE_P(Binary, ElementwiseGradient,
                         testing::ValuesIn(binaryCases()), caseName);
