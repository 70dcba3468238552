//===- LayoutAssigner.h - the layouts of one function's values --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRANSFORMS_LAYOUT_LAYOUTASSIGNER_H
#define CKOPT_LIB_TRANSFORMS_LAYOUT_LAYOUTASSIGNER_H

#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/StringSet.h"

namespace ckopt::layout {

using mlir::Operation;
using mlir::RankedTensorType;
using mlir::Value;

/// Names of arguments.
using Names = llvm::StringSet<>;

/// Returns whether the value is a tensor with channels and spatial dimensions.
bool hasChannels(Value value);
/// Returns the type in channels-last order; row-major where the two are the
/// same.
RankedTensorType channelsLast(RankedTensorType type);
/// Returns what the op asks of its operands. A transpose takes any order, also
/// where it is a view of the one that it has now.
LayoutRole roleOf(Operation *op);
bool isUpdate(Operation *op);
/// Returns the values of a uniform op that share a layout: those with as many
/// elements as its largest value with channels, or, where shapes differ by
/// design (pooling, concat, pad, slice), those of the result's rank.
llvm::SmallVector<Value> uniformValues(Operation *op);

class LayoutAssigner {
public:
  explicit LayoutAssigner(mlir::func::FuncOp function);

  /// Adds the names of arguments that must stay row-major, given those that
  /// must for other functions' sake.
  void refuse(Names &refused) const;
  /// Adds the names of arguments that become channels-last.
  void choose(const Names &refused, Names &chosen) const;
  /// Rewrites the function, in which the chosen arguments are channels-last.
  void run(const Names &refused, const Names &chosen);

private:
  using Classes = llvm::EquivalenceClasses<Value>;

  void connect(Operation *op);
  void connectEdges();
  llvm::StringRef edgeName(Value value) const;
  bool isBound(Value value) const;
  bool isFree(const Classes::ECValue &members, const Names &refused) const;
  void decide(const Names &refused, const Names &chosen);
  void rewrite(Operation *op);
  void rewriteUpdate(Operation *op);
  void rewriteEdges();
  Value inOrderOf(Value value, RankedTensorType type, Operation *user);
  RankedTensorType wanted(Value value) const;

  mutable mlir::func::FuncOp function; ///< MLIR reads through non-const handles
  Classes classes;
  /// Values that decide for their classes, and then the leaders of those.
  llvm::SmallVector<Value> activations, weights;
  llvm::DenseSet<Value> activationLeaders, weightLeaders, lastLeaders;
  llvm::DenseMap<std::pair<Value, mlir::Type>, Value> converted;
};

} // namespace ckopt::layout

#endif // CKOPT_LIB_TRANSFORMS_LAYOUT_LAYOUTASSIGNER_H
