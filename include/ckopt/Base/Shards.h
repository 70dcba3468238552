//===- Shards.h - which rank keeps which part of a tensor -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: the compiler cuts parameters and their states into shards, the
// runtime moves them, and any number of ranks write and read checkpoints: all
// must agree on which rank has which elements. Method: one rule. A tensor's
// elements, in row-major order, are cut into chunks of one size; rank r keeps
// chunk r % shards. Elements beyond the end of the tensor are padding. If a
// chunk is a number of whole rows (indices of dimension 0), a shard is a tensor
// of those rows and may have its own layout; else it is flat. Guarantee: a
// chunk's elements follow only from the tensor's shape and the chunk's size;
// they are contiguous. O(1).
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_BASE_SHARDS_H
#define CKOPT_BASE_SHARDS_H

#include <algorithm>
#include <cstdint>
#include <vector>

namespace ckopt {

/// The elements that each of `shards` ranks keeps of a tensor.
struct Shards {
  int64_t elements = 0; ///< of the whole tensor
  int64_t shards = 1;
  int64_t chunk = 0; ///< elements that each rank stores, padding included

  /// The number of the shard that a rank keeps. Ranks of one group are
  /// neighbors; groups (data parallel replicas) have equal shards.
  int64_t shardOf(int64_t rank) const { return rank % shards; }
  /// The first element of a shard, and its number of elements (the rest of its
  /// chunk is padding, zeros in files).
  int64_t begin(int64_t shard) const {
    return std::min(shard * chunk, elements);
  }
  int64_t count(int64_t shard) const { return begin(shard + 1) - begin(shard); }
};

/// How a tensor is kept by several ranks.
enum class ShardForm {
  Whole, ///< on every rank
  Rows,  ///< each rank has ceil(rows / ranks) rows, dimension 0 of its shard
  Flat,  ///< each rank has ceil(elements / ranks) elements, a vector
};

/// Tensors with smaller shards stay whole: sharding them would cost messages
/// and save almost nothing.
inline constexpr int64_t kLeastShard = 64;

/// Returns how ranks share a tensor of this shape. `keepsRows`: the tensor's
/// layout may not be row-major, and then only whole rows are contiguous.
inline ShardForm shardForm(const std::vector<int64_t> &shape, int64_t ranks,
                           bool keepsRows) {
  int64_t elements = 1;
  for (int64_t size : shape)
    elements *= size;
  if (ranks < 2 || shape.empty() || elements < kLeastShard * ranks)
    return ShardForm::Whole;
  int64_t rows = (shape[0] + ranks - 1) / ranks * ranks;
  // Whole rows are not used if they need more padding than an eighth of the
  // tensor.
  if (rows - shape[0] <= shape[0] / 8)
    return ShardForm::Rows;
  if (!keepsRows)
    return ShardForm::Flat;
  return shape[0] >= ranks ? ShardForm::Rows : ShardForm::Whole;
}

/// The ranks of one collective: `size` ranks, `stride` apart. A run has
/// `groups` such groups, and each rank is in one.
struct RankGroup {
  int64_t size = 1, stride = 1, groups = 1;

  int64_t world() const { return size * groups; }
  /// The place of a rank in its group, and the rank at a place of that group.
  int64_t place(int64_t rank) const { return rank / stride % size; }
  int64_t member(int64_t rank, int64_t place) const {
    return rank + (place - this->place(rank)) * stride;
  }
  bool operator==(const RankGroup &) const = default;
};

} // namespace ckopt

#endif // CKOPT_BASE_SHARDS_H
