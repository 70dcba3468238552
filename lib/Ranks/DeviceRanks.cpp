//===- DeviceRanks.cpp - ranks on devices, without MPI --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Ranks/Ranks.h"

#include "ckopt/Runtime/CudaSearch.h"
#include "ckopt/Support/Error.h"

#include <cstdlib>

using namespace ckopt;
using runtime::World;

/// Returns the number in an environment variable, or -1.
static int64_t numberOf(const char *name) {
  const char *text = std::getenv(name);
  int64_t value = 0;
  return !text || llvm::StringRef(text).getAsInteger(10, value) ? -1 : value;
}

llvm::Expected<Ranks> ckopt::meetByFile(int64_t ranks, llvm::StringRef file,
                                        double timeout) {
  if (launchedRanks() > 0)
    return usageError(
        "mpirun started this process, and MPI carries NCCL's id: leave out " +
        Setting("nccl-id"));
  int64_t rank = numberOf("RANK"), size = numberOf("WORLD_SIZE");
  if (size < 0 || rank < 0)
    return usageError(Setting("nccl-id") +
                      " needs RANK and WORLD_SIZE in the environment of each "
                      "process: its number from 0, and how many there are");
  if (size != ranks)
    return usageError("WORLD_SIZE=" + llvm::Twine(size) + " processes, and " +
                      Setting("parallel") + " is for " + llvm::Twine(ranks));
  if (rank >= size)
    return usageError("RANK=" + llvm::Twine(rank) + " of WORLD_SIZE=" +
                      llvm::Twine(size) + ": ranks are counted from 0");
  if (!World::current()) {
    runtime::chooseNccl();
    if (MessageText why =
            World::openNccl(file.str(), int32_t(rank), int32_t(size), timeout);
        !why.empty())
      return makeError(ExitRank, why);
  }
  World::current()->setTimeout(timeout);
  return Ranks::met();
}
