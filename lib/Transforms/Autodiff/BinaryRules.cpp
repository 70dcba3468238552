//===- BinaryRules.cpp - gradients of ops that broadcast ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Derivatives of elementwise ops with two operands. Gradients are built in the
// result's shape; RuleBuilder::set sums them over the dimensions along which an
// operand was broadcast.
//
//===----------------------------------------------------------------------===//
#include "Bounds.h"
#include "RuleBuilder.h"
#include "ckopt/Dialect/Ckopt/IR/Splat.h"

#include <cmath>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::autodiff;

static void addArithmeticRules(MLIRContext *context) {
  addRule<AddOp>(context, [](AddOp, RuleBuilder &b) {
    for (unsigned i : {0u, 1u})
      if (b.needs(i))
        b.set(i, b.grad());
  });
  addRule<SubOp>(context, [](SubOp, RuleBuilder &b) {
    if (b.needs(0))
      b.set(0, b.grad());
    if (b.needs(1))
      b.set(1, b.neg(b.grad()));
  });
  addRule<MulOp>(context, [](MulOp op, RuleBuilder &b) {
    if (op.getLhs() == op.getRhs()) { // a square: both halves at once
      b.set(0, b.guardedIf(mayHavePole(op.getLhs()),
                           b.mul(b.grad(), b.mul(op.getLhs(), 2))));
      return;
    }
    for (unsigned i : {0u, 1u}) {
      Value other = op->getOperand(1 - i);
      if (b.needs(i))
        b.set(i, b.guardedIf(mayHavePole(other), b.mul(b.grad(), other)));
    }
  });
  addRule<DivOp>(context, [](DivOp op, RuleBuilder &b) {
    bool guard = !isNonZero(op.getRhs());
    Value quotient = b.div(b.grad(), op.getRhs());
    if (b.needs(0))
      b.set(0, b.guardedIf(guard, quotient));
    if (b.needs(1))
      b.set(1, b.guardedIf(guard || mayHavePole(op.getLhs()),
                           b.neg(b.mul(quotient, op.getOutput()))));
  });
  addRule<ModOp>(context, [](ModOp op, RuleBuilder &b) {
    if (b.needs(0))
      b.set(0, b.grad());
    if (b.needs(1)) { // y = a - b * n with a whole number n
      Value n = b.make<RoundOp>(
          b.div(b.sub(op.getLhs(), op.getOutput()), op.getRhs()));
      b.set(1, b.guardedIf(!isNonZero(op.getRhs()), b.neg(b.mul(b.grad(), n))));
    }
  });
}

/// Returns g * c * x^(c - 1), without a pow where the exponent is small.
static Value powerDerivative(RuleBuilder &b, PowOp op, double c) {
  Value x = op.getLhs(), g = b.grad();
  if (c == 1)
    return g;
  if (c == 2)
    return b.mul(g, b.mul(x, 2));
  if (c == 3)
    return b.mul(g, b.mul(b.mul(x, x), 3));
  if (c == 0.5)
    return b.div(b.mul(g, 0.5), op.getOutput());
  return b.mul(g, b.mul(b.make<PowOp>(x, b.number(x, c - 1)), c));
}

static void powRule(PowOp op, RuleBuilder &b) {
  Value x = op.getLhs(), e = op.getRhs(), g = b.grad();
  std::optional<double> constant = splatNumber(e);
  if (b.needs(0) && constant) {
    // The derivative has poles at 0, and is NaN below 0 unless the exponent is
    // a whole number.
    double c = *constant;
    bool whole = c == std::floor(c);
    bool guard =
        !(whole && c >= 1) && !isPositive(x) && !(c >= 1 && isNonNegative(x));
    if (c != 0)
      b.set(0, b.guardedIf(guard, powerDerivative(b, op, c)));
  } else if (b.needs(0)) {
    // x^0 is 1 at x = 0 as well, so its slope is 0, where e * x^(e - 1) would
    // be NaN.
    Value power = b.mul(e, b.make<PowOp>(x, b.add(e, -1)));
    b.set(0, b.guarded(b.where(b.compare(ComparePredicate::NE, e, 0),
                               b.mul(g, power))));
  }
  if (b.needs(1)) {
    // 0^e is 0 for all e > 0 (and 1 at e = 0), so its slope by e is 0, not 0 *
    // log 0.
    Value flat = b.make<AndOp>(b.compare(ComparePredicate::EQ, x, 0),
                               b.compare(ComparePredicate::GE, e, 0));
    Value slope = b.mul(op.getOutput(), b.make<LogOp>(x));
    b.set(1, b.guarded(b.where(b.make<NotOp>(flat), b.mul(g, slope))));
  }
}

/// The gradient goes to the larger (or smaller) operand, which the result
/// equals; equal operands get half each.
template <typename OpT>
static void extremumRule(OpT op, RuleBuilder &b, ComparePredicate wins) {
  Value half =
      b.where(b.compare(ComparePredicate::EQ, op.getLhs(), op.getRhs()),
              b.mul(b.grad(), 0.5));
  if (b.needs(0))
    b.set(0,
          b.select(b.compare(wins, op.getLhs(), op.getRhs()), b.grad(), half));
  if (b.needs(1))
    b.set(1,
          b.select(b.compare(wins, op.getRhs(), op.getLhs()), b.grad(), half));
}

void autodiff::addBinaryRules(MLIRContext *context) {
  addArithmeticRules(context);
  addRule<PowOp>(context, [](PowOp op, RuleBuilder &b) { powRule(op, b); });
  addRule<MaximumOp>(context, [](MaximumOp op, RuleBuilder &b) {
    extremumRule(op, b, ComparePredicate::GT);
  });
  addRule<MinimumOp>(context, [](MinimumOp op, RuleBuilder &b) {
    extremumRule(op, b, ComparePredicate::LT);
  });
  addRule<SelectOp>(context, [](SelectOp op, RuleBuilder &b) {
    if (b.needs(1))
      b.set(1, b.where(op.getCondition(), b.grad()));
    if (b.needs(2))
      b.set(2, b.select(op.getCondition(), b.number(b.grad(), 0), b.grad()));
  });
}
