//===- BlockDialect.cpp - what threads of a block do together -------------===//
#include "ckopt/Dialect/Block/IR/BlockDialect.h"

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
  for (int64_t pitch : {getAPitch(), getBPitch()})
    if (pitch < 16 || pitch % 2)
      return emitOpError("pitch ")
             << pitch << " must be even and hold the 16 elements of a row";
  return success();
}
