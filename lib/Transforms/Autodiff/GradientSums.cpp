//===- GradientSums.cpp - adds up the gradients of values -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "GradientSums.h"
#include "ckopt/Dialect/Ckopt/Utils/TensorBuilder.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::autodiff;

/// Returns the scatter that makes `value` if it adds to zeros and nothing else
/// reads the value. Its first operand is the tensor of zeros.
static Operation *freshScatter(Value value) {
  Operation *op = value.getDefiningOp();
  auto elements = dyn_cast_or_null<ScatterElementsOp>(op);
  bool adds = isa_and_nonnull<ScatterAddOp>(op) ||
              (elements && elements.getKind() == ScatterKind::Add);
  if (!adds || !value.use_empty() ||
      !matchPattern(op->getOperand(0), m_AnyZeroFloat()))
    return nullptr;
  return op;
}

/// Returns the dimension along which a pad puts its operand between zeros, if
/// there is only one such dimension and nothing else reads the result.
static std::optional<int64_t> slabAxis(PadOp pad) {
  if (!pad || !pad.getOutput().use_empty() || !pad.getValue().isZero() ||
      llvm::any_of(pad.getInterior(), [](int64_t width) { return width != 0; }))
    return std::nullopt;
  std::optional<int64_t> axis;
  for (auto [d, low, high] : llvm::enumerate(pad.getLow(), pad.getHigh())) {
    if (low == 0 && high == 0)
      continue;
    if (axis)
      return std::nullopt;
    axis = int64_t(d);
  }
  return axis;
}

/// Returns the first index of a slab and the one past its last.
static std::pair<int64_t, int64_t> slabRange(PadOp pad, int64_t axis) {
  int64_t begin = pad.getLow()[axis];
  return {begin, begin + tensorType(pad.getInput()).getDimSize(axis)};
}

/// Keeps the gradient as a slab where it does not overlap the others.
bool GradientSums::addSlab(Sum &sum, Value gradient) {
  auto pad = gradient.getDefiningOp<PadOp>();
  std::optional<int64_t> axis = slabAxis(pad);
  if (!axis)
    return false;
  auto [begin, end] = slabRange(pad, *axis);
  for (PadOp other : sum.slabs) {
    if (slabAxis(other) != axis)
      return false;
    auto [otherBegin, otherEnd] = slabRange(other, *axis);
    if (begin < otherEnd && otherBegin < end)
      return false;
  }
  sum.slabs.push_back(pad);
  return true;
}

/// Concatenates the slabs, with zeros between them.
Value GradientSums::joinSlabs(ArrayRef<PadOp> slabs) {
  PadOp first = slabs.front();
  if (slabs.size() == 1)
    return first.getOutput();
  RankedTensorType type = first.getOutput().getType();
  int64_t axis = *slabAxis(first);
  SmallVector<PadOp> sorted(slabs);
  llvm::sort(sorted, [&](PadOp a, PadOp b) {
    return slabRange(a, axis) < slabRange(b, axis);
  });
  TensorBuilder b(builder, first.getLoc());
  SmallVector<Value> parts;
  int64_t at = 0;
  auto fillTo = [&](int64_t begin) {
    if (at == begin)
      return;
    SmallVector<int64_t> shape(type.getShape());
    shape[axis] = begin - at;
    parts.push_back(
        b.splat(RankedTensorType::get(shape, type.getElementType()), 0));
  };
  for (PadOp slab : sorted) {
    fillTo(slabRange(slab, axis).first);
    parts.push_back(slab.getInput());
    at = slabRange(slab, axis).second;
  }
  fillTo(type.getDimSize(axis));
  Value joined = b.make<ConcatOp>(parts, builder.getI64IntegerAttr(axis));
  for (PadOp slab : sorted)
    slab.erase();
  return joined;
}

/// Returns the gradient of a value once all of its readers have been seen; null
/// for zero.
Value GradientSums::get(Value value) {
  auto found = sums.find(value);
  if (found == sums.end())
    return {};
  Sum &sum = found->second;
  if (!sum.slabs.empty()) {
    Value joined = joinSlabs(sum.slabs);
    sum.slabs.clear();
    sum.dense = sum.dense
                    ? AddOp::create(builder, joined.getLoc(), sum.dense, joined)
                    : joined;
  }
  return sum.dense;
}

/// Returns sum + gradient as a product that grows the sum, if the gradient is a
/// product of matrices that nothing else reads; null if it is not.
Value GradientSums::growSum(Value sum, Value gradient) {
  auto product = gradient.getDefiningOp<MatMulOp>();
  if (!product || !gradient.use_empty() || tensorType(gradient).getRank() != 2)
    return {};
  return MatMulAddOp::create(
      builder, product.getLoc(), product.getLhs(), product.getRhs(), sum,
      /*bias=*/Value(), product.getTransposeLhs(), product.getTransposeRhs());
}

void GradientSums::add(Value value, Value gradient, bool owned) {
  Sum &sum = sums[value];
  if (owned && addSlab(sum, gradient))
    return;
  Operation *scatter;
  if (!sum.dense) {
    sum.dense = gradient;
    sum.owned = owned;
    return;
  }
  if (owned && (scatter = freshScatter(gradient))) {
    scatter->setOperand(0, sum.dense);
    sum.dense = gradient;
  } else if (sum.owned && (scatter = freshScatter(sum.dense))) {
    // The scatter moves below the gradient that it now adds to.
    Operation *moved = builder.clone(*scatter);
    moved->setOperand(0, gradient);
    sum.dense = moved->getResult(0);
    scatter->erase();
  } else if (Value grown = owned ? growSum(sum.dense, gradient) : Value()) {
    sum.dense = grown;
  } else {
    sum.dense = AddOp::create(builder, gradient.getLoc(), sum.dense, gradient);
  }
  sum.owned = true;
}
