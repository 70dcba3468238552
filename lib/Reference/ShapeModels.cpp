//===- ShapeModels.cpp - meaning of constants and data movement -----------===//
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

/// The same elements in the same logical order.
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

/// The index at `i`, counted from the start, or an error.
static FailureOr<int64_t> resolveIndex(Operation *op, const Tensor &indices,
                                       int64_t i, int64_t size) {
  int64_t index = indices.integer(i);
  if (index < -size || index >= size)
    return op->emitOpError("index ")
           << index << " (element " << i << ") is outside of a dimension of "
           << size;
  return index < 0 ? index + size : index;
}

static LogicalResult interpretGather(GatherOp op, Operands in, Results out,
                                     const Environment &) {
  const Tensor &data = *in[0], &indices = *in[1];
  AxisView view(data.getShape(), int64_t(op.getAxis()));
  for (int64_t k = 0; k < indices.size(); ++k) {
    FailureOr<int64_t> row = resolveIndex(op, indices, k, view.count);
    if (failed(row))
      return failure();
    for (int64_t o = 0; o < view.outer; ++o)
      for (int64_t i = 0; i < view.inner; ++i)
        out[0].copy((o * indices.size() + k) * view.inner + i, data,
                    view(o, *row, i));
  }
  return success();
}

static LogicalResult interpretScatterAdd(ScatterAddOp op, Operands in,
                                         Results out, const Environment &) {
  const Tensor &indices = *in[1], &updates = *in[2];
  out[0] = in[0]->withType(out[0].getType());
  AxisView view(out[0].getShape(), int64_t(op.getAxis()));
  if (updates.size() != view.outer * indices.size() * view.inner)
    return op.emitOpError("updates ")
           << updates.getType() << " do not fit indices " << indices.getType();
  for (int64_t k = 0; k < indices.size(); ++k) {
    FailureOr<int64_t> row = resolveIndex(op, indices, k, view.count);
    if (failed(row))
      return failure();
    for (int64_t o = 0; o < view.outer; ++o)
      for (int64_t i = 0; i < view.inner; ++i) {
        int64_t to = view(o, *row, i);
        int64_t from = (o * indices.size() + k) * view.inner + i;
        if (out[0].isFloat())
          out[0].real(to) += updates.real(from);
        else
          out[0].integer(to) = int64_t(uint64_t(out[0].integer(to)) +
                                       uint64_t(updates.integer(from)));
      }
  }
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
  attachModel<GatherOp, interpretGather>(context);
  attachModel<ScatterAddOp, interpretScatterAdd>(context);
}
