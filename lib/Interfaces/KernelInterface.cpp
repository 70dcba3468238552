//===- KernelInterface.cpp - what fusion and planning ask ops -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Interfaces/KernelInterface.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace ckopt;

#include "ckopt/Interfaces/KernelInterface.cpp.inc"

double ckopt::detail::defaultFlops(Operation *op) {
  double elements = 0;
  for (Type type : op->getResultTypes())
    if (auto tensor = dyn_cast<RankedTensorType>(type);
        tensor && tensor.hasStaticShape())
      elements = std::max(elements, double(tensor.getNumElements()));
  return elements * cast<KernelOpInterface>(op).getFlopsPerElement();
}

bool ckopt::detail::isFusibleKind(KernelKind kind) {
  return kind == KernelKind::Constant || kind == KernelKind::Elementwise;
}

bool ckopt::detail::defaultNeedsStoredOperand(Operation *op, unsigned index) {
  auto kernel = cast<KernelOpInterface>(op);
  switch (kernel.getKernelKind()) {
  case KernelKind::Library:
    return true;
  case KernelKind::Structured: {
    auto maker = dyn_cast_or_null<KernelOpInterface>(
        op->getOperand(index).getDefiningOp());
    return !maker || maker.getKernelKind() != KernelKind::Constant;
  }
  case KernelKind::View:
  case KernelKind::Indexed:
    return !kernel.isFusible();
  case KernelKind::Constant:
  case KernelKind::Elementwise:
  case KernelKind::Reduction:
  case KernelKind::RowWise:
  case KernelKind::Update:
    return false;
  }
  llvm_unreachable("all kinds are handled");
}

bool ckopt::detail::suitsProduct(ArrayRef<int64_t> strides) {
  size_t rank = strides.size();
  return rank >= 2 && rank <= 4 &&
         (strides[rank - 1] == 1 || strides[rank - 2] == 1);
}

LayoutRole ckopt::detail::layoutRoleOfKind(KernelKind kind) {
  switch (kind) {
  case KernelKind::Elementwise:
  case KernelKind::Update:
    return LayoutRole::Uniform;
  case KernelKind::View:
  case KernelKind::Library:
  case KernelKind::RowWise:
  case KernelKind::Structured:
    return LayoutRole::RowMajor;
  case KernelKind::Constant:
  case KernelKind::Indexed:
  case KernelKind::Reduction:
    return LayoutRole::Any;
  }
  llvm_unreachable("all kinds are handled");
}

StorageClass ckopt::detail::storageOfKind(KernelKind kind) {
  switch (kind) {
  case KernelKind::Constant:
    return StorageClass::Neutral;
  case KernelKind::View:
  case KernelKind::Elementwise:
  case KernelKind::Indexed:
  case KernelKind::RowWise:
    return StorageClass::Follows;
  case KernelKind::Reduction:
  case KernelKind::Structured:
  case KernelKind::Library:
  case KernelKind::Update:
    return StorageClass::Full;
  }
  llvm_unreachable("all kinds are handled");
}

SmallVector<std::pair<unsigned, unsigned>>
ckopt::detail::defaultReusePairs(Operation *op) {
  SmallVector<std::pair<unsigned, unsigned>> pairs;
  auto kernel = dyn_cast<KernelOpInterface>(op);
  if (!kernel || (kernel.getKernelKind() != KernelKind::Elementwise &&
                  kernel.getKernelKind() != KernelKind::Update))
    return pairs;
  for (auto [r, result] : llvm::enumerate(op->getResults()))
    for (auto [o, operand] : llvm::enumerate(op->getOperands()))
      if (operand.getType() == result.getType())
        pairs.emplace_back(o, r);
  return pairs;
}
