//===- SyncNorms.cpp - batch norms of all ranks' samples ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: a batch norm of a rank's share normalizes by the statistics of that
// share alone, so that N processes train another function than one process
// does. Method: after autodiff each batch norm and its gradient are written out
// with sums over ranks: of means and mean squares in the forward direction, of
// the two sums that the input's gradient needs in the backward one. Squares are
// added in f64, so that a large mean costs no digits of the variance. The
// gradients of scale and bias stay the rank's own: they are summed with all
// others. Guarantee: one sum over ranks for each norm and direction; what all
// ranks compute is one process's on the whole batch but for the order of sums.
// O(ops).
//
//===----------------------------------------------------------------------===//
#include "ckopt/Distribute/Distribution.h"

#include "ckopt/Dialect/Ckopt/Utils/SettingDiagnostic.h"
#include "ckopt/Dialect/Ckopt/Utils/TensorBuilder.h"

using namespace mlir;
using namespace ckopt;

/// Statistics that something else is computed from have gradients of their own,
/// which this pass could not tell from others.
static LogicalResult checkStatistics(BatchNormOp op) {
  for (Value statistic : {op.getMean(), op.getVariance()})
    for (Operation *user : statistic.getUsers())
      if (!isa<BatchNormGradOp, MovingAverageOp>(user))
        return op.emitError("its statistics enter ")
               << user->getName()
               << ": only those that normalize and running ones can be those "
                  "of all ranks (" +
                      Setting("sync-batchnorm") + ")";
  return success();
}

static void syncForward(BatchNormOp op, int64_t ranks) {
  OpBuilder builder(op);
  TensorBuilder b(builder, op.getLoc());
  RankedTensorType type = tensorType(op.getInput());
  Type element = type.getElementType(), wide = builder.getF64Type();
  auto moments = MomentsOp::create(builder, b.loc, op.getInput(),
                                   b.ints(allButChannels(type)));
  Value own = b.cast(moments.getMean(), wide);
  Value square = b.add(b.cast(moments.getVariance(), wide), b.mul(own, own));
  auto sums =
      AllReduceOp::create(builder, b.loc, ValueRange{own, square}, ranks);
  Value mean = b.mul(sums.getResult(0), 1 / double(ranks));
  Value variance =
      b.sub(b.mul(sums.getResult(1), 1 / double(ranks)), b.mul(mean, mean));
  variance = b.make<MaximumOp>(variance, b.number(variance, 0));
  mean = b.cast(mean, element);
  variance = b.cast(variance, element);
  Value slope = b.mul(
      op.getScale(),
      b.make<RsqrtOp>(b.add(variance, op.getEpsilon().convertToDouble())));
  Value centered = b.sub(op.getInput(), besideChannels(b, mean, type));
  op.getOutput().replaceAllUsesWith(
      b.add(b.mul(centered, besideChannels(b, slope, type)),
            besideChannels(b, op.getBias(), type)));
  op.getMean().replaceAllUsesWith(mean);
  op.getVariance().replaceAllUsesWith(variance);
  op.erase();
}

static void syncBackward(BatchNormGradOp op, int64_t ranks) {
  OpBuilder builder(op);
  TensorBuilder b(builder, op.getLoc());
  RankedTensorType type = tensorType(op.getInput());
  SmallVector<int64_t> axes = allButChannels(type);
  double all = double(ranks) * double(type.getNumElements()) /
               double(type.getDimSize(1));
  Value dy = op.getGrad();
  Value rstd = b.make<RsqrtOp>(
      b.add(op.getVariance(), op.getEpsilon().convertToDouble()));
  Value centered = b.sub(op.getInput(), besideChannels(b, op.getMean(), type));
  Value total = b.sum(dy, axes);
  Value scaleGrad = b.mul(b.sum(b.mul(dy, centered), axes), rstd);
  op.getBiasGrad().replaceAllUsesWith(total);
  op.getScaleGrad().replaceAllUsesWith(scaleGrad);
  if (!op.getInputGrad().use_empty()) {
    auto sums = AllReduceOp::create(builder, b.loc,
                                    ValueRange{total, scaleGrad}, ranks);
    Value shift = b.mul(sums.getResult(0), 1 / all);
    Value tilt = b.mul(b.mul(sums.getResult(1), rstd), 1 / all);
    Value flat = b.sub(dy, besideChannels(b, shift, type));
    Value level = b.sub(flat, b.mul(centered, besideChannels(b, tilt, type)));
    op.getInputGrad().replaceAllUsesWith(
        b.mul(level, besideChannels(b, b.mul(op.getScale(), rstd), type)));
  }
  op.erase();
}

LogicalResult ckopt::syncNorms(func::FuncOp function, int64_t ranks) {
  SmallVector<Operation *> norms;
  for (Operation &op : function.front())
    if (isa<BatchNormOp, BatchNormGradOp>(op))
      norms.push_back(&op);
  for (Operation *op : norms)
    if (auto norm = dyn_cast<BatchNormOp>(op))
      if (failed(checkStatistics(norm)))
        return failure();
  for (Operation *op : norms) {
    if (auto norm = dyn_cast<BatchNormOp>(op))
      syncForward(norm, ranks);
    else
      syncBackward(cast<BatchNormGradOp>(op), ranks);
  }
  return success();
}
