//===- Passes.h - grouping ops into kernels ---------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_FUSE_PASSES_H
#define CKOPT_FUSE_PASSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace ckopt {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "ckopt/Fuse/Passes.h.inc"
} // namespace ckopt

#endif // CKOPT_FUSE_PASSES_H
