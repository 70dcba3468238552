//===- Session.cpp - a loaded step, from the host's side ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Train/Session.h"
#include "ckopt/Ranks/Ranks.h"
#include "ckopt/Ranks/Shards.h"
#include "ckopt/Runtime/CudaSearch.h"
#include "ckopt/Runtime/LastFailure.h"
#include "ckopt/Runtime/StatusExit.h"
#include "ckopt/Runtime/World.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Train/Data/Checkpoint.h"

#include <cstring>

using namespace ckopt;
using runtime::TensorRole;

static_assert(sizeof(bool) == 1, "bool tensors are one byte an element");

/// Returns the runtime's last error, with the exit code of its status.
static llvm::Error runtimeError(ckrt_status status) {
  return makeError(exitCodeOf(status), runtime::lastFailure());
}

llvm::Expected<std::unique_ptr<Session>>
Session::create(ckrt_program *program, const SessionOptions &options,
                std::shared_ptr<void> keeper, std::vector<int64_t> *refused) {
  if (!program)
    return usageError("there is no program to make a session of");
  std::unique_ptr<Session> result(new Session);
  result->keeper = std::move(keeper);
  result->others = options.ranks;
  result->unchangedTensors = options.arenaOf
                                 ? options.arenaOf->unchangedTensors
                                 : std::make_shared<UnchangedTensors>();
  ckrt_session_options raw = {};
  raw.size = sizeof(raw);
  raw.pattern_fill = options.measurePeak;
  raw.arena_of = options.arenaOf ? options.arenaOf->handle() : nullptr;
  raw.count_allocations = options.countAllocations;
  raw.pattern_seed = 1;
  raw.device = options.device;
  if (refused) {
    raw.on_refused = [](void *user, int64_t primitive, int, const char *) {
      static_cast<std::vector<int64_t> *>(user)->push_back(primitive);
    };
    raw.refused_user = refused;
  }
  result->info =
      static_cast<const runtime::Manifest *>(ckrt_program_manifest(program));
  runtime::chooseCudaLibraries(*result->info);
  if (auto status = ckrt_session_create(program, &raw, &result->session))
    return runtimeError(status);
  if (options.checkFinite)
    if (auto status = ckrt_set_check_finite(result->session, 1))
      return runtimeError(status);
  if (options.verifyRemat)
    if (auto status =
            ckrt_set_verify_remat(result->session, 1, options.keepValues))
      return runtimeError(status);
  return result;
}

Session::~Session() {
  if (session)
    ckrt_session_destroy(session);
}

std::vector<int64_t> Session::tensors(TensorRole role) const {
  std::vector<int64_t> result;
  for (size_t i = 0; i < info->tensors.size(); ++i)
    if (info->tensors[i].role == role)
      result.push_back(int64_t(i));
  return result;
}

llvm::Expected<int64_t> Session::find(llvm::StringRef name) const {
  int64_t index = ckrt_tensor_find(session, name.str().c_str());
  if (index < 0)
    return inputError("the step has no tensor '" + name + "'");
  return index;
}

llvm::Error Session::checkIndex(int64_t index) const {
  if (size_t(index) < info->tensors.size())
    return llvm::Error::success();
  return usageError("no tensor has the index " + llvm::Twine(index) +
                    ": the step has " + llvm::Twine(info->tensors.size()));
}

const runtime::TensorInfo &Session::infoOf(int64_t index) const {
  static const runtime::TensorInfo none;
  return size_t(index) < info->tensors.size() ? info->tensors[size_t(index)]
                                              : none;
}

bool Session::isSharded() const {
  return llvm::any_of(info->tensors, [](const runtime::TensorInfo &tensor) {
    return tensor.shards > 1;
  });
}

llvm::ArrayRef<TensorRole> Session::stateRoles() {
  static constexpr TensorRole roles[] = {TensorRole::Parameter,
                                         TensorRole::Frozen, TensorRole::State,
                                         TensorRole::OptimizerState};
  return roles;
}

llvm::Error Session::write(int64_t index, const HostTensor &value) {
  if (llvm::Error error = checkIndex(index))
    return error;
  const runtime::TensorInfo &tensor = infoOf(index);
  if (tensor.shards > 1 &&
      value.shape() == llvm::ArrayRef<int64_t>(tensor.wholeShape))
    return write(index, shardOf(tensor, value, others.number()));
  // Scalars may be given as [1]; all other shapes must agree.
  bool same = value.shape() == llvm::ArrayRef<int64_t>(tensor.shape);
  int64_t count = ckrt_tensor_elements(session, index);
  if (!same && !(count == 1 && value.numElements() == 1))
    return inputError("'" + tensor.name + "' has shape " +
                      shapeString(tensor.shape) + ", the value " +
                      shapeString(value.shape()));
  HostTensor converted = value;
  if (value.dtype() != tensor.dtype) {
    auto result = value.convertTo(tensor.dtype);
    if (!result)
      return withContext(result.takeError(), "'" + tensor.name + "'");
    converted = *result;
  }
  unchangedTensors->hashes.erase(tensor.name);
  if (auto status = ckrt_tensor_write(
          session, index, converted.rawData(),
          static_cast<ckrt_dtype>(converted.dtype()), converted.numElements()))
    return runtimeError(status);
  return llvm::Error::success();
}

llvm::Expected<HostTensor> Session::read(int64_t index) const {
  if (llvm::Error error = checkIndex(index))
    return std::move(error);
  const runtime::TensorInfo &tensor = infoOf(index);
  HostTensor result(tensor.dtype, tensor.shape);
  if (auto status = ckrt_tensor_read(session, index, result.mutableRawData(),
                                     static_cast<ckrt_dtype>(result.dtype()),
                                     result.numElements()))
    return runtimeError(status);
  return result;
}

llvm::Expected<HostTensor> Session::readPart(int64_t index, int64_t first,
                                             int64_t count) const {
  if (llvm::Error error = checkIndex(index))
    return std::move(error);
  int64_t all = ckrt_tensor_elements(session, index);
  if (first < 0 || count < 0 || first > all || count > all - first)
    return usageError("'" + infoOf(index).name + "' has " + llvm::Twine(all) +
                      " elements, none of " + llvm::Twine(count) +
                      " from number " + llvm::Twine(first) + " on");
  HostTensor result(infoOf(index).dtype, {count});
  if (auto status =
          ckrt_tensor_read_part(session, index, first, result.mutableRawData(),
                                static_cast<ckrt_dtype>(result.dtype()), count))
    return runtimeError(status);
  return result;
}

llvm::Expected<HostTensor> Session::readWhole(int64_t index) const {
  auto own = read(index);
  const runtime::TensorInfo &tensor = infoOf(index);
  if (!own || tensor.shards == 1)
    return own;
  if (!others.areSeveral())
    return usageError("'" + tensor.name + "' is shared by ranks, and this " +
                      "process runs alone");
  HostTensor whole(tensor.dtype, tensor.wholeShape);
  Shards shards = tensor.sharing();
  int64_t size = runtime::dtypeSize(tensor.dtype), rank = others.number();
  int64_t mine = shards.shardOf(rank), first = rank - mine;
  auto *bytes = static_cast<char *>(whole.mutableRawData());
  std::memcpy(bytes + shards.begin(mine) * size, own->rawData(),
              size_t(shards.count(mine) * size));
  std::vector<runtime::Transfer> list;
  for (int64_t shard = 0; shard < shards.shards; ++shard) {
    if (shard == mine)
      continue;
    auto peer = int32_t(first + shard);
    list.push_back(
        {true, own->mutableRawData(), shards.count(mine) * size, peer});
    list.push_back({false, bytes + shards.begin(shard) * size,
                    shards.count(shard) * size, peer});
  }
  std::string error;
  if (!others.world().transfer(list, error))
    return makeError(ExitRank, error);
  return whole;
}

llvm::Error Session::fill(TensorRole role, double value) {
  for (int64_t index : tensors(role))
    if (auto status = ckrt_tensor_fill(session, index, value))
      return runtimeError(status);
  return llvm::Error::success();
}

llvm::Error Session::initialize(const TensorMap &values, uint64_t seed) {
  if (auto status = ckrt_init_parameters(session, seed))
    return runtimeError(status);
  for (TensorRole role :
       {TensorRole::Parameter, TensorRole::Frozen, TensorRole::State,
        TensorRole::Constant, TensorRole::OptimizerState})
    for (int64_t index : tensors(role))
      if (const HostTensor *value = values.find(infoOf(index).name)) {
        if (llvm::Error error = write(index, *value))
          return error;
      } else if (infoOf(index).init.empty() && infoOf(index).dataOffset < 0 &&
                 role != TensorRole::OptimizerState) {
        return makeError(ExitInternal, "no value and no initialization for '" +
                                           infoOf(index).name + "'");
      }
  return llvm::Error::success();
}

llvm::Expected<TensorMap> Session::weights(bool optimizerState) const {
  TensorMap result;
  std::vector<TensorRole> roles = {TensorRole::Parameter, TensorRole::Frozen,
                                   TensorRole::State};
  if (optimizerState)
    roles.push_back(TensorRole::OptimizerState);
  for (TensorRole role : roles)
    for (int64_t index : tensors(role)) {
      auto value = readWhole(index);
      if (!value)
        return value.takeError();
      result.set(infoOf(index).name, std::move(*value));
    }
  return result;
}

std::vector<int64_t> Session::stateTensors() const {
  std::vector<int64_t> result;
  for (TensorRole role : stateRoles())
    llvm::append_range(result, tensors(role));
  return result;
}

std::vector<int64_t> Session::changedTensors() const {
  std::vector<int64_t> result = stateTensors();
  llvm::erase_if(result, [&](int64_t index) {
    return infoOf(index).role == TensorRole::Frozen;
  });
  return result;
}

std::vector<TensorSpec> Session::specs(llvm::ArrayRef<int64_t> indices) const {
  std::vector<TensorSpec> result;
  for (int64_t index : indices) {
    const runtime::TensorInfo &tensor = infoOf(index);
    result.push_back({tensor.name, tensor.dtype, tensor.fullShape()});
  }
  return result;
}

std::vector<TensorSpec> Session::stateSpecs() const {
  return specs(stateTensors());
}

llvm::Error Session::checkState(llvm::ArrayRef<TensorSpec> given,
                                llvm::StringRef what) const {
  return checkTensors(given, stateSpecs(), what);
}

llvm::Error Session::restore(const TensorMap &values, llvm::StringRef what) {
  if (llvm::Error error = checkState(specsOf(values), what))
    return error;
  for (int64_t index : stateTensors())
    if (llvm::Error error = write(index, *values.find(infoOf(index).name)))
      return error;
  return llvm::Error::success();
}

llvm::Error Session::restore(const Session &other, llvm::StringRef what) {
  if (llvm::Error error = checkState(other.stateSpecs(), what))
    return error;
  for (int64_t index : stateTensors()) {
    auto from = other.find(infoOf(index).name);
    if (!from)
      return withContext(from.takeError(), what);
    if (infoOf(index).shards != other.infoOf(*from).shards)
      return inputError(what + " shares '" + infoOf(index).name +
                        "' among other ranks");
    auto value = other.read(*from);
    if (!value)
      return withContext(value.takeError(), what);
    if (llvm::Error error = write(index, *value))
      return error;
  }
  return llvm::Error::success();
}

llvm::Error Session::run(const char *function) {
  if (auto status = ckrt_run(session, function))
    return runtimeError(status);
  return llvm::Error::success();
}

llvm::Expected<int64_t> Session::measuredPeak() const {
  int64_t bytes = 0;
  if (auto status = ckrt_measured_peak(session, &bytes))
    return runtimeError(status);
  return bytes;
}
