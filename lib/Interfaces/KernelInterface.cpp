//===- KernelInterface.cpp - what fusion and planning ask ops -------------===//
#include "ckopt/Interfaces/KernelInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

#include "ckopt/Interfaces/KernelInterface.cpp.inc"

/// What an element of the op's result costs.
static double flopsPerElement(StringRef name) {
  return llvm::StringSwitch<double>(name)
      .Cases({"ckopt.exp", "ckopt.log", "ckopt.tanh", "ckopt.sigmoid",
              "ckopt.erf", "ckopt.sin", "ckopt.cos", "ckopt.softplus",
              "ckopt.gelu", "ckopt.pow"},
             20)
      // Random bits: ten rounds of two multiplications for four elements.
      .Case("ckopt.dropout", 16)
      .Cases({"ckopt.div", "ckopt.sqrt", "ckopt.rsqrt", "ckopt.reciprocal"}, 4)
      .Default(1);
}

double ckopt::detail::defaultFlops(Operation *op) {
  double elements = 0;
  for (Type type : op->getResultTypes())
    if (auto tensor = dyn_cast<RankedTensorType>(type);
        tensor && tensor.hasStaticShape())
      elements = std::max(elements, double(tensor.getNumElements()));
  return elements * flopsPerElement(op->getName().getStringRef());
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
