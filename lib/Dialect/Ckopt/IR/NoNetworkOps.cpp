//===- NoNetworkOps.cpp - the dialect of the pass alone -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In place of CkoptOps.cpp and the files beside it, where the pass is built
// without the compiler (cmake/CkoptComponents.cmake).
//
//===----------------------------------------------------------------------===//
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"

using namespace mlir;

void ckopt::CkoptDialect::addNetworkOps() {}

Operation *ckopt::CkoptDialect::materializeConstant(OpBuilder &, Attribute,
                                                    Type, Location) {
  return nullptr; // nothing here folds
}
