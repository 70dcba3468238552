//===- LabelRange.h - the labels that a loss accepts ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A loss reads its scores at the label, so data must be checked against the
// number of classes before a step sees them. The builder of a loss knows the
// range and records it on the argument from which the labels come, or on an op
// whose operand 0 they are.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_DIALECT_CKOPT_UTILS_LABELRANGE_H
#define CKOPT_DIALECT_CKOPT_UTILS_LABELRANGE_H

#include "llvm/ADT/StringRef.h"

namespace ckopt {

/// Labels lie in [0, this).
inline constexpr llvm::StringLiteral kClassesAttr = "ckopt.classes";
/// A label outside of the range that is ignored.
inline constexpr llvm::StringLiteral kIgnoreIndexAttr = "ckopt.ignore_index";

/// Targets are -1 or 1.
inline constexpr llvm::StringLiteral kSignsAttr = "ckopt.signs";

/// Targets are probabilities: "required" where the loss has no meaning outside
/// of [0, 1], "usual" where it is defined for every number.
inline constexpr llvm::StringLiteral kProbabilitiesAttr = "ckopt.probabilities";

/// The argument, or operand 0 of the op, holds indices in [-this, this).
inline constexpr llvm::StringLiteral kRowsAttr = "ckopt.rows";

/// Limits of parts of an argument: a list of {axis, low, high} with `classes`,
/// `ignore_index` and `rows` of places (PartLimits in Base/IntegerLimits.h).
inline constexpr llvm::StringLiteral kPartLimitsAttr = "ckopt.part_limits";

} // namespace ckopt

#endif // CKOPT_DIALECT_CKOPT_UTILS_LABELRANGE_H
