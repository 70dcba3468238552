//===- NormModels.cpp - meaning of batch and layer normalization ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Models.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::reference;

//===----------------------------------------------------------------------===//
// Batch normalization: statistics per channel (dimension 1)
//===----------------------------------------------------------------------===//

/// Calls `fn(i)` for each element of channel `c`.
template <typename Fn>
static void forChannel(const AxisView &view, int64_t c, Fn fn) {
  for (int64_t o = 0; o < view.outer; ++o)
    for (int64_t i = 0; i < view.inner; ++i)
      fn(view(o, c, i));
}

static LogicalResult interpretBatchNorm(BatchNormOp op, Operands in,
                                        Results out, const Environment &) {
  const Tensor &input = *in[0], &scale = *in[1], &bias = *in[2];
  double epsilon = op.getEpsilon().convertToDouble();
  AxisView view(input.getShape(), 1);
  double count = double(view.outer * view.inner);
  for (int64_t c = 0; c < view.count; ++c) {
    double mean = 0, variance = 0;
    forChannel(view, c, [&](int64_t i) { mean += input.real(i) / count; });
    forChannel(view, c, [&](int64_t i) {
      variance += (input.real(i) - mean) * (input.real(i) - mean) / count;
    });
    double deviation = std::sqrt(variance + epsilon);
    forChannel(view, c, [&](int64_t i) {
      out[0].real(i) =
          (input.real(i) - mean) / deviation * scale.real(c) + bias.real(c);
    });
    out[1].real(c) = mean;
    out[2].real(c) = variance;
  }
  return success();
}

static LogicalResult interpretBatchNormGrad(BatchNormGradOp op, Operands in,
                                            Results out, const Environment &) {
  const Tensor &grad = *in[0], &input = *in[1], &scale = *in[2];
  const Tensor &mean = *in[3], &variance = *in[4];
  double epsilon = op.getEpsilon().convertToDouble();
  AxisView view(input.getShape(), 1);
  double count = double(view.outer * view.inner);
  for (int64_t c = 0; c < view.count; ++c) {
    double deviation = std::sqrt(variance.real(c) + epsilon);
    auto normalized = [&](int64_t i) {
      return (input.real(i) - mean.real(c)) / deviation;
    };
    double scaleGrad = 0, biasGrad = 0;
    forChannel(view, c, [&](int64_t i) {
      scaleGrad += grad.real(i) * normalized(i);
      biasGrad += grad.real(i);
    });
    forChannel(view, c, [&](int64_t i) {
      out[0].real(i) =
          scale.real(c) / deviation *
          (grad.real(i) - biasGrad / count - normalized(i) * scaleGrad / count);
    });
    out[1].real(c) = scaleGrad;
    out[2].real(c) = biasGrad;
  }
  return success();
}

static LogicalResult interpretBatchNormInference(BatchNormInferenceOp op,
                                                 Operands in, Results out,
                                                 const Environment &) {
  double epsilon = op.getEpsilon().convertToDouble();
  AxisView view(in[0]->getShape(), 1);
  for (int64_t c = 0; c < view.count; ++c) {
    double scale = in[1]->real(c), bias = in[2]->real(c);
    double mean = in[3]->real(c);
    double deviation = std::sqrt(in[4]->real(c) + epsilon);
    forChannel(view, c, [&](int64_t i) {
      out[0].real(i) = (in[0]->real(i) - mean) / deviation * scale + bias;
    });
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Layer normalization: statistics per row of the dimensions from axis on
//===----------------------------------------------------------------------===//

/// Reads element `j` of a row of an operand that broadcasts to the row's shape,
/// or `missing` where there is no operand.
namespace {
class RowOperand {
public:
  RowOperand(const Tensor *tensor, ArrayRef<int64_t> row, double missing)
      : values(size_t(ShapedType::getNumElements(row)), missing) {
    if (!tensor)
      return;
    Broadcast from(tensor->getShape(), int64_t(row.size()));
    forEachIndex(row, [&](ArrayRef<int64_t> index, int64_t j) {
      values[size_t(j)] = tensor->real(from(index));
    });
  }
  double operator[](int64_t j) const { return values[size_t(j)]; }

private:
  std::vector<double> values;
};
} // namespace

static LogicalResult interpretLayerNorm(LayerNormOp op, Operands in,
                                        Results out, const Environment &) {
  const Tensor &input = *in[0];
  int64_t axis = int64_t(op.getAxis());
  ArrayRef<int64_t> row = input.getShape().drop_front(size_t(axis));
  AxisView view(input.getShape(), axis, input.getRank() - axis);
  RowOperand scale(op.getScale() ? in[1] : nullptr, row, 1);
  RowOperand bias(op.getBias() ? in.back() : nullptr, row, 0);
  double count = double(view.count),
         epsilon = op.getEpsilon().convertToDouble();
  for (int64_t r = 0; r < view.outer; ++r) {
    double mean = 0, variance = 0;
    auto at = [&](int64_t j) { return input.real(view(r, j, 0)); };
    for (int64_t j = 0; j < view.count; ++j)
      mean += at(j) / count;
    for (int64_t j = 0; j < view.count; ++j)
      variance += (at(j) - mean) * (at(j) - mean) / count;
    double rstd = 1 / std::sqrt(variance + epsilon);
    for (int64_t j = 0; j < view.count; ++j)
      out[0].real(view(r, j, 0)) = (at(j) - mean) * rstd * scale[j] + bias[j];
    out[1].real(r) = mean;
    out[2].real(r) = rstd;
  }
  return success();
}

static LogicalResult interpretLayerNormGrad(LayerNormGradOp op, Operands in,
                                            Results out, const Environment &) {
  const Tensor &grad = *in[0], &input = *in[1], &mean = *in[2], &rstd = *in[3];
  int64_t axis = int64_t(op.getAxis());
  ArrayRef<int64_t> row = input.getShape().drop_front(size_t(axis));
  AxisView view(input.getShape(), axis, input.getRank() - axis);
  RowOperand scale(op.getScale() ? in[4] : nullptr, row, 1);
  for (int64_t r = 0; r < view.outer; ++r) {
    auto g = [&](int64_t j) { return grad.real(view(r, j, 0)) * scale[j]; };
    auto h = [&](int64_t j) {
      return (input.real(view(r, j, 0)) - mean.real(r)) * rstd.real(r);
    };
    double meanG = 0, meanGH = 0;
    for (int64_t j = 0; j < view.count; ++j) {
      meanG += g(j) / double(view.count);
      meanGH += g(j) * h(j) / double(view.count);
    }
    for (int64_t j = 0; j < view.count; ++j)
      out[0].real(view(r, j, 0)) =
          rstd.real(r) * (g(j) - meanG - h(j) * meanGH);
  }
  return success();
}

/// Rounding is of types: numbers are the same with `rounds`.
static LogicalResult interpretRmsNorm(RmsNormOp op, Operands in, Results out,
                                      const Environment &) {
  const Tensor &input = *in[0];
  int64_t axis = int64_t(op.getAxis());
  ArrayRef<int64_t> row = input.getShape().drop_front(size_t(axis));
  AxisView view(input.getShape(), axis, input.getRank() - axis);
  RowOperand scale(op.getScale() ? in[1] : nullptr, row, 1);
  double epsilon = op.getEpsilon().convertToDouble();
  for (int64_t r = 0; r < view.outer; ++r) {
    double mean = 0;
    auto at = [&](int64_t j) { return input.real(view(r, j, 0)); };
    for (int64_t j = 0; j < view.count; ++j)
      mean += at(j) * at(j) / double(view.count);
    double rstd = 1 / std::sqrt(mean + epsilon);
    for (int64_t j = 0; j < view.count; ++j)
      out[0].real(view(r, j, 0)) = at(j) * rstd * scale[j];
    out[1].real(r) = rstd;
  }
  return success();
}

static LogicalResult interpretRmsNormGrad(RmsNormGradOp op, Operands in,
                                          Results out, const Environment &) {
  const Tensor &grad = *in[0], &input = *in[1], &rstd = *in[2];
  int64_t axis = int64_t(op.getAxis());
  ArrayRef<int64_t> row = input.getShape().drop_front(size_t(axis));
  AxisView view(input.getShape(), axis, input.getRank() - axis);
  RowOperand scale(op.getScale() ? in[3] : nullptr, row, 1);
  for (int64_t r = 0; r < view.outer; ++r) {
    auto g = [&](int64_t j) { return grad.real(view(r, j, 0)) * scale[j]; };
    auto h = [&](int64_t j) {
      return input.real(view(r, j, 0)) * rstd.real(r);
    };
    double meanGH = 0;
    for (int64_t j = 0; j < view.count; ++j)
      meanGH += g(j) * h(j) / double(view.count);
    for (int64_t j = 0; j < view.count; ++j)
      out[0].real(view(r, j, 0)) = rstd.real(r) * (g(j) - h(j) * meanGH);
  }
  return success();
}

void reference::attachNormModels(MLIRContext *context) {
  attachModel<BatchNormOp, interpretBatchNorm>(context);
  attachModel<BatchNormGradOp, interpretBatchNormGrad>(context);
  attachModel<BatchNormInferenceOp, interpretBatchNormInference>(context);
  attachModel<LayerNormOp, interpretLayerNorm>(context);
  attachModel<LayerNormGradOp, interpretLayerNormGrad>(context);
  attachModel<RmsNormOp, interpretRmsNorm>(context);
  attachModel<RmsNormGradOp, interpretRmsNormGrad>(context);
}
