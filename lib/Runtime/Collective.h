//===- Collective.h - what ops of several ranks share -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_COLLECTIVE_H
#define CKOPT_LIB_RUNTIME_COLLECTIVE_H

#include "PrimitiveImpl.h"

#include "ckopt/Base/Collectives.h"
#include "ckopt/Base/Shards.h"
#include "ckopt/Runtime/World.h"

namespace ckopt::runtime {

inline RankGroup groupOf(const AllReduceDesc &desc) {
  return {desc.ranks, desc.stride, desc.groups};
}

/// Returns the world of a step of so many ranks, or null and why.
World *findWorld(int64_t ranks, std::string &error);

/// Adds a message of any size, which a World cuts below 2 GiB.
void addTransfer(std::vector<Transfer> &list, bool sends, void *data,
                 int64_t bytes, int64_t peer);

/// Makes the kernels that move rows: AllGather, ReduceScatter, Broadcast,
/// OwnRows.
std::unique_ptr<Primitive> createOfRows(const PrimitiveDesc &desc);

} // namespace ckopt::runtime

#endif // CKOPT_LIB_RUNTIME_COLLECTIVE_H
