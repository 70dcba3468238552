//===- IndexGradientTest.cpp - gathers, scatters, running sums ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "GradientCheck.h"
#include "ckopt/Interfaces/DifferentiableInterface.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::test;

namespace {
class IndexGradient : public testing::TestWithParam<GradientCase> {};
TEST_P(IndexGradient, MatchesDifferences) { checkGradients(GetParam()); }
} // namespace

using Ints = std::vector<int64_t>;

static Value gatherElements(TensorBuilder &b, Value data, Value indices,
                            int64_t axis) {
  return b.make<GatherElementsOp>(data, indices,
                                  b.builder.getI64IntegerAttr(axis));
}

static Value scatterElements(TensorBuilder &b, ScatterKind kind,
                             ValueRange args, int64_t axis) {
  return b.make<ScatterElementsOp>(kind, args[0], args[1], args[2], axis);
}

static Value cumulativeSum(TensorBuilder &b, Value x, int64_t axis,
                           bool exclusive, bool reverse) {
  return b.make<CumulativeSumOp>(x, axis, exclusive, reverse);
}

static GradientCase gatherAlong(std::string name, Ints data, Arg indices,
                                int64_t axis) {
  return {std::move(name),
          {real(data), std::move(indices)},
          [=](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
            return {gatherElements(b, args[0], args[1], axis)};
          }};
}

static GradientCase scatter(std::string name, ScatterKind kind, Arg init,
                            Arg indices, Arg updates, int64_t axis) {
  return {std::move(name),
          {std::move(init), std::move(indices), std::move(updates)},
          [=](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
            return {scatterElements(b, kind, args, axis)};
          }};
}

static GradientCase sum(std::string name, Ints shape, int64_t axis,
                        bool exclusive, bool reverse) {
  return {std::move(name),
          {real(shape)},
          [=](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
            return {cumulativeSum(b, args[0], axis, exclusive, reverse)};
          }};
}

/// Updates meet at elements 0 and 2 of rows of 4; element 1 has none.
static Arg meeting() {
  return intValues({2, 5}, {0, 2, -1, 0, 2, 2, 2, 2, 0, 3});
}

static std::vector<GradientCase> indexCases() {
  std::vector<GradientCase> cases{
      gatherAlong("gather_elements_rows", {4, 3},
                  intValues({5, 2}, {0, 3, 3, -1, 1, 1, 0, 0, -4, 2}), 0),
      gatherAlong("gather_elements_last", {2, 4}, meeting(), 1),
      gatherAlong("gather_elements_middle", {2, 4, 3}, ints({2, 5, 3}, 0, 4),
                  1),
      gatherAlong("gather_elements_nothing", {2, 4}, intValues({2, 0}, {}), 1),
      sum("cumulative_sum", {2, 4, 3}, 1, false, false),
      sum("cumulative_sum_exclusive", {2, 4}, 1, true, false),
      sum("cumulative_sum_reverse", {4, 2}, 0, false, true),
      sum("cumulative_sum_both", {2, 4}, 1, true, true),
      // The largest two: gathered by indices that come from the data.
      {"top_k_values",
       {values({2, 4}, {1, 4, 2, 3, -1, -4, -2, -3})},
       [](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
         Value indices = b.make<TopKOp>(args[0], int64_t(1), int64_t(2),
                                        /*smallest=*/false, /*last=*/false);
         return {gatherElements(b, args[0], indices, 1)};
       }},
      // Two readers of one value: both scatter into one gradient.
      {"two_gathers",
       {real({2, 4}), meeting(), ints({2, 3}, 0, 4)},
       [](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
         Value x = b.make<TanhOp>(args[0]);
         return {gatherElements(b, x, args[1], 1),
                 b.make<ExpOp>(gatherElements(b, x, args[2], 1)), b.mul(x, x)};
       }},
      // A product of three zeros and others: init zero, one update zero, both,
      // two updates zero.
      scatter("scatter_mul_zeros", ScatterKind::Mul,
              values({1, 5}, {0, 2, 0, 3, 2}),
              intValues({1, 9}, {0, 0, 1, 1, 2, 3, 3, 3, 4}),
              values({1, 9}, {2, 3, 0, 5, 0, 0, 0, 2, 3}), 1),
  };
  for (auto [kind, name] :
       {std::pair(ScatterKind::Set, "set"), std::pair(ScatterKind::Add, "add"),
        std::pair(ScatterKind::Mul, "mul"), std::pair(ScatterKind::Max, "max"),
        std::pair(ScatterKind::Min, "min")}) {
    std::string prefix = std::string("scatter_") + name;
    cases.push_back(
        scatter(prefix, kind, real({2, 4}), meeting(), real({2, 5}), 1));
    cases.push_back(scatter(prefix + "_columns", kind, real({4, 3}),
                            intValues({5, 2}, {0, 3, 3, -1, 3, 1, 0, 0, -4, 3}),
                            real({5, 2}), 0));
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, IndexGradient, testing::ValuesIn(indexCases()),
                         caseName);

using Numbers = std::vector<double>;

// All elements of a group that are equal to its extreme one share evenly, init
// with the updates, as with PyTorch's scatter_reduce; NaN leaves no NaN.
TEST(IndexGradient, ExtremesShareEvenly) {
  for (ScatterKind kind : {ScatterKind::Max, ScatterKind::Min}) {
    double sign = kind == ScatterKind::Max ? 1 : -1;
    std::vector<Numbers> found = gradientsOf(scatter(
        "", kind, values({4}, {5 * sign, 1 * sign, 7 * sign, NAN}),
        intValues({6}, {0, 0, 0, 1, 1, 3}),
        values({6}, {5 * sign, 5 * sign, 2 * sign, 3 * sign, 3 * sign, 1}), 0));
    EXPECT_EQ(found,
              std::vector<Numbers>(
                  {{1 / 3.0, 0, 1, 0}, {1 / 3.0, 1 / 3.0, 0, 0.5, 0.5, 0}}));
  }
}

// Of several updates for one element the last one alone has a gradient.
TEST(IndexGradient, TheLastUpdateWins) {
  EXPECT_EQ(gradientsOf(scatter("", ScatterKind::Set, values({3}, {1, 2, 3}),
                                intValues({4}, {1, -2, 0, 1}),
                                values({4}, {4, 5, 6, 7}), 0)),
            std::vector<Numbers>({{0, 0, 1}, {0, 0, 1, 1}}));
}

/// The function that maps the case's arguments, and the gradient of its one
/// result, to the gradients that the rule of its last op builds: differences of
/// it are second derivatives.
static GradientCase gradientOf(GradientCase test, Ints resultShape) {
  test.args.push_back(real(resultShape));
  Build forward = test.build;
  test.build = [=](TensorBuilder &b, ValueRange args) -> SmallVector<Value> {
    Operation *op = forward(b, args.drop_back()).front().getDefiningOp();
    auto rule = cast<DifferentiableOpInterface>(op);
    SmallVector<bool> needed;
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      needed.push_back(rule.isDifferentiableIn(i));
    SmallVector<Value> found(needed.size()), results;
    EXPECT_TRUE(
        succeeded(rule.buildGradient(b.builder, {args.back()}, needed, found)));
    for (Value gradient : found)
      if (gradient)
        results.push_back(gradient);
    return results;
  };
  return test;
}

// Rules build ops that have rules themselves.
TEST(IndexGradient, SecondDerivatives) {
  checkGradients(gradientOf(gatherAlong("", {2, 4}, meeting(), 1), {2, 5}));
  checkGradients(gradientOf(sum("", {2, 4}, 1, true, true), {2, 4}));
  for (ScatterKind kind : {ScatterKind::Set, ScatterKind::Add, ScatterKind::Mul,
                           ScatterKind::Max, ScatterKind::Min})
    checkGradients(gradientOf(
        scatter("", kind, real({2, 4}), meeting(), real({2, 5}), 1), {2, 4}));
}
