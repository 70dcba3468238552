//===- ReductionModels.cpp - meaning of reductions and softmax ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Models.h"
#include <limits>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::reference;

namespace {
/// Maps an element of the operand to the element of the result that it is
/// reduced to.
class ReducedIndex {
public:
  ReducedIndex(ArrayRef<int64_t> shape, ArrayRef<int64_t> axes)
      : strides(shape.size(), 0) {
    int64_t stride = 1;
    for (size_t d = shape.size(); d-- > 0;) {
      if (llvm::is_contained(axes, int64_t(d))) {
        count *= shape[d];
        continue;
      }
      strides[d] = stride;
      stride *= shape[d];
    }
  }
  int64_t operator()(ArrayRef<int64_t> index) const {
    int64_t offset = 0;
    for (size_t d = 0; d < index.size(); ++d)
      offset += index[d] * strides[d];
    return offset;
  }
  int64_t count = 1; ///< elements that are reduced to one

private:
  SmallVector<int64_t> strides;
};
} // namespace

/// Returns the larger or smaller number, or NaN if either is NaN.
static double pickReal(bool max, double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return a + b;
  return (max ? a < b : b < a) ? b : a;
}
static int64_t pickInt(bool max, bool isUnsigned, int64_t a, int64_t b) {
  bool less = isUnsigned ? uint64_t(a) < uint64_t(b) : a < b;
  return less == max ? b : a;
}

static void combine(ReduceKind kind, Tensor &out, int64_t to, const Tensor &in,
                    int64_t from) {
  bool max = kind == ReduceKind::Max;
  if (kind == ReduceKind::Max || kind == ReduceKind::Min) {
    if (out.isFloat())
      out.real(to) = pickReal(max, out.real(to), in.real(from));
    else
      out.integer(to) =
          pickInt(max, out.isUnsigned(), out.integer(to), in.integer(from));
  } else if (kind == ReduceKind::Prod) {
    if (out.isFloat())
      out.real(to) *= in.real(from);
    else
      out.integer(to) =
          int64_t(uint64_t(out.integer(to)) * uint64_t(in.integer(from)));
  } else if (out.isFloat()) {
    out.real(to) += in.real(from);
  } else {
    out.integer(to) =
        int64_t(uint64_t(out.integer(to)) + uint64_t(in.integer(from)));
  }
}

static LogicalResult interpretReduce(ReduceOp op, Operands in, Results out,
                                     const Environment &) {
  ReducedIndex to(in[0]->getShape(), op.getAxes());
  ReduceKind kind = op.getKind();
  if (to.count == 0 && (kind == ReduceKind::Max || kind == ReduceKind::Min) &&
      out[0].size() > 0)
    return op.emitOpError("takes the ")
           << stringifyReduceKind(kind) << " of no elements";
  if (kind == ReduceKind::Prod)
    out[0] = Tensor::splat(out[0].getType(), 1);
  SmallVector<bool> started(size_t(out[0].size()));
  bool startsWithFirst = kind == ReduceKind::Max || kind == ReduceKind::Min;
  forEachIndex(in[0]->getShape(), [&](ArrayRef<int64_t> index, int64_t i) {
    int64_t target = to(index);
    if (startsWithFirst && !started[size_t(target)])
      out[0].copy(target, *in[0], i);
    else
      combine(kind, out[0], target, *in[0], i);
    started[size_t(target)] = true;
  });
  if (kind == ReduceKind::Mean)
    for (int64_t i = 0; i < out[0].size(); ++i) {
      if (out[0].isFloat())
        out[0].real(i) /= double(to.count);
      else if (to.count)
        out[0].integer(i) /= to.count;
    }
  return success();
}

static LogicalResult interpretMoments(MomentsOp op, Operands in, Results out,
                                      const Environment &) {
  ReducedIndex to(in[0]->getShape(), op.getAxes());
  Tensor &mean = out[0], &variance = out[1];
  double count = double(to.count);
  forEachIndex(in[0]->getShape(), [&](ArrayRef<int64_t> index, int64_t i) {
    mean.real(to(index)) += in[0]->real(i) / count;
  });
  forEachIndex(in[0]->getShape(), [&](ArrayRef<int64_t> index, int64_t i) {
    double difference = in[0]->real(i) - mean.real(to(index));
    variance.real(to(index)) += difference * difference / count;
  });
  return success();
}

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

/// Calls `fn(at)` for each row along `axis`; at(c) is the row's element c.
template <typename Fn>
static void forEachRow(const Tensor &tensor, int64_t axis, Fn fn) {
  AxisView view(tensor.getShape(), axis);
  for (int64_t o = 0; o < view.outer; ++o)
    for (int64_t i = 0; i < view.inner; ++i)
      fn(view.count, [&](int64_t c) { return view(o, c, i); });
}

template <typename Op, bool logarithm>
static LogicalResult interpretSoftmax(Op op, Operands in, Results out,
                                      const Environment &) {
  forEachRow(*in[0], int64_t(op.getAxis()), [&](int64_t count, auto at) {
    double max = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t c = 0; c < count; ++c)
      max = pickReal(true, max, in[0]->real(at(c)));
    for (int64_t c = 0; c < count; ++c)
      sum += std::exp(in[0]->real(at(c)) - max);
    for (int64_t c = 0; c < count; ++c) {
      double shifted = in[0]->real(at(c)) - max;
      out[0].real(at(c)) =
          logarithm ? shifted - std::log(sum) : std::exp(shifted) / sum;
    }
  });
  return success();
}

static LogicalResult interpretSoftmaxGrad(SoftmaxGradOp op, Operands in,
                                          Results out, const Environment &) {
  const Tensor &grad = *in[0], &result = *in[1];
  forEachRow(grad, int64_t(op.getAxis()), [&](int64_t count, auto at) {
    double dot = 0;
    for (int64_t c = 0; c < count; ++c)
      dot += grad.real(at(c)) * result.real(at(c));
    for (int64_t c = 0; c < count; ++c)
      out[0].real(at(c)) = result.real(at(c)) * (grad.real(at(c)) - dot);
  });
  return success();
}

static LogicalResult interpretLogSoftmaxGrad(LogSoftmaxGradOp op, Operands in,
                                             Results out, const Environment &) {
  const Tensor &grad = *in[0], &result = *in[1];
  forEachRow(grad, int64_t(op.getAxis()), [&](int64_t count, auto at) {
    double sum = 0;
    for (int64_t c = 0; c < count; ++c)
      sum += grad.real(at(c));
    for (int64_t c = 0; c < count; ++c)
      out[0].real(at(c)) =
          grad.real(at(c)) - std::exp(result.real(at(c))) * sum;
  });
  return success();
}

void reference::attachReductionModels(MLIRContext *context) {
  attachModel<ReduceOp, interpretReduce>(context);
  attachModel<MomentsOp, interpretMoments>(context);
  attachModel<SoftmaxOp, interpretSoftmax<SoftmaxOp, false>>(context);
  attachModel<LogSoftmaxOp, interpretSoftmax<LogSoftmaxOp, true>>(context);
  attachModel<SoftmaxGradOp, interpretSoftmaxGrad>(context);
  attachModel<LogSoftmaxGradOp, interpretLogSoftmaxGrad>(context);
}
