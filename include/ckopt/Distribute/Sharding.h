//===- Sharding.h - parameters that ranks shard -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_DISTRIBUTE_SHARDING_H
#define CKOPT_DISTRIBUTE_SHARDING_H

#include "ckopt/Dialect/Ckopt/Utils/TensorBuilder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"

namespace ckopt {

/// How the ranks of a group share a tensor.
struct Sharing {
  ShardForm form = ShardForm::Whole;
  mlir::RankedTensorType whole;
  RankGroup group;

  /// The type of a rank's part.
  mlir::RankedTensorType shard() const;
  /// Returns the whole tensor in the form whose rows are shards.
  mlir::Value toRows(TensorBuilder &b, mlir::Value value) const;
  /// Inverse of toRows().
  mlir::Value fromRows(TensorBuilder &b, mlir::Value rows) const;
};

/// Returns how a group shards the tensor of an argument.
Sharing sharingOf(mlir::BlockArgument argument, RankGroup group);

/// Returns the bytes of a bucket for a program with this number of parameter
/// bytes: buckets are a small part of the program's memory.
int64_t bucketBytesFor(int64_t parameterBytes);

/// Shards the function's parameters and frozen weights, and gathers them where
/// they are used; small tensors share a bucket. `known` has the decisions of
/// other functions for arguments of the same names, and gets this one's.
void shardParameters(mlir::func::FuncOp function, RankGroup group,
                     llvm::StringMap<Sharing> &known);

} // namespace ckopt

#endif // CKOPT_DISTRIBUTE_SHARDING_H
