//===- StepProfile.cpp - times of a loaded step's kernels -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs steps whose kernels are timed, and puts back what they have changed.
//
//===----------------------------------------------------------------------===//
#include "StepRunImpl.h"

#include "ckopt/Compiler/Compile.h"
#include "ckopt/Runtime/LastFailure.h"
#include "ckopt/Runtime/StatusExit.h"
#include "ckopt/Support/Error.h"

#include <utility>

using namespace ckopt;
using runtime::TensorRole;

static void addCallTime(void *times, int64_t call, double seconds) {
  auto &sums = *static_cast<std::vector<double> *>(times);
  if (size_t(call) < sums.size())
    sums[size_t(call)] += seconds;
}

static void addLaunchTime(void *times, int64_t call, int64_t, double seconds) {
  addCallTime(times, call, seconds);
}

namespace {
/// What a step changes or keeps, of this rank, by the indices of tensors.
using OwnState = std::vector<std::pair<int64_t, HostTensor>>;
} // namespace

static llvm::Expected<OwnState> readState(const Session &session) {
  OwnState state;
  for (TensorRole role : Session::stateRoles())
    for (int64_t index : session.tensors(role)) {
      auto value = session.read(index);
      if (!value)
        return value.takeError();
      state.emplace_back(index, std::move(*value));
    }
  return std::move(state);
}

static llvm::Error writeState(Session &session, const OwnState &state) {
  for (const auto &[index, value] : state)
    if (llvm::Error error = session.write(index, value))
      return error;
  return llvm::Error::success();
}

llvm::Expected<std::vector<CallTime>> StepRun::profile(const TensorMap &batch,
                                                       int64_t steps) {
  if (llvm::Error error = impl->finish())
    return std::move(error);
  if (!impl->compiled.compilation().given().instrument)
    return usageError("kernels are timed in a step that was compiled with " +
                      Setting("profile"));
  if (steps < 1 || impl->pending)
    return usageError("give at least one step, between whole updates");
  Session &session = *impl->session;
  auto before = readState(session);
  if (!before)
    return before.takeError();
  if (llvm::Error error = impl->feedBatch({batch, {}}, Call::Profile))
    return std::move(error);
  const runtime::Manifest &manifest = session.manifest();
  std::vector<double> sums(manifest.calls.size());
  bool onDevice = manifest.target == runtime::Target::Cuda;
  if (!onDevice && ckrt_set_profile(session.handle(), addCallTime, &sums))
    return makeError(ExitInternal, runtime::lastFailure());
  llvm::Error error = llvm::Error::success();
  // The first step warms caches up. A device times launches by its own clock,
  // after a step that leaves plausible values behind.
  for (int64_t i = 0; i <= (onDevice ? 0 : steps) && !error; ++i) {
    error = impl->runNext().takeError();
    if (i == 0)
      std::fill(sums.begin(), sums.end(), 0.0);
  }
  if (onDevice && !error)
    if (auto status = ckrt_time_launches(session.handle(), "step", 4,
                                         int32_t(std::min<int64_t>(steps, 100)),
                                         addLaunchTime, &sums))
      error = makeError(exitCodeOf(status), runtime::lastFailure());
  ckrt_set_profile(session.handle(), nullptr, nullptr);
  error = llvm::joinErrors(std::move(error), writeState(session, *before));
  if (error)
    return std::move(error);
  std::vector<CallTime> result;
  double parts = 0;
  for (size_t i = 0; i < sums.size(); ++i) {
    const runtime::CallInfo &call = manifest.calls[i];
    if (manifest.functions[size_t(call.function)].name != "step")
      continue;
    parts += sums[i];
    if (manifest.isPart(call))
      continue;
    double time = std::exchange(parts, 0);
    std::string primitive;
    if (call.primitive >= 0)
      primitive =
          runtime::describe(manifest.primitives[size_t(call.primitive)]);
    result.push_back({call.kernel, call.source, primitive,
                      call.originalCall >= 0,
                      onDevice ? time : time / double(steps)});
  }
  return std::move(result);
}
