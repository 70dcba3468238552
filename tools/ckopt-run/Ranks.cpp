//===- Ranks.cpp - ckopt-run by several processes -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A step of N ranks runs in the N processes that mpirun started. All are given
// the same command line, weights and whole batch, of which each takes its part;
// what ranks share is put together again where results are read, which all of
// them do. Rank 0 prints and writes. What could make their numbers differ is
// compared before the first step.
//
//===----------------------------------------------------------------------===//
#include "HostFiles.h"
#include "Loaded.h"
#include "Results.h"

#include "ckopt/Base/ExitCodes.h"
#include "ckopt/Runtime/DeviceArtifact.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

using namespace ckopt;
using namespace ckopt::run;
using runtime::Manifest;
using runtime::TensorInfo;
using runtime::TensorRole;

int64_t ckopt::run::ranksOf(const Manifest &manifest) {
  int64_t ranks = 1;
  for (const runtime::PrimitiveDesc &desc : manifest.primitives)
    if (isOfRanks(desc.kind) && desc.allReduce.ranks > ranks)
      ranks = desc.allReduce.ranks;
  return ranks;
}

/// The processes that mpirun started; 0: this one was started alone.
static int64_t launchedRanks() {
  for (const char *name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
    if (const char *text = std::getenv(name))
      if (int64_t ranks = std::strtoll(text, nullptr, 10); ranks > 0)
        return ranks;
  return 0;
}

/// Meets the ranks that RANK and WORLD_SIZE number by the file of --nccl-id.
static int meetByFile(int64_t ranks, const Options &options) {
  auto number = [](const char *name) -> int64_t {
    const char *text = std::getenv(name);
    char *end = nullptr;
    long long value = text ? std::strtoll(text, &end, 10) : -1;
    return text && *text && !*end ? value : -1;
  };
  int64_t rank = number("RANK"), size = number("WORLD_SIZE");
  if (size != ranks || rank < 0 || rank >= size)
    return complain(ExitUsage,
                    "--nccl-id needs WORLD_SIZE=" + std::to_string(ranks) +
                        " and a RANK from 0 to " + std::to_string(ranks - 1) +
                        " in the environment of each process");
  ckrt_status status =
      ckrt_world_open_nccl(options.ncclId.c_str(), static_cast<int32_t>(rank),
                           static_cast<int32_t>(size), options.rankTimeout);
  return status == CKRT_OK ? int(ExitOk) : complain(status);
}

int ckopt::run::joinRanks(Loaded &loaded, Options &options) {
  int64_t ranks = ranksOf(loaded.manifest()), launched = launchedRanks();
  if (ranks == 1 && launched > 1)
    return complain(
        ExitUsage,
        "mpirun started " + std::to_string(launched) +
            " processes, which would all do the same: " + options.artifact +
            " is a step of one (ckopt compile "
            "--parallel=dp:" +
            std::to_string(launched) + " makes one of all)");
  if (ranks == 1)
    return ExitOk;
  bool onDevices = loaded.manifest().target == runtime::Target::Cuda;
  if (onDevices && options.deviceGiven)
    return complain(ExitUsage,
                    "--device is for a step of one process: ranks take the "
                    "devices of their machine in turn, by LOCAL_RANK where it "
                    "is set");
  if (!options.ncclId.empty() && (!onDevices || launched))
    return complain(ExitUsage,
                    onDevices ? "mpirun started this process, and MPI carries "
                                "NCCL's id: leave out --nccl-id"
                              : "--nccl-id is for steps for devices");
  if (options.ncclId.empty() && launched != ranks)
    return complain(ExitUsage,
                    options.artifact + " is a step of " +
                        std::to_string(ranks) + " ranks, and " +
                        (launched
                             ? "mpirun started " + std::to_string(launched)
                             : std::string("this process was started alone")) +
                        ": mpirun -n " + std::to_string(ranks) + " ckopt-run" +
                        options.line);
  if (options.function != "step" && options.function != "accumulate")
    return complain(ExitUsage, options.function +
                                   " is the same in all ranks: run it in a "
                                   "step compiled without --parallel");
  if (options.ncclId.empty()) {
    if (ckrt_status status = ckrt_world_open(options.rankTimeout))
      return complain(status);
  } else if (int code = meetByFile(ranks, options)) {
    return code;
  }
  loaded.ranks = ckrt_world_size();
  loaded.rank = ckrt_world_rank();
  nameComplaints("ckopt-run: rank " + std::to_string(loaded.rank));
  if (loaded.ranks != ranks)
    return complain(ExitRank, "mpirun is of another MPI than the one that "
                              "ckopt was built with: it counts " +
                                  std::to_string(loaded.ranks) + " ranks");
  if (loaded.rank == 0)
    return ExitOk;
  if (!std::freopen("/dev/null", "w", stdout))
    return complain(ExitIoError, "/dev/null cannot be opened");
  return ExitOk;
}

void ckopt::run::leaveRanks(Loaded &loaded, int code) {
  if (loaded.ranks == 1)
    return;
  std::fflush(stdout);
  // The others may wait for this rank: they end with it.
  if (code != ExitOk)
    ckrt_world_abort(code);
  // MPI unloads libraries of its own, which a session that counts allocations
  // still refers to.
  ckrt_session_destroy(loaded.session);
  loaded.session = nullptr;
  ckrt_world_close();
}

int64_t ckopt::run::partsOf(const Loaded &loaded, const TensorInfo &tensor) {
  bool data =
      tensor.role == TensorRole::Input || tensor.role == TensorRole::Target;
  if (loaded.ranks == 1 || !data || tensor.shape.empty())
    return 1;
  // As in ckopt: the batch is the first dimension of the first input.
  for (const TensorInfo &first : loaded.manifest().tensors)
    if (first.role == TensorRole::Input && !first.shape.empty())
      return tensor.shape.front() == first.shape.front() ? loaded.ranks : 1;
  return 1;
}

HostArray ckopt::run::shardOf(const Loaded &loaded, const TensorInfo &tensor,
                              HostArray whole) {
  if (tensor.shards == 1 || whole.shape != tensor.wholeShape)
    return whole;
  Shards shards = tensor.sharing();
  int64_t own = shards.shardOf(loaded.rank), size = dtypeSize(whole.dtype);
  HostArray shard{whole.dtype, tensor.shape, {}};
  shard.data.resize(static_cast<size_t>(shards.chunk * size)); // zeros
  std::copy_n(whole.data.data() + shards.begin(own) * size,
              shards.count(own) * size, shard.data.data());
  return shard;
}

int ckopt::run::gatherShards(const Loaded &loaded, const TensorInfo &tensor,
                             HostArray &array) {
  if (tensor.shards == 1)
    return ExitOk;
  Shards shards = tensor.sharing();
  int64_t size = dtypeSize(array.dtype), chunk = shards.chunk * size;
  std::vector<char> all(static_cast<size_t>(chunk * loaded.ranks));
  if (ckrt_status status =
          ckrt_world_gather(array.data.data(), chunk, all.data()))
    return complain(status);
  // Ranks of one group are neighbors: those of the first have all.
  array.shape = tensor.wholeShape;
  array.data.resize(static_cast<size_t>(shards.elements * size));
  for (int64_t shard = 0; shard < shards.shards; ++shard)
    std::copy_n(all.data() + shard * chunk, shards.count(shard) * size,
                array.data.data() + shards.begin(shard) * size);
  return ExitOk;
}

/// Hashes weights and states that all ranks have before the first step; what
/// they share follows from the artifact, the seed and the file of weights.
static int hashState(Loaded &loaded, Hash &hash) {
  const auto &tensors = loaded.manifest().tensors;
  for (size_t i = 0; i < tensors.size(); ++i) {
    TensorRole role = tensors[i].role;
    if (role != TensorRole::Parameter && role != TensorRole::Frozen &&
        role != TensorRole::State && role != TensorRole::OptimizerState &&
        role != TensorRole::Constant)
      continue;
    if (tensors[i].shards > 1)
      continue;
    HostArray array;
    if (int code = readTensor(loaded, static_cast<int64_t>(i), array))
      return code;
    hash.add(array.data.data(), array.data.size());
  }
  return ExitOk;
}

int ckopt::run::compareRanks(Loaded &loaded, const Options &options) {
  if (loaded.ranks == 1)
    return ExitOk;
  Hash artifact, arguments, state;
  std::vector<char> bytes;
  std::string error, file = options.artifact;
  // A device's manifest has the hashes of the files beside it.
  if (loaded.manifest().target == runtime::Target::Cuda)
    file += std::string("/") + runtime::artifact::kManifest;
  if (!readFile(file, bytes, error))
    return complain(ExitInputError, error);
  artifact.add(bytes.data(), bytes.size());
  for (double number : {double(options.steps), double(options.seed),
                        options.learningRate, double(options.checkArena)})
    arguments.add(&number, sizeof(number));
  arguments.add(options.function.data(), options.function.size());
  if (!options.weights.empty()) {
    if (!readFile(options.weights, bytes, error))
      return complain(ExitInputError, error);
    state.add(bytes.data(), bytes.size());
  }
  if (int code = hashState(loaded, state))
    return code;
  for (auto [hash, what] :
       {std::pair(artifact, "artifact"), std::pair(arguments, "arguments"),
        std::pair(loaded.batch, "samples"), std::pair(state, "weights")})
    if (ckrt_status status = ckrt_world_compare(hash.value, what))
      return complain(status);
  return ExitOk;
}
