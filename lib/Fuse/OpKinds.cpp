//===- OpKinds.cpp - what fuse asks of single ops -------------------------===//
#include "OpKinds.h"
#include "Grouping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace ckopt;

/// Operands of a concat that is computed inside its reader.
static constexpr unsigned maxJoined = 8;

RankedTensorType fuse::tensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

KernelKind fuse::kindOf(Operation *op) {
  return cast<KernelOpInterface>(op).getKernelKind();
}

/// The dimensions that are not 1.
static SmallVector<int64_t> realDims(RankedTensorType type) {
  SmallVector<int64_t> dims;
  for (int64_t size : type.getShape())
    if (size != 1)
      dims.push_back(size);
  return dims;
}

bool fuse::isUnitReshape(Operation *op) {
  auto reshape = dyn_cast<ReshapeOp>(op);
  return reshape && isRowMajor(tensorType(reshape.getInput())) &&
         isRowMajor(reshape.getType()) &&
         realDims(tensorType(reshape.getInput())) ==
             realDims(reshape.getType());
}

bool fuse::isTrivial(Operation *op) {
  return kindOf(op) == KernelKind::Constant || isa<ExpandOp>(op) ||
         isUnitReshape(op);
}

bool fuse::isPointwise(Operation *op) {
  if (kindOf(op) == KernelKind::Elementwise || isTrivial(op) ||
      isa<TriluOp>(op))
    return true;
  if (auto slice = dyn_cast<SliceOp>(op))
    return slice.getSteps().empty() || slice.getSteps().back() == 1;
  if (auto gather = dyn_cast<GatherOp>(op))
    return int64_t(gather.getAxis()) + 1 <
           tensorType(gather.getData()).getRank();
  // Padding and joining choose an operand by the index.
  if (auto pad = dyn_cast<PadOp>(op))
    return llvm::all_of(pad.getInterior(), [](int64_t n) { return n == 0; });
  if (isa<ConcatOp>(op))
    return op->getNumOperands() <= maxJoined;
  if (auto transpose = dyn_cast<TransposeOp>(op)) {
    ArrayRef<int64_t> permutation = transpose.getPermutation();
    return kindOf(op) != KernelKind::View && !permutation.empty() &&
           permutation.back() == int64_t(permutation.size()) - 1 &&
           isRowMajor(transpose.getType()) &&
           isRowMajor(tensorType(transpose.getInput()));
  }
  return false;
}

double fuse::flopsPerElement(Operation *op) {
  int64_t elements = 1;
  for (Value result : op->getResults())
    elements = std::max(elements, tensorType(result).getNumElements());
  return cast<KernelOpInterface>(op).getFlops() / double(elements);
}

bool fuse::needsStoredOperand(Operation *op, unsigned index) {
  switch (kindOf(op)) {
  case KernelKind::Library:
    return true;
  case KernelKind::Structured:
    return index != 0 || !matchPattern(op->getOperand(0), m_Constant());
  case KernelKind::View:
    return !isUnitReshape(op);
  case KernelKind::Indexed:
    if (isa<GatherOp>(op))
      return index == 0;
    return !isPointwise(op);
  case KernelKind::Constant:
  case KernelKind::Elementwise:
  case KernelKind::Reduction:
  case KernelKind::RowWise:
  case KernelKind::Update:
    return false;
  }
  llvm_unreachable("all kinds are handled");
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
