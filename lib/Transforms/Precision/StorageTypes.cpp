//===- StorageTypes.cpp - which stored values may be f16, bf16 ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "StorageTypes.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;

StringRef codegen::kernelKind(func::FuncOp kernel) {
  return kernel->getAttrOfType<StringAttr>(attrs::kKernel).getValue();
}

bool codegen::isOfRanks(func::FuncOp kernel) {
  return isa<CollectiveOpInterface>(kernel.front().front());
}

KernelKind codegen::opKind(Operation *op) {
  return cast<KernelOpInterface>(op).getKernelKind();
}

bool codegen::isF32(Value value) { return getElementTypeOrSelf(value).isF32(); }

bool codegen::isAddend(func::FuncOp kernel, unsigned argument) {
  auto product = dyn_cast<ContractionOpInterface>(kernel.front().front());
  return product &&
         product.getContractionKind() != ContractionKind::Attention &&
         llvm::any_of(kernel.getArgument(argument).getUses(),
                      [&](OpOperand &use) {
                        return use.getOwner() == product &&
                               !product.isFactor(use.getOperandNumber());
                      });
}

Value codegen::addendOf(KernelCallOp call, func::FuncOp kernel) {
  auto shapeOf = [](Value value) {
    return cast<RankedTensorType>(value.getType()).getShape();
  };
  for (OpOperand &operand : call->getOpOperands())
    if (isAddend(kernel, operand.getOperandNumber()) &&
        shapeOf(operand.get()) == shapeOf(call.getResult(0)))
      return operand.get();
  return {};
}

bool codegen::isOnlyAddend(Value value, const SymbolTable &symbols) {
  return !value.use_empty() &&
         llvm::all_of(value.getUses(), [&](OpOperand &use) {
           auto call = dyn_cast<KernelCallOp>(use.getOwner());
           return call &&
                  isAddend(symbols.lookup<func::FuncOp>(call.getCallee()),
                           use.getOperandNumber());
         });
}

bool codegen::isAttended(OpOperand &operand) {
  auto attention = cast<ContractionOpInterface>(operand.getOwner());
  return attention.isFactor(operand.getOperandNumber());
}

static bool isStepView(Operation *op) {
  return isa<KernelOpInterface>(op) && opKind(op) == KernelKind::View;
}

Value codegen::belowViews(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isStepView(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

static int64_t elementsOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getNumElements();
}

/// Calls `visit` with each use of the value and of views of it.
static void forEachUse(Value value, function_ref<void(OpOperand &)> visit) {
  for (OpOperand &use : value.getUses())
    if (isStepView(use.getOwner()))
      forEachUse(use.getOwner()->getResult(0), visit);
    else
      visit(use);
}

/// Calls `visit` with the results that a call between ranks makes of its
/// operand.
static void forEachMoved(KernelCallOp call, func::FuncOp kernel,
                         unsigned operand, function_ref<void(Value)> visit) {
  Operation &op = kernel.front().front();
  Operation *end = kernel.front().getTerminator();
  for (auto [from, to] : llvm::zip_equal(op.getOperands(), op.getResults()))
    if (from == kernel.getArgument(operand))
      for (OpOperand &made : end->getOpOperands())
        if (made.get() == to)
          visit(call.getResult(made.getOperandNumber()));
}

/// Returns whether all readers of the value only make gradients of parameters
/// from it; sets `ends` if one is where these end.
bool StorageTypes::endsInGradient(Value value, bool &ends) const {
  bool only = true;
  forEachUse(value, [&](OpOperand &use) {
    auto call = dyn_cast<KernelCallOp>(use.getOwner());
    if (!call || !call.getUpdates().empty()) {
      ends = true;
      return;
    }
    auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
    // What ranks send each other is what they add up: it stays f32.
    if (isOfRanks(kernel)) {
      forEachMoved(call, kernel, use.getOperandNumber(),
                   [&](Value moved) { only &= endsInGradient(moved, ends); });
      return;
    }
    StringRef kind = kernelKind(kernel);
    bool sums = (kind == "elementwise" || kind == "structured" ||
                 isAddend(kernel, use.getOperandNumber())) &&
                llvm::all_of(call.getResults(), [&](Value result) {
                  return gradients.contains(result);
                });
    ends |= sums;
    // Norms of gradients are reductions.
    only &= sums || kind == "reduction";
  });
  return only;
}

/// Returns whether all that the kernel does is to move elements.
static bool onlyMoves(func::FuncOp kernel) {
  return llvm::all_of(kernel.front().without_terminator(), [](Operation &op) {
    return opKind(&op) == KernelKind::Indexed ||
           opKind(&op) == KernelKind::View;
  });
}

/// Returns whether the use is as a factor of a product or convolution.
bool StorageTypes::multiplies(OpOperand &use) const {
  Operation *owner = use.getOwner();
  if (!products.contains(owner) && !attentions.contains(owner))
    return false;
  auto kernel =
      symbols.lookup<func::FuncOp>(cast<KernelCallOp>(owner).getCallee());
  if (products.contains(owner))
    return !isAddend(kernel, use.getOperandNumber());
  return llvm::any_of(kernel.getArgument(use.getOperandNumber()).getUses(),
                      isAttended);
}

bool StorageTypes::endsInProducts(Value value) const {
  bool only = true, any = false;
  forEachUse(value, [&](OpOperand &use) {
    auto call = dyn_cast<KernelCallOp>(use.getOwner());
    any = true;
    if (call && multiplies(use))
      return;
    only &= call && onlyMoves(symbols.lookup<func::FuncOp>(call.getCallee())) &&
            llvm::all_of(call.getResults(), [&](Value result) {
              return multiplied.contains(result);
            });
  });
  return any && only;
}

void StorageTypes::lookAhead(Block &block) {
  for (Operation &op : llvm::reverse(block.without_terminator()))
    if (isa<KernelCallOp>(op))
      for (Value result : op.getResults()) {
        bool ends = false;
        if (isF32(result) && endsInGradient(result, ends) && ends)
          gradients.insert(result);
        if (isF32(result) && endsInProducts(result))
          multiplied.insert(result);
      }
}

Storage StorageTypes::of(Value value) const {
  return classes.lookup_or(belowViews(value), Storage::Full);
}

/// The class of an op's first result inside of a kernel's body.
Storage StorageTypes::ofOp(Operation *op) const {
  switch (cast<KernelOpInterface>(op).getStorageClass()) {
  case StorageClass::Neutral:
    return Storage::Neutral;
  case StorageClass::Full:
    return Storage::Full;
  case StorageClass::Follows:
    break;
  }
  int64_t elements = elementsOf(op->getResult(0));
  bool moves = opKind(op) == KernelKind::Indexed && !isa<ExpandOp>(op);
  Storage result = Storage::Neutral;
  for (Value operand : op->getOperands()) {
    // How much smaller an operand is depends on the samples of a rank, and
    // what is stored must not.
    if (!isF32(operand) || (!moves && elementsOf(operand) < elements))
      continue;
    Storage own = classes.lookup_or(operand, Storage::Full);
    if (own == Storage::Full)
      return own;
    if (own == Storage::Low)
      result = own;
  }
  return result;
}

/// Returns whether the product is added to a tensor that is not stored in 16
/// bits: the sum has its type, as that of an elementwise kernel would.
bool StorageTypes::addsToFull(KernelCallOp call) const {
  Value addend = addendOf(call, symbols.lookup<func::FuncOp>(call.getCallee()));
  return addend && of(addend) != Storage::Low;
}

void StorageTypes::classify(KernelCallOp call) {
  if (products.contains(call)) {
    Value result = call.getResult(0);
    bool full = gradients.contains(result) || addsToFull(call);
    classes[result] = full ? Storage::Full : Storage::Low;
    return;
  }
  if (attentions.contains(call)) {
    auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
    auto op = cast<KernelOpInterface>(kernel.front().front());
    for (OpResult result : call->getResults())
      classes[result] = op.isStatistic(result.getResultNumber()) ? Storage::Full
                                                                 : Storage::Low;
    return;
  }
  if (keeps(call))
    return;
  auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
  if (kernelKind(kernel) == "library")
    return;
  for (auto [argument, operand] :
       llvm::zip_equal(kernel.getArguments(), call.getArgs()))
    classes[argument] = of(operand);
  for (Operation &op : kernel.front().without_terminator())
    for (OpResult result : op.getResults())
      classes[result] =
          cast<KernelOpInterface>(op).isStatistic(result.getResultNumber())
              ? Storage::Full
              : ofOp(&op);
  for (auto [made, result] : llvm::zip_equal(
           kernel.front().getTerminator()->getOperands(), call.getResults())) {
    Storage own = classes.lookup_or(made, Storage::Full);
    if (multiplied.contains(result) && kernelKind(kernel) != "structured" &&
        kernelKind(kernel) != "reduction")
      own = Storage::Low;
    classes[result] = own;
  }
}

bool StorageTypes::isMultiplied(Value value) const {
  bool found = false;
  forEachUse(value, [&](OpOperand &use) { found |= multiplies(use); });
  return found;
}

StorageTypes::StorageTypes(func::FuncOp function, const SymbolTable &symbols,
                           std::function<bool(KernelCallOp)> keeps)
    : symbols(symbols), keeps(std::move(keeps)) {
  // The scale of the loss, which all gradients come from, is a number.
  for (BlockArgument argument : function.getArguments()) {
    StringRef role = argumentRole(function, argument.getArgNumber());
    if (role == roles::kConstant ||
        (role == roles::kOptimizerState && elementsOf(argument) == 1))
      classes[argument] = Storage::Neutral;
  }
  Block &block = function.front();
  for (auto call : block.getOps<KernelCallOp>()) {
    auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
    auto op = dyn_cast<ContractionOpInterface>(kernel.front().front());
    if (!op || this->keeps(call))
      continue;
    if (op.getContractionKind() != ContractionKind::Attention) {
      if (llvm::all_of(call.getArgs(), isF32))
        products.insert(call);
    } else if (isF32(call.getArgs().front())) {
      attentions.insert(call);
    }
  }
  lookAhead(block);
  for (auto call : block.getOps<KernelCallOp>())
    classify(call);
}
