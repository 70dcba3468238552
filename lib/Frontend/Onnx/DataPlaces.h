//===- DataPlaces.h - which elements of data a value holds ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_FRONTEND_ONNX_DATAPLACES_H
#define CKOPT_LIB_FRONTEND_ONNX_DATAPLACES_H

#include "mlir/IR/Value.h"

#include <optional>
#include <vector>

namespace ckopt::onnx_frontend {

/// The places [low, high) of a dimension.
struct Places {
  int64_t axis = 0, low = 0, high = 0;
};

/// Whether the op's results are its operand's integers: no bool of them, and no
/// type that wraps the values of a wider one.
bool keepsIntegers(mlir::Operation *op);

/// Returns the places of `argument` whose elements `value` holds, where these
/// are all elements at some indices of one dimension; nothing where they are
/// not, or where ops on the way are not followed.
std::optional<std::vector<Places>> placesOf(mlir::Value value,
                                            mlir::BlockArgument argument);

} // namespace ckopt::onnx_frontend

#endif // CKOPT_LIB_FRONTEND_ONNX_DATAPLACES_H
