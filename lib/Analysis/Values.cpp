//===- Values.cpp - what planning asks of ops and values ------------------===//
#include "ckopt/Analysis/PlanningProblem.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "mlir/Dialect/Quant/IR/QuantTypes.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tosa/IR/TosaOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace ckopt;

/// Ops of other dialects whose result is their first operand's bytes, given
/// that what they read beside it is constant.
static bool isForeignView(Operation *op) {
  if (!isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::CastOp,
           tensor::BitcastOp, tensor::ReshapeOp, tensor::ExtractSliceOp,
           tosa::ReshapeOp, tosa::IdentityOp>(op))
    return false;
  return llvm::all_of(op->getOperands().drop_front(), [](Value operand) {
    Operation *maker = operand.getDefiningOp();
    return maker && isFree(maker);
  });
}

bool ckopt::isView(Operation *op) {
  if (auto kernel = dyn_cast_or_null<KernelOpInterface>(op))
    return kernel.getKernelKind() == KernelKind::View;
  return op && (isa<BarrierOp>(op) || isForeignView(op));
}

Value ckopt::getViewBase(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isView(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

bool ckopt::isEmptyTensor(Value value) {
  return value.getDefiningOp<tensor::EmptyOp>() != nullptr;
}

bool ckopt::isFree(Operation *op) {
  return matchPattern(op, m_Constant()) || isa<tensor::EmptyOp>(op);
}

SmallVector<Value> ckopt::getReads(Operation *op) {
  llvm::SmallSetVector<Value, 8> reads(op->operand_begin(), op->operand_end());
  if (op->getNumRegions())
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (operand.getParentBlock() == op->getBlock())
          reads.insert(operand);
    });
  return reads.takeVector();
}

std::optional<double> ckopt::getCostAttribute(Operation *op) {
  double cost = 0;
  Attribute attr = op->getDiscardableAttr(kCostAttr);
  if (auto number = dyn_cast_or_null<FloatAttr>(attr))
    cost = number.getValueAsDouble();
  else if (auto whole = dyn_cast_or_null<IntegerAttr>(attr))
    cost = whole.getValue().roundToDouble(/*isSigned=*/true);
  else
    return std::nullopt;
  if (!(cost >= 0 && cost <= kMaxSeconds))
    return std::nullopt;
  return cost;
}

static SmallVector<std::pair<unsigned, unsigned>>
pairsOf(ArrayRef<int64_t> flat) {
  SmallVector<std::pair<unsigned, unsigned>> pairs;
  for (size_t i = 0; i + 1 < flat.size(); i += 2)
    pairs.emplace_back(flat[i], flat[i + 1]);
  return pairs;
}

/// Whether the operand shows all bytes of its storage: a result may lie over
/// them, element by element. Over a part of them it could run into what is
/// still to be read.
static bool showsWholeStorage(Value operand) {
  return isa<RankedTensorType>(operand.getType()) &&
         getStorageBytes(operand.getType()) ==
             getStorageBytes(getViewBase(operand).getType());
}

/// What bufferization does with ops of other dialects: results take the bytes
/// of the destinations that they are tied to; elementwise ops on tensors become
/// such ops, with the first operand of the result's type as destination.
static SmallVector<std::pair<unsigned, unsigned>>
foreignReusePairs(Operation *op) {
  SmallVector<std::pair<unsigned, unsigned>> pairs;
  if (auto style = dyn_cast<DestinationStyleOpInterface>(op)) {
    for (OpOperand &init : style.getDpsInitsMutable())
      if (showsWholeStorage(init.get()))
        pairs.emplace_back(init.getOperandNumber(),
                           style.getTiedOpResult(&init).getResultNumber());
    return pairs;
  }
  if (op->getNumResults() != 1 || !OpTrait::hasElementwiseMappableTraits(op))
    return pairs;
  for (OpOperand &operand : op->getOpOperands())
    if (operand.get().getType() == op->getResult(0).getType() &&
        showsWholeStorage(operand.get())) {
      pairs.emplace_back(operand.getOperandNumber(), 0);
      break;
    }
  return pairs;
}

SmallVector<std::pair<unsigned, unsigned>> ckopt::getReusePairs(Operation *op) {
  if (auto call = dyn_cast<KernelCallOp>(op))
    return pairsOf(call.getReuse());
  if (auto kernel = dyn_cast<KernelOpInterface>(op))
    return kernel.getReusePairs();
  return foreignReusePairs(op);
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

/// Bytes of one element; 0: unknown.
static int64_t getElementBytes(Type element) {
  if (auto quantized = dyn_cast<quant::QuantizedType>(element))
    element = quantized.getStorageType();
  if (element.isIndex())
    return 8;
  if (element.isIntOrFloat())
    return (element.getIntOrFloatBitWidth() + 7) / 8;
  if (auto complex = dyn_cast<ComplexType>(element))
    return 2 * getElementBytes(complex.getElementType());
  auto vector = dyn_cast<VectorType>(element);
  if (vector && !vector.isScalable())
    return vector.getNumElements() * getElementBytes(vector.getElementType());
  return 0;
}

/// Larger tensors are refused: sums of their bytes would overflow.
static constexpr int64_t maxBytes = int64_t(1) << 56;

/// Bytes of a tensor of static shape; -1: unknown or absurd.
static int64_t tensorBytes(RankedTensorType tensor) {
  int64_t bytes = getElementBytes(tensor.getElementType());
  if (bytes <= 0)
    return -1;
  for (int64_t size : tensor.getShape())
    if (llvm::MulOverflow(bytes, size, bytes) || bytes > maxBytes)
      return -1;
  return bytes;
}

int64_t ckopt::getStorageBytes(Type type) {
  if (auto tuple = dyn_cast<TupleType>(type)) {
    int64_t bytes = 0;
    for (Type part : tuple.getTypes())
      bytes = std::min(bytes + getStorageBytes(part), maxBytes);
    return bytes;
  }
  if (auto vector = dyn_cast<VectorType>(type)) {
    if (vector.isScalable())
      return 0;
    type = RankedTensorType::get(vector.getShape(), vector.getElementType());
  }
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape())
    return 0;
  return std::max<int64_t>(tensorBytes(tensor), 0);
}

std::string ckopt::describeUnsized(Type type) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (auto tuple = dyn_cast<TupleType>(type)) {
    for (Type part : tuple.getTypes())
      if (text = describeUnsized(part); !text.empty())
        break;
    return text;
  }
  if (auto vector = dyn_cast<VectorType>(type)) {
    if (vector.isScalable())
      os << "planning needs sizes that are known when compiling; that of '"
         << type << "' is not";
    else if (tensorBytes(RankedTensorType::get(vector.getShape(),
                                               vector.getElementType())) < 0)
      os << "a vector of type '" << type << "' is larger than any memory";
    return text;
  }
  if (!isa<TensorType>(type))
    return "";
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    os << "planning needs ranked tensors; the size of '" << type
       << "' is unknown";
  else if (!tensor.hasStaticShape())
    os << "planning needs static shapes; the size of '" << type
       << "' is unknown";
  else if (tensor.getEncoding() &&
           tensor.getEncoding().getDialect().getNamespace() == "sparse_tensor")
    os << "planning needs dense tensors; the size of '" << type
       << "' depends on its contents";
  else if (getElementBytes(tensor.getElementType()) <= 0)
    os << "planning needs elements of known size; that of '"
       << tensor.getElementType() << "' in '" << type << "' is unknown";
  else if (tensorBytes(tensor) < 0)
    os << "a tensor of type '" << type << "' is larger than any memory";
  return text;
}

bool ckopt::isStepFunction(func::FuncOp function) {
  return !function.isDeclaration() && !function->hasAttr(attrs::kKernel);
}

std::string ckopt::getRepeatedBlock(StringRef name) {
  size_t end = 0;
  for (size_t i = 2; i < name.size(); ++i) {
    // A component ends here; the last one names the op, not a block.
    if (name[i] != '/')
      continue;
    StringRef stem = name.take_front(i).rtrim("0123456789");
    if (stem.size() < i && (stem.ends_with(".") || stem.ends_with("_")))
      end = i;
  }
  return name.take_front(end).str();
}
