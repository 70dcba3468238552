//===- CkoptOps.cpp - generated bodies of the ops -------------------------===//
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.cpp.inc"
