//===- WorldApi.cpp - the processes of a run, in C ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Runtime/World.h"
#include "ckopt/Runtime/ckrt.h"

#include "Core/Status.h"

#include <cstring>
#include <vector>

using namespace ckopt::runtime;

ckrt_status ckrt_world_open(double timeout) {
  if (!World::current())
    if (std::string why = World::open(); !why.empty())
      return fail(CKRT_RANK, why);
  World::current()->setTimeout(timeout);
  return CKRT_OK;
}

ckrt_status ckrt_world_open_nccl(const char *file, int32_t rank, int32_t ranks,
                                 double timeout) {
  if (!file || rank < 0 || ranks < 1 || rank >= ranks)
    return fail(CKRT_INVALID_ARGUMENT,
                "ckrt_world_open_nccl: no file, or no such rank");
  if (!World::current())
    if (ckopt::MessageText why = World::openNccl(file, rank, ranks, timeout);
        !why.empty())
      return fail(CKRT_RANK, why);
  World::current()->setTimeout(timeout);
  return CKRT_OK;
}

int32_t ckrt_world_rank(void) {
  World *world = World::current();
  return world ? world->rank() : 0;
}

int32_t ckrt_world_size(void) {
  World *world = World::current();
  return world ? world->size() : 1;
}

ckrt_status ckrt_world_compare(uint64_t number, const char *what) {
  World *world = World::current();
  if (!world)
    return CKRT_OK;
  std::vector<uint64_t> all(size_t(world->size()));
  std::string error;
  if (!world->gatherAll(&number, sizeof(number), all.data(), error))
    return fail(CKRT_RANK, error);
  for (size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank] != all[0])
      return fail(CKRT_RANK, "rank " + std::to_string(rank) +
                                 " differs from rank 0 in its " + what);
  return CKRT_OK;
}

ckrt_status ckrt_world_gather(const void *own, int64_t bytes, void *all) {
  if (bytes < 0 || (bytes && (!own || !all)))
    return fail(CKRT_INVALID_ARGUMENT, "ckrt_world_gather: no bytes");
  World *world = World::current();
  if (!world && bytes)
    std::memcpy(all, own, size_t(bytes));
  std::string error;
  if (world && !world->gatherAll(own, bytes, all, error))
    return fail(CKRT_RANK, error);
  return CKRT_OK;
}

void ckrt_world_abort(int32_t code) {
  if (World *world = World::current())
    world->abort(code);
}

void ckrt_world_close(void) {
  if (World *world = World::current())
    world->close();
}
