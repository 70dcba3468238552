//===- Values.cpp - what planning asks of ops and values ------------------===//
#include "ckopt/Analysis/PlanningProblem.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace ckopt;

bool ckopt::isView(Operation *op) {
  if (auto kernel = dyn_cast_or_null<KernelOpInterface>(op))
    return kernel.getKernelKind() == KernelKind::View;
  return op && isa<BarrierOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp,
                   tensor::CastOp>(op);
}

Value ckopt::getViewBase(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isView(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

bool ckopt::isFree(Operation *op) {
  return matchPattern(op, m_Constant()) || isa<tensor::EmptyOp>(op);
}

static SmallVector<std::pair<unsigned, unsigned>>
pairsOf(ArrayRef<int64_t> flat) {
  SmallVector<std::pair<unsigned, unsigned>> pairs;
  for (size_t i = 0; i + 1 < flat.size(); i += 2)
    pairs.emplace_back(flat[i], flat[i + 1]);
  return pairs;
}

SmallVector<std::pair<unsigned, unsigned>> ckopt::getReusePairs(Operation *op) {
  if (auto call = dyn_cast<KernelCallOp>(op))
    return pairsOf(call.getReuse());
  if (auto kernel = dyn_cast<KernelOpInterface>(op))
    return kernel.getReusePairs();
  return {};
}

SmallVector<std::pair<unsigned, unsigned>>
ckopt::getUpdatePairs(Operation *op) {
  if (auto call = dyn_cast<KernelCallOp>(op))
    return pairsOf(call.getUpdates());
  if (auto kernel = dyn_cast<KernelOpInterface>(op))
    return kernel.getUpdatePairs();
  return {};
}

SmallVector<StateUpdate> ckopt::getStateUpdates(func::FuncOp function) {
  SmallVector<StateUpdate> updates;
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (auto argument =
            function.getResultAttrOfType<IntegerAttr>(i, attrs::kUpdates))
      updates.push_back({i, unsigned(argument.getInt())});
  return updates;
}

std::string ckopt::getSourceName(Location loc) {
  if (auto name = dyn_cast<NameLoc>(loc))
    return name.getName().str();
  if (auto fused = dyn_cast<FusedLoc>(loc)) {
    for (Location part : fused.getLocations())
      if (std::string name = getSourceName(part); !name.empty())
        return name;
    return "";
  }
  if (auto call = dyn_cast<CallSiteLoc>(loc))
    return getSourceName(call.getCallee());
  return "";
}

std::string ckopt::getValueName(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
    if (function)
      if (auto name = function.getArgAttrOfType<StringAttr>(
              argument.getArgNumber(), attrs::kName))
        return name.str();
    return "argument " + std::to_string(argument.getArgNumber());
  }
  auto result = cast<OpResult>(value);
  Operation *op = result.getOwner();
  std::string name = getSourceName(op->getLoc());
  if (name.empty()) {
    auto call = dyn_cast<KernelCallOp>(op);
    name = call ? call.getCallee().str() : op->getName().getStringRef().str();
  }
  if (op->getNumResults() > 1)
    name += "#" + std::to_string(result.getResultNumber());
  return name;
}

int64_t ckopt::getStorageBytes(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape())
    return 0;
  Type element = tensor.getElementType();
  if (element.isIntOrIndexOrFloat())
    return getByteSize(tensor);
  auto complex = dyn_cast<ComplexType>(element);
  if (complex && complex.getElementType().isIntOrFloat())
    return tensor.getNumElements() * 2 *
           ((complex.getElementType().getIntOrFloatBitWidth() + 7) / 8);
  return 0;
}

bool ckopt::isStepFunction(func::FuncOp function) {
  return !function.isDeclaration() && !function->hasAttr(attrs::kKernel);
}
