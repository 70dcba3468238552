//===- Values.cpp - what planning asks of ops and values ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Analysis/OpFacts.h"
#include "ckopt/Analysis/PlanningProblem.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptKernelOps.h"
#include "ckopt/Interfaces/KernelInterface.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tosa/IR/TosaOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"

using namespace mlir;
using namespace ckopt;

/// Returns whether an op of another dialect returns its first operand's bytes,
/// if its other operands are constant.
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
  return op &&
         (isa<BarrierOp>(op) || isForeignView(op) || facts::viewedOperand(op));
}

OpOperand &ckopt::getViewedOperand(Operation *view) {
  return view->getOpOperand(facts::viewedOperand(view).value_or(0));
}

/// Returns the operand whose bytes a result of a kernel call is, if it is one.
static Value aliasedOperand(Value value) {
  auto call = value.getDefiningOp<KernelCallOp>();
  if (!call)
    return {};
  int64_t number = cast<OpResult>(value).getResultNumber();
  ArrayRef<int64_t> flat = call.getAliases();
  for (size_t i = 0; i + 1 < flat.size(); i += 2)
    if (flat[i + 1] == number && flat[i] >= 0 &&
        flat[i] < int64_t(call.getArgs().size()))
      return call.getArgs()[size_t(flat[i])];
  return {};
}

bool ckopt::isAlias(Value value) { return bool(aliasedOperand(value)); }

Value ckopt::getViewBase(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    Value base =
        isView(op) ? getViewedOperand(op).get() : aliasedOperand(value);
    if (!base)
      break;
    value = base;
  }
  return value;
}

SmallVector<Value, 1> ckopt::getAliases(Operation *user, Value value) {
  if (isView(user))
    return {user->getResult(0)};
  SmallVector<Value, 1> aliases;
  if (isa<KernelCallOp>(user))
    for (Value result : user->getResults())
      if (aliasedOperand(result) == value)
        aliases.push_back(result);
  return aliases;
}

bool ckopt::isEmptyTensor(Value value) {
  return value.getDefiningOp<tensor::EmptyOp>() != nullptr;
}

bool ckopt::isFree(Operation *op) {
  return matchPattern(op, m_Constant()) || isa<tensor::EmptyOp>(op) ||
         facts::isConstant(op);
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

std::optional<int64_t> ckopt::getStatedWorkspace(Operation *op,
                                                 const PlanningHooks &hooks) {
  auto known = [](std::optional<int64_t> bytes) {
    return bytes && *bytes >= 0 && *bytes <= kMaxStatedBytes;
  };
  if (auto attr = op->getDiscardableAttr(kWorkspaceAttr))
    return cast<IntegerAttr>(attr).getInt(); // buildProblem() has checked it
  if (hooks.workspace)
    if (std::optional<int64_t> bytes = hooks.workspace(op); known(bytes))
      return bytes;
  if (auto planning = dyn_cast<PlanningOpInterface>(op))
    if (auto bytes = planning.getPlanningWorkspace(); known(bytes))
      return bytes;
  return std::nullopt;
}

static SmallVector<std::pair<unsigned, unsigned>>
pairsOf(ArrayRef<int64_t> flat) {
  SmallVector<std::pair<unsigned, unsigned>> pairs;
  for (size_t i = 0; i + 1 < flat.size(); i += 2)
    pairs.emplace_back(flat[i], flat[i + 1]);
  return pairs;
}

/// Returns whether the operand shows all bytes of its storage, so that a result
/// may overwrite them element by element. With a part of the storage, a result
/// could overwrite elements that are still to be read.
static bool showsWholeStorage(Value operand) {
  return isa<RankedTensorType>(operand.getType()) &&
         getStorageBytes(operand.getType()) ==
             getStorageBytes(getViewBase(operand).getType());
}

/// Returns whether a structured op reads each point of an operand's storage
/// only to compute the same point of its results.
static bool readsPointByPoint(linalg::LinalgOp op, OpOperand &operand) {
  Value base = getViewBase(operand.get());
  return llvm::all_of(op->getOpOperands(), [&](OpOperand &other) {
    return getViewBase(other.get()) != base ||
           (showsWholeStorage(other.get()) &&
            other.get().getType() == operand.get().getType() &&
            op.getMatchingIndexingMap(&other).isIdentity());
  });
}

/// Adds the inputs that could be destinations in place of a tensor.empty.
static void addInputsThatServe(linalg::LinalgOp op, PlanningReusePairs &pairs) {
  if (op.getNumParallelLoops() != op.getNumLoops())
    return;
  for (OpOperand &init : op.getDpsInitsMutable())
    if (isEmptyTensor(init.get()) && !op.payloadUsesValueFromOperand(&init) &&
        op.getMatchingIndexingMap(&init).isIdentity())
      for (OpOperand *input : op.getDpsInputOperands())
        if (input->get().getType() == init.get().getType() &&
            readsPointByPoint(op, *input))
          pairs.emplace_back(input->getOperandNumber(),
                             op.getTiedOpResult(&init).getResultNumber());
}

/// Predicts which operands bufferization overwrites in ops of other dialects:
/// results take the bytes of the destinations that they are tied to, or of an
/// elementwise input that becomes the destination when the plan is applied;
/// elementwise ops on tensors become ops with destinations, the first operand
/// of the result's type being the destination.
static SmallVector<std::pair<unsigned, unsigned>>
foreignReusePairs(Operation *op) {
  SmallVector<std::pair<unsigned, unsigned>> pairs;
  if (auto style = dyn_cast<DestinationStyleOpInterface>(op)) {
    for (OpOperand &init : style.getDpsInitsMutable())
      if (showsWholeStorage(init.get()))
        pairs.emplace_back(init.getOperandNumber(),
                           style.getTiedOpResult(&init).getResultNumber());
    if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
      addInputsThatServe(linalgOp, pairs);
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

/// Drops pairs of an operand whose storage the op reads in another order, too:
/// through an operand of another type, or as a part.
static PlanningReusePairs readInOneOrder(Operation *op,
                                         PlanningReusePairs pairs,
                                         const TypeSizes &sizes) {
  llvm::erase_if(pairs, [&](std::pair<unsigned, unsigned> pair) {
    Type type = op->getOperand(pair.first).getType();
    Value base = getViewBase(op->getOperand(pair.first));
    return llvm::any_of(op->getOperands(), [&](Value other) {
      return getViewBase(other) == base &&
             (other.getType() != type ||
              sizes.bytes(base.getType()) != sizes.bytes(type));
    });
  });
  return pairs;
}

/// Returns the reuse pairs that a client or an op of another dialect states,
/// without pairs whose operand or result does not exist.
static SmallVector<std::pair<unsigned, unsigned>>
checkedPairs(Operation *op, PlanningReusePairs pairs) {
  llvm::erase_if(pairs, [&](std::pair<unsigned, unsigned> pair) {
    return pair.first >= op->getNumOperands() ||
           pair.second >= op->getNumResults();
  });
  return pairs;
}

/// Drops promises that another operand breaks. A kernel's promise about an
/// operand says nothing about the other operands: one that shows the same bytes
/// (one is a view of the other) and has no promise of its own may be read after
/// the result was written.
static SmallVector<std::pair<unsigned, unsigned>>
withoutSharedBytes(KernelCallOp call,
                   SmallVector<std::pair<unsigned, unsigned>> pairs) {
  SmallVector<std::pair<unsigned, unsigned>> safe;
  for (auto pair : pairs) {
    Value base = getViewBase(call.getArgs()[pair.first]);
    bool alone =
        llvm::all_of(llvm::enumerate(call.getArgs()), [&](const auto &other) {
          return other.index() == pair.first ||
                 getViewBase(other.value()) != base ||
                 llvm::is_contained(
                     pairs, std::pair(unsigned(other.index()), pair.second));
        });
    if (alone)
      safe.push_back(pair);
  }
  return safe;
}

SmallVector<std::pair<unsigned, unsigned>>
ckopt::getReusePairs(Operation *op, const PlanningHooks &hooks) {
  if (auto call = dyn_cast<KernelCallOp>(op))
    return withoutSharedBytes(call, pairsOf(call.getReuse()));
  if (auto pairs = facts::reusePairs(op))
    return readInOneOrder(op, checkedPairs(op, *pairs), TypeSizes(op, hooks));
  if (hooks.reusePairs)
    if (auto pairs = hooks.reusePairs(op))
      return checkedPairs(op, *pairs);
  if (auto planning = dyn_cast<PlanningOpInterface>(op))
    if (auto pairs = planning.getPlanningReusePairs())
      return checkedPairs(op, *pairs);
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

SmallVector<StateUpdate> ckopt::getStateUpdates(FunctionOpInterface function) {
  SmallVector<StateUpdate> updates;
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (auto argument =
            function.getResultAttrOfType<IntegerAttr>(i, attrs::kUpdates))
      updates.push_back({i, unsigned(argument.getInt())});
  return updates;
}

std::string ckopt::getFunctionPath(FunctionOpInterface function) {
  std::string path = function.getName().str();
  for (Operation *parent = function->getParentOp(); parent;
       parent = parent->getParentOp())
    if (auto name =
            parent->getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName());
        name && parent->getParentOp())
      path = name.str() + "::" + path;
  return path;
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
    auto function =
        dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp());
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

int64_t ckopt::getStorageBytes(Type type) { return TypeSizes().bytes(type); }

std::string ckopt::describeUnsized(Type type) {
  return TypeSizes().describeUnsized(type);
}

/// Returns whether the function handles tensors, or values that may be as
/// large.
static bool holdsTensors(FunctionOpInterface function) {
  auto large = [](Type type) {
    return !isa<VectorType, BaseMemRefType>(type) &&
           (isa<TensorType, TupleType>(type) || !TypeSizes().isKnown(type));
  };
  return llvm::any_of(function.getArgumentTypes(), large) ||
         llvm::any_of(function.getBlocks(), [&](Block &block) {
           return llvm::any_of(block, [&](Operation &op) {
             return llvm::any_of(op.getResultTypes(), large);
           });
         });
}

bool ckopt::isStepFunction(FunctionOpInterface function) {
  if (function.isExternal() || function->hasAttr(attrs::kKernel))
    return false;
  return isa<func::FuncOp>(*function) || holdsTensors(function);
}

std::string ckopt::getRepeatedBlock(StringRef name) {
  size_t end = 0;
  for (size_t i = 2; i < name.size(); ++i) {
    // A path component ends here; the last one names the op, not a block.
    if (name[i] != '/')
      continue;
    StringRef stem = name.take_front(i).rtrim("0123456789");
    if (stem.size() < i && (stem.ends_with(".") || stem.ends_with("_")))
      end = i;
  }
  return name.take_front(end).str();
}
