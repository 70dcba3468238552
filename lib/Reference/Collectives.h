//===- Collectives.h - what ops of several ranks compute --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_REFERENCE_COLLECTIVES_H
#define CKOPT_LIB_REFERENCE_COLLECTIVES_H

#include "ckopt/Reference/Interpreter.h"

namespace ckopt::reference {

/// The tensors of each rank.
using World = llvm::SmallVector<llvm::SmallVector<Tensor>>;

/// Runs an op with CollectiveOpInterface on all ranks at once; `operands` has
/// those of each rank.
llvm::LogicalResult
runTogether(mlir::Operation *op,
            llvm::ArrayRef<llvm::SmallVector<const Tensor *>> operands,
            World &results, const Options &options);

/// Attaches what these ops are for one rank alone.
void attachCollectiveModels(mlir::MLIRContext *context);

} // namespace ckopt::reference

#endif // CKOPT_LIB_REFERENCE_COLLECTIVES_H
