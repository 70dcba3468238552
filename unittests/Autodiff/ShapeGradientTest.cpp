//===- ShapeGradientTest.cpp - shapes, data movement, gather --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "GradientCheck.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::test;

namespace {
class ShapeGradient : public testing::TestWithParam<GradientCase> {};
TEST_P(ShapeGradient, MatchesDifferences) { checkGradients(GetParam()); }
} // namespace

using Ints = std::vector<int64_t>;

static GradientCase slice(std::string name, Ints shape, Ints starts, Ints sizes,
                          Ints steps) {
  return {std::move(name),
          {real(shape)},
          [=](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
            return {b.make<SliceOp>(args[0], b.ints(starts), b.ints(sizes),
                                    b.ints(steps))};
          }};
}

static GradientCase pad(std::string name, Ints shape, Ints low, Ints high,
                        Ints interior, double value) {
  return {std::move(name),
          {real(shape)},
          [=](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
            return {b.make<PadOp>(args[0], b.ints(low), b.ints(high),
                                  b.ints(interior),
                                  b.builder.getF64FloatAttr(value))};
          }};
}

static GradientCase transpose(std::string name, Ints shape, Ints permutation) {
  return {std::move(name),
          {real(shape)},
          [=](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
            return {b.transpose(args[0], permutation)};
          }};
}

static GradientCase expand(std::string name, Ints from, Ints to) {
  return {std::move(name),
          {real(from)},
          [=](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
            return {b.expand(args[0], to)};
          }};
}

static GradientCase gather(std::string name, Ints data, Arg indices,
                           int64_t axis) {
  return {std::move(name),
          {real(data), std::move(indices)},
          [=](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
            return {b.make<GatherOp>(args[0], args[1],
                                     b.builder.getI64IntegerAttr(axis))};
          }};
}

static SmallVector<Value> buildConcat(TensorBuilder &b, ValueRange args) {
  return {b.make<ConcatOp>(args, b.builder.getI64IntegerAttr(1))};
}

/// An embedding table that is the last layer's weight, too.
static SmallVector<Value> buildTied(TensorBuilder &b, ValueRange args) {
  Value rows =
      b.make<GatherOp>(args[0], args[1], b.builder.getI64IntegerAttr(0));
  Value hidden = b.make<TanhOp>(rows);
  return {b.make<MatMulOp>(hidden, args[0], false, true)};
}

/// Two lookups in one table: both scatter into one gradient.
static SmallVector<Value> buildTwoLookups(TensorBuilder &b, ValueRange args) {
  auto axis = b.builder.getI64IntegerAttr(0);
  return {b.make<GatherOp>(args[0], args[1], axis),
          b.make<TanhOp>(b.make<GatherOp>(args[0], args[2], axis))};
}

/// Two values share one gradient, a scatter into zeros; each also has another,
/// added before or after. None may leak into the other's.
static SmallVector<Value> buildSharedScatter(TensorBuilder &b,
                                             ValueRange args) {
  auto axis = b.builder.getI64IntegerAttr(0);
  Value early = b.make<TanhOp>(args[1]);
  Value rows = b.make<GatherOp>(b.add(args[0], args[1]), args[2], axis);
  return {early, rows, b.make<ExpOp>(args[0])};
}

/// The same with the gradients of slices.
static SmallVector<Value> buildSharedSlabs(TensorBuilder &b, ValueRange args) {
  auto slice = [&](Value value, int64_t begin) {
    return b.make<SliceOp>(value, b.ints({begin}), b.ints({2}), b.ints({1}));
  };
  Value sum = b.add(args[0], args[1]);
  return {slice(args[0], 2), slice(args[1], 4), slice(sum, 0),
          slice(args[0], 4)};
}

/// Slices [begin, end) of dimension 1, each through its own function; `whole`
/// reads the tensor itself, too.
static GradientCase split(std::string name,
                          std::vector<std::pair<int64_t, int64_t>> ranges,
                          bool whole = false) {
  return {std::move(name),
          {real({2, 6})},
          [=](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
            SmallVector<Value> results;
            for (auto [begin, end] : ranges) {
              Value part =
                  b.make<SliceOp>(args[0], b.ints({0, begin}),
                                  b.ints({2, end - begin}), b.ints({1, 1}));
              results.push_back(b.mul(b.make<TanhOp>(part), part));
            }
            if (whole)
              results.push_back(b.make<ExpOp>(args[0]));
            return results;
          }};
}

static std::vector<GradientCase> shapeCases() {
  return {
      {"reshape",
       {real({2, 6})},
       [](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
         return {b.reshape(args[0], {3, 1, 4})};
       }},
      transpose("transpose_2d", {2, 3}, {1, 0}),
      transpose("transpose_4d", {2, 3, 4, 2}, {2, 0, 3, 1}),
      slice("slice_middle", {4, 5}, {1, 2}, {2, 3}, {1, 1}),
      slice("slice_step", {4, 7}, {0, 1}, {2, 3}, {3, 2}),
      slice("slice_reverse", {3, 6}, {2, 5}, {3, 3}, {-1, -2}),
      slice("slice_reverse_inner", {6}, {4}, {2}, {-3}),
      slice("slice_one", {4, 5}, {3, 2}, {1, 1}, {-1, 5}),
      slice("slice_nothing", {4}, {0}, {0}, {1}),
      pad("pad_edges", {2, 3}, {1, 0}, {0, 2}, {0, 0}, 0.5),
      pad("pad_interior", {3, 2}, {0, 1}, {1, 0}, {1, 2}, 0),
      pad("pad_one", {1, 1}, {2, 0}, {0, 1}, {3, 3}, -1),
      expand("expand_lead", {3}, {2, 3}),
      expand("expand_inner", {2, 1, 3}, {2, 4, 3}),
      expand("expand_scalar", {}, {2, 2}),
      expand("expand_both", {3, 1}, {2, 3, 4}),
      {"concat", {real({2, 1}), real({2, 3}), real({2, 2})}, buildConcat},
      {"concat_same_twice",
       {real({2, 2})},
       [](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
         return buildConcat(b, {args[0], args[0]});
       }},
      gather("gather_rows", {5, 3}, intValues({4}, {0, 3, 3, -1}), 0),
      gather("gather_columns", {2, 4, 3}, intValues({2, 2}, {1, 3, 1, 0}), 1),
      gather("gather_scalar", {4, 3}, intValues({}, {2}), 0),
      gather("gather_last", {2, 5}, ints({3}, 0, 5), 1),
      {"scatter_add",
       {real({5, 2}), intValues({3}, {1, 4, 1}), real({3, 2})},
       [](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
         return {b.make<ScatterAddOp>(args[0], args[1], args[2],
                                      b.builder.getI64IntegerAttr(0))};
       }},
      {"barrier",
       {real({3})},
       [](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
         return {BarrierOp::create(b.builder, b.loc, args[0].getType(), args[0],
                                   IntegerAttr())};
       }},
      {"shared_scatter",
       {real({5, 3}), real({5, 3}), intValues({4}, {0, 3, 3, 1})},
       buildSharedScatter},
      {"shared_slabs", {real({6}), real({6})}, buildSharedSlabs},
      {"passed_on_to_one_value_twice",
       {real({6})},
       [](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
         Value sum = b.add(args[0], args[0]);
         return {
             b.make<SliceOp>(sum, b.ints({1}), b.ints({2}), b.ints({1})),
             b.make<SliceOp>(args[0], b.ints({4}), b.ints({2}), b.ints({1}))};
       }},
      split("split_three", {{0, 2}, {2, 3}, {3, 6}}),
      split("split_unordered", {{3, 6}, {0, 3}}),
      split("split_gaps", {{1, 2}, {4, 5}}),
      split("split_overlap", {{0, 3}, {2, 6}, {4, 5}}),
      split("split_and_whole", {{0, 2}, {4, 6}}, true),
      split("split_one", {{2, 5}}),
      {"tied_embedding",
       {real({5, 3}), intValues({4}, {0, 2, 2, 4})},
       buildTied},
      {"two_lookups",
       {real({5, 3}), intValues({2}, {0, 2}), intValues({3}, {2, 2, 4})},
       buildTwoLookups},
  };
}

INSTANTIATE_TEST_SUITE_P(All, ShapeGradient, testing::ValuesIn(shapeCases()),
                         caseName);
