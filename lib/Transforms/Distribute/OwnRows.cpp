//===- OwnRows.cpp - samples that are taken by their own number -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: `h[arange(B), lengths]` numbers samples, and yet each takes rows of
// its own alone: GatherND makes it rows i * T + lengths[i] of all samples'
// rows. Method: the step by which row numbers grow from sample to sample is
// followed through sums and products with constants; where as many rows lie
// from sample to sample, a rank's numbers, which count from its own first
// sample, take what one process takes. Row numbers beyond a sample's rows are
// an error of the data. O(ops of the row numbers).
//
//===----------------------------------------------------------------------===//
#include "ckopt/Distribute/SampleAxes.h"

#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace ckopt;

namespace {
/// Finds the step of row numbers along an axis; what is added to it is a
/// sample's own, or the same for all.
class RowSteps {
public:
  explicit RowSteps(const SampleAxes &axes) : axes(axes) {}
  std::optional<int64_t> along(Value value, int64_t axis, int depth = 16) const;

private:
  std::optional<int64_t> ofOperand(Operation *op, unsigned i, int64_t axis,
                                   int depth) const;
  std::optional<int64_t> ofSelect(SelectOp op, int64_t axis, int depth) const;
  std::optional<int64_t> ofReshape(ReshapeOp op, int64_t axis, int depth) const;

  const SampleAxes &axes;
};
} // namespace

/// Returns the step of constants that count up or down, alike in all slices.
static std::optional<int64_t> stepOf(ConstantOp op, int64_t axis) {
  auto dense = dyn_cast<DenseElementsAttr>(op.getValue());
  if (!dense || !dense.getElementType().isInteger() || dense.isSplat())
    return std::nullopt;
  ArrayRef<int64_t> shape = dense.getType().getShape();
  int64_t stride = 1, size = shape[size_t(axis)];
  for (int64_t extent : shape.drop_front(size_t(axis) + 1))
    stride *= extent;
  SmallVector<int64_t> numbers;
  for (const APInt &number : dense.getValues<APInt>())
    numbers.push_back(number.getSExtValue());
  if (size < 2)
    return std::nullopt;
  const int64_t step = numbers[size_t(stride)] - numbers.front();
  for (size_t at = 0; at < numbers.size(); ++at)
    if (int64_t(at) / stride % size &&
        numbers[at] - numbers[at - size_t(stride)] != step)
      return std::nullopt;
  return step;
}

/// A negative number counts from the end, which adds the same to all: the
/// numbers that grow from sample to sample are none.
std::optional<int64_t> RowSteps::ofSelect(SelectOp op, int64_t axis,
                                          int depth) const {
  auto compare = op.getCondition().getDefiningOp<CompareOp>();
  if (!compare || compare.getPredicate() != ComparePredicate::LT ||
      compare.getLhs() != op.getOnFalse() ||
      !matchPattern(compare.getRhs(), m_Zero()))
    return std::nullopt;
  return ofOperand(op, 2, axis, depth);
}

/// The axis stays where as many elements lie before it.
std::optional<int64_t> RowSteps::ofReshape(ReshapeOp op, int64_t axis,
                                           int depth) const {
  int64_t before = 1, passed = 1;
  for (int64_t size : shapeOf(op.getOutput()).take_front(size_t(axis)))
    before *= size;
  for (auto [own, size] : llvm::enumerate(shapeOf(op.getInput()))) {
    if (passed == before && size == shapeOf(op.getOutput())[size_t(axis)])
      return along(op.getInput(), int64_t(own), depth);
    passed *= size;
  }
  return std::nullopt;
}

std::optional<int64_t> RowSteps::ofOperand(Operation *op, unsigned i,
                                           int64_t axis, int depth) const {
  AxisRelation relation = relateAxis(op, i, axis);
  if (relation.kind == AxisRelation::Kind::Whole)
    return axes.of(op->getOperand(i)).isSame() ? std::optional<int64_t>(0)
                                               : std::nullopt;
  return relation.follows() ? along(op->getOperand(i), relation.axis, depth)
                            : std::nullopt;
}

std::optional<int64_t> RowSteps::along(Value value, int64_t axis,
                                       int depth) const {
  SampleAxis given = axes.of(value);
  if (given == SampleAxis::part(axis) ||
      (given.isSame() && axes.isUniform(value, axis)))
    return 0;
  Operation *op = value.getDefiningOp();
  if (!op || depth == 0)
    return std::nullopt;
  if (auto constant = dyn_cast<ConstantOp>(op))
    return stepOf(constant, axis);
  if (auto iota = dyn_cast<IotaOp>(op); iota && int64_t(iota.getAxis()) == axis)
    return int64_t(iota.getDelta().convertToDouble());
  if (auto select = dyn_cast<SelectOp>(op))
    return ofSelect(select, axis, depth - 1);
  if (auto reshape = dyn_cast<ReshapeOp>(op))
    return ofReshape(reshape, axis, depth - 1);
  if (isa<CastOp>(op) || op->hasTrait<traits::KeepsElements>())
    return ofOperand(op, 0, axis, depth - 1);
  bool isProduct = isa<MulOp>(op);
  if (!isProduct && !isa<AddOp, SubOp>(op))
    return std::nullopt;
  auto left = ofOperand(op, 0, axis, depth - 1);
  auto right = ofOperand(op, 1, axis, depth - 1);
  if (!left || !right)
    return std::nullopt;
  if (!isProduct)
    return isa<AddOp>(op) ? *left + *right : *left - *right;
  APInt factor;
  for (unsigned i : {0u, 1u})
    if (matchPattern(op->getOperand(i), m_ConstantInt(&factor)))
      return (i == 0 ? *right : *left) * factor.getSExtValue();
  return std::nullopt;
}

/// Rows of `table` along the axis of its samples, by `numbers`: returns the
/// axis of `numbers` along which each sample has its own.
static std::optional<int64_t> ownRows(const SampleAxes &axes, Value table,
                                      int64_t axis, Value numbers) {
  SampleAxis rows = axes.of(table);
  bool isOwn = rows.isSame() ? axes.isUniform(table, axis)
                             : rows == SampleAxis::part(axis);
  const int64_t samples = axes.samples();
  if (!isOwn || samples < 2)
    return std::nullopt;
  for (auto [along, size] : llvm::enumerate(shapeOf(numbers))) {
    if (size == 0 || size % samples)
      continue;
    auto step = RowSteps(axes).along(numbers, int64_t(along));
    if (step && *step * size == shapeOf(table)[size_t(axis)])
      return int64_t(along);
  }
  return std::nullopt;
}

/// What is put into rows, of each sample along the axis.
static bool isOwn(const SampleAxes &axes, Value updates, int64_t axis) {
  SampleAxis given = axes.of(updates);
  return given.isSame() ? axes.isUniform(updates, axis)
                        : given == SampleAxis::part(axis);
}

SampleAxis ckopt::keptByRows(const SampleAxes &axes, Operation *op) {
  auto rows = dyn_cast<IndexingOpInterface>(op);
  if (!rows || (axes.of(rows.getIndices()).isSame() &&
                axes.of(rows.getTable()).isSame()))
    return SampleAxis::mixed();
  const int64_t axis = int64_t(rows.getAxis());
  auto along = ownRows(axes, rows.getTable(), axis, rows.getIndices());
  if (!along || (rows.namesElements() && *along != axis))
    return SampleAxis::mixed();
  // Where the samples of what is read or written lie.
  const int64_t place = rows.namesElements() ? axis : axis + *along;
  if (Value updates = rows.getUpdates())
    return isOwn(axes, updates, place) ? SampleAxis::part(axis)
                                       : SampleAxis::mixed();
  return SampleAxis::part(place);
}
