//===- NormalizationRules.cpp - gradients of layer and batch norm ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The gradient with respect to the input is one op for each normalization (a
// row kernel, or the formulas that `decompose` replaces it with); the gradients
// of scale and bias are plain sums, which fuse with each other. Statistics that
// other ops use get the gradients of their formulas.
//
//===----------------------------------------------------------------------===//
#include "RuleBuilder.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::autodiff;

//===----------------------------------------------------------------------===//
// Layer normalization
//===----------------------------------------------------------------------===//

/// Reshapes statistics of shape [rows...] to [rows..., 1, ...].
static Value besideRows(RuleBuilder &b, Value statistic, RankedTensorType type,
                        int64_t axis) {
  SmallVector<int64_t> axes =
      llvm::to_vector(llvm::seq<int64_t>(axis, type.getRank()));
  return b.keepDims(statistic, axes, type.getShape());
}

/// The mean has the gradient g / n, and rstd has -g * rstd^3 * (x - mean) / n.
static void layerNormStatistics(LayerNormOp op, RuleBuilder &b) {
  RankedTensorType type = tensorType(op.getInput());
  int64_t axis = op.getAxis();
  double n = 1;
  for (int64_t size : type.getShape().drop_front(axis))
    n *= double(size);
  if (Value g = b.grad(1))
    b.set(0, b.expand(besideRows(b, b.mul(g, 1 / n), type, axis),
                      type.getShape()));
  if (Value g = b.grad(2)) {
    Value r = op.getRstd();
    Value factor = b.mul(b.mul(g, -1 / n), b.mul(r, b.mul(r, r)));
    Value centered =
        b.sub(op.getInput(), besideRows(b, op.getMean(), type, axis));
    b.set(0, b.mul(centered, besideRows(b, factor, type, axis)));
  }
}

static void layerNormRule(LayerNormOp op, RuleBuilder &b) {
  RankedTensorType type = tensorType(op.getInput());
  int64_t axis = op.getAxis();
  Value g = b.grad(0), scale = op.getScale();
  if (g && b.needs(0))
    b.set(0, b.make<LayerNormGradOp>(type, g, op.getInput(), op.getMean(),
                                     op.getRstd(), scale, op.getAxisAttr()));
  if (b.needs(0))
    layerNormStatistics(op, b);
  if (!g)
    return;
  unsigned next = 1;
  if (scale && b.needs(next++)) {
    Value centered =
        b.sub(op.getInput(), besideRows(b, op.getMean(), type, axis));
    Value normalized = b.mul(centered, besideRows(b, op.getRstd(), type, axis));
    b.set(1, b.mul(g, normalized));
  }
  if (op.getBias() && b.needs(next))
    b.set(next, g);
}

//===----------------------------------------------------------------------===//
// RMS normalization
//===----------------------------------------------------------------------===//

/// rstd has the gradient -g * rstd^3 * x / n. Of halves, gradients of scale and
/// rstd are computed in rstd's f32.
static void rmsNormRule(RmsNormOp op, RuleBuilder &b) {
  RankedTensorType type = tensorType(op.getInput());
  int64_t axis = op.getAxis();
  Value g = b.grad(0), r = op.getRstd(), scale = op.getScale();
  Type wide = getElementTypeOrSelf(r);
  if (g && b.needs(0))
    b.set(0, b.make<RmsNormGradOp>(type, g, op.getInput(), r, scale,
                                   op.getAxisAttr()));
  Value x = b.cast(op.getInput(), wide);
  if (Value gradOfRstd = b.grad(1); gradOfRstd && b.needs(0)) {
    double n = 1;
    for (int64_t size : type.getShape().drop_front(axis))
      n *= double(size);
    Value factor = b.mul(b.mul(gradOfRstd, -1 / n), b.mul(r, b.mul(r, r)));
    b.set(0, b.cast(b.mul(x, besideRows(b, factor, type, axis)),
                    type.getElementType()));
  }
  if (!g || !scale || !b.needs(1))
    return;
  Value normalized = b.mul(x, besideRows(b, r, type, axis));
  Value sum =
      b.sumTo(b.mul(b.cast(g, wide), normalized), tensorType(scale).getShape());
  b.set(1, b.cast(sum, getElementTypeOrSelf(scale)));
}

//===----------------------------------------------------------------------===//
// Batch normalization
//===----------------------------------------------------------------------===//

static void batchNormRule(BatchNormOp op, RuleBuilder &b) {
  RankedTensorType type = tensorType(op.getInput());
  if (Value g = b.grad(0)) {
    auto grads = BatchNormGradOp::create(b.builder, b.loc, g, op.getInput(),
                                         op.getScale(), op.getMean(),
                                         op.getVariance(), op.getEpsilonAttr());
    for (unsigned i = 0; i < 3; ++i)
      if (b.needs(i))
        b.set(i, grads->getResult(i));
  }
  if (!b.needs(0))
    return;
  double n = double(type.getNumElements()) / double(type.getDimSize(1));
  if (Value g = b.grad(1))
    b.set(0,
          b.expand(besideChannels(b, b.mul(g, 1 / n), type), type.getShape()));
  if (Value g = b.grad(2)) {
    Value centered =
        b.sub(op.getInput(), besideChannels(b, op.getMean(), type));
    b.set(0, b.mul(centered, besideChannels(b, b.mul(g, 2 / n), type)));
  }
}

/// Differentiates y = (x - mean) * rstd * scale + bias, where all statistics
/// are operands.
static void batchNormInferenceRule(BatchNormInferenceOp op, RuleBuilder &b) {
  RankedTensorType type = tensorType(op.getInput());
  SmallVector<int64_t> axes = allButChannels(type);
  Value g = b.grad();
  Value rstd = b.make<RsqrtOp>(
      b.add(op.getVariance(), op.getEpsilon().convertToDouble()));
  Value slope = b.mul(op.getScale(), rstd);
  if (b.needs(0))
    b.set(0, b.mul(g, besideChannels(b, slope, type)));
  if (b.needs(1) || b.needs(4)) {
    Value centered =
        b.sub(op.getInput(), besideChannels(b, op.getMean(), type));
    Value moment = b.sum(b.mul(g, centered), axes);
    if (b.needs(1))
      b.set(1, b.mul(moment, rstd));
    if (b.needs(4))
      b.set(4, b.mul(b.mul(moment, slope), b.mul(b.mul(rstd, rstd), -0.5)));
  }
  if (b.needs(2) || b.needs(3)) {
    Value total = b.sum(g, axes);
    if (b.needs(2))
      b.set(2, total);
    if (b.needs(3))
      b.set(3, b.neg(b.mul(total, slope)));
  }
}

void autodiff::addNormalizationRules(MLIRContext *context) {
  addRule<LayerNormOp>(
      context, [](LayerNormOp op, RuleBuilder &b) { layerNormRule(op, b); });
  addRule<RmsNormOp>(context,
                     [](RmsNormOp op, RuleBuilder &b) { rmsNormRule(op, b); });
  addRule<BatchNormOp>(
      context, [](BatchNormOp op, RuleBuilder &b) { batchNormRule(op, b); });
  addRule<BatchNormInferenceOp>(context,
                                [](BatchNormInferenceOp op, RuleBuilder &b) {
                                  batchNormInferenceRule(op, b);
                                });
}
