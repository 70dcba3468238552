//===- MaskBands.cpp - masks that bound keys by their distance ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: a causal mask of many tokens has too many elements to be looked at
// one by one. Method: positions are followed as linear functions of the row and
// the key, from constant vectors through sums, broadcasts and reshapes to
// comparisons, and conditions that must all hold are intersected. Guarantee: a
// band is exactly what the ops compute; integers alone are followed, whose sums
// are exact. Complexity: linear in ops.
//
//===----------------------------------------------------------------------===//
#include "MaskBands.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/IR/Splat.h"
#include "ckopt/Dialect/Ckopt/Utils/TensorBuilder.h"

#include <cmath>

using namespace mlir;
using namespace ckopt;

namespace {
/// constant + the sum of slopes times indices, by dimension from the last.
struct Positions {
  double constant = 0;
  SmallVector<double> slopes;
};
} // namespace

namespace {
class BandFinder {
public:
  using Evaluate = function_ref<const reference::Tensor *(Value)>;
  explicit BandFinder(Evaluate evaluate) : evaluate(evaluate) {}

  std::optional<MaskBand> find(Value condition, bool allowedWhere);

private:
  std::optional<Positions> positionsOf(Value value);
  std::optional<Positions> ofVector(Value value);
  std::optional<Positions> reshaped(ReshapeOp op);
  std::optional<MaskBand> ofCompare(CompareOp op, bool allowedWhere);

  Evaluate evaluate;
};
} // namespace

/// Returns whether x compares so with 0.
static bool holds(ComparePredicate predicate, double x) {
  switch (predicate) {
  case ComparePredicate::EQ:
    return x == 0;
  case ComparePredicate::NE:
    return x != 0;
  case ComparePredicate::LT:
    return x < 0;
  case ComparePredicate::LE:
    return x <= 0;
  case ComparePredicate::GT:
    return x > 0;
  case ComparePredicate::GE:
    return x >= 0;
  }
  return false;
}

static void addTo(Positions &sum, const Positions &other, double sign) {
  sum.constant += sign * other.constant;
  sum.slopes.resize(std::max(sum.slopes.size(), other.slopes.size()), 0);
  for (auto [slope, added] : llvm::zip(sum.slopes, other.slopes))
    slope += sign * added;
}

/// Looks at a vector that is constant, however it was made.
std::optional<Positions> BandFinder::ofVector(Value value) {
  std::optional<size_t> along;
  RankedTensorType type = tensorType(value);
  for (auto [d, size] : llvm::enumerate(llvm::reverse(type.getShape()))) {
    if (size != 1 && along)
      return std::nullopt;
    if (size != 1)
      along = d;
  }
  const reference::Tensor *elements = evaluate(value);
  if (!elements || elements->size() == 0)
    return std::nullopt;
  auto at = [&](int64_t i) { return double(elements->get(i)); };
  double slope = along ? at(1) - at(0) : 0;
  for (int64_t i = 1; i < elements->size(); ++i)
    if (at(i) - at(i - 1) != slope)
      return std::nullopt;
  Positions result{at(0), {}};
  result.slopes.resize(size_t(type.getRank()), 0);
  if (along)
    result.slopes[*along] = slope;
  return result;
}

/// Sizes of 1 come and go.
std::optional<Positions> BandFinder::reshaped(ReshapeOp op) {
  std::optional<Positions> from = positionsOf(op.getInput());
  auto longOf = [](Value value) {
    SmallVector<std::pair<size_t, int64_t>> dims; // from the last
    for (auto [d, size] :
         llvm::enumerate(llvm::reverse(tensorType(value).getShape())))
      if (size != 1)
        dims.push_back({d, size});
    return dims;
  };
  auto before = longOf(op.getInput()), after = longOf(op.getOutput());
  if (!from || before.size() != after.size())
    return std::nullopt;
  Positions result{from->constant, {}};
  result.slopes.resize(size_t(op.getType().getRank()), 0);
  for (auto [old, now] : llvm::zip(before, after)) {
    if (old.second != now.second)
      return std::nullopt;
    if (old.first < from->slopes.size())
      result.slopes[now.first] = from->slopes[old.first];
  }
  return result;
}

std::optional<Positions> BandFinder::positionsOf(Value value) {
  auto type = dyn_cast<IntegerType>(tensorType(value).getElementType());
  if (!type || type.getWidth() < 32 || type.isUnsigned())
    return std::nullopt;
  if (auto number = splatNumber(value))
    return Positions{*number, {}};
  if (std::optional<Positions> vector = ofVector(value))
    return vector;
  Operation *op = value.getDefiningOp();
  if (auto reshape = dyn_cast_or_null<ReshapeOp>(op))
    return reshaped(reshape);
  if (isa_and_nonnull<ExpandOp, CastOp>(op))
    return positionsOf(op->getOperand(0));
  if (isa_and_nonnull<AddOp, SubOp>(op)) {
    std::optional<Positions> lhs = positionsOf(op->getOperand(0));
    std::optional<Positions> rhs = positionsOf(op->getOperand(1));
    if (!lhs || !rhs)
      return std::nullopt;
    addTo(*lhs, *rhs, isa<AddOp>(op) ? 1 : -1);
    return lhs;
  }
  return std::nullopt;
}

std::optional<MaskBand> BandFinder::ofCompare(CompareOp op, bool allowedWhere) {
  std::optional<Positions> distance = positionsOf(op.getLhs());
  std::optional<Positions> rhs = positionsOf(op.getRhs());
  if (!distance || !rhs)
    return std::nullopt;
  addTo(*distance, *rhs, -1);
  distance->slopes.resize(std::max<size_t>(distance->slopes.size(), 2), 0);
  if (llvm::all_of(distance->slopes, [](double slope) { return slope == 0; }))
    return holds(op.getPredicate(), distance->constant) == allowedWhere
               ? std::optional(MaskBand())
               : std::nullopt;
  double sign = distance->slopes[0];
  if (std::abs(sign) != 1 || distance->slopes[1] != -sign ||
      llvm::any_of(llvm::drop_begin(distance->slopes, 2),
                   [](double slope) { return slope != 0; }) ||
      std::abs(distance->constant) > 0x1p40)
    return std::nullopt;
  // sign * (j - i) + constant, compared with 0.
  ComparePredicate predicate = op.getPredicate();
  bool isLess =
      predicate == ComparePredicate::LT || predicate == ComparePredicate::LE;
  bool isStrict =
      predicate == ComparePredicate::LT || predicate == ComparePredicate::GT;
  if (!isLess && predicate != ComparePredicate::GT &&
      predicate != ComparePredicate::GE)
    return std::nullopt;
  if (!allowedWhere) { // not (a < b) is a >= b
    isLess = !isLess;
    isStrict = !isStrict;
  }
  auto bound = int64_t(-sign * distance->constant);
  MaskBand band;
  if (isLess == (sign > 0))
    band.most = bound - isStrict;
  else
    band.least = bound + isStrict;
  return band;
}

std::optional<MaskBand> BandFinder::find(Value condition, bool allowedWhere) {
  Operation *op = condition.getDefiningOp();
  if (isa_and_nonnull<NotOp>(op))
    return find(op->getOperand(0), !allowedWhere);
  if (isa_and_nonnull<ExpandOp>(op))
    return find(op->getOperand(0), allowedWhere);
  if (auto compare = dyn_cast_or_null<CompareOp>(op))
    return ofCompare(compare, allowedWhere);
  if (auto splat = splatNumber(condition))
    return (*splat != 0) == allowedWhere ? std::optional(MaskBand())
                                         : std::nullopt;
  if (!op || !(allowedWhere ? isa<AndOp>(op) : isa<OrOp>(op)))
    return std::nullopt;
  std::optional<MaskBand> all = MaskBand();
  for (Value operand : op->getOperands()) {
    std::optional<MaskBand> band = find(operand, allowedWhere);
    if (!band)
      return std::nullopt;
    all->least = std::max(all->least, band->least);
    all->most = std::min(all->most, band->most);
  }
  return all;
}

std::optional<MaskBand>
ckopt::findMaskBand(Value condition, bool allowedWhere,
                    function_ref<const reference::Tensor *(Value)> evaluate) {
  return BandFinder(evaluate).find(condition, allowedWhere);
}
