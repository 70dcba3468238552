//===- NNGradientTest.cpp - matrix products, convolutions, pooling --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "GradientCheck.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::test;

namespace {
class NNGradient : public testing::TestWithParam<GradientCase> {};
TEST_P(NNGradient, MatchesDifferences) { checkGradients(GetParam()); }
} // namespace

using Ints = std::vector<int64_t>;

static GradientCase matmul(std::string name, Ints lhs, Ints rhs, bool ta,
                           bool tb) {
  if (ta)
    std::swap(lhs[lhs.size() - 1], lhs[lhs.size() - 2]);
  if (tb)
    std::swap(rhs[rhs.size() - 1], rhs[rhs.size() - 2]);
  return {name + (ta ? "_ta" : "") + (tb ? "_tb" : ""),
          {real(lhs), real(rhs)},
          [=](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
            return {b.make<MatMulOp>(args[0], args[1], ta, tb)};
          }};
}

static std::vector<GradientCase> matmulCases() {
  std::vector<GradientCase> cases;
  for (bool ta : {false, true})
    for (bool tb : {false, true}) {
      cases.push_back(matmul("plain", {3, 4}, {4, 2}, ta, tb));
      cases.push_back(matmul("batch", {2, 3, 4}, {2, 4, 2}, ta, tb));
      cases.push_back(matmul("weight", {2, 3, 4}, {4, 2}, ta, tb));
      cases.push_back(matmul("weight_one", {2, 3, 4}, {1, 4, 2}, ta, tb));
      cases.push_back(matmul("left_weight", {3, 4}, {2, 4, 2}, ta, tb));
      cases.push_back(matmul("broadcast", {2, 1, 3, 2}, {3, 2, 2}, ta, tb));
      cases.push_back(matmul("vector", {1, 4}, {4, 1}, ta, tb));
    }
  return cases;
}

/// Window of a convolution; its ops share the attributes.
struct Window {
  Ints strides, low, high, dilations;
  int64_t groups = 1;
};

static SmallVector<NamedAttribute> windowAttrs(TensorBuilder &b,
                                               const Window &w) {
  return {
      b.builder.getNamedAttr("strides", b.ints(w.strides)),
      b.builder.getNamedAttr("pads_low", b.ints(w.low)),
      b.builder.getNamedAttr("pads_high", b.ints(w.high)),
      b.builder.getNamedAttr("dilations", b.ints(w.dilations)),
      b.builder.getNamedAttr("groups", b.builder.getI64IntegerAttr(w.groups))};
}

static int64_t positions(int64_t size, int64_t kernel, int64_t stride,
                         int64_t pads, int64_t dilation) {
  return (size + pads - (kernel - 1) * dilation - 1) / stride + 1;
}

static Ints outputShape(const Ints &input, const Ints &weight,
                        const Window &w) {
  Ints shape{input[0], weight[0]};
  for (size_t d = 0; d < w.strides.size(); ++d)
    shape.push_back(positions(input[d + 2], weight[d + 2], w.strides[d],
                              w.low[d] + w.high[d], w.dilations[d]));
  return shape;
}

template <typename OpT>
static GradientCase convCase(std::string name, Ints first, Ints second,
                             Ints result, Window w) {
  return {std::move(name),
          {real(first), real(second)},
          [=](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
            Type type =
                RankedTensorType::get(result, getElementTypeOrSelf(args[0]));
            return {OpT::create(b.builder, b.loc, TypeRange(type), args,
                                windowAttrs(b, w))};
          }};
}

/// The convolution and both of its gradients, each differentiated.
static void addConv(std::vector<GradientCase> &cases, const std::string &name,
                    Ints input, Ints weight, Window w) {
  Ints output = outputShape(input, weight, w);
  cases.push_back(convCase<ConvOp>("conv_" + name, input, weight, output, w));
  cases.push_back(convCase<ConvInputGradOp>("input_grad_" + name, output,
                                            weight, input, w));
  cases.push_back(convCase<ConvWeightGradOp>("weight_grad_" + name, output,
                                             input, weight, w));
}

static std::vector<GradientCase> convCases() {
  std::vector<GradientCase> cases;
  addConv(cases, "plain", {2, 2, 4, 4}, {3, 2, 3, 3},
          {{1, 1}, {0, 0}, {0, 0}, {1, 1}});
  addConv(cases, "same", {1, 2, 4, 3}, {2, 2, 3, 3},
          {{1, 1}, {1, 1}, {1, 1}, {1, 1}});
  addConv(cases, "stride", {1, 2, 6, 5}, {2, 2, 3, 2},
          {{2, 3}, {1, 0}, {0, 1}, {1, 1}});
  addConv(cases, "dilation", {1, 1, 6, 7}, {2, 1, 2, 3},
          {{1, 2}, {0, 1}, {1, 0}, {3, 2}});
  addConv(cases, "groups", {1, 4, 3, 3}, {4, 2, 2, 2},
          {{1, 1}, {0, 0}, {0, 0}, {1, 1}, 2});
  addConv(cases, "depthwise", {1, 3, 4, 4}, {6, 1, 3, 3},
          {{1, 1}, {1, 1}, {1, 1}, {1, 1}, 3});
  addConv(cases, "pointwise", {2, 3, 2, 2}, {2, 3, 1, 1},
          {{1, 1}, {0, 0}, {0, 0}, {1, 1}});
  addConv(cases, "unread_rows", {1, 1, 6, 6}, {1, 1, 2, 2},
          {{4, 3}, {0, 0}, {0, 0}, {1, 1}});
  addConv(cases, "1d", {2, 2, 7}, {3, 2, 3}, {{2}, {1}, {2}, {1}});
  addConv(cases, "3d", {1, 2, 3, 3, 3}, {2, 2, 2, 2, 2},
          {{1, 1, 2}, {0, 1, 0}, {0, 0, 1}, {1, 1, 1}});
  return cases;
}

struct Pool {
  std::string name;
  Ints shape, kernel, strides, low, high, dilations;
  bool countPad = false;
};

static std::vector<Pool> pools() {
  return {
      {"tiles", {2, 2, 4, 4}, {2, 2}, {2, 2}, {0, 0}, {0, 0}, {1, 1}},
      {"overlap", {1, 2, 5, 5}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}},
      {"overlap_count",
       {1, 2, 5, 5},
       {3, 3},
       {2, 2},
       {1, 1},
       {1, 1},
       {1, 1},
       true},
      {"ceil", {1, 1, 5, 6}, {2, 2}, {2, 2}, {0, 0}, {1, 0}, {1, 1}},
      {"ceil_count",
       {1, 1, 5, 6},
       {2, 2},
       {2, 2},
       {0, 0},
       {1, 0},
       {1, 1},
       true},
      {"dilation", {1, 1, 6, 5}, {2, 2}, {1, 1}, {0, 1}, {0, 0}, {3, 2}},
      {"negative_pad", {1, 1, 5, 5}, {2, 2}, {2, 2}, {0, 0}, {-1, -1}, {1, 1}},
      {"1d", {2, 1, 7}, {3}, {2}, {0}, {0}, {1}},
      {"3d",
       {1, 1, 3, 4, 3},
       {2, 2, 2},
       {1, 2, 1},
       {0, 0, 0},
       {0, 0, 0},
       {1, 1, 1}},
  };
}

static Type poolType(const Pool &pool, Type element) {
  Ints shape{pool.shape[0], pool.shape[1]};
  for (size_t d = 0; d < pool.kernel.size(); ++d)
    shape.push_back(positions(pool.shape[d + 2], pool.kernel[d],
                              pool.strides[d], pool.low[d] + pool.high[d],
                              pool.dilations[d]));
  return RankedTensorType::get(shape, element);
}

static SmallVector<NamedAttribute> poolAttrs(TensorBuilder &b,
                                             const Pool &pool) {
  return {b.builder.getNamedAttr("kernel", b.ints(pool.kernel)),
          b.builder.getNamedAttr("strides", b.ints(pool.strides)),
          b.builder.getNamedAttr("pads_low", b.ints(pool.low)),
          b.builder.getNamedAttr("pads_high", b.ints(pool.high)),
          b.builder.getNamedAttr("dilations", b.ints(pool.dilations))};
}

static SmallVector<Value> buildMaxPool(const Pool &pool, TensorBuilder &b,
                                       ValueRange args) {
  Type type = poolType(pool, getElementTypeOrSelf(args[0]));
  Type index = cast<RankedTensorType>(type).clone(b.builder.getI8Type());
  auto op = MaxPoolOp::create(b.builder, b.loc, TypeRange{type, index}, args,
                              poolAttrs(b, pool));
  return {op.getOutput()};
}

static SmallVector<Value> buildAvgPool(const Pool &pool, TensorBuilder &b,
                                       ValueRange args) {
  SmallVector<NamedAttribute> attrs = poolAttrs(b, pool);
  if (pool.countPad)
    attrs.push_back(
        b.builder.getNamedAttr("count_include_pad", b.builder.getUnitAttr()));
  Type type = poolType(pool, getElementTypeOrSelf(args[0]));
  return {AvgPoolOp::create(b.builder, b.loc, TypeRange(type), args, attrs)};
}

static SmallVector<Value> buildAvgPoolGrad(const Pool &pool, TensorBuilder &b,
                                           ValueRange args) {
  SmallVector<NamedAttribute> attrs = poolAttrs(b, pool);
  if (pool.countPad)
    attrs.push_back(
        b.builder.getNamedAttr("count_include_pad", b.builder.getUnitAttr()));
  Type type = RankedTensorType::get(pool.shape, getElementTypeOrSelf(args[0]));
  return {
      AvgPoolGradOp::create(b.builder, b.loc, TypeRange(type), args, attrs)};
}

static std::vector<GradientCase> poolCases() {
  std::vector<GradientCase> cases;
  for (const Pool &pool : pools()) {
    auto add = [&](const std::string &name, Ints shape, auto build) {
      cases.push_back({name + "_" + pool.name,
                       {real(shape)},
                       [=](TensorBuilder &b, ValueRange args) {
                         return build(pool, b, args);
                       }});
    };
    if (!pool.countPad)
      add("max", pool.shape, buildMaxPool);
    add("average", pool.shape, buildAvgPool);
    auto type = cast<RankedTensorType>(
        poolType(pool, Float64Type::get(&testContext())));
    add("average_grad", Ints(type.getShape()), buildAvgPoolGrad);
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(MatMul, NNGradient, testing::ValuesIn(matmulCases()),
                         caseName);
INSTANTIATE_TEST_SUITE_P(Conv, NNGradient, testing::ValuesIn(convCases()),
                         caseName);
INSTANTIATE_TEST_SUITE_P(Pool, NNGradient, testing::ValuesIn(poolCases()),
                         caseName);
