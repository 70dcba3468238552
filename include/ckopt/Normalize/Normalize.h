//===- Normalize.h - forms of a function that later phases want -*- C++ -*-===//
//
// The C++ face of the passes make-eval, freeze-norms, normalize and decompose;
// diagnostics name the source node.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_NORMALIZE_NORMALIZE_H
#define CKOPT_NORMALIZE_NORMALIZE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ckopt {

/// On a state that is not trained: a unit attribute.
inline constexpr llvm::StringLiteral kFrozenAttr = "ckopt.frozen";

/// Adds the evaluation form of `function` to its module, under `name`; see the
/// pass make-eval. Fails where the name is taken. `asWritten`: without a change
/// to dropouts and batch norms.
llvm::FailureOr<mlir::func::FuncOp> makeEval(mlir::func::FuncOp function,
                                             llvm::StringRef name,
                                             bool asWritten = false);

/// Batch norms of a training function that no trained parameter is part of:
/// scale and bias are frozen, or, where they are constants, the running
/// statistics carry `ckopt.frozen`.
llvm::SmallVector<mlir::Operation *>
findFrozenNorms(mlir::func::FuncOp function);

/// Puts those into evaluation form; see the pass freeze-norms.
llvm::LogicalResult freezeNorms(mlir::func::FuncOp function);

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
