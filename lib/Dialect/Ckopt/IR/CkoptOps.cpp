//===- CkoptOps.cpp - generated bodies of the ops -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "InferTypes.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.cpp.inc"
