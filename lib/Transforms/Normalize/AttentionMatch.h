//===- AttentionMatch.h - products around a softmax -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What fuse-attention (FuseAttention.cpp) finds around a softmax.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRANSFORMS_NORMALIZE_ATTENTIONMATCH_H
#define CKOPT_LIB_TRANSFORMS_NORMALIZE_ATTENTIONMATCH_H

#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/Utils/StopGradient.h"
#include "ckopt/Reference/Interpreter.h"
#include "llvm/ADT/DenseMap.h"

#include <limits>
#include <memory>
#include <optional>
#include <string>

namespace ckopt {

/// What a mask or bias is, as far as it is constant.
struct MaskForm {
  bool all = false;              ///< every key is allowed
  std::optional<int64_t> causal; ///< key j in row i where j <= i + causal
  bool isExact = false;          ///< forbids by -inf
  bool keepsKeys = false;        ///< no row loses its first key
  bool isFailed = false;         ///< adds +inf or NaN: no probabilities
};

/// Evaluates values that depend on nothing but constants.
class ConstantEvaluator {
public:
  /// Returns null for other values.
  const reference::Tensor *operator()(mlir::Value value);

  /// Reads a constant of [.., queries, keys] some rows at a time, so that no
  /// step holds its queries * keys elements; `see` gets the first row and the
  /// rows. Returns false for other values, and where `see` does.
  bool scan(mlir::Value value, int64_t queries,
            llvm::function_ref<bool(int64_t, const reference::Tensor &)> see);

  /// What was found in masks and biases: layers share them.
  llvm::DenseMap<std::pair<mlir::Value, int>, MaskForm> forms;

private:
  bool isConstant(mlir::Value value);
  /// Rows `row` to `row + count` of dimension -2, null if that fails.
  reference::Tensor rowsOf(mlir::Value value, int64_t row, int64_t count,
                           int64_t queries);

  llvm::DenseMap<mlir::Value, std::unique_ptr<reference::Tensor>> known;
  llvm::DenseMap<mlir::Value, bool> constant;
};

/// Whether a gradient ends at the op, which is then left where it is.
inline bool isStopped(mlir::Operation *op) {
  return op->hasAttr(kStopGradientAttr);
}

/// A softmax, the products around it, and what lies between them.
class AttentionMatch {
public:
  /// `mostColumns`: of queries, keys and values; 0: any number.
  AttentionMatch(SoftmaxOp softmax, ConstantEvaluator &evaluate,
                 int64_t leastKeys, int64_t mostColumns)
      : softmax(softmax), evaluate(evaluate), leastKeys(leastKeys),
        mostColumns(mostColumns), scores(softmax.getType()) {}

  /// Returns whether it is attention; nothing is changed. `reason` says why it
  /// stays as it is, where a user could change that.
  bool match(std::string &reason);
  void rewrite();

private:
  bool isByRow(mlir::Value condition) const;
  bool matchWeights();
  bool matchScores();
  bool matchSelect(SelectOp op, mlir::Value &next);
  bool matchProducts();
  MaskForm formOfMask(mlir::Value condition, bool allowedWhere) const;
  void splitMasks();
  MaskForm formOfBias(mlir::Value bias) const;
  bool settleMasks();
  bool addMask(mlir::Value condition, bool allowedWhere, double fill);
  bool isTrained(mlir::Value value) const;
  bool isScores(mlir::Value value, unsigned depth = 0) const;

  SoftmaxOp softmax;
  ConstantEvaluator &evaluate;
  int64_t leastKeys, mostColumns;
  mlir::RankedTensorType scores; ///< [(batch,) heads, queries, keys]

  MatMulOp first, second;
  DropoutOp dropout; ///< of the probabilities, or null
  /// Where rows are replaced by zeros before and after the softmax.
  mlir::Value emptyRows;
  bool zeroEmptyRows = false;
  double scale = 1;
  mlir::SmallVector<mlir::Value> biases;
  /// Conditions, and whether keys are allowed where they hold.
  mlir::SmallVector<std::pair<mlir::Value, bool>> masks;
  double fill = -std::numeric_limits<double>::infinity();
  std::optional<int64_t> causal;
};

} // namespace ckopt

#endif // CKOPT_LIB_TRANSFORMS_NORMALIZE_ATTENTIONMATCH_H
