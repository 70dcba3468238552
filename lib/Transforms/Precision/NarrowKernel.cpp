//===- NarrowKernel.cpp - kernels that read and write f16, bf16 -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "NarrowKernel.h"
#include "StorageTypes.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;

SmallVector<func::FuncOp> codegen::findCallers(ModuleOp module) {
  SmallVector<func::FuncOp> functions;
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isDeclaration() && !function->hasAttr(attrs::kKernel))
      functions.push_back(function);
  return functions;
}

RankedTensorType codegen::retyped(Value value, Type element) {
  return cast<RankedTensorType>(value.getType()).clone(element);
}

void codegen::settleType(func::FuncOp kernel) {
  Block &block = kernel.front();
  kernel.setType(FunctionType::get(kernel.getContext(),
                                   block.getArgumentTypes(),
                                   block.getTerminator()->getOperandTypes()));
}

/// Returns whether the op only moves elements, and all those that it moves are
/// narrow operands of the kernel: it then moves 16-bit floats.
static bool movesNarrow(Operation *op, const Narrowing &wanted) {
  if (opKind(op) != KernelKind::Indexed)
    return false;
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    auto argument = dyn_cast<BlockArgument>(operand);
    return !isF32(operand) ||
           (argument && wanted.operands[argument.getArgNumber()]);
  });
}

void codegen::dropUnreadable(func::FuncOp kernel, Narrowing &wanted) {
  bool changed = true;
  while (changed) {
    changed = false;
    for (BlockArgument argument : kernel.getArguments()) {
      bool &bit = wanted.operands[argument.getArgNumber()];
      for (OpOperand &use : argument.getUses()) {
        auto op = dyn_cast<KernelOpInterface>(use.getOwner());
        if (!bit || (op && (!op.needsStoredOperand(use.getOperandNumber()) ||
                            movesNarrow(op, wanted))))
          continue;
        bit = false;
        changed = true;
      }
    }
  }
}

/// Gives an addend that the product also multiplies an argument of its own,
/// the last: it keeps its type.
static void separateAddend(func::FuncOp kernel) {
  auto product = cast<ContractionOpInterface>(kernel.front().front());
  for (OpOperand &operand : product->getOpOperands())
    if (!product.isFactor(operand.getOperandNumber()) &&
        llvm::count(product->getOperands(), operand.get()) > 1)
      operand.set(kernel.front().addArgument(operand.get().getType(),
                                             operand.get().getLoc()));
}

void codegen::narrowProduct(func::FuncOp kernel, bool wide, Type half) {
  if (wide)
    separateAddend(kernel);
  for (BlockArgument argument : kernel.getArguments())
    if (!wide || !isAddend(kernel, argument.getArgNumber()))
      argument.setType(retyped(argument, half));
  Value result = kernel.front().front().getResult(0);
  if (!wide)
    result.setType(retyped(result, half));
  settleType(kernel);
}

void codegen::narrowKernel(func::FuncOp kernel, const Narrowing &wanted,
                           Type half) {
  MLIRContext *context = kernel.getContext();
  Type single = Float32Type::get(context);
  Block &block = kernel.front();
  SmallVector<Value> narrow;
  llvm::SmallDenseSet<Operation *> movers;
  for (Operation &op : block.without_terminator())
    if (movesNarrow(&op, wanted) && llvm::any_of(op.getOperands(), isF32))
      movers.insert(&op);
  for (BlockArgument argument : kernel.getArguments())
    if (wanted.operands[argument.getArgNumber()])
      narrow.push_back(argument);
  for (Operation &op : block.without_terminator())
    if (movers.contains(&op))
      llvm::copy_if(op.getResults(), std::back_inserter(narrow), isF32);
  // Other readers see the value as f32.
  DenseMap<Value, Value> narrowOf;
  for (Value value : narrow) {
    value.setType(retyped(value, half));
    OpBuilder builder(context);
    builder.setInsertionPointAfterValue(value);
    auto wide =
        CastOp::create(builder, value.getLoc(), retyped(value, single), value);
    value.replaceUsesWithIf(wide, [&](OpOperand &use) {
      return use.getOwner() != wide && !movers.contains(use.getOwner());
    });
    narrowOf[wide] = value;
  }
  auto terminator = cast<func::ReturnOp>(block.getTerminator());
  OpBuilder builder(terminator);
  auto castOf = [&](Value value) -> Value {
    return CastOp::create(builder, value.getLoc(), retyped(value, half), value);
  };
  SmallVector<Value> results(terminator.getOperands()), added;
  for (auto [i, result] : llvm::enumerate(results)) {
    if (wanted.copies[i])
      added.push_back(castOf(result));
    if (!wanted.results[i])
      continue;
    if (Value stored = narrowOf.lookup(result))
      result = stored;
    else if (result.getDefiningOp<KernelOpInterface>().storesAnyWidth())
      result.setType(retyped(result, half));
    else if (kernelKind(kernel) == "elementwise")
      result = castOf(result);
  }
  llvm::append_range(results, added);
  terminator->setOperands(results);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isa<CastOp>(op) && op.use_empty())
      op.erase();
  settleType(kernel);
}
