//===- Activity.cpp - which values need a gradient ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Activity.h"
#include "ckopt/Dialect/Ckopt/Utils/StopGradient.h"
#include "ckopt/Interfaces/DifferentiableInterface.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::autodiff;

static bool isFloatTensor(Value value) {
  auto type = dyn_cast<ShapedType>(value.getType());
  return type && isa<FloatType>(type.getElementType());
}

/// Returns whether gradients flow into the operand. Ops without a rule count as
/// passing gradients on to every float operand, so that the missing rule is
/// reported.
static bool flowsInto(OpOperand &operand) {
  if (operand.getOwner()->hasAttr(kStopGradientAttr))
    return false;
  if (auto rule = dyn_cast<DifferentiableOpInterface>(operand.getOwner()))
    return rule.isDifferentiableIn(operand.getOperandNumber());
  return isFloatTensor(operand.get());
}

/// Returns the outer values that the regions of `op` read: no rule sees them.
static SmallVector<Value> capturedValues(Operation &op) {
  if (op.getNumRegions() == 0)
    return {};
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(op.getRegions(), captured);
  return captured.takeVector();
}

Activity::Activity(func::FuncOp function, Value loss, ArrayRef<unsigned> wrt)
    : function(function), wrt(wrt) {
  Block &block = function.getBody().front();
  for (unsigned index : wrt)
    active.insert(block.getArgument(index));
  auto isActive = [&](Value value) { return active.contains(value); };
  for (Operation &op : block.without_terminator()) {
    if (llvm::none_of(op.getOpOperands(),
                      [&](OpOperand &operand) {
                        return isActive(operand.get()) && flowsInto(operand);
                      }) &&
        llvm::none_of(capturedValues(op), isActive))
      continue;
    for (Value result : op.getResults())
      if (isFloatTensor(result))
        active.insert(result);
  }
  DenseSet<Value> useful;
  useful.insert(loss);
  for (Operation &op : llvm::reverse(block.without_terminator())) {
    if (llvm::none_of(op.getResults(), [&](Value result) {
          return useful.contains(result) && active.contains(result);
        }))
      continue;
    bool flows = false;
    for (OpOperand &operand : op.getOpOperands())
      if (active.contains(operand.get()) && flowsInto(operand)) {
        useful.insert(operand.get());
        flows = true;
      }
    bool captures = false;
    for (Value value : capturedValues(op))
      if (isActive(value)) {
        useful.insert(value);
        captures = true;
      }
    if (captures || (flows && !isa<DifferentiableOpInterface>(op)))
      missing.push_back(&op);
  }
  std::reverse(missing.begin(), missing.end());
}

bool Activity::isNeeded(OpOperand &operand) const {
  return active.contains(operand.get()) && flowsInto(operand);
}

SmallVector<unsigned> Activity::dependencies(Operation *op) const {
  DenseSet<Value> seen;
  SmallVector<Value> work(op->getOperands());
  llvm::append_range(work, capturedValues(*op));
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (!active.contains(value) || !seen.insert(value).second)
      continue;
    if (Operation *producer = value.getDefiningOp()) {
      llvm::append_range(work, producer->getOperands());
      llvm::append_range(work, capturedValues(*producer));
    }
  }
  SmallVector<unsigned> found;
  for (unsigned index : wrt)
    if (seen.contains(function.getArgument(index)))
      found.push_back(index);
  return found;
}
