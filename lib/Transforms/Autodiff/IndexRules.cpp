//===- IndexRules.cpp - gradients of gathers, scatters, running sums ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gather and scatter_add are each other's adjoints; so are gather_elements and
// a scatter_elements that adds, and cumulative sums from the start and from the
// end.
//
// In the rules of scatter_elements, an element of the result has a group: the
// element of init at that place, and all updates whose index names the place.
// Sums over groups are scatters that add; each update reads its group's value
// with a gather_elements of the same indices.
//
//===----------------------------------------------------------------------===//
#include "RuleBuilder.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::autodiff;

namespace {

/// The operands and results of one scatter_elements, with helpers that its
/// rules share.
struct Groups {
  Groups(ScatterElementsOp op, RuleBuilder &b) : op(op), b(b) {}

  ScatterElementsOp op;
  RuleBuilder &b;

  Value scatter(ScatterKind kind, Value init, Value updates) {
    return b.make<ScatterElementsOp>(kind, init, op.getIndices(), updates,
                                     int64_t(op.getAxis()));
  }
  /// Returns, for each update, the element of `value` that its index names.
  Value atUpdates(Value value) {
    return b.make<GatherElementsOp>(value, op.getIndices(), op.getAxisAttr());
  }
  RankedTensorType updatesType(Type element) {
    return RankedTensorType::get(tensorType(op.getUpdates()).getShape(),
                                 element);
  }
};

} // namespace

static void scatterAddRule(Groups groups) {
  RuleBuilder &b = groups.b;
  if (b.needs(0))
    b.set(0, b.grad());
  if (b.needs(2))
    b.set(2, groups.atUpdates(b.grad()));
}

/// Of several updates for one element only the last one counts. It is found
/// exactly, with integers: positions along the axis are scattered in the same
/// way, and the update that reads its own position back is the last.
static void scatterSetRule(Groups groups) {
  ScatterElementsOp op = groups.op;
  RuleBuilder &b = groups.b;
  if (b.needs(0)) {
    Value zeros = b.splat(groups.updatesType(op.getType().getElementType()), 0);
    b.set(0, groups.scatter(ScatterKind::Set, b.grad(), zeros));
  }
  if (!b.needs(2))
    return;
  Type i64 = b.builder.getI64Type();
  Value position = b.make<IotaOp>(groups.updatesType(i64), op.getAxis(),
                                  APFloat(0.0), APFloat(1.0));
  Value none = b.splat(RankedTensorType::get(op.getType().getShape(), i64), -1);
  Value winner = groups.scatter(ScatterKind::Set, none, position);
  Value won =
      b.compare(ComparePredicate::EQ, groups.atUpdates(winner), position);
  b.set(2, b.where(won, groups.atUpdates(b.grad())));
}

/// The derivative of a product is the product of the other factors. For init,
/// that is the product of all updates. For an update without zeros elsewhere in
/// its group, it is the group's product without zeros, divided by the update
/// (by one if the update is zero itself); with another zero in the group it is
/// 0.
static void scatterMulRule(Groups groups) {
  ScatterElementsOp op = groups.op;
  RuleBuilder &b = groups.b;
  Value init = op.getInit(), updates = op.getUpdates();
  if (b.needs(0)) {
    Value ones = b.splat(tensorType(init), 1);
    b.set(0, b.mul(b.grad(), groups.scatter(ScatterKind::Mul, ones, updates)));
  }
  if (!b.needs(2))
    return;
  Type element = op.getType().getElementType();
  auto isZero = [&](Value x) { return b.compare(ComparePredicate::EQ, x, 0); };
  auto withoutZeros = [&](Value x) {
    return b.select(isZero(x), b.number(x, 1), x);
  };
  Value zeros = groups.scatter(ScatterKind::Add, b.cast(isZero(init), element),
                               b.cast(isZero(updates), element));
  Value rest = groups.scatter(ScatterKind::Mul, withoutZeros(init),
                              withoutZeros(updates));
  zeros = groups.atUpdates(zeros);
  rest = b.mul(groups.atUpdates(b.grad()), groups.atUpdates(rest));
  Value none = b.compare(ComparePredicate::EQ, zeros, 0);
  Value only =
      b.make<AndOp>(isZero(updates), b.compare(ComparePredicate::EQ, zeros, 1));
  b.set(2, b.select(none, b.div(rest, withoutZeros(updates)),
                    b.where(only, rest)));
}

/// The elements of a group that are equal to its extreme value share the
/// gradient evenly. Both operands are pinned (comparesOperand).
static void scatterExtremumRule(Groups groups) {
  ScatterElementsOp op = groups.op;
  RuleBuilder &b = groups.b;
  Value best = op.getOutput();
  Type element = op.getType().getElementType();
  Value initWins = b.compare(ComparePredicate::EQ, op.getInit(), best);
  Value updateWins =
      b.compare(ComparePredicate::EQ, op.getUpdates(), groups.atUpdates(best));
  Value count = groups.scatter(ScatterKind::Add, b.cast(initWins, element),
                               b.cast(updateWins, element));
  Value share = b.div(b.grad(), count);
  if (b.needs(0))
    b.set(0, b.where(initWins, share));
  if (b.needs(2))
    b.set(2, b.where(updateWins, groups.atUpdates(share)));
}

static void scatterElementsRule(ScatterElementsOp op, RuleBuilder &b) {
  Groups groups(op, b);
  switch (op.getKind()) {
  case ScatterKind::Add:
    return scatterAddRule(groups);
  case ScatterKind::Set:
    return scatterSetRule(groups);
  case ScatterKind::Mul:
    return scatterMulRule(groups);
  case ScatterKind::Max:
  case ScatterKind::Min:
    return scatterExtremumRule(groups);
  }
}

void autodiff::addIndexRules(MLIRContext *context) {
  addRule<GatherOp>(context, [](GatherOp op, RuleBuilder &b) {
    Value zero = b.splat(tensorType(op.getData()), 0);
    b.set(0, b.make<ScatterAddOp>(zero, op.getIndices(), b.grad(),
                                  op.getAxisAttr()));
  });
  addRule<ScatterAddOp>(context, [](ScatterAddOp op, RuleBuilder &b) {
    if (b.needs(0))
      b.set(0, b.grad());
    if (b.needs(2))
      b.set(2, b.make<GatherOp>(b.grad(), op.getIndices(), op.getAxisAttr()));
  });
  addRule<GatherElementsOp>(context, [](GatherElementsOp op, RuleBuilder &b) {
    Value zero = b.splat(tensorType(op.getData()), 0);
    b.set(0, b.make<ScatterElementsOp>(ScatterKind::Add, zero, op.getIndices(),
                                       b.grad(), int64_t(op.getAxis())));
  });
  addComparingRule<ScatterElementsOp>(
      context,
      [](ScatterElementsOp op, RuleBuilder &b) { scatterElementsRule(op, b); },
      [](ScatterElementsOp op, unsigned operand) {
        return operand != 1 && (op.getKind() == ScatterKind::Max ||
                                op.getKind() == ScatterKind::Min);
      });
  addRule<CumulativeSumOp>(context, [](CumulativeSumOp op, RuleBuilder &b) {
    b.set(0, b.make<CumulativeSumOp>(b.grad(), int64_t(op.getAxis()),
                                     op.getExclusive(), !op.getReverse()));
  });
}
