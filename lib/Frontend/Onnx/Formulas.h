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

/// Returns integers in equal steps along the only dimension that is not 1; null
/// for other constants.
mlir::Value makeRange(mlir::OpBuilder &builder, mlir::Location loc,
                      mlir::RankedTensorType type, const HostTensor &value);

/// Returns a matrix with one number (or bool) where column <= row + c, for a
/// c >= 0, and another one elsewhere; null for other constants.
mlir::Value makeTriangle(mlir::OpBuilder &builder, mlir::Location loc,
                         mlir::RankedTensorType type, const HostTensor &value);

} // namespace ckopt::onnx_frontend

#endif // CKOPT_LIB_FRONTEND_ONNX_FORMULAS_H
