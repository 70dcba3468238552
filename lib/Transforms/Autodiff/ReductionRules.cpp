//===- ReductionRules.cpp - gradients of reductions and softmax -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "RuleBuilder.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::autodiff;

/// Returns the number of elements that are reduced to one.
static double reducedCount(RankedTensorType type, ArrayRef<int64_t> axes) {
  double count = 1;
  for (int64_t axis : axes)
    count *= double(type.getDimSize(axis));
  return count;
}

/// Elements that are equal to the extreme value share the gradient evenly. The
/// operand is pinned (comparesOperand), so that it has the bits that the
/// reduction compared.
static Value extremumGradient(ReduceOp op, RuleBuilder &b, Value gradient) {
  ArrayRef<int64_t> shape = tensorType(op.getInput()).getShape();
  Value best = b.keepDims(op.getOutput(), op.getAxes(), shape);
  Value wins = b.compare(ComparePredicate::EQ, op.getInput(), best);
  Value count = b.sum(b.cast(wins, tensorType(op.getInput()).getElementType()),
                      op.getAxes());
  Value share = b.div(gradient, b.keepDims(count, op.getAxes(), shape));
  return b.where(wins, share);
}

/// The derivative is the product of the other factors: y / x without zeros;
/// with one zero, only that element has a gradient, the product of the others;
/// with two, none has one.
static Value productGradient(ReduceOp op, RuleBuilder &b, Value gradient) {
  Value x = op.getInput();
  ArrayRef<int64_t> shape = tensorType(x).getShape(), axes = op.getAxes();
  Type element = tensorType(x).getElementType();
  Value isZero = b.compare(ComparePredicate::EQ, x, 0);
  Value safe = b.select(isZero, b.number(x, 1), x);
  Value zeros = b.sum(b.cast(isZero, element), axes);
  Value rest = b.make<ReduceOp>(
      ReduceKindAttr::get(b.builder.getContext(), ReduceKind::Prod), safe,
      op.getAxesAttr(), b.builder.getBoolAttr(false));
  zeros = b.keepDims(zeros, axes, shape);
  rest = b.mul(gradient, b.keepDims(rest, axes, shape));
  Value none = b.compare(ComparePredicate::EQ, zeros, 0);
  Value only = b.make<AndOp>(isZero, b.compare(ComparePredicate::EQ, zeros, 1));
  return b.select(none, b.div(rest, safe), b.where(only, rest));
}

static void reduceRule(ReduceOp op, RuleBuilder &b) {
  RankedTensorType type = tensorType(op.getInput());
  ArrayRef<int64_t> shape = type.getShape(), axes = op.getAxes();
  Value gradient = b.grad();
  if (op.getKind() == ReduceKind::Mean)
    gradient = b.mul(gradient, 1 / reducedCount(type, axes));
  gradient = b.keepDims(gradient, axes, shape);
  switch (op.getKind()) {
  case ReduceKind::Sum:
  case ReduceKind::Mean:
    break;
  case ReduceKind::Max:
  case ReduceKind::Min:
    gradient = extremumGradient(op, b, gradient);
    break;
  case ReduceKind::Prod:
    gradient = productGradient(op, b, gradient);
    break;
  }
  b.set(0, b.expand(gradient, shape));
}

/// mean: g / n; variance: g * 2 / n * (x - mean).
static void momentsRule(MomentsOp op, RuleBuilder &b) {
  RankedTensorType type = tensorType(op.getInput());
  ArrayRef<int64_t> shape = type.getShape(), axes = op.getAxes();
  double n = reducedCount(type, axes);
  Value gradient;
  if (Value g = b.grad(1)) {
    Value centered =
        b.sub(op.getInput(), b.keepDims(op.getMean(), axes, shape));
    gradient = b.mul(centered, b.keepDims(b.mul(g, 2 / n), axes, shape));
  }
  if (Value g = b.grad(0)) {
    Value part = b.keepDims(b.mul(g, 1 / n), axes, shape);
    gradient = gradient ? b.add(gradient, part) : b.expand(part, shape);
  }
  b.set(0, gradient);
}

/// softmax_grad: y * (d - s), s = sum(d * y).
static void softmaxGradRule(SoftmaxGradOp op, RuleBuilder &b) {
  Value g = b.grad(), d = op.getGrad(), y = op.getResult();
  if (b.needs(0))
    b.set(0, b.make<SoftmaxGradOp>(g, y, op.getAxisAttr()));
  if (!b.needs(1))
    return;
  SmallVector<int64_t> axis{int64_t(op.getAxis())};
  ArrayRef<int64_t> shape = op.getType().getShape();
  Value s = b.keepDims(b.sum(b.mul(d, y), axis), axis, shape);
  Value t = b.keepDims(b.sum(b.mul(g, y), axis), axis, shape);
  b.set(1, b.sub(b.mul(g, b.sub(d, s)), b.mul(d, t)));
}

/// log_softmax_grad: d - e^y * sum(d).
static void logSoftmaxGradRule(LogSoftmaxGradOp op, RuleBuilder &b) {
  Value g = b.grad(), y = op.getResult();
  SmallVector<int64_t> axis{int64_t(op.getAxis())};
  ArrayRef<int64_t> shape = op.getType().getShape();
  Value weighted = b.mul(g, b.make<ExpOp>(y));
  if (b.needs(0))
    b.set(0, b.sub(g, b.keepDims(b.sum(weighted, axis), axis, shape)));
  if (b.needs(1))
    b.set(1, b.neg(b.mul(weighted,
                         b.keepDims(b.sum(op.getGrad(), axis), axis, shape))));
}

/// A row that is all -inf has a softmax of NaN, as in PyTorch. If a select
/// replaces such rows, as exporters of attention write it, the rows are removed
/// from the gradient here: 0 * NaN would be NaN.
static Value withoutMaskedRows(SoftmaxOp op, RuleBuilder &b) {
  Value y = op.getOutput();
  if (llvm::none_of(y.getUsers(), llvm::IsaPred<SelectOp>))
    return y;
  return b.where(b.compare(ComparePredicate::EQ, y, y), y);
}

void autodiff::addReductionRules(MLIRContext *context) {
  addComparingRule<ReduceOp>(
      context, [](ReduceOp op, RuleBuilder &b) { reduceRule(op, b); },
      [](ReduceOp op, unsigned) {
        return op.getKind() == ReduceKind::Max ||
               op.getKind() == ReduceKind::Min;
      });
  addRule<MomentsOp>(context,
                     [](MomentsOp op, RuleBuilder &b) { momentsRule(op, b); });
  addRule<SoftmaxOp>(context, [](SoftmaxOp op, RuleBuilder &b) {
    b.set(0, b.make<SoftmaxGradOp>(b.grad(), withoutMaskedRows(op, b),
                                   op.getAxisAttr()));
  });
  addRule<LogSoftmaxOp>(context, [](LogSoftmaxOp op, RuleBuilder &b) {
    b.set(0,
          b.make<LogSoftmaxGradOp>(b.grad(), op.getOutput(), op.getAxisAttr()));
  });
  addRule<SoftmaxGradOp>(context, [](SoftmaxGradOp op, RuleBuilder &b) {
    softmaxGradRule(op, b);
  });
  addRule<LogSoftmaxGradOp>(context, [](LogSoftmaxGradOp op, RuleBuilder &b) {
    logSoftmaxGradRule(op, b);
  });
}
