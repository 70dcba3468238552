//===- RowExchange.cpp - rows of tensors between ranks --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: N processes keep a tensor's rows in N shares. Each needs the whole
// tensor for a while, and of sums over processes each keeps its share. Method:
// every rank sends its rows to every other one, which receives them at their
// final place. For sums it receives the others' numbers for its own rows, a
// block at a time, and adds them in the order of the ranks. Each number passes
// a link once, in N - 1 messages. Guarantee: additions are those of
// AllReduce.cpp, in the same order, so that shares of sums have its bits.
// Gathering needs no buffer, sums need one block in the planned workspace.
// O(elements) time.
//
//===----------------------------------------------------------------------===//
#include "Collective.h"

#include "ckopt/Runtime/ckrt.h"

#include <algorithm>
#include <cstring>

using namespace ckopt;
using namespace ckopt::runtime;

void ckopt::runtime::addTransfer(std::vector<Transfer> &list, bool sends,
                                 void *data, int64_t bytes, int64_t peer) {
  constexpr int64_t kMost = int64_t(1) << 30;
  for (int64_t from = 0; from < bytes; from += kMost)
    list.push_back({sends, static_cast<char *>(data) + from,
                    std::min(kMost, bytes - from), int32_t(peer)});
}

namespace {

class RowKernel : public Primitive {
public:
  explicit RowKernel(const PrimitiveDesc &desc)
      : kind(desc.kind), a(desc.allReduce), group(groupOf(a)),
        size(dtypeSize(desc.dtype)) {}

  int64_t workspaceBytes() const override { return 0; }
  int32_t failure() const override { return CKRT_RANK; }
  std::string implementation() const override { return "rows in place"; }
  bool execute(void *const *args, void *workspace, std::string &error) override;

protected:
  virtual bool run(void *const *args, void *workspace, World *world,
                   std::string &error) = 0;

  size_t tensors() const { return a.elements.size(); }
  Shards shardsOf(size_t tensor) const {
    return {a.elements[tensor], a.ranks, a.shares[tensor]};
  }
  /// The rank of a member of this rank's group.
  int64_t rankOf(int64_t place) const { return group.member(rank, place); }

  PrimitiveKind kind;
  AllReduceDesc a;
  RankGroup group;
  int64_t size = 4; ///< bytes of an element
  int64_t rank = 0, own = 0;
};

bool RowKernel::execute(void *const *args, void *workspace,
                        std::string &error) {
  World *world = group.world() == 1 ? nullptr : findWorld(group.world(), error);
  if (!world && group.world() > 1)
    return false;
  rank = world ? world->rank() : 0;
  own = group.place(rank);
  bool counts = world && kind != PrimitiveKind::OwnRows;
  if (counts) {
    int64_t elements = 0;
    for (int64_t count : a.elements)
      elements += count;
    world->beginRecord(rankKindName(kind), elements * size);
  }
  bool done = run(args, workspace, world, error);
  if (counts && done)
    world->endRecord();
  return done;
}

class AllGather final : public RowKernel {
public:
  using RowKernel::RowKernel;

private:
  bool run(void *const *args, void *, World *world,
           std::string &error) override {
    std::vector<Transfer> list;
    for (size_t i = 0; i < tensors(); ++i) {
      Shards shards = shardsOf(i);
      auto *whole = static_cast<char *>(args[tensors() + i]);
      int64_t bytes = shards.count(own) * size;
      std::memcpy(whole + shards.begin(own) * size, args[i], size_t(bytes));
      for (int64_t place = 0; place < group.size; ++place) {
        if (place == own)
          continue;
        addTransfer(list, true, args[i], bytes, rankOf(place));
        addTransfer(list, false, whole + shards.begin(place) * size,
                    shards.count(place) * size, rankOf(place));
      }
    }
    return list.empty() || world->transfer(list, error);
  }
};

class OwnRows final : public RowKernel {
public:
  using RowKernel::RowKernel;

private:
  bool run(void *const *args, void *, World *, std::string &) override {
    for (size_t i = 0; i < tensors(); ++i) {
      Shards shards = shardsOf(i);
      auto *whole = static_cast<const char *>(args[i]);
      auto *rows = static_cast<char *>(args[tensors() + i]);
      int64_t bytes = shards.count(own) * size;
      std::memcpy(rows, whole + shards.begin(own) * size, size_t(bytes));
      std::memset(rows + bytes, 0, size_t(shards.chunk * size - bytes));
    }
    return true;
  }
};

class Broadcast final : public RowKernel {
public:
  using RowKernel::RowKernel;

private:
  bool run(void *const *args, void *, World *world,
           std::string &error) override {
    std::vector<Transfer> list;
    for (size_t i = 0; i < tensors(); ++i) {
      int64_t bytes = a.elements[i] * size;
      void *result = args[tensors() + i];
      if (own != a.root) {
        addTransfer(list, false, result, bytes, rankOf(a.root));
        continue;
      }
      std::memmove(result, args[i], size_t(bytes));
      for (int64_t place = 0; place < group.size; ++place)
        if (place != own)
          addTransfer(list, true, result, bytes, rankOf(place));
    }
    return list.empty() || world->transfer(list, error);
  }
};

template <typename T> class ReduceScatter final : public RowKernel {
public:
  explicit ReduceScatter(const PrimitiveDesc &desc) : RowKernel(desc) {
    for (int64_t share : a.shares)
      total += share;
    piece = std::min(total, std::max<int64_t>(1, kPieceBytes / a.ranks / size));
    slot = alignUp(piece * size);
  }
  int64_t workspaceBytes() const override { return (a.ranks - 1) * slot; }
  std::string implementation() const override {
    return "rows by pieces of " + std::to_string(piece) + " elements";
  }

private:
  bool run(void *const *args, void *workspace, World *world,
           std::string &error) override;
  /// The elements of a member's share from `low` on, at most `count`, without
  /// padding.
  static int64_t filled(const Shards &shards, int64_t place, int64_t low,
                        int64_t count) {
    return std::clamp<int64_t>(shards.count(place) - low, 0, count);
  }
  char *slotOf(int64_t place) const {
    return received + (place < own ? place : place - 1) * slot;
  }
  bool exchange(void *const *args, int64_t from, int64_t count, World *world,
                std::string &error);
  void add(const T *mine, int64_t at, int64_t count, T *sums) const;

  int64_t total = 0, piece = 0, slot = 0;
  char *received = nullptr; ///< in the workspace: a slot for each other rank
};

template <typename T>
bool ReduceScatter<T>::exchange(void *const *args, int64_t from, int64_t count,
                                World *world, std::string &error) {
  std::vector<Transfer> list;
  forEachRun(
      a.shares, from, count, [&](size_t i, int64_t low, int64_t at, int64_t n) {
        Shards shards = shardsOf(i);
        auto *whole = static_cast<T *>(args[i]);
        for (int64_t place = 0; place < group.size; ++place) {
          if (place == own)
            continue;
          addTransfer(list, true, whole + shards.begin(place) + low,
                      filled(shards, place, low, n) * size, rankOf(place));
          addTransfer(list, false, slotOf(place) + at * size,
                      filled(shards, own, low, n) * size, rankOf(place));
        }
      });
  return list.empty() || world->transfer(list, error);
}

/// Adds this rank's numbers and those at `at` in the slots.
template <typename T>
void ReduceScatter<T>::add(const T *mine, int64_t at, int64_t count,
                           T *sums) const {
  std::vector<const T *> terms;
  for (int64_t place = 0; place < group.size; ++place)
    terms.push_back(
        place == own ? mine : reinterpret_cast<const T *>(slotOf(place)) + at);
  addInOrder(terms, count, sums);
}

template <typename T>
bool ReduceScatter<T>::run(void *const *args, void *workspace, World *world,
                           std::string &error) {
  received = static_cast<char *>(workspace);
  // The last bytes may be padding, and still are part of the plan.
  if (int64_t bytes = workspaceBytes())
    std::memset(received + bytes - 64, 0, 64);
  for (int64_t from = 0; from < total; from += piece) {
    int64_t count = std::min(piece, total - from);
    if (!exchange(args, from, count, world, error))
      return false;
    forEachRun(a.shares, from, count,
               [&](size_t i, int64_t low, int64_t at, int64_t n) {
                 Shards shards = shardsOf(i);
                 T *sums = static_cast<T *>(args[tensors() + i]) + low;
                 int64_t valid = filled(shards, own, low, n);
                 add(static_cast<const T *>(args[i]) + shards.begin(own) + low,
                     at, valid, sums);
                 std::fill(sums + valid, sums + n, T(0));
               });
  }
  return true;
}

} // namespace

std::unique_ptr<Primitive>
ckopt::runtime::createOfRows(const PrimitiveDesc &desc) {
  switch (desc.kind) {
  case PrimitiveKind::AllGather:
    return std::make_unique<AllGather>(desc);
  case PrimitiveKind::Broadcast:
    return std::make_unique<Broadcast>(desc);
  case PrimitiveKind::OwnRows:
    return std::make_unique<OwnRows>(desc);
  default:
    if (desc.dtype == DType::F64)
      return std::make_unique<ReduceScatter<double>>(desc);
    return std::make_unique<ReduceScatter<float>>(desc);
  }
}
