//===- Classes.cpp - which values share a layout, and which it is ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "LayoutAssigner.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::layout;

static RankedTensorType classedType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

bool layout::hasChannels(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() >= 3 && type.getRank() <= 5;
}

RankedTensorType layout::channelsLast(RankedTensorType type) {
  SmallVector<int64_t> order{0};
  for (int64_t d = 2; d < type.getRank(); ++d)
    order.push_back(d);
  order.push_back(1);
  SmallVector<int64_t> moved;
  for (int64_t d : order)
    if (type.getDimSize(d) != 1)
      moved.push_back(d);
  if (llvm::is_sorted(moved))
    return withOrder(type, llvm::to_vector(llvm::seq<int64_t>(type.getRank())));
  return withOrder(type, order);
}

LayoutRole layout::roleOf(Operation *op) {
  return isa<TransposeOp>(op) ? LayoutRole::Any
                              : cast<KernelOpInterface>(op).getLayoutRole();
}

/// Returns whether the op reads and makes row-major tensors, or matrices.
static bool bindsOrder(Operation *op) {
  if (!isa<KernelOpInterface>(op))
    return false;
  LayoutRole role = roleOf(op);
  return role == LayoutRole::RowMajor || role == LayoutRole::Matrices;
}

bool layout::isUpdate(Operation *op) {
  auto kernel = dyn_cast<KernelOpInterface>(op);
  return kernel && kernel.getKernelKind() == KernelKind::Update;
}

SmallVector<Value> layout::uniformValues(Operation *op) {
  SmallVector<Value> values;
  KernelKind kind = cast<KernelOpInterface>(op).getKernelKind();
  bool sameShape =
      kind == KernelKind::Elementwise || kind == KernelKind::Update;
  Value largest;
  for (Value value : llvm::concat<Value>(
           llvm::to_vector(llvm::map_range(
               op->getResults(), [](OpResult r) { return Value(r); })),
           llvm::to_vector(op->getOperands())))
    if (hasChannels(value) &&
        (!largest || classedType(value).getNumElements() >
                         classedType(largest).getNumElements()))
      largest = value;
  if (!largest)
    return values;
  auto fits = [&](Value value) {
    auto type = classedType(value), best = classedType(largest);
    return sameShape ? type.getShape() == best.getShape()
                     : type.getRank() == best.getRank();
  };
  for (Value result : op->getResults())
    if (fits(result))
      values.push_back(result);
  for (Value operand : op->getOperands())
    if (fits(operand))
      values.push_back(operand);
  return values;
}

LayoutAssigner::LayoutAssigner(func::FuncOp function) : function(function) {
  for (Operation &op : function.front().without_terminator())
    connect(&op);
  connectEdges();
  for (Value value : activations)
    activationLeaders.insert(classes.getLeaderValue(value));
  for (Value value : weights)
    weightLeaders.insert(classes.getLeaderValue(value));
}

void LayoutAssigner::connect(Operation *op) {
  switch (roleOf(op)) {
  case LayoutRole::Convolution: {
    auto values = cast<ContractionOpInterface>(op).getConvolved();
    for (Value value : values)
      classes.insert(value);
    activations.append({values[0], values[1]});
    // A constant weight is computed by nobody, so its order gains nothing.
    if (!matchPattern(values[2], m_Constant()))
      weights.push_back(values[2]);
    break;
  }
  case LayoutRole::Uniform: {
    SmallVector<Value> values = uniformValues(op);
    for (Value value : values)
      classes.unionSets(values.front(), value);
    break;
  }
  case LayoutRole::Pairs:
    for (auto [operand, result] :
         llvm::zip(op->getOperands(), op->getResults()))
      if (hasChannels(operand))
        classes.unionSets(operand, result);
    break;
  case LayoutRole::Any:
  case LayoutRole::RowMajor:
  case LayoutRole::Matrices:
    break;
  }
}

/// Lets named arguments take part, with the values that update them.
void LayoutAssigner::connectEdges() {
  for (BlockArgument argument : function.getArguments())
    if (!edgeName(argument).empty() && hasChannels(argument))
      classes.insert(argument);
  for (auto [i, value] :
       llvm::enumerate(function.front().getTerminator()->getOperands()))
    if (auto index =
            function.getResultAttrOfType<IntegerAttr>(i, attrs::kUpdates))
      if (BlockArgument argument = function.getArgument(index.getInt());
          hasChannels(argument))
        classes.unionSets(argument, value);
}

StringRef LayoutAssigner::edgeName(Value value) const {
  auto argument = dyn_cast<BlockArgument>(value);
  auto name = argument ? function.getArgAttrOfType<StringAttr>(
                             argument.getArgNumber(), attrs::kName)
                       : StringAttr();
  return name ? name.getValue() : StringRef();
}

/// Returns whether someone needs the value in row-major order: an op, or a
/// caller who knows no names.
bool LayoutAssigner::isBound(Value value) const {
  Operation *maker = value.getDefiningOp();
  if (maker ? bindsOrder(maker) : edgeName(value).empty())
    return true;
  return llvm::any_of(value.getUses(), [&](OpOperand &use) {
    if (!use.getOwner()->hasTrait<OpTrait::IsTerminator>())
      return bindsOrder(use.getOwner());
    unsigned i = use.getOperandNumber();
    return !function.getResultAttr(i, attrs::kName) &&
           !function.getResultAttr(i, attrs::kUpdates);
  });
}

/// Returns whether nothing keeps a class without activations row-major.
bool LayoutAssigner::isFree(const Classes::ECValue &members,
                            const Names &refused) const {
  return llvm::none_of(classes.members(members), [&](Value value) {
    return isBound(value) || refused.contains(edgeName(value));
  });
}

void LayoutAssigner::refuse(Names &refused) const {
  for (const auto *members : classes) {
    if (!members->isLeader())
      continue;
    bool isActivation = activationLeaders.contains(members->getData());
    bool free = isActivation || isFree(*members, refused);
    for (Value value : classes.members(*members))
      if (StringRef name = edgeName(value);
          !name.empty() && (isActivation ? isBound(value) : !free))
        refused.insert(name);
  }
  // An update's states lie as its parameter does.
  for (Operation &op : function.front())
    if (isUpdate(&op) && llvm::any_of(op.getOperands(), [&](Value value) {
          return refused.contains(edgeName(value));
        }))
      for (Value value : op.getOperands())
        if (StringRef name = edgeName(value); !name.empty())
          refused.insert(name);
}

void LayoutAssigner::choose(const Names &refused, Names &chosen) const {
  for (const auto *members : classes) {
    if (!members->isLeader())
      continue;
    Value leader = members->getData();
    bool isLast = activationLeaders.contains(leader);
    if (!isLast && isFree(*members, refused))
      isLast = weightLeaders.contains(leader) ||
               llvm::any_of(classes.members(*members), [&](Value value) {
                 return chosen.contains(edgeName(value));
               });
    if (isLast)
      for (Value value : classes.members(*members))
        if (StringRef name = edgeName(value);
            !name.empty() && !refused.contains(name))
          chosen.insert(name);
  }
}

/// Finds the classes that are channels-last.
void LayoutAssigner::decide(const Names &refused, const Names &chosen) {
  for (const auto *members : classes) {
    if (!members->isLeader())
      continue;
    Value leader = members->getData();
    if (activationLeaders.contains(leader) ||
        ((weightLeaders.contains(leader) ||
          llvm::any_of(
              classes.members(*members),
              [&](Value value) { return chosen.contains(edgeName(value)); })) &&
         isFree(*members, refused)))
      lastLeaders.insert(leader);
  }
}
