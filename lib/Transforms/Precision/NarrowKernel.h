//===- NarrowKernel.h - kernels that read and write f16, bf16 ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rewrites the body of an outlined kernel so that some of its operands and
// results are 16-bit floats (bf16, f16): what it reads is cast first, what it
// stores last, and all between stays f32. Ops that only move elements move
// 16-bit floats. O(ops).
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRANSFORMS_PRECISION_NARROWKERNEL_H
#define CKOPT_LIB_TRANSFORMS_PRECISION_NARROWKERNEL_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"

#include <string>

namespace ckopt::codegen {

/// What is to become a half of a kernel's operands and results, and of which
/// results a copy is asked for.
struct Narrowing {
  llvm::SmallVector<bool> operands, results, copies;
  bool any() const {
    return llvm::is_contained(operands, true) ||
           llvm::is_contained(results, true) ||
           llvm::is_contained(copies, true);
  }
  std::string key(llvm::StringRef callee) const {
    std::string text = callee.str();
    for (const llvm::SmallVector<bool> *list : {&operands, &results, &copies}) {
      text += '/';
      for (bool bit : *list)
        text += bit ? '1' : '0';
    }
    return text;
  }
};

/// Returns the functions that call kernels: those with a body that are none.
llvm::SmallVector<mlir::func::FuncOp> findCallers(mlir::ModuleOp module);

/// Returns the value's type with another element type.
mlir::RankedTensorType retyped(mlir::Value value, mlir::Type element);

/// Sets the function's type to what its block says.
void settleType(mlir::func::FuncOp kernel);

/// Drops operands that an op of the kernel needs stored as f32.
void dropUnreadable(mlir::func::FuncOp kernel, Narrowing &wanted);

/// Rewrites the kernel of a product. `wide`: the result, and what is added to
/// it, stay f32; an addend that is a factor, too, becomes a last argument.
void narrowProduct(mlir::func::FuncOp kernel, bool wide, mlir::Type half);

/// Rewrites the kernel; results that it cannot store as `half` stay f32. Copies
/// become results behind the others.
void narrowKernel(mlir::func::FuncOp kernel, const Narrowing &wanted,
                  mlir::Type half);

} // namespace ckopt::codegen

#endif // CKOPT_LIB_TRANSFORMS_PRECISION_NARROWKERNEL_H
