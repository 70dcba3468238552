//===- WholeBatch.h - numbers of a batch that ranks share -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Models compute with the size of their batch: a sum of losses through it, a
// scale. Where a function's batch is one of several equal parts of a whole one,
// such a number has two values. A ckopt.pin says so, which nothing folds: its
// operand is the part's number, and its attribute the whole batch's. Training
// works on the whole batch, evaluation on the part (settleBatchNumbers).
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_DIALECT_CKOPT_UTILS_WHOLEBATCH_H
#define CKOPT_DIALECT_CKOPT_UTILS_WHOLEBATCH_H

#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ckopt {

/// ElementsAttr of a pin's type: the number that the whole batch has.
inline constexpr llvm::StringLiteral kWholeBatchAttr = "ckopt.whole_batch";

/// Replaces the numbers of two values by the whole batch's, or by the part's.
void settleBatchNumbers(mlir::func::FuncOp function, bool whole);

} // namespace ckopt

#endif // CKOPT_DIALECT_CKOPT_UTILS_WHOLEBATCH_H
