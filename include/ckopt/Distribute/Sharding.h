//===- Sharding.h - parameters that ranks share -----------------*- C++ -*-===//
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
  /// Returns the whole tensor in the form whose rows ranks share.
  mlir::Value toRows(TensorBuilder &b, mlir::Value value) const;
  /// Inverse of toRows().
  mlir::Value fromRows(TensorBuilder &b, mlir::Value rows) const;
};

/// Returns how a group would share a tensor that an argument holds.
Sharing sharingOf(mlir::BlockArgument argument, RankGroup group);

/// Bytes of a bucket for a program of so many bytes of parameters: small enough
/// for buckets to be a small part of what the program needs.
int64_t bucketBytesFor(int64_t parameterBytes);

/// Makes shards of the function's parameters and frozen weights, and gathers
/// them where they are used: those that small buckets hold together. `known`
/// has what other functions do with arguments of the same names, and gets what
/// this one does.
void shardParameters(mlir::func::FuncOp function, RankGroup group,
                     llvm::StringMap<Sharing> &known);

} // namespace ckopt

#endif // CKOPT_DISTRIBUTE_SHARDING_H
