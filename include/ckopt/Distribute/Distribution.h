//===- Distribution.h - parts of the pass `distribute` ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_DISTRIBUTE_DISTRIBUTION_H
#define CKOPT_DISTRIBUTE_DISTRIBUTION_H

#include "ckopt/Distribute/SampleAxes.h"

namespace ckopt {

/// Makes batch norms and their gradients use statistics of all ranks' samples
/// (SyncNorms.cpp).
llvm::LogicalResult syncNorms(mlir::func::FuncOp function, int64_t ranks);

/// Makes random numbers of samples equal to those that one process draws for
/// them (RankDraws.cpp).
llvm::LogicalResult numberDraws(mlir::func::FuncOp function,
                                const SampleAxes &axes, int64_t ranks);

/// Returns a value whose sum over ranks is `value` of the whole batch, inserted
/// after its operands; null: none is known. `axes` belong to the function
/// (BatchShare.cpp).
mlir::Value shareOfBatch(mlir::Value value, const SampleAxes &axes,
                         int64_t ranks);

/// Returns a rank's share of a loss that the model computes itself; an error at
/// the op that is the reason if none is known.
llvm::FailureOr<mlir::Value> shareOfLoss(mlir::Value loss, llvm::StringRef name,
                                         const SampleAxes &axes, int64_t ranks);

/// Begins an error at the op with the name of its operator.
mlir::InFlightDiagnostic emitAt(mlir::Operation *op);

/// Refuses an output with an attached loss if samples are mixed in it, or do
/// not lie along dimension 0 (LossSamples.cpp).
llvm::LogicalResult checkSamplesApart(mlir::Value value, llvm::StringRef name,
                                      const SampleAxes &axes, int64_t ranks);

} // namespace ckopt

#endif // CKOPT_DISTRIBUTE_DISTRIBUTION_H
