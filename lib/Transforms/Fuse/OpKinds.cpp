//===- OpKinds.cpp - what fuse asks of single ops -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "OpKinds.h"
#include "Grouping.h"

using namespace mlir;
using namespace ckopt;

RankedTensorType fuse::tensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

KernelKind fuse::kindOf(Operation *op) {
  return cast<KernelOpInterface>(op).getKernelKind();
}

bool fuse::isUnitReshape(Operation *op) {
  return kindOf(op) == KernelKind::View &&
         cast<KernelOpInterface>(op).isFusible();
}

/// Returns whether the op makes wider floats of what an argument stores: who
/// reads them rather reads these.
static bool widensArgument(Operation *op) {
  auto cast = dyn_cast<CastOp>(op);
  if (!cast || !isa<BlockArgument>(cast.getInput()))
    return false;
  auto from = dyn_cast<FloatType>(getElementTypeOrSelf(cast.getInput()));
  auto to = dyn_cast<FloatType>(getElementTypeOrSelf(cast.getResult()));
  return from && to && from.getWidth() < to.getWidth();
}

bool fuse::isTrivial(Operation *op) {
  return kindOf(op) == KernelKind::Constant || isa<ExpandOp>(op) ||
         isUnitReshape(op) || widensArgument(op);
}

bool fuse::isPointwise(Operation *op) {
  return cast<KernelOpInterface>(op).isFusible();
}

bool fuse::isPrefix(Operation *op) {
  auto slice = dyn_cast<SliceOp>(op);
  return slice &&
         llvm::all_of(slice.getStarts(), [](int64_t at) { return at == 0; }) &&
         llvm::all_of(slice.getSteps(), [](int64_t by) { return by == 1; }) &&
         getElementStrides(tensorType(slice.getInput())) ==
             getElementStrides(tensorType(slice.getOutput()));
}

void fuse::copyWishes(ArrayRef<Operation *> from, Operation *to) {
  for (StringRef wish : kWishes)
    for (Operation *op : from)
      if (Attribute value = op->getAttr(wish)) {
        to->setAttr(wish, value);
        break;
      }
}

double fuse::flopsPerElement(Operation *op) {
  int64_t elements = 1;
  for (Value result : op->getResults())
    elements = std::max(elements, tensorType(result).getNumElements());
  return cast<KernelOpInterface>(op).getFlops() / double(elements);
}

bool fuse::needsStoredOperand(Operation *op, unsigned index) {
  return cast<KernelOpInterface>(op).needsStoredOperand(index);
}

StringRef fuse::kindName(UnitKind kind) {
  switch (kind) {
  case UnitKind::Elementwise:
  case UnitKind::Update:
    return "elementwise";
  case UnitKind::Reduction:
    return "reduction";
  case UnitKind::Row:
    return "row";
  case UnitKind::Structured:
    return "structured";
  case UnitKind::Library:
    return "library";
  }
  llvm_unreachable("all kinds are handled");
}
