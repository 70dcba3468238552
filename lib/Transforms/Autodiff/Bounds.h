//===- Bounds.h - which values stay away from poles -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A derivative that can be infinite must not meet a gradient of zero: 0 * inf
// is NaN where the mathematics, as in Where(x > 0, log(x), 0), has a number. A
// rule guards such a product by a select on the gradient; these questions find
// the many cases where no guard is needed. Answers are safe: "false" costs a
// select. Each looks at a few ops behind a value, a bounded number.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRANSFORMS_AUTODIFF_BOUNDS_H
#define CKOPT_LIB_TRANSFORMS_AUTODIFF_BOUNDS_H

#include "mlir/IR/Value.h"

namespace ckopt::autodiff {

/// Returns whether every element is NaN or at least some positive number,
/// whatever the data.
bool isPositive(mlir::Value value);
/// Returns the same, or true for a constant without zeros.
bool isNonZero(mlir::Value value);
/// Returns whether no element is below 0.
bool isNonNegative(mlir::Value value);
/// Returns whether some element may be infinite or NaN though no input is,
/// because the value is computed through a logarithm, a quotient or a power.
bool mayHavePole(mlir::Value value);

} // namespace ckopt::autodiff

#endif // CKOPT_LIB_TRANSFORMS_AUTODIFF_BOUNDS_H
