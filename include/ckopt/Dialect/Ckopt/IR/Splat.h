//===- Splat.h - constants with one value in all elements -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_DIALECT_CKOPT_IR_SPLAT_H
#define CKOPT_DIALECT_CKOPT_IR_SPLAT_H

#include "mlir/IR/Value.h"

#include <optional>

namespace ckopt {

/// Returns the number that every element of a constant has, if the value is
/// such a constant of floats or integers; booleans are 0 and 1.
std::optional<double> splatNumber(mlir::Value value);

} // namespace ckopt

#endif // CKOPT_DIALECT_CKOPT_IR_SPLAT_H
