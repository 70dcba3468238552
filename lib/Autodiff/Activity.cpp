//===- Activity.cpp - which values need a gradient ------------------------===//
#include "Activity.h"
#include "ckopt/Interfaces/DifferentiableInterface.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::autodiff;

static bool isFloatTensor(Value value) {
  auto type = dyn_cast<ShapedType>(value.getType());
  return type && isa<FloatType>(type.getElementType());
}

/// Ops without a rule are taken to pass gradients on from every float operand.
static bool flowsInto(OpOperand &operand) {
  if (auto rule = dyn_cast<DifferentiableOpInterface>(operand.getOwner()))
    return rule.isDifferentiableIn(operand.getOperandNumber());
  return isFloatTensor(operand.get());
}

Activity::Activity(func::FuncOp function, Value loss, ArrayRef<unsigned> wrt)
    : function(function), wrt(wrt) {
  Block &block = function.getBody().front();
  for (unsigned index : wrt)
    active.insert(block.getArgument(index));
  for (Operation &op : block.without_terminator()) {
    if (llvm::none_of(op.getOpOperands(), [&](OpOperand &operand) {
          return active.contains(operand.get()) && flowsInto(operand);
        }))
      continue;
    for (Value result : op.getResults())
      if (isFloatTensor(result))
        active.insert(result);
  }
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
    if (flows && !isa<DifferentiableOpInterface>(op))
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
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (!active.contains(value) || !seen.insert(value).second)
      continue;
    if (Operation *producer = value.getDefiningOp())
      llvm::append_range(work, producer->getOperands());
  }
  SmallVector<unsigned> found;
  for (unsigned index : wrt)
    if (seen.contains(function.getArgument(index)))
      found.push_back(index);
  return found;
}
