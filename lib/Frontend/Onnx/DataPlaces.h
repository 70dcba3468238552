//===- DataPlaces.h - which elements of data a value holds ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_FRONTEND_ONNX_DATAPLACES_H
#define CKOPT_LIB_FRONTEND_ONNX_DATAPLACES_H

#include "ckopt/Support/HostTensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/MapVector.h"

#include <map>
#include <vector>

namespace ckopt::onnx_frontend {

/// The values of arguments that are constants, by name.
using Constants = std::map<std::string, HostTensor>;

/// For arguments: which of their elements, in row-major order.
using ElementSets = llvm::MapVector<mlir::BlockArgument, llvm::BitVector>;

/// Returns the elements of arguments that `value` holds.
ElementSets elementsOf(mlir::Value value, const Constants &constants);

/// Records on arguments which labels and indices losses and lookups accept
/// (Dialect/Ckopt/Utils/LabelRange.h); constants that they do not are errors.
/// Defined in DataLimits.cpp.
llvm::LogicalResult noteDataLimits(mlir::func::FuncOp function,
                                   const Constants &constants);

/// The places [low, high) of a PartLimits.
struct Places {
  int64_t axis = 0, low = 0, high = 0;
};

/// Returns the elements, some but not all of a tensor, as places that repeat as
/// often as can be; none where they are in too many pieces.
std::vector<Places> placesOf(const llvm::BitVector &elements,
                             llvm::ArrayRef<int64_t> shape);

} // namespace ckopt::onnx_frontend

#endif // CKOPT_LIB_FRONTEND_ONNX_DATAPLACES_H
