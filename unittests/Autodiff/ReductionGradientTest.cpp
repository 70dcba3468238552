//===- ReductionGradientTest.cpp - reductions, softmax --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "GradientCheck.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::test;

namespace {
class ReductionGradient : public testing::TestWithParam<GradientCase> {};
TEST_P(ReductionGradient, MatchesDifferences) { checkGradients(GetParam()); }
} // namespace

using Ints = std::vector<int64_t>;

static void addReduce(std::vector<GradientCase> &cases, ReduceKind kind,
                      Ints shape, Ints axes, bool keep) {
  std::string name = stringifyReduceKind(kind).str();
  for (int64_t axis : axes)
    name += "_" + std::to_string(axis);
  name += "_of";
  for (int64_t size : shape)
    name += "_" + std::to_string(size);
  cases.push_back(
      {name + (keep ? "_keep" : ""),
       {real(shape, 0.5, 2)},
       [=](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
         return {b.make<ReduceOp>(
             ReduceKindAttr::get(b.builder.getContext(), kind), args[0],
             b.ints(axes), b.builder.getBoolAttr(keep))};
       }});
}

static GradientCase moments(std::string name, Ints shape, Ints axes) {
  return {std::move(name),
          {real(shape)},
          [=](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
            auto op =
                MomentsOp::create(b.builder, b.loc, args[0], b.ints(axes));
            return {op.getMean(), op.getVariance()};
          }};
}

template <typename OpT>
static GradientCase row(std::string name, Ints shape, int64_t axis) {
  return {std::move(name),
          {real(shape, -2, 2)},
          [=](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
            return {b.make<OpT>(args[0], b.builder.getI64IntegerAttr(axis))};
          }};
}

/// softmax_grad(d, softmax(x)): a gradient of a gradient.
template <typename OpT, typename GradT>
static GradientCase rowGrad(std::string name) {
  return {std::move(name),
          {real({2, 4}), real({2, 4})},
          [](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
            auto axis = b.builder.getI64IntegerAttr(1);
            Value y = b.make<OpT>(args[1], axis);
            return {b.make<GradT>(args[0], y, axis)};
          }};
}

static std::vector<GradientCase> reductionCases() {
  std::vector<GradientCase> cases;
  for (ReduceKind kind : {ReduceKind::Sum, ReduceKind::Mean, ReduceKind::Max,
                          ReduceKind::Min, ReduceKind::Prod}) {
    addReduce(cases, kind, {2, 3, 4}, {1}, false);
    addReduce(cases, kind, {2, 3, 4}, {0, 2}, true);
    addReduce(cases, kind, {2, 3}, {0, 1}, false);
    addReduce(cases, kind, {5}, {0}, true);
    addReduce(cases, kind, {2, 1, 3}, {1}, false);
  }
  cases.push_back(moments("moments_channels", {2, 3, 2, 2}, {0, 2, 3}));
  cases.push_back(moments("moments_rows", {3, 5}, {1}));
  cases.push_back(moments("moments_all", {6}, {0}));
  cases.push_back(row<SoftmaxOp>("softmax_last", {2, 3, 4}, 2));
  cases.push_back(row<SoftmaxOp>("softmax_middle", {2, 3, 4}, 1));
  cases.push_back(row<LogSoftmaxOp>("log_softmax_last", {3, 5}, 1));
  cases.push_back(row<LogSoftmaxOp>("log_softmax_first", {3, 5}, 0));
  cases.push_back(rowGrad<SoftmaxOp, SoftmaxGradOp>("softmax_grad"));
  cases.push_back(rowGrad<LogSoftmaxOp, LogSoftmaxGradOp>("log_softmax_grad"));
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, ReductionGradient,
                         testing::ValuesIn(reductionCases()), caseName);
