//===- AllReduce.cpp - sums of tensors over ranks -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: add the tensors of N processes so that all get the same bits at any
// time and on any network, within a workspace that is known when compiling.
// Method: a bucket's tensors, one behind the other, are cut into blocks. Every
// rank adds a share of each block: it receives the others' numbers for it, adds
// all in the order of the ranks, and sends the sums back. A number passes each
// link twice, as in a ring, in 2 (N - 1) messages a block. Guarantee: the order
// of additions is that of ranks, whichever comes first; buffers lie in the
// planned workspace. O(elements) time.
//
//===----------------------------------------------------------------------===//
#include "Collective.h"

#include "ckopt/Runtime/ckrt.h"

#include <algorithm>
#include <cstring>

using namespace ckopt;
using namespace ckopt::runtime;

namespace {

template <typename T> class AllReduce final : public Primitive {
public:
  explicit AllReduce(const PrimitiveDesc &desc)
      : a(desc.allReduce), group(groupOf(a)) {
    for (int64_t count : a.elements)
      total += count;
    piece = std::min(total, kPieceBytes / int64_t(sizeof(T)));
    slot = alignUp(shareOf(piece, a.ranks) * int64_t(sizeof(T)));
    packedBytes = alignUp(piece * int64_t(sizeof(T)));
  }

  int64_t workspaceBytes() const override {
    return a.ranks < 2 ? 0 : packedBytes + (a.ranks - 1) * slot;
  }
  int32_t failure() const override { return CKRT_RANK; }
  std::string implementation() const override {
    return "shares of pieces of " + std::to_string(piece) + " elements";
  }
  bool execute(void *const *args, void *workspace, std::string &error) override;

private:
  bool sumPiece(World &world, int64_t count, std::string &error);

  AllReduceDesc a;
  RankGroup group;
  int64_t total = 0, piece = 0, slot = 0, packedBytes = 0;
  T *packed = nullptr; ///< in the workspace: this rank's numbers, then sums
  char *received = nullptr; ///< in the workspace: a slot for each other rank
};

/// Replaces the packed numbers by the sums of all ranks of the group.
template <typename T>
bool AllReduce<T>::sumPiece(World &world, int64_t count, std::string &error) {
  const int64_t own = group.place(world.rank());
  const int64_t share = shareOf(count, a.ranks), size = sizeof(T);
  auto begin = [&](int64_t rank) { return std::min(rank * share, count); };
  auto elements = [&](int64_t rank) { return begin(rank + 1) - begin(rank); };
  auto slotOf = [&](int64_t rank) {
    return received + (rank < own ? rank : rank - 1) * slot;
  };
  std::vector<Transfer> list;
  for (int64_t peer = 0; peer < group.size; ++peer) {
    if (peer == own)
      continue;
    auto to = int32_t(group.member(world.rank(), peer));
    list.push_back({true, packed + begin(peer), elements(peer) * size, to});
    list.push_back({false, slotOf(peer), elements(own) * size, to});
  }
  if (!world.transfer(list, error))
    return false;
  std::vector<const T *> terms;
  for (int64_t rank = 0; rank < group.size; ++rank)
    terms.push_back(rank == own ? packed + begin(own)
                                : reinterpret_cast<const T *>(slotOf(rank)));
  T *sums = packed + begin(own);
  addInOrder(terms, elements(own), sums);
  list.clear();
  for (int64_t peer = 0; peer < group.size; ++peer) {
    if (peer == own)
      continue;
    auto to = int32_t(group.member(world.rank(), peer));
    list.push_back({true, sums, elements(own) * size, to});
    list.push_back({false, packed + begin(peer), elements(peer) * size, to});
  }
  return world.transfer(list, error);
}

template <typename T>
bool AllReduce<T>::execute(void *const *args, void *workspace,
                           std::string &error) {
  const size_t tensors = a.elements.size();
  if (a.ranks < 2) {
    for (size_t i = 0; i < tensors; ++i)
      std::memmove(args[tensors + i], args[i],
                   size_t(a.elements[i]) * sizeof(T));
    return true;
  }
  World *world = findWorld(group.world(), error);
  if (!world)
    return false;
  if (total == 0)
    return true;
  packed = static_cast<T *>(workspace);
  received = static_cast<char *>(workspace) + packedBytes;
  world->beginRecord("all_reduce", total * int64_t(sizeof(T)));
  // The last bytes may belong to no rank, and still are part of the plan.
  std::memset(received + (a.ranks - 1) * slot - 64, 0, 64);
  for (int64_t from = 0; from < total; from += piece) {
    int64_t count = std::min(piece, total - from);
    forEachRun(a.elements, from, count,
               [&](size_t i, int64_t at, int64_t to, int64_t length) {
                 std::memcpy(packed + to, static_cast<T *>(args[i]) + at,
                             size_t(length) * sizeof(T));
               });
    if (!sumPiece(*world, count, error))
      return false;
    forEachRun(a.elements, from, count,
               [&](size_t i, int64_t at, int64_t to, int64_t length) {
                 std::memcpy(static_cast<T *>(args[tensors + i]) + at,
                             packed + to, size_t(length) * sizeof(T));
               });
  }
  world->endRecord();
  return true;
}

class RankNumber final : public Primitive {
public:
  explicit RankNumber(int64_t ranks) : ranks(ranks) {}
  int64_t workspaceBytes() const override { return 0; }
  int32_t failure() const override { return CKRT_RANK; }
  std::string implementation() const override { return "the world's number"; }
  bool execute(void *const *args, void *, std::string &error) override {
    World *world = ranks == 1 ? nullptr : findWorld(ranks, error);
    *static_cast<int64_t *>(args[0]) = world ? world->rank() : 0;
    return world || ranks == 1;
  }

private:
  int64_t ranks;
};

} // namespace

std::unique_ptr<Primitive>
ckopt::runtime::createMeeting(const PrimitiveDesc &desc) {
  if (desc.kind == PrimitiveKind::Rank)
    return std::make_unique<RankNumber>(desc.allReduce.ranks);
  if (desc.kind != PrimitiveKind::AllReduce)
    return createOfRows(desc);
  if (desc.dtype == DType::F64)
    return std::make_unique<AllReduce<double>>(desc);
  return std::make_unique<AllReduce<float>>(desc);
}
