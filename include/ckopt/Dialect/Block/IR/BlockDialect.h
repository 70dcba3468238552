//===- BlockDialect.h - ops of the threads of a block -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_DIALECT_BLOCK_IR_BLOCKDIALECT_H
#define CKOPT_DIALECT_BLOCK_IR_BLOCKDIALECT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "ckopt/Dialect/Block/IR/BlockDialect.h.inc"

#define GET_OP_CLASSES
#include "ckopt/Dialect/Block/IR/BlockOps.h.inc"

namespace ckopt::block {

/// Returns whether devices may have different results of the operation.
inline bool isApproximate(mlir::Operation *op) {
  return mlir::isa<ApproxExp2Op, ApproxReciprocalOp>(op);
}

} // namespace ckopt::block

#endif // CKOPT_DIALECT_BLOCK_IR_BLOCKDIALECT_H
