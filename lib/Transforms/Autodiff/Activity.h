//===- Activity.h - which values need a gradient ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A value is *active* if it depends on an argument to differentiate by, through
// ops and operands that gradients can flow through; it is *useful* if the loss
// depends on it in the same way. Gradients are built for values that are both.
// Two linear sweeps over the block.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRANSFORMS_AUTODIFF_ACTIVITY_H
#define CKOPT_LIB_TRANSFORMS_AUTODIFF_ACTIVITY_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

namespace ckopt::autodiff {

class Activity {
public:
  Activity(mlir::func::FuncOp function, mlir::Value loss,
           llvm::ArrayRef<unsigned> wrt);

  /// Returns whether the operand's gradient is wanted.
  bool isNeeded(mlir::OpOperand &operand) const;
  /// Returns the ops that a gradient must flow through but that have no rule,
  /// in program order.
  llvm::ArrayRef<mlir::Operation *> getMissing() const { return missing; }
  /// Returns the numbers of the differentiated arguments that `op` depends on.
  llvm::SmallVector<unsigned> dependencies(mlir::Operation *op) const;

private:
  mutable mlir::func::FuncOp function; // a handle; its accessors are not const
  llvm::SmallVector<unsigned> wrt;
  llvm::DenseSet<mlir::Value> active;
  llvm::SmallVector<mlir::Operation *> missing;
};

} // namespace ckopt::autodiff

#endif // CKOPT_LIB_TRANSFORMS_AUTODIFF_ACTIVITY_H
