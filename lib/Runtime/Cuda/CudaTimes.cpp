//===- CudaTimes.cpp - times of launches by the device's clock ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: a device has to show which kernels take a step's time, and the
// host's clock would time launches and copies instead. Method: a graph of a few
// copies of one launch, as steps are replayed, between two events; the median
// over replays counts. Guarantee: launches that agree in code, constant scalars
// and bytes behind their pointers are timed once. Limits: operands that fit
// into the device's cache are found there, which they may not be in a step.
// O(launches) of host time, and of memory.
//
//===----------------------------------------------------------------------===//
#include "CudaBackend.h"

#include <algorithm>
#include <map>

using namespace ckopt::runtime;
using namespace ckopt::runtime::cuda;

/// Returns the properties that two launches must share to take the same time.
static std::vector<int64_t> timingKey(const LaunchInfo &launch) {
  std::vector<int64_t> key = {launch.kernel, launch.primitive};
  key.insert(key.end(), launch.scalars.begin(), launch.scalars.end());
  for (const LaunchPointer &pointer : launch.pointers)
    key.push_back(pointer.bytes);
  return key;
}

namespace {

/// Destroys the objects of one timing; failures are ignored, since the device's
/// first one is reported.
struct TimingObjects {
  const Driver &cuda;
  Event start = nullptr, end = nullptr;
  Graph graph = nullptr;
  GraphExec executable = nullptr;

  ~TimingObjects() {
    if (executable)
      (void)cuda.graphExecDestroy(executable);
    if (graph)
      (void)cuda.graphDestroy(graph);
    for (Event event : {start, end})
      if (event)
        (void)cuda.eventDestroy(event);
  }
};

} // namespace

Result CudaBackend::timeOne(const LaunchInfo &launch,
                            const LaunchTiming &timing, double &seconds) {
  const Driver &cuda = engine->driver();
  TimingObjects made{cuda};
  Result result = cuda.eventCreate(&made.start, kEventDefault);
  if (result == kSuccess)
    result = cuda.eventCreate(&made.end, kEventDefault);
  if (result == kSuccess)
    result = cuda.streamBeginCapture(stepStream, kCaptureModeRelaxed);
  if (result != kSuccess)
    return result;
  for (int32_t i = 0; i < timing.launches && result == kSuccess; ++i)
    result = engine->launch(launch, stepStream);
  // End the capture even if a launch was refused.
  Result ended = cuda.streamEndCapture(stepStream, &made.graph);
  result = result == kSuccess ? ended : result;
  if (result == kSuccess)
    result = cuda.graphInstantiate(&made.executable, made.graph, nullptr,
                                   nullptr, 0);
  std::vector<float> times;
  for (int32_t replay = 0; replay <= timing.replays && result == kSuccess;
       ++replay) {
    float milliseconds = 0;
    result = cuda.eventRecord(made.start, stepStream);
    if (result == kSuccess)
      result = cuda.graphLaunch(made.executable, stepStream);
    if (result == kSuccess)
      result = cuda.eventRecord(made.end, stepStream);
    if (result == kSuccess)
      result = engine->wait(made.end);
    if (result == kSuccess)
      result = cuda.eventElapsedTime(&milliseconds, made.start, made.end);
    if (replay > 0) // the first one warms up
      times.push_back(milliseconds);
  }
  if (result != kSuccess)
    return result;
  std::sort(times.begin(), times.end());
  seconds =
      static_cast<double>(times[times.size() / 2]) * 1e-3 / timing.launches;
  return kSuccess;
}

ckrt_status CudaBackend::timeLaunches(size_t function,
                                      const LaunchTiming &timing) {
  if (!engine)
    return repeatFailure();
  const Driver &cuda = engine->driver();
  const Manifest &m = program.manifest;
  Current current(cuda, engine->context());
  Result result = cuda.streamWaitEvent(stepStream, copyDone, 0);
  std::map<std::vector<int64_t>, double> known;
  for (size_t c = 0; c < m.calls.size() && result == kSuccess; ++c) {
    if (static_cast<size_t>(m.calls[c].function) != function)
      continue;
    const std::vector<LaunchInfo> &launches = engine->launchesOf(m.calls[c]);
    for (size_t i = 0; i < launches.size(); ++i) {
      const LaunchInfo &launch = launches[i];
      auto [at, isNew] = known.insert({timingKey(launch), 0.0});
      if (isNew)
        result = timeOne(launch, timing, at->second);
      if (result != kSuccess) {
        lastFunction = -1; // the launch is known
        return broken(describe(launch, m.calls[c]), result);
      }
      timing.hook(timing.user, static_cast<int64_t>(c), static_cast<int64_t>(i),
                  at->second);
    }
  }
  if (result == kSuccess)
    result = cuda.eventRecord(stepDone, stepStream);
  return result == kSuccess
             ? CKRT_OK
             : broken("cannot time " + m.functions[function].name, result);
}
