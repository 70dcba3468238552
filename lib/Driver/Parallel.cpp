//===- Parallel.cpp - training by several processes -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rank 0 plans, every rank makes the code of the plan. Hashes of the step and
// of all else that the bits of a run depend on are compared before the first
// step. From there on ranks meet in the step's own sums, and here where the
// host has something to share. All ranks walk through the same calls of these
// functions, or an error ends all of them.
//
//===----------------------------------------------------------------------===//
#include "Parallel.h"

#include "ckopt/Driver/Step.h"
#include "ckopt/Support/Error.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

#include <array>
#include <cstdlib>
#include <sched.h>
#include <type_traits>

using namespace ckopt;
using runtime::World;

llvm::Expected<int64_t> ckopt::parseParallel(llvm::StringRef text) {
  auto [kind, number] = text.split(':');
  if (kind == "fsdp" || text.contains(','))
    return usageError("--parallel=" + text +
                      ": fully sharded training (fsdp) is not there yet; "
                      "dp:N is");
  int64_t ranks = 0;
  if (kind != "dp" || number.getAsInteger(10, ranks) || ranks < 1 ||
      ranks > 1024)
    return usageError("--parallel: '" + text +
                      "' is not dp:N, with 1 to 1024 ranks");
  return ranks;
}

/// Returns the number in an environment variable, or 0.
static int64_t numberInEnvironment(const char *name) {
  const char *text = std::getenv(name);
  int64_t value = 0;
  if (!text || llvm::StringRef(text).getAsInteger(10, value) || value < 0)
    return 0;
  return value;
}

int64_t ckopt::launchedRanks() {
  // OpenMPI's name, then that of MPICH and of Slurm's srun.
  for (const char *name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
    if (int64_t ranks = numberInEnvironment(name))
      return ranks;
  return 0;
}

int64_t ckopt::ranksOfMachine(int64_t ranks) {
  for (const char *name : {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"})
    if (int64_t local = numberInEnvironment(name))
      return local;
  return ranks;
}

/// The line that starts the ranks.
static std::string mpirunLine(const DriverOptions &options, int64_t ranks) {
  std::string count = std::to_string(ranks);
  return "mpirun -n " + count + " ckopt train " + options.compile.model +
         " ... --parallel=dp:" + count;
}

/// Refuses numbers of processes that do not fit the flags.
static llvm::Error checkLaunch(const DriverOptions &options) {
  int64_t wanted = options.compile.step.ranks, launched = launchedRanks();
  if (options.command != Command::Train) {
    if (launched > 1)
      return usageError("mpirun started " + llvm::Twine(launched) +
                        " processes, which would all do the same: only "
                        "'ckopt train' runs on several");
    return llvm::Error::success();
  }
  std::string started = "mpirun started " + std::to_string(launched) +
                        " process" + (launched == 1 ? "" : "es");
  if (launched > 1 && wanted == 1)
    return usageError(started +
                      ", and without --parallel each of them would "
                      "train alone: " +
                      mpirunLine(options, launched));
  if (launched > 0 && launched != wanted)
    return usageError(started +
                      ", and --parallel=dp:" + std::to_string(wanted) +
                      " takes another number: " + mpirunLine(options, wanted));
  if (launched > 0)
    return llvm::Error::success();
  // Another launcher's variables: torchrun, or a script.
  int64_t told = numberInEnvironment("WORLD_SIZE");
  if (wanted > 1 || told > 1) {
    std::string why = "this process was started alone";
    if (told > 0 || std::getenv("RANK"))
      why += " (RANK and WORLD_SIZE in the environment start nothing: on CPUs "
             "mpirun does)";
    return usageError(why + ": " +
                      mpirunLine(options, wanted > 1 ? wanted : told));
  }
  return llvm::Error::success();
}

/// mpirun binds each process to a core or two unless it is told not to.
static void warnOfBinding(const DriverOptions &options) {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof(cores), &cores) != 0)
    return;
  int count = CPU_COUNT(&cores), threads = options.compile.step.threads;
  if (count < threads && !options.quiet)
    printMessage({Message::Severity::Warning, "",
                  "a rank's " + std::to_string(threads) + " threads share " +
                      std::to_string(count) +
                      " of the machine's cores, to which mpirun bound it: "
                      "--bind-to none, or --threads=" +
                      std::to_string(count)});
}

llvm::Error ckopt::joinWorld(DriverOptions &options) {
  if (llvm::Error error = checkLaunch(options))
    return error;
  if (options.compile.step.ranks == 1 || options.command != Command::Train)
    return llvm::Error::success();
  if (std::string why = World::open(); !why.empty())
    return makeError(ExitRank, why);
  World &world = *World::current();
  if (world.size() != options.compile.step.ranks)
    return makeError(ExitRank, "mpirun is of another MPI than the one that "
                               "ckopt was built with: it counts " +
                                   llvm::Twine(world.size()) + " ranks, not " +
                                   llvm::Twine(options.compile.step.ranks));
  world.setTimeout(options.rankTimeout);
  if (world.isMain()) {
    warnOfBinding(options);
    return llvm::Error::success();
  }
  // Rank 0 writes and prints.
  silence(options);
  for (std::string *path :
       {&options.output, &options.emaOutput, &options.report, &options.timeline,
        &options.trace, &options.planOut, &options.planReport,
        &options.train.checkpoint, &options.train.log, &options.train.html,
        &options.compile.phases.dumpDirectory})
    path->clear();
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// What ranks compare and share
//===----------------------------------------------------------------------===//

static llvm::Error rankError(const std::string &text) {
  return makeError(ExitRank, text);
}

static uint64_t hashOf(llvm::StringRef bytes) {
  return llvm::xxh3_64bits(bytes);
}

llvm::Error ckopt::planOnMain(Compilation &compilation) {
  World *world = World::current();
  std::string text, error;
  if (!world || world->isMain()) {
    llvm::Error failed = compilation.plan();
    if (failed || !world)
      return failed;
    llvm::raw_string_ostream stream(text);
    mlir::OpPrintingFlags flags;
    flags.enableDebugInfo(/*enable=*/true, /*prettyForm=*/false);
    compilation.module().print(stream, flags);
  }
  int64_t bytes = int64_t(text.size());
  if (!world->broadcast(&bytes, sizeof(bytes), error))
    return rankError(error);
  text.resize(size_t(bytes));
  if (!world->broadcast(text.data(), bytes, error))
    return rankError(error);
  return world->isMain() ? llvm::Error::success() : compilation.adopt(text);
}

static llvm::Expected<uint64_t> hashState(const Session &session) {
  auto weights = session.weights(/*optimizerState=*/true);
  if (!weights)
    return weights.takeError();
  std::string hashes;
  for (const auto &[name, value] : *weights) {
    uint64_t hash = hashOf({static_cast<const char *>(value.rawData()),
                            size_t(value.sizeInBytes())});
    hashes += name + " " + std::to_string(hash) + "\n";
  }
  return hashOf(hashes);
}

/// The planned step: what it computes, in which order, and where.
static uint64_t hashStep(const Compilation &compilation) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  compilation.module().print(stream);
  std::vector<uint8_t> manifest = runtime::serialize(compilation.manifest());
  text.append(manifest.begin(), manifest.end());
  return hashOf(text);
}

/// What the loop depends on beside the step.
static uint64_t hashOptions(const Compilation &compilation,
                            const Session &session, const BatchSource &source,
                            const TrainOptions &train) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  for (const auto &[key, value] :
       runIdentity(compilation.given(), train, session, source.identity()))
    if (key != "data")
      stream << key << "=" << value << "\n";
  stream << train.epochs << " " << train.maxSteps << " " << train.validateEvery
         << " " << train.bestBy.name() << " " << train.earlyStop << " "
         << train.keepBest.empty() << " " << train.resume.empty();
  return hashOf(text);
}

llvm::Error ckopt::checkRanksAgree(const Compilation &compilation,
                                   const Session &session,
                                   const BatchSource &source,
                                   const BatchSource *validation,
                                   const DriverOptions &options) {
  World *world = World::current();
  if (!world)
    return llvm::Error::success();
  auto state = hashState(session);
  if (!state)
    return state.takeError();
  constexpr std::array<const char *, 4> kinds = {"data", "options",
                                                 "compiled step", "weights"};
  using Hashes = std::array<uint64_t, kinds.size()>;
  Hashes own = {hashOf(source.identity() + "\n" +
                       (validation ? validation->identity() : std::string())),
                hashOptions(compilation, session, source, options.train),
                hashStep(compilation), *state};
  std::vector<Hashes> all(size_t(world->size()));
  std::string error;
  if (!world->gatherAll(own.data(), sizeof(Hashes), all.data(), error))
    return rankError(error);
  for (size_t rank = 1; rank < all.size(); ++rank)
    for (size_t kind = 0; kind < kinds.size(); ++kind)
      if (all[rank][kind] != all[0][kind])
        return rankError("rank " + std::to_string(rank) +
                         " differs from rank 0 in its " + kinds[kind] +
                         ": all ranks take the same command line, files and "
                         "kind of machine");
  return llvm::Error::success();
}

llvm::Error ckopt::checkSameState(const Session &session) {
  if (!World::current())
    return llvm::Error::success();
  auto weights = session.weights(/*optimizerState=*/true);
  if (!weights)
    return weights.takeError();
  std::vector<uint64_t> own;
  std::vector<std::string> names;
  for (const auto &[name, value] : *weights) {
    own.push_back(hashOf({static_cast<const char *>(value.rawData()),
                          size_t(value.sizeInBytes())}));
    names.push_back(name);
  }
  World &world = *World::current();
  std::vector<uint64_t> all(own.size() * size_t(world.size()));
  std::string error;
  if (!world.gatherAll(own.data(), int64_t(own.size() * sizeof(own[0])),
                       all.data(), error))
    return rankError(error);
  for (size_t i = own.size(); i < all.size(); ++i)
    if (all[i] != all[i % own.size()])
      return makeError(ExitInternal,
                       "rank " + llvm::Twine(i / own.size()) +
                           " trained other weights than rank 0: '" +
                           names[i % own.size()] + "' differs");
  return llvm::Error::success();
}

llvm::Expected<std::vector<int64_t>> ckopt::gatherNumbers(int64_t own) {
  World *world = World::current();
  if (!world)
    return std::vector<int64_t>{own};
  std::vector<int64_t> all(size_t(world->size()));
  std::string error;
  if (!world->gatherAll(&own, sizeof(own), all.data(), error))
    return rankError(error);
  return std::move(all);
}

void ckopt::forgetCollectives() {
  if (World *world = World::current())
    world->clearRecords();
}

double ckopt::collectiveSeconds() {
  double seconds = 0;
  if (World *world = World::current())
    for (const runtime::CollectiveRecord &record : world->records())
      seconds += record.seconds;
  return seconds;
}

llvm::Error ckopt::gatherTraffic(Communication &traffic) {
  World *world = World::current();
  if (!world)
    return llvm::Error::success();
  int64_t messages = 0, bytes = 0;
  for (const runtime::CollectiveRecord &record : world->records()) {
    traffic.collectives.push_back({record.kind, record.bytes, record.seconds});
    messages += record.messages;
    bytes += record.sentBytes;
  }
  if (llvm::Error error = gatherNumbers(messages).moveInto(traffic.messages))
    return error;
  return gatherNumbers(bytes).moveInto(traffic.sentBytes);
}

llvm::Expected<Evaluation> ckopt::evaluateOnMain(Session &session,
                                                 BatchSource &source,
                                                 const DataOptions &data) {
  World *world = World::current();
  Evaluation result;
  if (!world || world->isMain()) {
    auto own = evaluate(session, source, data);
    if (!own || !world)
      return own;
    result = *own;
  }
  static_assert(std::is_trivially_copyable_v<Evaluation>);
  std::string error;
  if (!world->broadcast(&result, sizeof(result), error))
    return rankError(error);
  return result;
}

llvm::Error ckopt::withRank(llvm::Error error, int64_t step) {
  World *world = World::current();
  if (!error || !world)
    return error;
  return withContext(std::move(error), "rank " + llvm::Twine(world->rank()) +
                                           " on " + world->host() + ", step " +
                                           llvm::Twine(step));
}
