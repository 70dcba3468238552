//===- Shards.h - a rank's shard of a tensor --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_RANKS_SHARDS_H
#define CKOPT_RANKS_SHARDS_H

#include "ckopt/Runtime/Manifest.h"
#include "ckopt/Support/HostTensor.h"

namespace ckopt {

/// Returns a rank's shard of a whole tensor, with zeros for padding.
HostTensor shardOf(const runtime::TensorInfo &tensor, const HostTensor &whole,
                   int64_t rank);

} // namespace ckopt

#endif // CKOPT_RANKS_SHARDS_H
