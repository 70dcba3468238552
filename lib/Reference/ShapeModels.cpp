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

/// Copies the elements in logical order.
template <typename Op>
static LogicalResult interpretCopy(Op, Operands in, Results out,
                                   const Environment &) {
  out[0] = in[0]->withType(out[0].getType());
  return success();
}

static LogicalResult interpretTranspose(TransposeOp op, Operands in,
                                        Results out, const Environment &) {
  ArrayRef<int64_t> permutation = op.getPermutation();
  SmallVector<int64_t> strides = rowMajorStrides(in[0]->getShape());
  forEachIndex(out[0].getShape(), [&](ArrayRef<int64_t> index, int64_t i) {
    int64_t from = 0;
    for (size_t d = 0; d < index.size(); ++d)
      from += index[d] * strides[size_t(permutation[d])];
    out[0].copy(i, *in[0], from);
  });
  return success();
}

static LogicalResult interpretSlice(SliceOp op, Operands in, Results out,
                                    const Environment &) {
  SmallVector<int64_t> strides = rowMajorStrides(in[0]->getShape());
  forEachIndex(out[0].getShape(), [&](ArrayRef<int64_t> index, int64_t i) {
    int64_t from = 0;
    for (size_t d = 0; d < index.size(); ++d)
      from += (op.getStarts()[d] + index[d] * op.getSteps()[d]) * strides[d];
    out[0].copy(i, *in[0], from);
  });
  return success();
}

static LogicalResult interpretConcat(ConcatOp op, Operands in, Results out,
                                     const Environment &) {
  SmallVector<int64_t> strides = rowMajorStrides(out[0].getShape());
  int64_t axis = int64_t(op.getAxis()), begin = 0;
  for (const Tensor *part : in) {
    forEachIndex(part->getShape(), [&](ArrayRef<int64_t> index, int64_t i) {
      int64_t to = begin * strides[size_t(axis)];
      for (size_t d = 0; d < index.size(); ++d)
        to += index[d] * strides[d];
      out[0].copy(to, *part, i);
    });
    begin += part->getDimSize(axis);
  }
  return success();
}

static LogicalResult interpretPad(PadOp op, Operands in, Results out,
                                  const Environment &) {
  out[0] = Tensor::splat(out[0].getType(), op.getValue().convertToDouble());
  SmallVector<int64_t> strides = rowMajorStrides(out[0].getShape());
  forEachIndex(in[0]->getShape(), [&](ArrayRef<int64_t> index, int64_t i) {
    int64_t to = 0;
    for (size_t d = 0; d < index.size(); ++d)
      to +=
          (op.getLow()[d] + index[d] * (op.getInterior()[d] + 1)) * strides[d];
    out[0].copy(to, *in[0], i);
  });
  return success();
}

static LogicalResult interpretExpand(ExpandOp, Operands in, Results out,
                                     const Environment &) {
  Broadcast from(in[0]->getShape(), out[0].getRank());
  forEachIndex(out[0].getShape(), [&](ArrayRef<int64_t> index, int64_t i) {
    out[0].copy(i, *in[0], from(index));
  });
  return success();
}

static LogicalResult interpretTrilu(TriluOp op, Operands in, Results out,
                                    const Environment &) {
  size_t rank = size_t(out[0].getRank());
  if (rank < 2)
    return op.emitOpError("needs a tensor of rank 2 or more");
  forEachIndex(out[0].getShape(), [&](ArrayRef<int64_t> index, int64_t i) {
    int64_t diagonal = index[rank - 1] - index[rank - 2];
    if (op.getUpper() ? diagonal >= int64_t(op.getK())
                      : diagonal <= int64_t(op.getK()))
      out[0].copy(i, *in[0], i);
  });
  return success();
}

void reference::attachShapeModels(MLIRContext *context) {
  attachModel<ConstantOp, interpretConstant, /*foldable=*/false>(context);
  attachModel<IotaOp, interpretIota>(context);
  attachModel<ReshapeOp, interpretCopy<ReshapeOp>>(context);
  attachModel<RelayoutOp, interpretCopy<RelayoutOp>>(context);
  attachModel<PinOp, interpretCopy<PinOp>>(context);
  attachModel<TransposeOp, interpretTranspose>(context);
  attachModel<SliceOp, interpretSlice>(context);
  attachModel<ConcatOp, interpretConcat>(context);
  attachModel<PadOp, interpretPad>(context);
  attachModel<ExpandOp, interpretExpand>(context);
  attachModel<TriluOp, interpretTrilu>(context);
}
