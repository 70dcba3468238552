//===- LossRules.cpp - gradients of losses and running averages -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "RuleBuilder.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::autodiff;

static void crossEntropyRule(CrossEntropyOp op, RuleBuilder &b) {
  Value x = op.getLogits();
  if (Value g = b.grad(0))
    b.set(0, b.make<CrossEntropyGradOp>(g, x, op.getTargets(), op.getLse(),
                                        op.getLost(), op.getAxisAttr(),
                                        op.getIgnoreIndexAttr(),
                                        op.getClassesAttr()));
  if (Value g = b.grad(1)) { // the log-sum-exp: its slope is the softmax
    assert(!op.isPadded() && "rows are padded after autodiff");
    SmallVector<int64_t> axis{int64_t(op.getAxis())};
    ArrayRef<int64_t> shape = tensorType(x).getShape();
    Value softmax =
        b.make<ExpOp>(b.sub(b.sub(x, b.keepDims(op.getLse(), axis, shape)),
                            b.keepDims(op.getLost(), axis, shape)));
    b.set(0, b.mul(softmax, b.keepDims(g, axis, shape)));
  }
}

static void linearCrossEntropyRule(LinearCrossEntropyOp op, RuleBuilder &b) {
  auto gradient = LinearCrossEntropyGradOp::create(
      b.builder, b.loc, b.grad(), op.getInput(), op.getWeight(),
      op.getTargets(), op.getBias(), op.getTransposeWeight(), op.getRows(),
      op.getIgnoreIndex());
  if (b.needs(0))
    b.set(0, gradient.getInputGrad());
  if (b.needs(1))
    b.set(1, gradient.getWeightGrad());
  if (op.getBias() && b.needs(3))
    b.set(3, gradient.getBiasGrad());
}

void autodiff::addLossRules(MLIRContext *context) {
  addRule<CrossEntropyOp>(context, [](CrossEntropyOp op, RuleBuilder &b) {
    crossEntropyRule(op, b);
  });
  addRule<LinearCrossEntropyOp>(context,
                                [](LinearCrossEntropyOp op, RuleBuilder &b) {
                                  linearCrossEntropyRule(op, b);
                                });
  addRule<MovingAverageOp>(context, [](MovingAverageOp op, RuleBuilder &b) {
    double momentum = op.getMomentum().convertToDouble();
    if (b.needs(0))
      b.set(0, b.mul(b.grad(), momentum));
    if (b.needs(1))
      b.set(1, b.mul(b.grad(), 1 - momentum));
  });
  addRule<AssignOp>(context, [](AssignOp, RuleBuilder &b) {
    if (b.needs(1))
      b.set(1, b.grad());
  });
  addRule<AccumulateOp>(context, [](AccumulateOp, RuleBuilder &b) {
    for (unsigned i : {0u, 1u})
      if (b.needs(i))
        b.set(i, b.grad());
  });
}
