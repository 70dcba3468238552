//===- StorageTypes.h - which stored values may be f16, bf16 ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: of the values that kernels store, find those that mixed precision
// keeps in 16-bit floats, as PyTorch's autocast does by lists of ops.
//
// Method: one sweep in program order gives each value a class. Results of
// products and convolutions are Low. Other ops say what theirs are
// (KernelOpInterface): sums, statistics, losses and new state are Full, and so
// is all that comes from arguments (parameters, data); others follow their
// operands: Low if one of these is Low and none is Full, where operands that
// are broadcast (biases, statistics) and constants do not count. Two
// exceptions, by who reads a value: a product's result that only ends in a
// gradient of a parameter is Full, and a Full result that none but products
// read, which need it narrow anyway, is Low.
//
// Guarantee: a function of the program and the kept names alone. Complexity:
// O(ops and operands).
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRANSFORMS_PRECISION_STORAGETYPES_H
#define CKOPT_LIB_TRANSFORMS_PRECISION_STORAGETYPES_H

#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

#include <functional>

namespace ckopt::codegen {

/// What decides whether values that follow from this one are Low. Neutral:
/// says nothing (constants, broadcast values, numbers of the optimizer); itself
/// it is stored as it is.
enum class Storage { Neutral, Low, Full };

/// Returns the kind of an outlined kernel: "library", "row", ...
llvm::StringRef kernelKind(mlir::func::FuncOp kernel);
KernelKind opKind(mlir::Operation *op);
/// Returns whether the kernel moves numbers between ranks, rather than to
/// compute.
bool isOfRanks(mlir::func::FuncOp kernel);
bool isF32(mlir::Value value);
/// A copy of an argument in another type is made again if more products than
/// this lie between two that read it: all copies together would cost as much as
/// the arguments.
inline constexpr int64_t kKeptCasts = 8;
/// Returns whether a library kernel adds its argument of this number to a
/// product, rather than to multiply it.
bool isAddend(mlir::func::FuncOp kernel, unsigned argument);
/// Returns the tensor like its result that the call adds a product to, or null:
/// a bias is none.
mlir::Value addendOf(KernelCallOp call, mlir::func::FuncOp kernel);
/// Returns whether products are added to the value, and nothing else reads it.
bool isOnlyAddend(mlir::Value value, const mlir::SymbolTable &symbols);
/// Returns whether attention (or its gradient) reads the operand in the type of
/// its queries, rather than in f32.
bool isAttended(mlir::OpOperand &operand);
/// Keeps 16-bit copies of trained weights from step to step (WeightCopies.cpp).
/// Returns whether there are any.
bool keepWeightCopies(mlir::ModuleOp module,
                      llvm::ArrayRef<mlir::func::FuncOp> functions);
/// Returns the value below views.
mlir::Value belowViews(mlir::Value value);

class StorageTypes {
public:
  /// `keeps` says which calls stay as they are. The function holds views and
  /// kernel calls.
  StorageTypes(mlir::func::FuncOp function, const mlir::SymbolTable &symbols,
               std::function<bool(KernelCallOp)> keeps);

  Storage of(mlir::Value value) const;
  /// Returns whether the call is a product or convolution of f32 that is not
  /// kept.
  bool isProduct(KernelCallOp call) const { return products.contains(call); }
  /// Returns whether the call is attention of f32, or its gradient, that is not
  /// kept.
  bool isAttention(KernelCallOp call) const {
    return attentions.contains(call);
  }
  /// Returns whether some product reads the value.
  bool isMultiplied(mlir::Value value) const;

private:
  void lookAhead(mlir::Block &block);
  bool endsInGradient(mlir::Value value, bool &ends) const;
  bool endsInProducts(mlir::Value value) const;
  bool multiplies(mlir::OpOperand &use) const;
  bool addsToFull(KernelCallOp call) const;
  void classify(KernelCallOp call);
  Storage ofOp(mlir::Operation *op) const;

  const mlir::SymbolTable &symbols;
  std::function<bool(KernelCallOp)> keeps;
  llvm::DenseSet<mlir::Operation *> products, attentions;
  /// Values that end in nothing but gradients of parameters.
  llvm::DenseSet<mlir::Value> gradients;
  /// Values that none but products read, in place or after they were moved.
  llvm::DenseSet<mlir::Value> multiplied;
  llvm::DenseMap<mlir::Value, Storage> classes;
};

} // namespace ckopt::codegen

#endif // CKOPT_LIB_TRANSFORMS_PRECISION_STORAGETYPES_H
