//===- AttentionMatch.h - products around a softmax -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What fuse-attention (FuseAttention.cpp) finds around a softmax.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRANSFORMS_NORMALIZE_ATTENTIONMATCH_H
#define CKOPT_LIB_TRANSFORMS_NORMALIZE_ATTENTIONMATCH_H

#include "MaskBands.h"
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

  /// Reads a constant of [.., queries, keys] some rows at a time, so that no
  /// step holds its queries * keys elements; `see` gets the first row and the
  /// rows. Returns false for other values, and where `see` does. `keys`: of a
  /// row of what the constant is computed from, if that is more.
  bool scan(mlir::Value value, int64_t queries,
            llvm::function_ref<bool(int64_t, const reference::Tensor &)> see,
            int64_t keys = 0);

  /// Whether a condition of a row of scores of this shape is constant, and
  /// false for each.
  bool holdsNowhere(mlir::Value condition, llvm::ArrayRef<int64_t> scores);

  /// What was found in masks and biases: layers share them.
  llvm::DenseMap<std::pair<mlir::Value, int>, MaskForm> forms;

private:
  bool isConstant(mlir::Value value);
  /// Rows `row` to `row + count` of dimension -2, null if that fails.
  reference::Tensor rowsOf(mlir::Value value, int64_t row, int64_t count,
                           int64_t queries);

  llvm::DenseMap<mlir::Value, std::unique_ptr<reference::Tensor>> known;
  llvm::DenseMap<mlir::Value, bool> constant, nowhere;
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

  /// Returns whether it is attention; nothing is changed but for `negated`.
  /// `reason` says why it stays as it is, where a user could change that.
  bool match(std::string &reason);
  void rewrite();

  /// Ops that match() made: biases that are subtracted, with the other sign.
  /// Those that nothing reads go once `evaluate` is not asked any more.
  mlir::SmallVector<mlir::Operation *> negated;

private:
  static constexpr double infinity = std::numeric_limits<double>::infinity();

  bool isByRow(mlir::Value condition) const;
  bool matchWeights();
  bool matchScores();
  bool matchSelect(SelectOp op, mlir::Value &next);
  bool matchProducts();
  /// Something that lowers scores: where conditions do not all hold, or in a
  /// way of its own, a bias.
  struct Lowering {
    mlir::Value value; ///< the mask or bias
    bool allowedWhere = true;
    bool isBias = false;
    double low = 0; ///< what is filled in or added, or less
    mlir::SmallVector<MaskPart> parts = {}; ///< conditions
    MaskForm form = {};                     ///< of a bias without conditions

    bool isKnown() const;
  };
  MaskForm formOfMask(const MaskPart &part) const;
  MaskForm formOfBias(mlir::Value bias) const;
  void findParts(Lowering &lowering) const;
  bool allowsAll(const MaskForm &form) const;
  std::optional<MaskBand>
  commonBand(mlir::ArrayRef<const Lowering *> all) const;
  void takeBounds(mlir::ArrayRef<Lowering> all,
                  mlir::ArrayRef<const Lowering *> taken, const MaskBand &band);
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
  double scale = 1, cap = 0; ///< cap: of scores, 0: none
  mlir::SmallVector<mlir::Value> biases;
  /// Conditions, and whether keys are allowed where they hold.
  mlir::SmallVector<std::pair<mlir::Value, bool>> masks;
  double fill = -infinity;
  std::optional<int64_t> causal, window;
  mlir::Value segments; ///< [(samples,) keys], with sizes of 1 between
};

} // namespace ckopt

#endif // CKOPT_LIB_TRANSFORMS_NORMALIZE_ATTENTIONMATCH_H
