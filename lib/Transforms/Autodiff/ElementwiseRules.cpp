//===- ElementwiseRules.cpp - gradients of unary elementwise ops ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Derivatives of elementwise ops with one operand. x is the operand, y the
// result, g the gradient of y. Rules read the result where the derivative is a
// function of it (relu, exp, tanh, sigmoid, sqrt): the operand is then not kept
// alive for the backward pass.
//
//===----------------------------------------------------------------------===//
#include "Bounds.h"
#include "RuleBuilder.h"
#include <cmath>
#include <numbers>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::autodiff;

/// d/dx of x * Phi(x): Phi(x) + x * phi(x).
static Value geluDerivative(RuleBuilder &b, Value x) {
  Value cdf =
      b.mul(b.add(b.make<ErfOp>(b.mul(x, std::numbers::sqrt2 / 2)), 1), 0.5);
  Value pdf = b.mul(b.make<ExpOp>(b.mul(b.mul(x, x), -0.5)),
                    std::numbers::inv_sqrtpi / std::numbers::sqrt2);
  return b.add(cdf, b.mul(x, pdf));
}

/// d/dx of 0.5 x (1 + tanh(k (x + c x^3))), k = sqrt(2 / pi).
static Value tanhGeluDerivative(RuleBuilder &b, Value x) {
  const double k = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, c = 0.044715;
  Value square = b.mul(x, x);
  Value t = b.make<TanhOp>(b.mul(b.mul(x, b.add(b.mul(square, c), 1)), k));
  Value inner = b.mul(b.add(b.mul(square, 3 * c), 1), k);
  Value slope = b.mul(b.mul(b.sub(1, b.mul(t, t)), inner), x);
  return b.mul(b.add(b.add(t, 1), slope), 0.5);
}

static void addSmoothRules(MLIRContext *context) {
  addRule<NegOp>(context,
                 [](NegOp, RuleBuilder &b) { b.set(0, b.neg(b.grad())); });
  addRule<ExpOp>(context, [](ExpOp op, RuleBuilder &b) {
    // The result may overflow.
    b.set(0, b.guarded(b.mul(b.grad(), op.getOutput())));
  });
  addRule<LogOp>(context, [](LogOp op, RuleBuilder &b) {
    b.set(0, b.guardedIf(!isNonZero(op.getInput()),
                         b.div(b.grad(), op.getInput())));
  });
  addRule<SqrtOp>(context, [](SqrtOp op, RuleBuilder &b) {
    b.set(0, b.guardedIf(!isPositive(op.getInput()),
                         b.div(b.mul(b.grad(), 0.5), op.getOutput())));
  });
  addRule<RsqrtOp>(context, [](RsqrtOp op, RuleBuilder &b) {
    Value y = op.getOutput();
    b.set(0, b.guardedIf(!isPositive(op.getInput()),
                         b.mul(b.mul(b.grad(), -0.5), b.mul(y, b.mul(y, y)))));
  });
  addRule<ReciprocalOp>(context, [](ReciprocalOp op, RuleBuilder &b) {
    Value y = op.getOutput();
    b.set(0, b.guardedIf(!isNonZero(op.getInput()),
                         b.mul(b.neg(b.grad()), b.mul(y, y))));
  });
  addRule<TanhOp>(context, [](TanhOp op, RuleBuilder &b) {
    Value y = op.getOutput();
    b.set(0, b.mul(b.grad(), b.sub(1, b.mul(y, y))));
  });
  addRule<SigmoidOp>(context, [](SigmoidOp op, RuleBuilder &b) {
    Value y = op.getOutput();
    b.set(0, b.mul(b.grad(), b.mul(y, b.sub(1, y))));
  });
  addRule<ErfOp>(context, [](ErfOp op, RuleBuilder &b) {
    Value x = op.getInput();
    Value bell = b.make<ExpOp>(b.neg(b.mul(x, x)));
    b.set(0, b.mul(b.grad(), b.mul(bell, 2 * std::numbers::inv_sqrtpi)));
  });
  addRule<SinOp>(context, [](SinOp op, RuleBuilder &b) {
    b.set(0, b.mul(b.grad(), b.make<CosOp>(op.getInput())));
  });
  addRule<CosOp>(context, [](CosOp op, RuleBuilder &b) {
    b.set(0, b.mul(b.neg(b.grad()), b.make<SinOp>(op.getInput())));
  });
  addRule<AtanOp>(context, [](AtanOp op, RuleBuilder &b) {
    Value x = op.getInput();
    b.set(0, b.div(b.grad(), b.add(b.mul(x, x), 1)));
  });
  addRule<SoftplusOp>(context, [](SoftplusOp op, RuleBuilder &b) {
    b.set(0, b.mul(b.grad(), b.make<SigmoidOp>(op.getInput())));
  });
  addRule<GeluOp>(context, [](GeluOp op, RuleBuilder &b) {
    Value slope = op.getTanh() ? tanhGeluDerivative(b, op.getInput())
                               : geluDerivative(b, op.getInput());
    b.set(0, b.mul(b.grad(), slope));
  });
}

static void addPiecewiseRules(MLIRContext *context) {
  addZeroRules<SignOp, FloorOp, CeilOp>(context);
  // Rounding that fake quantization marks passes the gradient on unchanged
  // (straight-through estimator).
  addRule<RoundOp>(context, [](RoundOp op, RuleBuilder &b) {
    if (op->hasAttr("ckopt.straight_through"))
      b.set(0, b.grad());
  });
  addRule<AbsOp>(context, [](AbsOp op, RuleBuilder &b) {
    b.set(0, b.mul(b.grad(), b.make<SignOp>(op.getInput())));
  });
  addRule<ReluOp>(context, [](ReluOp op, RuleBuilder &b) {
    b.set(0, b.where(b.compare(ComparePredicate::GT, op.getOutput(), 0),
                     b.grad()));
  });
  addRule<ClipOp>(context, [](ClipOp op, RuleBuilder &b) {
    // An infinite bound never stops the gradient. At a finite bound, the clips
    // of a model have slope 0, as in PyTorch; clips that the compiler adds to
    // keep an argument in range pass the gradient on.
    bool open = op->hasAttr("ckopt.open_range");
    auto above = open ? ComparePredicate::GT : ComparePredicate::GE;
    auto below = open ? ComparePredicate::LT : ComparePredicate::LE;
    Value gradient = b.grad();
    double low = op.getMin().convertToDouble();
    double high = op.getMax().convertToDouble();
    if (!std::isinf(low))
      gradient = b.where(b.compare(above, op.getInput(), low), gradient);
    if (!std::isinf(high))
      gradient = b.where(b.compare(below, op.getInput(), high), gradient);
    b.set(0, gradient);
  });
  addRule<CastOp>(context, [](CastOp op, RuleBuilder &b) {
    // A cast to integers is constant wherever its derivative exists.
    if (isa<FloatType>(op.getType().getElementType()))
      b.set(0, b.cast(b.grad(), tensorType(op.getInput()).getElementType()));
  });
  addRule<DropoutOp>(context, [](DropoutOp op, RuleBuilder &b) {
    b.set(0, b.make<DropoutOp>(b.grad(), op.getSeed(), op.getStep(),
                               op.getRatioAttr(), op.getSiteAttr()));
  });
  addRule<TriluOp>(context, [](TriluOp op, RuleBuilder &b) {
    b.set(0, b.make<TriluOp>(b.grad(), op.getUpperAttr(), op.getKAttr()));
  });
}

void autodiff::addElementwiseRules(MLIRContext *context) {
  addSmoothRules(context);
  addPiecewiseRules(context);
}
