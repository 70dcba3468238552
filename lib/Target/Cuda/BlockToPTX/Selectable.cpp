//===- Selectable.cpp - checks which operations have GPU code -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LLVM's NVPTX target ends the process if an operation has no code, or it calls
// a function that is never linked. So everything is checked here first against
// the list of operations that the target selects by itself, without
// approximations that were not asked for; others are reported by name and
// location.
//
//===----------------------------------------------------------------------===//
#include "BlockToGPU.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::blockform;

/// Operations of the math, vector and LLVM dialects that have code. All of
/// arith has code except the remainder of floats.
static const llvm::StringSet<> &selectable() {
  static const llvm::StringSet<> names = {
      "block.approx_exp2", "block.approx_reciprocal", "block.commit_copies",
      "block.copy_async", "block.mma", "block.round_tf32", "block.wait_copies",
      "math.absf", "math.absi", "math.ceil", "math.copysign", "math.ctlz",
      "math.ctpop", "math.cttz", "math.floor", "math.fma", "math.roundeven",
      "math.sqrt", "math.trunc",
      // Lanes.
      "vector.bitcast", "vector.broadcast", "vector.constant_mask",
      "vector.create_mask", "vector.extract", "vector.extract_strided_slice",
      "vector.fma", "vector.from_elements", "vector.insert",
      "vector.insert_strided_slice", "vector.load", "vector.shape_cast",
      "vector.shuffle", "vector.store", "vector.to_elements",
      // Memory.
      "llvm.getelementptr", "llvm.icmp", "llvm.intr.masked.gather",
      "llvm.intr.masked.load", "llvm.intr.masked.scatter",
      "llvm.intr.masked.store", "llvm.load", "llvm.mlir.addressof",
      "llvm.mlir.constant", "llvm.mlir.poison", "llvm.mlir.undef",
      "llvm.mlir.zero", "llvm.store", "memref.load", "memref.store"};
  return names;
}

static bool isSelectable(Operation *op) {
  if (isa<arith::ArithDialect>(op->getDialect()))
    return !isa<arith::RemFOp>(op);
  if (isa<func::FuncOp, func::ReturnOp, scf::ForallOp, scf::ForOp, scf::IfOp,
          scf::IndexSwitchOp, scf::InParallelOp, scf::WhileOp, scf::ConditionOp,
          scf::YieldOp, ub::PoisonOp>(op))
    return true;
  return selectable().contains(op->getName().getStringRef());
}

/// Returns an unsupported type of the operation's numbers; null if there is
/// none (pointers and buffers are not looked at).
static Type unsupportedType(Operation *op) {
  auto fits = [](Type type) {
    if (auto vector = dyn_cast<VectorType>(type)) {
      if (vector.isScalable())
        return false;
      type = vector.getElementType();
    }
    if (isa<LLVM::LLVMPointerType, MemRefType, IndexType>(type))
      return true;
    if (auto integer = dyn_cast<IntegerType>(type))
      return integer.getWidth() <= 64;
    return type.isF16() || type.isBF16() || type.isF32() || type.isF64();
  };
  for (Type type : op->getResultTypes())
    if (!fits(type))
      return type;
  return {};
}

LogicalResult blockform::checkSelectable(const Kernel &kernel) {
  bool failedAny = false;
  func::FuncOp function = kernel.function;
  StringRef name = function.getSymName();
  function->walk([&](Operation *op) {
    if (!isSelectable(op)) {
      failedAny = true;
      bool wide = llvm::any_of(op->getOperandTypes(), [](Type t) {
        return getElementTypeOrSelf(t).isF64();
      });
      auto text = op->emitError("kernel @")
                  << name << ": '" << op->getName() << "' has no code on a GPU";
      if (wide && isa<math::MathDialect>(op->getDialect()))
        text << " in f64; compute it in f32, or run this model on the CPU";
    } else if (Type type = unsupportedType(op)) {
      failedAny = true;
      op->emitError("kernel @")
          << name << ": a GPU does not compute with " << type;
    }
  });
  return failure(failedAny);
}

bool blockform::usesF64(const Kernel &kernel) {
  auto isWide = [](Type type) { return getElementTypeOrSelf(type).isF64(); };
  func::FuncOp function = kernel.function;
  return function
      ->walk([&](Operation *op) {
        return llvm::any_of(op->getResultTypes(), isWide) ||
                       llvm::any_of(op->getOperandTypes(), isWide)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}
