//===- CkoptOps.td - the ops of networks and steps ----------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_DIALECT_CKOPT_OPS
#define CKOPT_DIALECT_CKOPT_OPS

include "ckopt/Dialect/Ckopt/IR/CkoptElementwiseOps.td"
include "ckopt/Dialect/Ckopt/IR/CkoptShapeOps.td"
include "ckopt/Dialect/Ckopt/IR/CkoptReductionOps.td"
include "ckopt/Dialect/Ckopt/IR/CkoptNNOps.td"
include "ckopt/Dialect/Ckopt/IR/CkoptTrainingOps.td"
include "ckopt/Dialect/Ckopt/IR/CkoptCollectiveOps.td"

#endif // CKOPT_DIALECT_CKOPT_OPS
