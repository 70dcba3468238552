//===- DeviceCollectives.h - sums over ranks on devices ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: a step's bits must not depend on NCCL's order of additions, and its
// buffers must not lie outside of the plan. Method: NCCL only moves bytes. The
// tensors of a sum, one behind the other, are cut into blocks; of each block
// every rank receives all ranks' numbers for its share into slots of the
// planned workspace, in the order of the ranks (phase Exchange), a kernel of
// the artifact adds the slots in that order into the first one, and the sums
// are sent to all ranks (phase Spread). The compiler plans workspace and
// kernels by these functions, the runtime moves bytes by them, so both agree.
// Guarantee: all addresses except those of a rank's own share are the same on
// all ranks, so ranks share one artifact; additions have the CPU's order.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_RUNTIME_DEVICECOLLECTIVES_H
#define CKOPT_RUNTIME_DEVICECOLLECTIVES_H

#include "ckopt/Base/Collectives.h"
#include "ckopt/Base/Shards.h"
#include "ckopt/Runtime/Primitive.h"

#include <algorithm>
#include <vector>

namespace ckopt::runtime {

/// The work of one launch of an op of several ranks; the first of its scalars.
enum class RankPhase : int64_t {
  Whole = 0, ///< everything, for an op that adds nothing or a single rank
  Exchange,  ///< for a block: every rank's numbers into slots
  Spread,    ///< for a block: sums from the first slot to their places
};

/// A launch's scalars: the phase, and for a block its first element and its
/// number of elements.
inline constexpr size_t kRankScalars = 3;

/// Elements [from, from + count) of tensors, one behind the other (of shards
/// for ReduceScatter), of which each rank adds `width`.
struct SumPiece {
  int64_t from = 0, count = 0, width = 0;
};

/// Bytes of one rank's numbers that are exchanged at a time: large enough for
/// links of hundreds of GB/s, small compared with a bucket of 25 MiB.
inline constexpr int64_t kDevicePieceBytes = int64_t(8) << 20;

inline bool isDeviceSum(const PrimitiveDesc &desc) {
  return (desc.kind == PrimitiveKind::AllReduce ||
          desc.kind == PrimitiveKind::ReduceScatter) &&
         desc.allReduce.ranks > 1;
}

/// Returns the blocks of a sum, in order; all but the last have one width.
inline std::vector<SumPiece> sumPieces(const PrimitiveDesc &desc) {
  const AllReduceDesc &a = desc.allReduce;
  bool rows = desc.kind == PrimitiveKind::ReduceScatter;
  int64_t total = 0, size = dtypeSize(desc.dtype);
  for (int64_t count : rows ? a.shares : a.elements)
    total += count;
  int64_t most = kDevicePieceBytes / size / (rows ? a.ranks : 1);
  most = std::max<int64_t>(most / 64 * 64, 64);
  std::vector<SumPiece> pieces;
  for (int64_t from = 0; from < total; from += most) {
    int64_t count = std::min(most, total - from);
    pieces.push_back({from, count, rows ? count : shareOf(count, a.ranks)});
  }
  return pieces;
}

/// Returns the elements from one rank's slot to the next, a multiple of 64
/// bytes; the part that a block does not fill is zero.
inline int64_t slotElements(const PrimitiveDesc &desc) {
  int64_t width = 0, unit = 64 / dtypeSize(desc.dtype);
  for (const SumPiece &piece : sumPieces(desc))
    width = std::max(width, piece.width);
  return (width + unit - 1) / unit * unit;
}

/// Returns the bytes of workspace that a call on a device needs.
inline int64_t deviceWorkspace(const PrimitiveDesc &desc) {
  return isDeviceSum(desc)
             ? desc.allReduce.ranks * slotElements(desc) * dtypeSize(desc.dtype)
             : 0;
}

/// Returns the elements of argument `number`: operands, then results, then the
/// workspace of a collective that is only started.
inline int64_t argumentElements(const PrimitiveDesc &desc, size_t number) {
  const AllReduceDesc &a = desc.allReduce;
  if (desc.kind == PrimitiveKind::Rank)
    return 1;
  if (number >= 2 * a.elements.size())
    return deviceWorkspace(desc) / dtypeSize(desc.dtype);
  bool result = number >= a.elements.size();
  size_t tensor = number % std::max<size_t>(a.elements.size(), 1);
  bool rows = desc.kind == PrimitiveKind::AllGather ? !result
              : desc.kind == PrimitiveKind::ReduceScatter ||
                      desc.kind == PrimitiveKind::OwnRows
                  ? result
                  : false;
  return rows ? a.shares[tensor] : a.elements[tensor];
}
inline size_t argumentCount(const PrimitiveDesc &desc) {
  return desc.kind == PrimitiveKind::Rank
             ? 1
             : 2 * desc.allReduce.elements.size() + desc.allReduce.started;
}

} // namespace ckopt::runtime

#endif // CKOPT_RUNTIME_DEVICECOLLECTIVES_H
