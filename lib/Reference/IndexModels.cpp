//===- IndexModels.cpp - meaning of gathers, scatters, scans, selection ---===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Models.h"
#include <numeric>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::reference;

/// Returns the index at `i`, counted from the start, or an error if it is out
/// of range.
static FailureOr<int64_t> resolveIndex(Operation *op, const Tensor &indices,
                                       int64_t i, int64_t size) {
  int64_t index = indices.integer(i);
  if (index < -size || index >= size)
    return op->emitOpError("index ")
           << index << " (element " << i << ") is outside of a dimension of "
           << size;
  return index < 0 ? index + size : index;
}

static LogicalResult traceGather(GatherOp op, Operands in, ElementMove move) {
  if (!in[1])
    return failure();
  const Tensor &indices = *in[1];
  AxisView view(shapeOf(op.getData()), int64_t(op.getAxis()));
  for (int64_t k = 0; k < indices.size(); ++k) {
    FailureOr<int64_t> row = resolveIndex(op, indices, k, view.count);
    if (failed(row))
      return failure();
    for (int64_t o = 0; o < view.outer; ++o)
      for (int64_t i = 0; i < view.inner; ++i)
        move((o * indices.size() + k) * view.inner + i, 0, view(o, *row, i));
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

/// Calls `fn(element of data, element of indices)` for each element of the
/// indices in row-major order, so that several updates of one element are
/// applied in increasing order along the axis.
template <typename Fn>
static LogicalResult forEachIndexed(Operation *op, ArrayRef<int64_t> data,
                                    const Tensor &indices, int64_t axis,
                                    Fn fn) {
  SmallVector<int64_t> strides = rowMajorStrides(data);
  LogicalResult result = success();
  forEachIndex(indices.getShape(), [&](ArrayRef<int64_t> index, int64_t i) {
    if (failed(result))
      return;
    FailureOr<int64_t> place = resolveIndex(op, indices, i, data[size_t(axis)]);
    if (failed(place)) {
      result = failure();
      return;
    }
    int64_t at = 0;
    for (size_t d = 0; d < index.size(); ++d)
      at += (int64_t(d) == axis ? *place : index[d]) * strides[d];
    fn(at, i);
  });
  return result;
}

static LogicalResult traceGatherElements(GatherElementsOp op, Operands in,
                                         ElementMove move) {
  if (!in[1])
    return failure();
  return forEachIndexed(op, shapeOf(op.getData()), *in[1],
                        int64_t(op.getAxis()),
                        [&](int64_t from, int64_t i) { move(i, 0, from); });
}

/// Returns the larger one, or NaN if either is NaN.
static double largerOf(double a, double b) {
  return std::isnan(a) || a > b ? a : b;
}

static double combine(ScatterKind kind, double old, double update) {
  switch (kind) {
  case ScatterKind::Set:
    return update;
  case ScatterKind::Add:
    return old + update;
  case ScatterKind::Mul:
    return old * update;
  case ScatterKind::Max:
    return largerOf(old, update);
  case ScatterKind::Min:
    return -largerOf(-old, -update);
  }
  llvm_unreachable("kinds are listed above");
}

static int64_t combine(ScatterKind kind, int64_t old, int64_t update,
                       bool isUnsigned) {
  auto less = [&](int64_t a, int64_t b) {
    return isUnsigned ? uint64_t(a) < uint64_t(b) : a < b;
  };
  switch (kind) {
  case ScatterKind::Set:
    return update;
  case ScatterKind::Add:
    return int64_t(uint64_t(old) + uint64_t(update));
  case ScatterKind::Mul:
    return int64_t(uint64_t(old) * uint64_t(update));
  case ScatterKind::Max:
    return less(old, update) ? update : old;
  case ScatterKind::Min:
    return less(update, old) ? update : old;
  }
  llvm_unreachable("kinds are listed above");
}

static LogicalResult interpretScatterElements(ScatterElementsOp op, Operands in,
                                              Results out,
                                              const Environment &) {
  const Tensor &updates = *in[2];
  out[0] = in[0]->withType(out[0].getType());
  return forEachIndexed(
      op, out[0].getShape(), *in[1], int64_t(op.getAxis()),
      [&](int64_t to, int64_t i) {
        if (out[0].isFloat())
          out[0].real(to) =
              combine(op.getKind(), out[0].real(to), updates.real(i));
        else
          out[0].integer(to) = combine(op.getKind(), out[0].integer(to),
                                       updates.integer(i), out[0].isUnsigned());
      });
}

static LogicalResult interpretCumulativeSum(CumulativeSumOp op, Operands in,
                                            Results out, const Environment &) {
  AxisView view(out[0].getShape(), int64_t(op.getAxis()));
  for (int64_t o = 0; o < view.outer; ++o)
    for (int64_t i = 0; i < view.inner; ++i) {
      double real = 0;
      uint64_t integer = 0;
      for (int64_t step = 0; step < view.count; ++step) {
        int64_t at = view(o, op.getReverse() ? view.count - 1 - step : step, i);
        auto put = [&] {
          if (out[0].isFloat())
            out[0].real(at) = real;
          else
            out[0].integer(at) = int64_t(integer);
        };
        if (op.getExclusive())
          put();
        if (out[0].isFloat())
          real += in[0]->real(at);
        else
          integer += uint64_t(in[0]->integer(at));
        if (!op.getExclusive())
          put();
      }
    }
  return success();
}

static LogicalResult interpretTopK(TopKOp op, Operands in, Results out,
                                   const Environment &) {
  const Tensor &x = *in[0];
  AxisView view(x.getShape(), int64_t(op.getAxis()));
  AxisView chosen(out[0].getShape(), int64_t(op.getAxis()));
  // Returns whether element a is larger; NaN counts as larger than every
  // number.
  auto larger = [&](int64_t a, int64_t b) {
    if (x.isFloat())
      return std::isnan(x.real(a)) ? !std::isnan(x.real(b))
                                   : x.real(a) > x.real(b);
    return x.isUnsigned() ? uint64_t(x.integer(a)) > uint64_t(x.integer(b))
                          : x.integer(a) > x.integer(b);
  };
  for (int64_t o = 0; o < view.outer; ++o)
    for (int64_t i = 0; i < view.inner; ++i) {
      std::vector<int64_t> order(size_t(view.count));
      std::iota(order.begin(), order.end(), 0);
      llvm::sort(order, [&](int64_t a, int64_t b) {
        int64_t first = view(o, a, i), second = view(o, b, i);
        if (op.getSmallest())
          std::swap(first, second);
        if (larger(first, second) || larger(second, first))
          return larger(first, second);
        return op.getLast() ? a > b : a < b;
      });
      for (int64_t j = 0; j < chosen.count; ++j)
        out[0].integer(chosen(o, j, i)) = order[size_t(j)];
    }
  return success();
}

void reference::attachIndexModels(MLIRContext *context) {
  attachMover<GatherOp, traceGather>(context);
  attachModel<ScatterAddOp, interpretScatterAdd>(context);
  attachMover<GatherElementsOp, traceGatherElements>(context);
  attachModel<ScatterElementsOp, interpretScatterElements>(context);
  attachModel<CumulativeSumOp, interpretCumulativeSum>(context);
  attachModel<TopKOp, interpretTopK>(context);
}
