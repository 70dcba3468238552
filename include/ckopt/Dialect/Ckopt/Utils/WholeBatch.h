//===- WholeBatch.h - numbers of a batch that ranks divide ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Models compute with the size of their batch: they divide a sum of losses by
// it, or scale by it. If a function's batch is one of several equal parts of a
// whole batch, such a number has two values. A ckopt.pin holds both, and is
// never folded: its operand is the part's number, its attribute the whole
// batch's. Training uses the whole batch's, evaluation the part's
// (settleBatchNumbers).
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_DIALECT_CKOPT_UTILS_WHOLEBATCH_H
#define CKOPT_DIALECT_CKOPT_UTILS_WHOLEBATCH_H

#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ckopt {

/// ElementsAttr of a pin's type: the number for the whole batch.
inline constexpr llvm::StringLiteral kWholeBatchAttr = "ckopt.whole_batch";

/// On modules that are compared at several sizes of a dimension: ops fold to
/// constants of a few numbers alone, or tables would be those of one size.
inline constexpr llvm::StringLiteral kOpenSizeAttr = "ckopt.open_size";
inline constexpr int64_t kFewBytes = 64;

/// On such modules: for each value of the model by its name an array of four,
/// its shape and, as far as they are known when it is imported, its integers,
/// the bits of its floats (as doubles), and of a comparison the differences of
/// what it compares.
inline constexpr llvm::StringLiteral kOpenValuesAttr = "ckopt.open_values";

/// Replaces the pins by the whole batch's numbers, or by the part's.
void settleBatchNumbers(mlir::func::FuncOp function, bool whole);

} // namespace ckopt

#endif // CKOPT_DIALECT_CKOPT_UTILS_WHOLEBATCH_H
