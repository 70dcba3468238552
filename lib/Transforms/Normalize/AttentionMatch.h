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

/// Evaluates values that depend on nothing but constants.
class ConstantEvaluator {
public:
  /// Returns null for other values.
  const reference::Tensor *operator()(mlir::Value value);

private:
  llvm::DenseMap<mlir::Value, std::unique_ptr<reference::Tensor>> known;
};

/// What a mask or bias is, as far as it is constant.
struct MaskForm {
  bool all = false;              ///< every key is allowed
  std::optional<int64_t> causal; ///< key j in row i where j <= i + causal
  bool isExact = false;          ///< forbids by -inf
  bool keepsKeys = false;        ///< no row loses its first key
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
