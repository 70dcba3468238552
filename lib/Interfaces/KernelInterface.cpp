//===- KernelInterface.cpp - what fusion and planning ask ops -------------===//
#include "ckopt/Interfaces/KernelInterface.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;

#include "ckopt/Interfaces/KernelInterface.cpp.inc"

double ckopt::detail::defaultFlops(Operation *op) {
  double elements = 0;
  for (Type type : op->getResultTypes())
    if (auto tensor = dyn_cast<RankedTensorType>(type);
        tensor && tensor.hasStaticShape())
      elements = std::max(elements, double(tensor.getNumElements()));
  return elements;
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
