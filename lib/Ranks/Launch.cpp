//===- Launch.cpp - finds and connects the started processes --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds out how many processes were started, refuses numbers that do not fit,
// and connects them. Rank 0 then plans and compiles (Compiler/Together.h), and
// hashes are compared (Train/TrainRanks.h). After that ranks exchange data only
// in the step's own sums, and when the host has something to share
// (Sharing.cpp).
//
//===----------------------------------------------------------------------===//
#include "ckopt/Ranks/Ranks.h"

#include <cstdlib>
#include <sched.h>

using namespace ckopt;
using runtime::World;

/// Returns the number in an environment variable, or 0.
static int64_t numberInEnvironment(const char *name) {
  const char *text = std::getenv(name);
  int64_t value = 0;
  if (!text || llvm::StringRef(text).getAsInteger(10, value) || value < 0)
    return 0;
  return value;
}

int64_t ckopt::launchedRanks() {
  // OpenMPI's variable, then those of MPICH and of Slurm's srun.
  for (const char *name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
    if (int64_t ranks = numberInEnvironment(name))
      return ranks;
  return 0;
}

std::pair<int64_t, int64_t> ckopt::launchedPlace() {
  static constexpr const char *names[][2] = {
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
      {"PMI_RANK", "PMI_SIZE"},
      {"RANK", "WORLD_SIZE"}};
  for (auto [own, all] : names)
    if (int64_t ranks = numberInEnvironment(all)) {
      int64_t rank = numberInEnvironment(own);
      if (rank < ranks)
        return {rank, ranks};
    }
  return {0, 1};
}

std::pair<int64_t, int64_t> ckopt::placeOfProcess() {
  Ranks met = Ranks::met();
  return met.areSeveral() ? std::pair(met.number(), met.size())
                          : launchedPlace();
}

int64_t ckopt::ranksOfMachine(int64_t ranks) {
  for (const char *name : {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"})
    if (int64_t local = numberInEnvironment(name))
      return local;
  return ranks;
}

llvm::Error ckopt::checkLaunch(int64_t wanted,
                               llvm::function_ref<MessageText(int64_t)> line) {
  int64_t launched = launchedRanks();
  std::string started = "mpirun started " + std::to_string(launched) +
                        " process" + (launched == 1 ? "" : "es");
  if (launched > 1 && wanted == 1)
    return usageError(started + ", and without " + Setting("parallel") +
                      " each of them would train alone: " + line(launched));
  if (launched > 0 && launched != wanted)
    return usageError(started + ", and " + Setting("parallel") +
                      " takes another number: " + line(wanted));
  if (launched > 0)
    return llvm::Error::success();
  // Variables of other launchers: torchrun, or a script.
  int64_t told = numberInEnvironment("WORLD_SIZE");
  if (wanted > 1 || told > 1) {
    std::string why = "this process was started alone";
    if (told > 0 || std::getenv("RANK"))
      why += " (RANK and WORLD_SIZE in the environment start nothing: on CPUs "
             "mpirun does)";
    return usageError(why + ": " + line(wanted > 1 ? wanted : told));
  }
  return llvm::Error::success();
}

std::optional<Message> ckopt::describeBinding(int64_t threads) {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof(cores), &cores) != 0)
    return std::nullopt;
  int count = CPU_COUNT(&cores);
  if (count >= threads)
    return std::nullopt;
  return Message{Message::Severity::Warning, "",
                 "a rank's " + std::to_string(threads) + " threads share " +
                     std::to_string(count) +
                     " of the machine's cores, to which mpirun bound it: " +
                     foreignFlag("bind-to") + " none, or " +
                     Setting("threads", std::to_string(count))};
}

llvm::Expected<Ranks> ckopt::openWorld(int64_t ranks, double timeout) {
  if (!World::current())
    if (std::string why = World::open(timeout); !why.empty())
      return makeError(ExitRank, why);
  World &world = *World::current();
  if (world.size() != ranks)
    return makeError(ExitRank, "mpirun is of another MPI than the one that "
                               "ckopt uses: it counts " +
                                   llvm::Twine(world.size()) + " ranks, not " +
                                   llvm::Twine(ranks));
  world.setTimeout(timeout);
  return Ranks::met();
}

llvm::Expected<Ranks>
ckopt::meetOthers(int64_t ranks, llvm::StringRef file, double timeout,
                  llvm::function_ref<MessageText(int64_t)> line) {
  if (!file.empty())
    return meetByFile(ranks, file, timeout);
  if (llvm::Error error = checkLaunch(ranks, line))
    return std::move(error);
  return ranks == 1 ? Ranks() : openWorld(ranks, timeout);
}
