//===- Passes.h - code for kernels ------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_CODEGEN_PASSES_H
#define CKOPT_CODEGEN_PASSES_H

#include "ckopt/Dialect/Block/IR/BlockDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace ckopt {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "ckopt/CodeGen/Passes.h.inc"
} // namespace ckopt

#endif // CKOPT_CODEGEN_PASSES_H
