//===- BlockDialect.cpp - what threads of a block do together -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Dialect/Block/IR/BlockDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace ckopt;

#include "ckopt/Dialect/Block/IR/BlockDialect.cpp.inc"

#define GET_OP_CLASSES
#include "ckopt/Dialect/Block/IR/BlockOps.cpp.inc"

void block::BlockDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "ckopt/Dialect/Block/IR/BlockOps.cpp.inc"
      >();
}

LogicalResult block::MmaOp::verify() {
  if (getA().getType().getElementType() != getB().getType().getElementType())
    return emitOpError("multiplies ")
           << getA().getType().getElementType() << " by "
           << getB().getType().getElementType() << "; both must be the same";
  auto check = [&](int64_t pitch, int64_t step,
                   int64_t lines) -> LogicalResult {
    bool single = getDepth() == 8;
    if (step == 1 && (pitch < getDepth() || pitch % 2))
      return emitOpError("pitch ") << pitch << " must be even and hold the "
                                   << getDepth() << " elements of a row";
    if (step != 1 && !single && step % 8)
      return emitOpError("step ")
             << step
             << " must be a multiple of 8: f16 and bf16 are "
                "read in rows of 16 bytes";
    if (step != 1 && (pitch != 1 || step < lines))
      return emitOpError("step ") << step << " must hold the " << lines
                                  << " elements beside each other, at pitch 1";
    return success();
  };
  if (getRounds() && getDepth() != 8)
    return emitOpError("rounds elements of f32 alone");
  return success(succeeded(check(getAPitch(), getAStep(), 16)) &&
                 succeeded(check(getBPitch(), getBStep(), 8)));
}

LogicalResult block::CopyAsyncOp::verify() {
  if (!isa<LLVM::LLVMPointerType>(getFrom().getType()))
    return emitOpError("copies from a pointer");
  if (int64_t bytes = getBytes(); bytes != 4 && bytes != 8 && bytes != 16)
    return emitOpError("copies ") << bytes << " bytes; 4, 8 or 16 may be";
  return success();
}
