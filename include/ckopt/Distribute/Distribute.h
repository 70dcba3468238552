//===- Distribute.h - turns a step into one rank's share --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// These functions do the work of the passes distribute and share-loss, in
// place. On failure they have emitted diagnostics that name the argument or
// source node.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_DISTRIBUTE_DISTRIBUTE_H
#define CKOPT_DISTRIBUTE_DISTRIBUTE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ckopt {

struct DistributeOptions {
  int64_t ranks = 2;
  int64_t shards = 1; ///< ranks that share parameters; divides `ranks`
  int64_t bucketBytes = int64_t(25)
                        << 20; ///< bytes at which a bucket is closed
  bool syncNorms = false;      ///< batch norms have statistics of all ranks
};

/// Makes the function's own loss a rank's share of the batch's loss, so that
/// the shares of all ranks add up to it. Fails if such a share is not known.
llvm::LogicalResult shareLoss(mlir::func::FuncOp function, int64_t ranks);

/// Sums gradients and losses over ranks; see the pass `distribute`.
llvm::LogicalResult distribute(mlir::func::FuncOp function,
                               const DistributeOptions &options);

} // namespace ckopt

#endif // CKOPT_DISTRIBUTE_DISTRIBUTE_H
