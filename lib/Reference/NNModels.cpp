//===- NNModels.cpp - meaning of matrix products and convolutions ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The three convolution ops are one triple sum over (input, weight, output):
// each point where a kernel tap of an output position meets an input element
// adds a product to whichever of the three is the result.
//
//===----------------------------------------------------------------------===//
#include "Models.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::reference;

static LogicalResult interpretMatMul(MatMulOp op, Operands in, Results out,
                                     const Environment &) {
  const Tensor &lhs = *in[0], &rhs = *in[1];
  bool tl = op.getTransposeLhs(), tr = op.getTransposeRhs();
  ArrayRef<int64_t> left = lhs.getShape(), right = rhs.getShape();
  ArrayRef<int64_t> shape = out[0].getShape();
  int64_t m = shape[shape.size() - 2], n = shape[shape.size() - 1];
  int64_t k = left[left.size() - (tl ? 2 : 1)];
  ArrayRef<int64_t> batch = shape.drop_back(2);
  Broadcast leftBatch(left.drop_back(2), int64_t(batch.size()));
  Broadcast rightBatch(right.drop_back(2), int64_t(batch.size()));
  forEachIndex(batch, [&](ArrayRef<int64_t> index, int64_t b) {
    int64_t lb = leftBatch(index) * m * k, rb = rightBatch(index) * k * n;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t c = 0; c < k; ++c)
          sum += lhs.real(lb + (tl ? c * m + i : i * k + c)) *
                 rhs.real(rb + (tr ? j * k + c : c * n + j));
        out[0].real((b * m + i) * n + j) = sum;
      }
  });
  return success();
}

static LogicalResult interpretMatMulAdd(MatMulAddOp op, Operands in,
                                        Results out, const Environment &) {
  bool tl = op.getTransposeLhs(), tr = op.getTransposeRhs();
  int64_t m = out[0].getShape()[0], n = out[0].getShape()[1];
  int64_t k = in[0]->getShape()[!tl];
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = in[2]->real(i * n + j) + (op.getBias() ? in[3]->real(j) : 0);
      for (int64_t c = 0; c < k; ++c)
        sum += in[0]->real(tl ? c * m + i : i * k + c) *
               in[1]->real(tr ? j * k + c : c * n + j);
      out[0].real(i * n + j) = sum;
    }
  return success();
}

namespace {
/// One product of the convolution's triple sum within a channel's spatial
/// block: offsets of the output position, the kernel tap and the input element.
struct Tap {
  int64_t input, weight, output;
};
} // namespace

/// Returns all taps that read an element inside the input.
template <typename Op>
static std::vector<Tap> findTaps(Op op, ArrayRef<int64_t> input,
                                 ArrayRef<int64_t> kernel,
                                 ArrayRef<int64_t> output) {
  std::vector<Tap> taps;
  SmallVector<int64_t> strides = rowMajorStrides(input);
  forEachIndex(output, [&](ArrayRef<int64_t> o, int64_t oi) {
    forEachIndex(kernel, [&](ArrayRef<int64_t> k, int64_t ki) {
      int64_t offset = 0;
      for (size_t d = 0; d < input.size(); ++d) {
        int64_t at = o[d] * op.getStrides()[d] - op.getPadsLow()[d] +
                     k[d] * op.getDilations()[d];
        if (at < 0 || at >= input[d])
          return;
        offset += at * strides[d];
      }
      taps.push_back({offset, ki, oi});
    });
  });
  return taps;
}

/// Calls `fn(input, weight, output)` for every product of the convolution.
template <typename Op, typename Fn>
static void forEachProduct(Op op, ArrayRef<int64_t> input,
                           ArrayRef<int64_t> weight, ArrayRef<int64_t> output,
                           Fn fn) {
  ArrayRef<int64_t> inSpatial = input.drop_front(2);
  ArrayRef<int64_t> kernel = weight.drop_front(2);
  ArrayRef<int64_t> outSpatial = output.drop_front(2);
  int64_t inSize = ShapedType::getNumElements(inSpatial);
  int64_t kernelSize = ShapedType::getNumElements(kernel);
  int64_t outSize = ShapedType::getNumElements(outSpatial);
  std::vector<Tap> taps = findTaps(op, inSpatial, kernel, outSpatial);
  int64_t channels = weight[1], features = weight[0] / int64_t(op.getGroups());
  for (int64_t n = 0; n < input[0]; ++n)
    for (int64_t m = 0; m < weight[0]; ++m)
      for (int64_t c = 0; c < channels; ++c) {
        int64_t group = m / features;
        int64_t inBase = (n * input[1] + group * channels + c) * inSize;
        int64_t weightBase = (m * channels + c) * kernelSize;
        int64_t outBase = (n * output[1] + m) * outSize;
        for (const Tap &tap : taps)
          fn(inBase + tap.input, weightBase + tap.weight, outBase + tap.output);
      }
}

static LogicalResult interpretConv(ConvOp op, Operands in, Results out,
                                   const Environment &) {
  const Tensor &input = *in[0], &weight = *in[1];
  Tensor &output = out[0];
  forEachProduct(op, input.getShape(), weight.getShape(), output.getShape(),
                 [&](int64_t i, int64_t w, int64_t o) {
                   output.real(o) += input.real(i) * weight.real(w);
                 });
  return success();
}

static LogicalResult interpretConvInputGrad(ConvInputGradOp op, Operands in,
                                            Results out, const Environment &) {
  const Tensor &grad = *in[0], &weight = *in[1];
  Tensor &input = out[0];
  forEachProduct(op, input.getShape(), weight.getShape(), grad.getShape(),
                 [&](int64_t i, int64_t w, int64_t o) {
                   input.real(i) += grad.real(o) * weight.real(w);
                 });
  return success();
}

static LogicalResult interpretConvWeightGrad(ConvWeightGradOp op, Operands in,
                                             Results out, const Environment &) {
  const Tensor &grad = *in[0], &input = *in[1];
  Tensor &weight = out[0];
  forEachProduct(op, input.getShape(), weight.getShape(), grad.getShape(),
                 [&](int64_t i, int64_t w, int64_t o) {
                   weight.real(w) += grad.real(o) * input.real(i);
                 });
  return success();
}

void reference::attachNNModels(MLIRContext *context) {
  attachModel<MatMulOp, interpretMatMul>(context);
  attachModel<MatMulAddOp, interpretMatMulAdd>(context);
  attachModel<ConvOp, interpretConv>(context);
  attachModel<ConvInputGradOp, interpretConvInputGrad>(context);
  attachModel<ConvWeightGradOp, interpretConvWeightGrad>(context);
}
