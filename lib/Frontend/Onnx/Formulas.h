//===- Formulas.h - large constants that ops can make -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Exporters write positions and triangles of masks as tables. As ops they need
// no bytes of the step, and fuse-attention can still see what they hold, which
// it cannot once they are arguments.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_FRONTEND_ONNX_FORMULAS_H
#define CKOPT_LIB_FRONTEND_ONNX_FORMULAS_H

#include "ckopt/Support/HostTensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace ckopt::onnx_frontend {

/// Returns integers in equal steps along one dimension, the same along others,
/// also as `floats` if these are allowed; null for other constants.
mlir::Value makeRange(mlir::OpBuilder &builder, mlir::Location loc,
                      mlir::RankedTensorType type, const HostTensor &value,
                      bool floats = false);

/// Returns a matrix, or several equal ones, with one number (or bool) where the
/// distance of column and row is at most a constant, and greater than another
/// one (if there is one), and another number elsewhere; null for other
/// constants.
mlir::Value makeBand(mlir::OpBuilder &builder, mlir::Location loc,
                     mlir::RankedTensorType type, const HostTensor &value);

} // namespace ckopt::onnx_frontend

#endif // CKOPT_LIB_FRONTEND_ONNX_FORMULAS_H
