//===- CkoptOps.h - the ops of the ckopt dialect ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_DIALECT_CKOPT_IR_CKOPTOPS_H
#define CKOPT_DIALECT_CKOPT_IR_CKOPTOPS_H

#include "ckopt/Dialect/Ckopt/IR/CkoptKernelOps.h"
#include "ckopt/Interfaces/KernelInterface.h"
#include "ckopt/Interfaces/StructureInterface.h"
#include "mlir/Dialect/Traits.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#define GET_OP_CLASSES
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h.inc"

#endif // CKOPT_DIALECT_CKOPT_IR_CKOPTOPS_H
