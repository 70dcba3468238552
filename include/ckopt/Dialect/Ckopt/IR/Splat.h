//===- Splat.h - constants that hold one number -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_DIALECT_CKOPT_IR_SPLAT_H
#define CKOPT_DIALECT_CKOPT_IR_SPLAT_H

#include "mlir/IR/Value.h"

#include <optional>

namespace ckopt {

/// Returns the number that every element of a constant holds, if the value is
/// such a constant: of floats, or of integers, booleans being 0 and 1.
std::optional<double> splatNumber(mlir::Value value);

} // namespace ckopt

#endif // CKOPT_DIALECT_CKOPT_IR_SPLAT_H
