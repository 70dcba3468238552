//===- BlockDialect.cpp - what threads of a block do together -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
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
  auto check = [&](int64_t pitch, int64_t step,
                   int64_t lines) -> LogicalResult {
    bool single = getDepth() == 8;
    if (step == 1 && (pitch < getDepth() || pitch % 2))
      return emitOpError("pitch ") << pitch << " must be even and hold the "
                                   << getDepth() << " elements of a row";
    if (step != 1 && !single)
      return emitOpError("step ")
             << step << " needs elements of f32: pairs of halves are read";
    if (step != 1 && (pitch != 1 || step < lines))
      return emitOpError("step ") << step << " must hold the " << lines
                                  << " elements beside each other, at pitch 1";
    return success();
  };
  return success(succeeded(check(getAPitch(), getAStep(), 16)) &&
                 succeeded(check(getBPitch(), getBStep(), 8)));
}
