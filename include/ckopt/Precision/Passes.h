//===- Passes.h - passes on types of storage and matmuls --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_PRECISION_PASSES_H
#define CKOPT_PRECISION_PASSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace ckopt {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "ckopt/Precision/Passes.h.inc"
} // namespace ckopt

#endif // CKOPT_PRECISION_PASSES_H
