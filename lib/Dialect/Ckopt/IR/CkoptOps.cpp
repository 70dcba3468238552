//===- CkoptOps.cpp - generated bodies of the ops -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "InferTypes.h"

using namespace mlir;

void ckopt::CkoptDialect::addNetworkOps() {
  addOperations<
#define GET_OP_LIST
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.cpp.inc"
      >();
}

Operation *ckopt::CkoptDialect::materializeConstant(OpBuilder &builder,
                                                    Attribute value, Type type,
                                                    Location loc) {
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements || elements.getType() != type)
    return nullptr;
  return ckopt::ConstantOp::create(builder, loc, elements);
}

#define GET_OP_CLASSES
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.cpp.inc"
