//===- Collective.h - common parts of collectives ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_COMM_COLLECTIVE_H
#define CKOPT_LIB_RUNTIME_COMM_COLLECTIVE_H

#include "Cpu/PrimitiveImpl.h"

#include "ckopt/Base/Collectives.h"
#include "ckopt/Base/Shards.h"
#include "ckopt/Runtime/World.h"

#include <algorithm>

namespace ckopt::runtime {

inline RankGroup groupOf(const AllReduceDesc &desc) {
  return {desc.ranks, desc.stride, desc.groups};
}

/// Returns the world of a step of this number of ranks, or null and the reason.
World *findWorld(int64_t ranks, std::string &error);

/// Returns the name of a collective.
inline const char *rankKindName(PrimitiveKind kind) {
  return kind == PrimitiveKind::AllReduce   ? "all_reduce"
         : kind == PrimitiveKind::AllGather ? "all_gather"
         : kind == PrimitiveKind::Broadcast ? "broadcast"
                                            : "reduce_scatter";
}

/// Adds a message of any size; a World cuts it into messages below 2 GiB.
void addTransfer(std::vector<Transfer> &list, bool sends, void *data,
                 int64_t bytes, int64_t peer);

/// Calls visit(i, offset in tensor i, offset in the block, elements) for the
/// parts of tensors that lie in the block [from, from + count). The tensors
/// have these sizes and lie one behind the other.
template <typename Visit>
void forEachRun(const std::vector<int64_t> &sizes, int64_t from, int64_t count,
                Visit visit) {
  int64_t begin = 0;
  for (size_t i = 0; i < sizes.size(); begin += sizes[i++]) {
    int64_t low = std::max(from, begin);
    int64_t high = std::min(from + count, begin + sizes[i]);
    if (low < high)
      visit(i, low - begin, low - from, high - low);
  }
}

/// Adds numbers of several ranks in the order of `terms`, any of which may be
/// `sums`. All sums over ranks use this function, so that they have the same
/// bits.
template <typename T>
void addInOrder(const std::vector<const T *> &terms, int64_t count, T *sums) {
  for (int64_t i = 0; i < count; ++i) {
    T sum = terms[0][i];
    for (size_t term = 1; term < terms.size(); ++term)
      sum += terms[term][i];
    sums[i] = sum;
  }
}

/// Makes the kernel of a collective, which calls the world from the thread that
/// runs it.
std::unique_ptr<Primitive> createMeeting(const PrimitiveDesc &desc);
/// Makes the kernels that move rows: AllGather, ReduceScatter, Broadcast,
/// OwnRows.
std::unique_ptr<Primitive> createOfRows(const PrimitiveDesc &desc);

} // namespace ckopt::runtime

#endif // CKOPT_LIB_RUNTIME_COMM_COLLECTIVE_H
