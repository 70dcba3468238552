//===- WeightParts.h - a session's weights, piece by piece ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRAIN_WEIGHTPARTS_H
#define CKOPT_LIB_TRAIN_WEIGHTPARTS_H

#include "ckopt/Support/TensorParts.h"
#include "ckopt/Train/Session.h"

namespace ckopt {

/// Calls `use` on rank 0 with whole weights, running statistics and frozen
/// weights, whose pieces the ranks that share them send while they are asked
/// for; with `averaged` parameters are their averages, with `trainedOnly` they
/// are all. The other ranks serve until `use` returns. Where ranks share
/// weights all of them must call this; else the others need not.
llvm::Error
useWeightsOnMain(const Session &session, bool averaged, bool trainedOnly,
                 llvm::function_ref<llvm::Error(TensorParts &weights)> use);

} // namespace ckopt

#endif // CKOPT_LIB_TRAIN_WEIGHTPARTS_H
