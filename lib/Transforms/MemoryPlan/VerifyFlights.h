//===- VerifyFlights.h - checks collectives in flight -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRANSFORMS_MEMORYPLAN_VERIFYFLIGHTS_H
#define CKOPT_LIB_TRANSFORMS_MEMORYPLAN_VERIFYFLIGHTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ckopt {

/// Checks that each collective that is started is waited for once, by a call
/// that keeps alive what is in flight, and that nothing else touches it.
mlir::LogicalResult verifyFlights(mlir::func::FuncOp function);

} // namespace ckopt

#endif // CKOPT_LIB_TRANSFORMS_MEMORYPLAN_VERIFYFLIGHTS_H
