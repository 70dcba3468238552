//===- Parallel.cpp - training by several processes -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rank 0 plans and compiles (RankCode.cpp). Hashes of the step and
// of all else that the bits of a run depend on are compared before the first
// step. From there on ranks meet in the step's own sums, and here where the
// host has something to share. All ranks walk through the same calls of these
// functions, or an error ends all of them.
//
//===----------------------------------------------------------------------===//
#include "Parallel.h"

#include "ckopt/Driver/Step.h"
#include "ckopt/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

#include <array>
#include <cstdlib>
#include <sched.h>
#include <type_traits>

using namespace ckopt;
using runtime::TensorRole;
using runtime::World;

llvm::Error ckopt::parseParallel(llvm::StringRef text, StepOptions &options) {
  auto bad = [&]() {
    return usageError("--parallel: '" + text +
                      "' is not dp:N, fsdp:N or dp:M,fsdp:N, with 1 to 1024 "
                      "ranks");
  };
  int64_t replicas = 0, shards = 0;
  llvm::SmallVector<llvm::StringRef> parts;
  text.split(parts, ',');
  for (llvm::StringRef part : parts) {
    auto [kind, number] = part.split(':');
    int64_t count = 0;
    int64_t *into = kind == "dp"     ? &replicas
                    : kind == "fsdp" ? &shards
                                     : nullptr;
    if (!into || *into || number.getAsInteger(10, count) || count < 1 ||
        count > 1024)
      return bad();
    *into = count;
  }
  options.shards = std::max<int64_t>(shards, 1);
  options.ranks = std::max<int64_t>(replicas, 1) * options.shards;
  return options.ranks > 1024 ? bad() : llvm::Error::success();
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

llvm::Error ckopt::checkLaunch(int64_t wanted,
                               llvm::function_ref<std::string(int64_t)> line) {
  int64_t launched = launchedRanks();
  std::string started = "mpirun started " + std::to_string(launched) +
                        " process" + (launched == 1 ? "" : "es");
  if (launched > 1 && wanted == 1)
    return usageError(started +
                      ", and without --parallel each of them would "
                      "train alone: " +
                      line(launched));
  if (launched > 0 && launched != wanted)
    return usageError(started +
                      ", and --parallel takes another number: " + line(wanted));
  if (launched > 0)
    return llvm::Error::success();
  // Another launcher's variables: torchrun, or a script.
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
                     " of the machine's cores, to which mpirun bound it: "
                     "--bind-to none, or --threads=" +
                     std::to_string(count)};
}

llvm::Error ckopt::openWorld(int64_t ranks, double timeout) {
  if (!World::current())
    if (std::string why = World::open(); !why.empty())
      return makeError(ExitRank, why);
  World &world = *World::current();
  if (world.size() != ranks)
    return makeError(ExitRank, "mpirun is of another MPI than the one that "
                               "ckopt was built with: it counts " +
                                   llvm::Twine(world.size()) + " ranks, not " +
                                   llvm::Twine(ranks));
  world.setTimeout(timeout);
  return llvm::Error::success();
}

static bool endsAll = false;

bool ckopt::failureEndsAll() { return endsAll; }

static std::unique_ptr<runtime::KeepAlive> preparing;

void ckopt::beginPreparing() {
  preparing = std::make_unique<runtime::KeepAlive>();
}

void ckopt::endPreparing() { preparing.reset(); }

void ckopt::leaveFilesToMain(TrainOptions &train) {
  train.progress = false;
  // Of checkpoints each rank writes its share: train() tells it the path.
  for (std::string *path : {&train.checkpoint, &train.log, &train.html})
    path->clear();
}

llvm::Error ckopt::joinWorld(DriverOptions &options) {
  int64_t ranks = options.compile.step.ranks;
  if (!options.collectives.empty()) {
    int64_t launched = launchedRanks();
    if (launched < 2)
      return usageError("--collectives times messages between ranks, and this "
                        "process was started alone: mpirun -n 2 ckopt bench "
                        "--collectives=" +
                        llvm::Twine(options.collectives));
    endsAll = true;
    return openWorld(launched, options.rankTimeout);
  }
  if (options.command != Command::Train) {
    if (int64_t launched = launchedRanks(); launched > 1)
      return usageError("mpirun started " + llvm::Twine(launched) +
                        " processes, which would all do the same: only "
                        "'ckopt train' runs on several");
    return llvm::Error::success();
  }
  auto line = [&](int64_t count) {
    const StepOptions &step = options.compile.step;
    return "mpirun -n " + std::to_string(count) + " ckopt train " +
           options.compile.model + " ... --parallel=" +
           (step.ranks == count ? parallelText(step)
                                : "dp:" + std::to_string(count)) +
           (options.target->traits.hasDevices
                ? "; or with RANK, WORLD_SIZE and --nccl-id=FILE for each"
                : "");
  };
  if (!options.ncclId.empty()) {
    if (llvm::Error error =
            meetByFile(ranks, options.ncclId, options.rankTimeout))
      return error;
  } else {
    if (llvm::Error error = checkLaunch(ranks, line))
      return error;
    if (ranks == 1)
      return llvm::Error::success();
    if (llvm::Error error = openWorld(ranks, options.rankTimeout))
      return error;
  }
  endsAll = true;
  beginPreparing();
  options.compile.together = true;
  if (llvm::Error error = agreeOnFlags(options.compile))
    return error;
  if (llvm::Error error = agreeOnCpu(options.compile.target))
    return error;
  if (isMainRank()) {
    if (auto message = describeBinding(options.compile.step.threads);
        message && !options.quiet)
      printMessage(*message);
    return llvm::Error::success();
  }
  // Rank 0 writes and prints. Of weights that ranks share all know whether it
  // writes them, since it needs the others' parts.
  silence(options);
  if (options.compile.step.shards == 1)
    for (std::string *path : {&options.output, &options.emaOutput})
      path->clear();
  leaveFilesToMain(options.train);
  for (std::string *path :
       {&options.report, &options.timeline, &options.trace, &options.planOut,
        &options.planReport, &options.compile.phases.dumpDirectory})
    path->clear();
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// What ranks compare and share
//===----------------------------------------------------------------------===//

static uint64_t hashOf(llvm::StringRef bytes) {
  return llvm::xxh3_64bits(bytes);
}

llvm::Error ckopt::shareMainPath(std::string &path) {
  World *world = World::current();
  if (!world)
    return llvm::Error::success();
  std::string given = path;
  if (world->isMain() && !path.empty()) {
    llvm::SmallString<256> absolute(path);
    if (std::error_code code = llvm::sys::fs::make_absolute(absolute))
      return ioError("'" + path + "': " + code.message());
    given = absolute.str();
  }
  if (llvm::Error error = broadcastText(*world, given))
    return error;
  if (!world->isMain())
    path = given;
  return llvm::Error::success();
}

llvm::Error ckopt::broadcastText(World &world, std::string &text) {
  std::string error;
  int64_t bytes = int64_t(text.size());
  if (!world.broadcast(&bytes, sizeof(bytes), error))
    return rankError(error);
  text.resize(size_t(bytes));
  if (!world.broadcast(text.data(), bytes, error))
    return rankError(error);
  return llvm::Error::success();
}

llvm::Error ckopt::agreeOnError(llvm::Error own) {
  if (own && endsAll)
    return own;
  auto all = gatherNumbers(own ? 1 : 0);
  if (own) {
    llvm::consumeError(all.takeError());
    return own;
  }
  if (!all)
    return all.takeError();
  for (size_t rank = 0; rank < all->size(); ++rank)
    if ((*all)[rank])
      return rankError("rank " + std::to_string(rank) +
                       " failed; its own message says why");
  return llvm::Error::success();
}

static void hashTensor(std::string &hashes, llvm::StringRef name,
                       const HostTensor &value) {
  uint64_t hash = hashOf({static_cast<const char *>(value.rawData()),
                          size_t(value.sizeInBytes())});
  hashes += name.str() + " " + std::to_string(hash) + "\n";
}

namespace {
/// Hashes of what all ranks have, and of what only ranks with this one's shards
/// have.
struct StateHashes {
  uint64_t common = 0, shards = 0;
  int64_t numShards = 1;
};
} // namespace

static llvm::Expected<StateHashes> hashState(const Session &session) {
  StateHashes result;
  std::string common, shards;
  for (TensorRole role : Session::stateRoles())
    for (int64_t index : session.tensors(role)) {
      auto value = session.read(index);
      if (!value)
        return value.takeError();
      const runtime::TensorInfo &info = session.info_of(index);
      result.numShards = std::max(result.numShards, info.shards);
      hashTensor(info.shards > 1 ? shards : common, info.name, *value);
    }
  result.common = hashOf(common);
  result.shards = hashOf(shards);
  return result;
}

/// What a run starts with, shared or not: the file's weights, and the state.
static llvm::Expected<uint64_t> hashStart(const Compilation &compilation,
                                          const Session &session) {
  auto state = hashState(session);
  if (!state)
    return state.takeError();
  std::string text = std::to_string(state->common);
  if (state->numShards > 1)
    for (const auto &[name, value] : compilation.weights())
      hashTensor(text, name, value);
  return hashOf(text);
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
                            const Session &session, const TrainOptions &train) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  for (const auto &[key, value] :
       runIdentity(compilation.given(), train, session, /*data=*/""))
    stream << key << "=" << value << "\n";
  stream << train.epochs << " " << train.maxSteps << " " << train.validateEvery
         << " " << train.checkpointEvery << " " << train.bestBy.name() << " "
         << train.earlyStop << " " << train.keepBest.empty() << " "
         << train.resume.empty() << " " << bool(train.stopAsked);
  return hashOf(text);
}

static llvm::Error compareRanks(const Compilation &compilation,
                                const Session &session, const std::string &data,
                                const TrainOptions &train) {
  World *world = World::current();
  if (!world)
    return llvm::Error::success();
  auto state = hashStart(compilation, session);
  if (!state)
    return state.takeError();
  constexpr std::array<const char *, 4> kinds = {"data", "options",
                                                 "compiled step", "weights"};
  using Hashes = std::array<uint64_t, kinds.size()>;
  Hashes own = {hashOf(data), hashOptions(compilation, session, train),
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

llvm::Error ckopt::checkRanksAgree(const Compilation &compilation,
                                   const Session &session,
                                   const BatchSource &source,
                                   const BatchSource *validation,
                                   const TrainOptions &train) {
  return compareRanks(compilation, session,
                      source.identity() + "\n" +
                          (validation ? validation->identity() : std::string()),
                      train);
}

llvm::Error ckopt::checkRanksAgree(const Compilation &compilation,
                                   const Session &session,
                                   const TrainOptions &train) {
  return compareRanks(compilation, session, "the caller's batches", train);
}

llvm::Expected<uint64_t> ckopt::hashCommonState(const Session &session) {
  auto state = hashState(session);
  if (!state)
    return state.takeError();
  return state->common;
}

void ckopt::addHash(uint64_t &hash, const TensorMap &tensors) {
  std::string text = std::to_string(hash);
  for (const auto &[name, value] : tensors)
    hashTensor(text, name, value);
  hash = hashOf(text);
}

llvm::Error ckopt::addHash(uint64_t &hash, const StoredTensors &tensors) {
  std::string text = std::to_string(hash);
  for (auto [number, spec] : llvm::enumerate(tensors.specs())) {
    auto value = tensors.read(number);
    if (!value)
      return value.takeError();
    hashTensor(text, spec.name, *value);
  }
  hash = hashOf(text);
  return llvm::Error::success();
}

/// What a rank is about to do, as others' errors say it.
static const char *describe(Call call) {
  switch (call) {
  case Call::Compile:
    return "compiles";
  case Call::Step:
    return "makes a step";
  case Call::Gradients:
    return "computes gradients";
  case Call::Fit:
    return "begins to train by fit";
  case Call::Evaluate:
    return "evaluates";
  case Call::Predict:
    return "predicts";
  case Call::Weights:
    return "reads weights";
  case Call::Save:
    return "saves weights";
  case Call::Checkpoint:
    return "writes a checkpoint";
  case Call::Profile:
    return "profiles";
  }
  return "does something else";
}

llvm::Error ckopt::meetRanks(const Meeting &meeting, llvm::Error own) {
  World *world = World::current();
  if (!world)
    return own;
  struct Numbers {
    Call call;
    uint64_t same;
    int64_t failed;
  };
  Numbers mine = {meeting.call, meeting.same, bool(own)};
  std::vector<Numbers> all(size_t(world->size()));
  std::string error;
  bool met = world->gatherAll(&mine, sizeof(mine), all.data(), error);
  if (own)
    return own;
  if (!met)
    return rankError(error);
  auto rankNamed = [](size_t rank) { return "rank " + std::to_string(rank); };
  for (size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank].call != all[0].call)
      return rankError(rankNamed(rank) + " " + describe(all[rank].call) +
                       " where rank 0 " + describe(all[0].call) +
                       ": all ranks make the same calls");
  for (size_t rank = 0; rank < all.size(); ++rank)
    if (all[rank].failed)
      return rankError(rankNamed(rank) + " failed; its own message says why");
  for (size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank].same != all[0].same)
      return rankError(rankNamed(rank) + " " + meeting.differs);
  return llvm::Error::success();
}

llvm::Error ckopt::checkSameState(const Session &session) {
  World *world = World::current();
  if (!world)
    return llvm::Error::success();
  auto own = hashState(session);
  if (!own)
    return own.takeError();
  std::vector<StateHashes> all(size_t(world->size()));
  std::string error;
  if (!world->gatherAll(&*own, sizeof(StateHashes), all.data(), error))
    return rankError(error);
  for (size_t rank = 1; rank < all.size(); ++rank) {
    size_t twin = rank % size_t(own->numShards);
    if (all[rank].common != all[0].common ||
        all[rank].shards != all[twin].shards)
      return makeError(
          ExitInternal,
          "rank " + llvm::Twine(rank) + " trained other weights than rank " +
              llvm::Twine(all[rank].common != all[0].common ? size_t(0)
                                                            : twin));
  }
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
  // Ranks that share weights compute the same numbers together.
  if (session.isSharded())
    return evaluate(session, source, data);
  runtime::KeepAlive alive;
  Evaluation result;
  int64_t code = ExitOk;
  std::string error;
  llvm::Error failed = llvm::Error::success();
  if (!world || world->isMain()) {
    auto own = evaluate(session, source, data);
    if (!world || (!own && endsAll))
      return own;
    if (own)
      result = *own;
    else
      failed = own.takeError();
    code = failed ? ExitRank : ExitOk;
  }
  static_assert(std::is_trivially_copyable_v<Evaluation>);
  if (!world->broadcast(&code, sizeof(code), error))
    return llvm::joinErrors(std::move(failed), rankError(error));
  if (failed)
    return std::move(failed);
  if (code != ExitOk)
    return rankError("rank 0 could not evaluate; its own message says why");
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
