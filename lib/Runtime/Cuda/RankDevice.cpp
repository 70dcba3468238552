//===- RankDevice.cpp - the device of a rank ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Collectives.h"

#include <cstdlib>
#include <cstring>

using namespace ckopt::runtime;
using namespace ckopt::runtime::cuda;

/// Returns the number that a launcher gave this rank among those of its
/// machine, or -1.
static int64_t localRank() {
  // The variable of torchrun and of scripts, then those of OpenMPI, MPICH and
  // Slurm.
  for (const char *name : {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
                           "MPI_LOCALRANKID", "SLURM_LOCALID"}) {
    const char *text = std::getenv(name);
    char *end = nullptr;
    long long number = text && *text ? std::strtoll(text, &end, 10) : -1;
    if (number >= 0 && end && !*end)
      return number;
  }
  return -1;
}

/// Counts the ranks before this one that are on its machine.
static int64_t placeOnMachine(World &world, std::string &error) {
  struct Name {
    char text[256];
  };
  Name own = {};
  world.host().copy(own.text, sizeof(own.text) - 1);
  std::vector<Name> all(static_cast<size_t>(world.size()));
  if (!world.gatherAll(&own, sizeof(own), all.data(), error))
    return -1;
  int64_t place = 0;
  for (int32_t rank = 0; rank < world.rank(); ++rank)
    place += std::strcmp(all[static_cast<size_t>(rank)].text, own.text) == 0;
  return place;
}

int ckopt::runtime::cuda::rankDevice(const Driver &cuda, int64_t place,
                                     std::string &error) {
  int count = 0;
  Result result = cuda.deviceGetCount(&count);
  if (result != kSuccess || count == 0) {
    error = "the CUDA driver finds no device";
    return -1;
  }
  int64_t launched = localRank();
  return static_cast<int>((launched >= 0 ? launched : place) % count);
}

int ckopt::runtime::cuda::rankDevice(const Driver &cuda, World &world,
                                     std::string &error) {
  int64_t place = placeOnMachine(world, error);
  return place < 0 ? -1 : rankDevice(cuda, place, error);
}
