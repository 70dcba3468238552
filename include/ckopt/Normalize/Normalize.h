//===- Normalize.h - forms of a function that later phases want -*- C++ -*-===//
//
// The C++ face of the passes make-eval, normalize and decompose; diagnostics
// name the source node.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_NORMALIZE_NORMALIZE_H
#define CKOPT_NORMALIZE_NORMALIZE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ckopt {

/// Adds the evaluation form of `function` to its module, under `name`; see the
/// pass make-eval. Fails where the name is taken. `asWritten`: without a change
/// to dropouts and batch norms.
llvm::FailureOr<mlir::func::FuncOp> makeEval(mlir::func::FuncOp function,
                                             llvm::StringRef name,
                                             bool asWritten = false);

/// Before autodiff: one form of matrix products; canonical.
llvm::LogicalResult normalize(mlir::func::FuncOp function);

/// Products with more batch dimensions than libraries take get one;
/// `widenHalves`: products and convolutions of f16 are computed in f32.
void fitContractions(mlir::func::FuncOp function, bool widenHalves);

/// Composite ops to reductions and elementwise ops; concatenations of more than
/// `maxJoined` tensors (unless 0; at least 2) to several.
void decompose(mlir::func::FuncOp function, unsigned maxJoined = 0);

} // namespace ckopt

#endif // CKOPT_NORMALIZE_NORMALIZE_H
