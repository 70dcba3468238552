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
/// constant + the sum of slopes times indices, by dimension from the last, +
/// unknown times a number that is the same for row and key.
struct Positions {
  double constant = 0;
  SmallVector<double> slopes;
  double unknown = 0;
};
} // namespace

namespace {
class BandFinder {
public:
  using Evaluate = function_ref<const reference::Tensor *(Value)>;
  BandFinder(Evaluate evaluate, Value counted)
      : evaluate(evaluate), counted(counted) {}

  std::optional<MaskBand> find(Value condition, bool allowedWhere);

private:
  std::optional<Positions> positionsOf(Value value);
  std::optional<Positions> ofConstant(Value value);
  std::optional<Positions> ofCounted(Value value);
  std::optional<Positions> reshaped(ReshapeOp op);
  std::optional<MaskBand> ofCompare(CompareOp op, bool allowedWhere);

  Evaluate evaluate;
  Value counted; ///< positions that are data
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
  sum.unknown += sign * other.unknown;
  sum.slopes.resize(std::max(sum.slopes.size(), other.slopes.size()), 0);
  for (auto [slope, added] : llvm::zip(sum.slopes, other.slopes))
    slope += sign * added;
}

/// Looks at a constant of rows or keys, however it was made.
std::optional<Positions> BandFinder::ofConstant(Value value) {
  ArrayRef<int64_t> shape = tensorType(value).getShape();
  if (shape.size() > 1 && shape.back() > 1 && shape[shape.size() - 2] > 1)
    return std::nullopt; // a table of all pairs
  const reference::Tensor *elements = evaluate(value);
  if (!elements || elements->size() == 0)
    return std::nullopt;
  Positions result{double(elements->get(0)), {}};
  SmallVector<int64_t> strides;
  int64_t stride = 1;
  for (int64_t size : llvm::reverse(shape)) {
    strides.push_back(stride);
    result.slopes.push_back(
        size > 1 ? double(elements->get(stride)) - result.constant : 0);
    stride *= size;
  }
  for (int64_t i = 0; i < elements->size(); ++i) {
    double expected = result.constant;
    for (auto [d, size] : llvm::enumerate(llvm::reverse(shape)))
      expected += result.slopes[d] * double(i / strides[d] % size);
    if (double(elements->get(i)) != expected)
      return std::nullopt;
  }
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
  Positions result{from->constant, {}, from->unknown};
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
  if (std::optional<Positions> constant = ofConstant(value))
    return constant;
  if (std::optional<Positions> places = ofCounted(value))
    return places;
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
  if (distance->unknown != 0)
    return std::nullopt;
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

//===----------------------------------------------------------------------===//
// Data of rows and keys
//===----------------------------------------------------------------------===//

static SmallVector<int64_t> longDims(Value value) {
  SmallVector<int64_t> dims;
  for (int64_t size : tensorType(value).getShape())
    if (size != 1)
      dims.push_back(size);
  return dims;
}

static bool isWidened(Value from, Value to) {
  auto narrow = dyn_cast<IntegerType>(getElementTypeOrSelf(from));
  auto wide = dyn_cast<IntegerType>(getElementTypeOrSelf(to));
  return narrow && wide && !narrow.isUnsigned() && !wide.isUnsigned() &&
         narrow.getWidth() <= wide.getWidth();
}

/// Returns whether the last dimension that is not 1 is not repeated.
static bool keepsPlaces(Value from, Value to) {
  auto narrow = llvm::reverse(tensorType(from).getShape());
  auto wide = llvm::reverse(tensorType(to).getShape());
  for (auto [before, after] : llvm::zip(narrow, wide))
    if (after != 1)
      return before == after;
  return false;
}

/// Returns where the same numbers stand before sizes of 1 came and went,
/// samples were repeated, or integers became wider. The last size that is not 1
/// stays.
static Value dataBehind(Value value) {
  for (;;) {
    Operation *op = value.getDefiningOp();
    Value from = op && op->getNumOperands() == 1 ? op->getOperand(0) : Value();
    bool isSame =
        from && ((isa<ReshapeOp>(op) && longDims(from) == longDims(value)) ||
                 (isa<ExpandOp>(op) && keepsPlaces(from, value)) ||
                 (isa<CastOp>(op) && isWidened(from, value)));
    if (!isSame)
      return value;
    value = from;
  }
}

/// Returns the dimension from the last, 0 or 1, along which a value has other
/// numbers than 1 alone; samples are before.
static std::optional<size_t> dimOfPlaces(Value value) {
  ArrayRef<int64_t> shape = tensorType(value).getShape();
  if (shape.empty())
    return std::nullopt;
  bool isLast = shape.back() != 1;
  bool isSecond = shape.size() > 1 && shape[shape.size() - 2] != 1;
  if (isLast == isSecond)
    return std::nullopt;
  return isSecond;
}

std::optional<Positions> BandFinder::ofCounted(Value value) {
  std::optional<size_t> dim = dimOfPlaces(value);
  if (!counted || !dim || dataBehind(value) != counted)
    return std::nullopt;
  Positions result{0, {}, 1};
  result.slopes.resize(size_t(tensorType(value).getRank()), 0);
  result.slopes[*dim] = 1;
  return result;
}

bool ckopt::isOfSamples(const MaskPart &part, int64_t rank) {
  ArrayRef<int64_t> shape = part.shape;
  SmallVector<int64_t> own = longDims(part.condition);
  if (shape.size() < 2 || int64_t(shape.size()) > rank || own.size() < 2)
    return false;
  if (shape.size() > 2 && shape[shape.size() - 3] != 1)
    return false;
  int64_t samples = shape.size() > 3 ? shape[0] : 1;
  ArrayRef<int64_t> before = ArrayRef(own).drop_back(2);
  return ArrayRef(own).take_back(2) == shape.take_back(2) &&
         (samples == 1 ? before.empty() : before == ArrayRef(samples));
}

Value ckopt::findSegments(const MaskPart &part, int64_t rank) {
  auto compare = part.condition.getDefiningOp<CompareOp>();
  auto asks = part.allowedWhere ? ComparePredicate::EQ : ComparePredicate::NE;
  if (!compare || compare.getPredicate() != asks || !isOfSamples(part, rank))
    return {};
  auto type = dyn_cast<IntegerType>(getElementTypeOrSelf(compare.getLhs()));
  std::optional<size_t> left = dimOfPlaces(compare.getLhs()),
                        right = dimOfPlaces(compare.getRhs());
  Value numbers = dataBehind(compare.getLhs());
  if (!type || type.isUnsigned() || !left || !right || *left == *right ||
      numbers != dataBehind(compare.getRhs()))
    return {};
  return numbers;
}

Value ckopt::positionsBehind(Value segments) {
  auto sum = segments.getDefiningOp<CumulativeSumOp>();
  if (!sum || sum.getExclusive() || sum.getReverse() ||
      int64_t(sum.getAxis()) != sum.getType().getRank() - 1)
    return {};
  auto cast = sum.getInput().getDefiningOp<CastOp>();
  Value breaks = cast ? cast.getInput() : Value();
  auto asks = ComparePredicate::NE;
  if (auto no = breaks ? breaks.getDefiningOp<NotOp>() : NotOp()) {
    breaks = no.getOperand();
    asks = ComparePredicate::EQ;
  }
  auto compare = breaks ? breaks.getDefiningOp<CompareOp>() : CompareOp();
  if (!compare || compare.getPredicate() != asks ||
      splatNumber(compare.getRhs()) != 1.0)
    return {};
  auto step = compare.getLhs().getDefiningOp<SubOp>();
  auto before = step ? step.getRhs().getDefiningOp<SliceOp>() : SliceOp();
  auto both = before ? before.getInput().getDefiningOp<ConcatOp>() : ConcatOp();
  if (!both || both.getInputs().size() != 2)
    return {};
  // The place before, where something stands before the first one.
  Value positions = both.getInputs()[1];
  RankedTensorType type = tensorType(positions);
  auto isZero = [](int64_t x) { return x == 0; };
  auto isOne = [](int64_t x) { return x == 1; };
  bool isBefore = int64_t(both.getAxis()) == type.getRank() - 1 &&
                  tensorType(both.getInputs()[0]).getShape().back() == 1 &&
                  before.getType() == type && step.getType() == type &&
                  llvm::all_of(before.getStarts(), isZero) &&
                  llvm::all_of(before.getSteps(), isOne);
  return isBefore && step.getLhs() == positions ? dataBehind(positions)
                                                : Value();
}

std::optional<MaskBand>
ckopt::findMaskBand(Value condition, bool allowedWhere,
                    function_ref<const reference::Tensor *(Value)> evaluate,
                    Value positions) {
  return BandFinder(evaluate, positions).find(condition, allowedWhere);
}
