//===- CkoptKernelOps.h - kernel calls and barriers -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ops that planning makes or looks at. The pass alone is built with no
// others.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_DIALECT_CKOPT_IR_CKOPTKERNELOPS_H
#define CKOPT_DIALECT_CKOPT_IR_CKOPTKERNELOPS_H

#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#define GET_OP_CLASSES
#include "ckopt/Dialect/Ckopt/IR/CkoptKernelOps.h.inc"

#endif // CKOPT_DIALECT_CKOPT_IR_CKOPTKERNELOPS_H
