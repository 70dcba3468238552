//===- RowPlanes.h - places attention's numbers of rows in planes *- C++ -*-==//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRANSFORMS_LAYOUT_ROWPLANES_H
#define CKOPT_LIB_TRANSFORMS_LAYOUT_ROWPLANES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ckopt::layout {

/// Sets the types of what attention keeps of rows for its gradient alone.
void placeRowsInPlanes(mlir::func::FuncOp function);

} // namespace ckopt::layout

#endif // CKOPT_LIB_TRANSFORMS_LAYOUT_ROWPLANES_H
