//===- InferTypes.h - what all result type rules share ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_DIALECT_CKOPT_IR_INFERTYPES_H
#define CKOPT_LIB_DIALECT_CKOPT_IR_INFERTYPES_H

#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"

// The parameters that every inferReturnTypes has.
#define CKOPT_INFER(OP)                                                        \
  LogicalResult OP::inferReturnTypes(                                          \
      MLIRContext *context, std::optional<Location> loc, ValueRange operands,  \
      DictionaryAttr attributes, OpaqueProperties properties,                  \
      RegionRange regions, SmallVectorImpl<Type> &results)

namespace ckopt {

/// Returns the type of a value that the op's constraints make a ranked tensor.
static inline mlir::RankedTensorType tensorType(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType());
}

/// Reports an axis that is not a dimension of `type`.
static inline llvm::LogicalResult checkAxis(std::optional<mlir::Location> loc,
                                            int64_t axis,
                                            mlir::RankedTensorType type) {
  if (axis >= 0 && axis < type.getRank())
    return llvm::success();
  return mlir::emitOptionalError(loc, "axis ", axis, " is outside of rank ",
                                 type.getRank());
}

/// Infers the result of elementwise ops: the broadcast shape of all operands.
llvm::LogicalResult inferBroadcast(std::optional<mlir::Location> loc,
                                   mlir::ValueRange operands,
                                   mlir::Type element,
                                   llvm::SmallVectorImpl<mlir::Type> &results);

} // namespace ckopt

#endif // CKOPT_LIB_DIALECT_CKOPT_IR_INFERTYPES_H
