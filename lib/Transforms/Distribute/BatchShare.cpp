//===- BatchShare.cpp - a rank's share of a number of a batch -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: a model computes a number of its batch (a loss, a new state), and
// ranks that each have a part of the batch need numbers whose sum is that one.
// Method: the number's ops are followed backwards to sums and means over
// samples. A sum's share is the rank's sum, a mean's the rank's mean through
// the number of ranks, and so is that of what no sample enters; ops that are
// linear work on shares. Any other op of single numbers works on sums over
// ranks (a count of labels that divides, a square root), which are the batch's
// own, and its result through the number of ranks is a share. Guarantee: what
// is not of this form has no share, rather than a wrong one. O(ops).
//
//===----------------------------------------------------------------------===//
#include "ckopt/Distribute/Distribution.h"

#include "ckopt/Autodiff/Autodiff.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Dialect/Ckopt/Utils/RandomSite.h"
#include "ckopt/Dialect/Ckopt/Utils/SettingDiagnostic.h"
#include "ckopt/Dialect/Ckopt/Utils/TensorBuilder.h"
#include "ckopt/Distribute/Distribute.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace ckopt;

/// Places builders behind a value.
static OpBuilder behind(Value value) {
  OpBuilder builder(value.getContext());
  if (Operation *op = value.getDefiningOp())
    builder.setInsertionPointAfter(op);
  else
    builder.setInsertionPointToStart(cast<BlockArgument>(value).getOwner());
  return builder;
}

static bool isReal(Value value) {
  return isa<FloatType>(getElementTypeOrSelf(value));
}

namespace {
class Shares {
public:
  Shares(const SampleAxes &axes, int64_t ranks) : axes(axes), ranks(ranks) {}

  /// Returns the rank's share of a real value; null: there is none.
  Value of(Value value) {
    if (Value share = linear(value))
      return share;
    Value all = isReal(value) ? recomputed(value) : Value();
    return all ? divided(all) : Value();
  }

  /// Returns the first op that is in the way of a share that was asked for;
  /// null: none is known.
  Operation *obstacle() const { return inTheWay; }

private:
  Value linear(Value value);
  Value linearOf(Operation *op);
  Value reduced(ReduceOp op);
  Value total(Value value);
  Value recomputed(Value value);
  Value divided(Value value) {
    OpBuilder builder = behind(value);
    return TensorBuilder(builder, value.getLoc()).mul(value, 1 / double(ranks));
  }
  /// The op with other operands; null if one is.
  Value rebuilt(Operation *op, llvm::function_ref<Value(Value)> change);

  const SampleAxes &axes;
  int64_t ranks;
  DenseMap<Value, Value> shares, totals; ///< looked up only
  Operation *inTheWay = nullptr;
};
} // namespace

Value Shares::rebuilt(Operation *op, llvm::function_ref<Value(Value)> change) {
  IRMapping mapping;
  for (Value operand : op->getOperands()) {
    Value changed = change(operand);
    if (!changed)
      return {};
    mapping.map(operand, changed);
  }
  OpBuilder builder = behind(op->getResult(0));
  return builder.clone(*op, mapping)->getResult(0);
}

/// A sum or mean over the axis of the samples, or later over others.
Value Shares::reduced(ReduceOp op) {
  SampleAxis input = axes.of(op.getInput());
  bool isMean = op.getKind() == ReduceKind::Mean;
  if ((!isMean && op.getKind() != ReduceKind::Sum) ||
      (isMean && !isReal(op.getInput())))
    return {};
  if (input.isMixed())
    return rebuilt(op, [&](Value operand) { return linear(operand); });
  if (!llvm::is_contained(op.getAxes(), input.axis))
    return {};
  return isMean ? divided(op.getOutput()) : op.getOutput();
}

Value Shares::linearOf(Operation *op) {
  auto share = [&](Value operand) { return linear(operand); };
  if (auto reduce = dyn_cast<ReduceOp>(op))
    return reduced(reduce);
  if (op->hasTrait<traits::Linear>() || op->hasTrait<traits::KeepsElements>() ||
      (isa<CastOp>(op) && isReal(op->getResult(0))))
    return rebuilt(op, share);
  // Factors and divisors that no sample enters, or that are sums over ranks.
  for (unsigned which = 0; which < (isa<MulOp>(op)   ? 2
                                    : isa<DivOp>(op) ? 1
                                                     : 0);
       ++which) {
    if (op->getOperand(0) == op->getOperand(1))
      break; // a square is not linear
    Value number = linear(op->getOperand(which));
    Value factor = number ? total(op->getOperand(1 - which)) : Value();
    if (factor && isReal(factor))
      return rebuilt(op, [&](Value operand) {
        return operand == op->getOperand(which) ? number : factor;
      });
  }
  return {};
}

Value Shares::linear(Value value) {
  auto [place, isNew] = shares.try_emplace(value);
  if (!isNew)
    return place->second;
  Value share;
  Operation *op = value.getDefiningOp();
  if (axes.of(value).isSame())
    share = isReal(value) ? divided(value) : Value();
  else if (op && axes.of(value).isMixed())
    share = linearOf(op);
  return shares[value] = share;
}

/// Returns what the value is on the whole batch.
Value Shares::total(Value value) {
  if (axes.of(value).isSame())
    return value;
  auto [place, isNew] = totals.try_emplace(value);
  if (!isNew)
    return place->second;
  Value share = linear(value), all;
  if (share) {
    OpBuilder builder = behind(share);
    TensorBuilder b(builder, value.getLoc());
    Value real = isReal(share) ? share : b.cast(share, builder.getF64Type());
    all =
        AllReduceOp::create(builder, value.getLoc(), real, ranks).getResult(0);
    all = b.cast(all, getElementTypeOrSelf(value));
  } else {
    all = recomputed(value);
  }
  return totals[value] = all;
}

/// Computes the value again from what its operands are on the whole batch.
Value Shares::recomputed(Value value) {
  Operation *op = value.getDefiningOp();
  auto kernel = dyn_cast_or_null<KernelOpInterface>(op);
  bool isPointwise =
      kernel && (op->hasTrait<traits::KeepsElements>() ||
                 kernel.getKernelKind() == KernelKind::Elementwise);
  bool readsSamples = op && llvm::any_of(op->getOperands(), [&](Value operand) {
                        return axes.of(operand).isPart();
                      });
  if (!isPointwise || !axes.of(value).isMixed() || readsSamples ||
      randomSite(op)) {
    if (op && axes.of(value).isMixed() &&
        (!inTheWay || op->isBeforeInBlock(inTheWay)))
      inTheWay = op;
    return {};
  }
  return rebuilt(op, [&](Value operand) { return total(operand); });
}

Value ckopt::shareOfBatch(Value value, const SampleAxes &axes, int64_t ranks) {
  return Shares(axes, ranks).of(value);
}

FailureOr<Value> ckopt::shareOfLoss(Value loss, StringRef name,
                                    const SampleAxes &axes, int64_t ranks) {
  Shares shares(axes, ranks);
  if (Value share = isReal(loss) ? shares.of(loss) : Value())
    return share;
  Operation *op = shares.obstacle();
  auto error =
      op ? emitAt(op) << "combines samples, so that" : emitError(loss.getLoc());
  return error << (op ? " " : "") << "the model computes the loss '" << name
               << "' itself, in another way than by sums and means over "
                  "samples: what it is of the losses of "
               << ranks
               << " ranks is not known; attach a loss (" + Setting("loss") +
                      ")";
}

LogicalResult ckopt::shareLoss(func::FuncOp function, int64_t ranks) {
  if (failed(checkStraightLine(function)))
    return failure();
  SampleAxes axes(function);
  Operation *end = function.front().getTerminator();
  unsigned index = autodiff::findLoss(function).value_or(0);
  if (index >= end->getNumOperands())
    return function.emitError("there is no loss to share");
  Value loss = end->getOperand(index);
  auto share = shareOfLoss(loss, resultName(function, index), axes, ranks);
  if (failed(share))
    return failure();
  end->setOperand(index, *share);
  return success();
}
