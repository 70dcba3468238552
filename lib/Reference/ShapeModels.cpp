//===- ShapeModels.cpp - meaning of constants and data movement -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Models.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::reference;

static LogicalResult interpretConstant(ConstantOp op, Operands, Results out,
                                       const Environment &) {
  Tensor value = Tensor::fromAttr(op.getValue());
  if (!value)
    return op.emitOpError("has a value that cannot be read");
  out[0] = value.withType(out[0].getType());
  return success();
}

static LogicalResult interpretIota(IotaOp op, Operands, Results out,
                                   const Environment &) {
  double start = op.getStart().convertToDouble();
  double delta = op.getDelta().convertToDouble();
  forEachIndex(out[0].getShape(), [&](ArrayRef<int64_t> index, int64_t i) {
    out[0].set(i, start + double(index[op.getAxis()]) * delta);
  });
  return success();
}

static LogicalResult traceTranspose(TransposeOp op, Operands,
                                    ElementMove move) {
  ArrayRef<int64_t> permutation = op.getPermutation();
  SmallVector<int64_t> strides = rowMajorStrides(shapeOf(op.getInput()));
  forEachIndex(shapeOf(op), [&](ArrayRef<int64_t> index, int64_t i) {
    int64_t from = 0;
    for (size_t d = 0; d < index.size(); ++d)
      from += index[d] * strides[size_t(permutation[d])];
    move(i, 0, from);
  });
  return success();
}

static LogicalResult traceSlice(SliceOp op, Operands, ElementMove move) {
  SmallVector<int64_t> strides = rowMajorStrides(shapeOf(op.getInput()));
  forEachIndex(shapeOf(op), [&](ArrayRef<int64_t> index, int64_t i) {
    int64_t from = 0;
    for (size_t d = 0; d < index.size(); ++d)
      from += (op.getStarts()[d] + index[d] * op.getSteps()[d]) * strides[d];
    move(i, 0, from);
  });
  return success();
}

static LogicalResult traceConcat(ConcatOp op, Operands, ElementMove move) {
  SmallVector<int64_t> strides = rowMajorStrides(shapeOf(op));
  auto axis = size_t(op.getAxis());
  int64_t begin = 0;
  for (auto [operand, part] : llvm::enumerate(op.getInputs())) {
    forEachIndex(shapeOf(part), [&](ArrayRef<int64_t> index, int64_t i) {
      int64_t to = begin * strides[axis];
      for (size_t d = 0; d < index.size(); ++d)
        to += index[d] * strides[d];
      move(to, unsigned(operand), i);
    });
    begin += shapeOf(part)[axis];
  }
  return success();
}

static LogicalResult tracePad(PadOp op, Operands, ElementMove move) {
  SmallVector<int64_t> strides = rowMajorStrides(shapeOf(op));
  forEachIndex(shapeOf(op.getInput()), [&](ArrayRef<int64_t> index, int64_t i) {
    int64_t to = 0;
    for (size_t d = 0; d < index.size(); ++d)
      to +=
          (op.getLow()[d] + index[d] * (op.getInterior()[d] + 1)) * strides[d];
    move(to, 0, i);
  });
  return success();
}

static LogicalResult interpretPad(PadOp op, Operands in, Results out,
                                  const Environment &environment) {
  out[0] = Tensor::splat(out[0].getType(), op.getValue().convertToDouble());
  return interpretMoves<PadOp, tracePad>(op, in, out, environment);
}

static LogicalResult traceExpand(ExpandOp op, Operands, ElementMove move) {
  Broadcast from(shapeOf(op.getInput()), int64_t(shapeOf(op).size()));
  forEachIndex(shapeOf(op), [&](ArrayRef<int64_t> index, int64_t i) {
    move(i, 0, from(index));
  });
  return success();
}

static LogicalResult traceTrilu(TriluOp op, Operands, ElementMove move) {
  size_t rank = shapeOf(op).size();
  if (rank < 2)
    return op.emitOpError("needs a tensor of rank 2 or more");
  const bool upper = op.getUpper();
  const int64_t k = op.getK();
  forEachIndex(shapeOf(op), [&](ArrayRef<int64_t> index, int64_t i) {
    int64_t diagonal = index[rank - 1] - index[rank - 2];
    if (upper ? diagonal >= k : diagonal <= k)
      move(i, 0, i);
  });
  return success();
}

void reference::attachShapeModels(MLIRContext *context) {
  attachModel<ConstantOp, interpretConstant, /*foldable=*/false>(context);
  attachModel<IotaOp, interpretIota>(context);
  attachMover<ReshapeOp, traceAll<ReshapeOp>>(context);
  attachMover<RelayoutOp, traceAll<RelayoutOp>>(context);
  attachMover<PinOp, traceAll<PinOp>>(context);
  attachMover<TransposeOp, traceTranspose>(context);
  attachMover<SliceOp, traceSlice>(context);
  attachMover<ConcatOp, traceConcat>(context);
  attachMover<PadOp, tracePad, interpretPad>(context);
  attachMover<ExpandOp, traceExpand>(context);
  attachMover<TriluOp, traceTrilu>(context);
}
