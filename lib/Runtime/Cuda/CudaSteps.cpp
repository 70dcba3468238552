//===- CudaSteps.cpp - running functions on a CUDA device -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A function is its calls' launches in order, at fixed addresses. It is
// captured once as a graph and replayed; values that change lie in the arena.
// With programmatic launches, a kernel behind another of the step's may begin
// before that one has ended: each waits by itself before it touches the arena
// (GPUToLLVM.cpp). Its wait is for the end of that one, which has waited in all
// threads, too; so all earlier work has ended. Behind anything else (a
// library's call, a copy, an event) a kernel begins when that has ended, since
// only our kernels let others begin. Messages between ranks are a branch of the
// graph, from where they begin to where they are waited for (Flights.h). With
// one_by_one, the host waits for each launch: slower, but it shows which launch
// fails, and results can be checked between calls.
//
// A kernel that fails in a graph makes its context unusable, and the arena is
// lost. The kernel is searched for in a new context, over an arena of zeros
// with the constants and the last batch, since addresses do not depend on
// values (except for gathers). Some failures take the device away from the
// whole process; then the user has to run with one_by_one from the start.
//
//===----------------------------------------------------------------------===//
#include "CudaBackend.h"
#include "ckopt/Runtime/LastFailure.h"

#include <algorithm>
#include <cstring>
#include <set>

using namespace ckopt::runtime;
using namespace ckopt::runtime::cuda;

/// Calls fn(call index, launch) for each launch of a function, in order, until
/// it returns false.
template <typename Fn>
static void forEachLaunch(const Engine &engine, const Manifest &m,
                          size_t function, Fn fn) {
  for (size_t c = 0; c < m.calls.size(); ++c)
    if (static_cast<size_t>(m.calls[c].function) == function)
      for (const LaunchInfo &launch : engine.launchesOf(m.calls[c]))
        if (!fn(c, launch))
          return;
}

std::string CudaBackend::describe(const LaunchInfo &launch,
                                  const CallInfo &call) const {
  const Manifest &m = program.manifest;
  std::string what = launch.kernel >= 0
                         ? "kernel " + m.kernels[launch.kernel].symbol
                         : runtime::describe(m.primitives[launch.primitive]);
  return what + (call.source.empty() ? "" : " (from " + call.source + ")");
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

bool CudaBackend::isOfRanks(const LaunchInfo &launch) const {
  return launch.primitive >= 0 &&
         runtime::isOfRanks(
             program.manifest.primitives[static_cast<size_t>(launch.primitive)]
                 .kind);
}

/// Returns the failure of a library's first launch.
ckrt_status CudaBackend::refused(const LaunchInfo &launch, const CallInfo &call,
                                 Result result) {
  ckrt_status status =
      engine->failed("cannot launch " + describe(launch, call), result);
  MessageText text = lastFailure();
  if (engine->whoRunsWhat().isPinned(launch.primitive)) {
    status = CKRT_LOCK;
    text += "; the lock file has this algorithm: remove " + lockPath +
            " to choose again";
  }
  // If memory for its code is missing, a library does not report that.
  int64_t left = engine->freeBytes();
  return fail(status, left < 0 ? text
                               : text + " (" + std::to_string(left) +
                                     " bytes of the device are free)");
}

/// Runs each primitive once without capturing it: the first call of an
/// algorithm may load kernels and allocate, which can end a capture, and this
/// memory counts as the library's, not the graph's. The arena holds no values
/// yet, so nothing is overwritten. If a library refuses here, our own kernels
/// take the call, if there are any.
ckrt_status CudaBackend::runLibrariesOnce(bool ofRanks) {
  const Manifest &m = program.manifest;
  // A collective runs once for each of its phases, on all ranks.
  std::set<std::pair<int32_t, int64_t>> ran;
  int64_t before = engine->freeBytes();
  for (const CallInfo &call : m.calls)
    for (const LaunchInfo &launch : engine->launchesOf(call)) {
      if (launch.primitive < 0 || isOfRanks(launch) != ofRanks ||
          !ran.insert({launch.primitive, ofRanks ? launch.scalars[0] : 0})
               .second)
        continue;
      Stream stream =
          ofRanks && flights->messages() ? flights->messages() : stepStream;
      Result result = engine->launch(launch, stream);
      if (result == kLibraryFailed && engine->giveUp(launch))
        break; // the list has changed
      if (result != kSuccess)
        return refused(launch, call, result);
      result = engine->wait(stream);
      if (result != kSuccess)
        return engine->failed(describe(launch, call), result);
    }
  int64_t taken = engine->taken(before);
  int64_t &bytes =
      ofRanks ? engine->report.nccl_bytes : engine->report.library_bytes;
  bytes = bytes < 0 || taken < 0 ? -1 : bytes + taken;
  return CKRT_OK;
}

Result CudaBackend::capture(size_t function, Graph &graph, std::string &what) {
  const Driver &cuda = engine->driver();
  // A library's first call of an algorithm may load its kernels and allocate,
  // which every other capture mode forbids.
  Result result = cuda.streamBeginCapture(stepStream, kCaptureModeRelaxed);
  if (result != kSuccess)
    return result;
  const Manifest &m = program.manifest;
  bool joined = true; // no other stream takes part yet
  bool behindKernel = false;
  for (size_t c = 0; c < m.calls.size() && result == kSuccess; ++c) {
    if (static_cast<size_t>(m.calls[c].function) != function)
      continue;
    result = flights->before(c, stepStream);
    joined = joined && flights->streamOf(c, stepStream) == stepStream;
    behindKernel = behindKernel && !flights->hasEvents(c);
    for (const LaunchInfo &launch : engine->launchesOf(m.calls[c])) {
      if (result != kSuccess)
        break;
      result = engine->launch(launch, flights->streamOf(c, stepStream),
                              behindKernel);
      behindKernel = launch.kernel >= 0 && !flights->hasEvents(c);
      if (result != kSuccess)
        what = "cannot launch " + describe(launch, m.calls[c]);
    }
    if (result == kSuccess)
      result = flights->behind(c, stepStream);
  }
  // End the capture even if a launch was refused.
  if (result != kSuccess && !joined)
    flights->join(stepStream);
  Result ended = cuda.streamEndCapture(stepStream, &graph);
  return result == kSuccess ? ended : result;
}

ckrt_status CudaBackend::captureAll() {
  const Driver &cuda = engine->driver();
  const Manifest &m = program.manifest;
  int64_t before = engine->freeBytes();
  graphs.assign(m.functions.size(), nullptr);
  for (size_t f = 0; f < m.functions.size(); ++f) {
    bool empty = true;
    forEachLaunch(*engine, m, f, [&](size_t, const LaunchInfo &) {
      empty = false;
      return false;
    });
    if (empty)
      continue;
    Graph graph = nullptr;
    std::string what = "cannot make a graph of function " + m.functions[f].name;
    Result result = capture(f, graph, what);
    if (result == kSuccess)
      result = cuda.graphInstantiate(&graphs[f], graph, nullptr, nullptr, 0);
    if (graph)
      (void)cuda.graphDestroy(graph);
    if (result != kSuccess)
      return engine->failed(what, result);
  }
  engine->report.graph_bytes = engine->taken(before);
  return CKRT_OK;
}

ckrt_status CudaBackend::replay(size_t function) {
  const Driver &cuda = engine->driver();
  Result result = takeFed();
  if (result == kSuccess && graphs[function])
    result = cuda.graphLaunch(graphs[function], stepStream);
  if (result == kSuccess)
    result = cuda.eventRecord(stepDone, stepStream);
  return result == kSuccess
             ? CKRT_OK
             : broken("cannot start " +
                          program.manifest.functions[function].name,
                      result);
}

ckrt_status CudaBackend::run(size_t function, CallChecker &checker) {
  if (!engine)
    return repeatFailure();
  Current current(engine->driver(), engine->context());
  lastFunction = static_cast<int64_t>(function);
  ckrt_status status = options.one_by_one || checker.active()
                           ? runOneByOne(function, checker)
                           : replay(function);
  if (status == CKRT_OK && engine->ofRanks())
    engine->ofRanks()->record(function);
  // Later runs write to the same places; measure() looks at the end.
  if (status == CKRT_OK && hasPattern() && tailSeen.insert(function).second)
    status = checkTail(program.manifest.functions[function].name);
  return status;
}

//===----------------------------------------------------------------------===//
// One by one
//===----------------------------------------------------------------------===//

ckrt_status CudaBackend::lookAtResults(size_t call, CallChecker &checker) {
  const CallInfo &info = program.manifest.calls[call];
  shadow.resize(static_cast<size_t>(program.manifest.arenaBytes));
  for (const CallResult &result : info.results)
    if (ckrt_status status = download(shadow.data() + result.offset,
                                      result.offset, result.bytes))
      return status;
  int32_t code = checker.callDone(static_cast<int64_t>(call), shadow.data());
  return code == 0 ? CKRT_OK
                   : fail(static_cast<ckrt_status>(code), checker.failure);
}

ckrt_status CudaBackend::runOneByOne(size_t function, CallChecker &checker) {
  const Driver &cuda = engine->driver();
  const Manifest &m = program.manifest;
  checker.startStep();
  Result result = takeFed();
  ckrt_status status = CKRT_OK;
  for (size_t c = 0; c < m.calls.size() && result == kSuccess; ++c) {
    const CallInfo &call = m.calls[c];
    if (static_cast<size_t>(call.function) != function)
      continue;
    Stream stream = flights->streamOf(c, stepStream);
    result = flights->before(c, stepStream);
    for (const LaunchInfo &launch : engine->launchesOf(call)) {
      if (result == kSuccess)
        result = engine->launch(launch, stream);
      if (result == kSuccess)
        result = engine->wait(stream);
      if (result != kSuccess) {
        lastFunction = -1; // no longer needed: the call is known
        return broken(describe(launch, call), result);
      }
    }
    if (result == kSuccess)
      result = flights->behind(c, stepStream);
    if (result == kSuccess)
      result = cuda.eventRecord(stepDone, stepStream);
    if (result == kSuccess && hasPattern())
      status =
          checkTail("kernel " + call.kernel + " (from " + call.source + ")");
    if (status == CKRT_OK && checker.active())
      status = lookAtResults(c, checker);
    if (status != CKRT_OK)
      return status;
  }
  return result == kSuccess
             ? CKRT_OK
             : broken("cannot run " + m.functions[function].name, result);
}

//===----------------------------------------------------------------------===//
// Failing kernels
//===----------------------------------------------------------------------===//

namespace {

/// A tensor's bytes, kept while its session is destroyed.
struct Kept {
  int64_t offset;
  std::string bytes;
};

/// Fills the arena with zeros, then with the kept tensors. Returns false if the
/// device refuses.
bool fillForSearch(const Engine &engine, const std::vector<Kept> &kept,
                   Stream stream) {
  const Driver &cuda = engine.driver();
  std::string zeros(static_cast<size_t>(8 << 20), '\0');
  auto copy = [&](int64_t offset, const char *from, int64_t bytes) {
    return cuda.memcpyHtoDAsync(engine.at(offset), from,
                                static_cast<size_t>(bytes),
                                stream) == kSuccess &&
           cuda.streamSynchronize(stream) == kSuccess;
  };
  bool sound = true;
  auto step = static_cast<int64_t>(zeros.size());
  for (int64_t at = 0; sound && at < engine.arenaBytes(); at += step)
    sound = copy(at, zeros.data(), std::min(step, engine.arenaBytes() - at));
  for (const Kept &tensor : kept)
    sound = sound && copy(tensor.offset, tensor.bytes.data(),
                          static_cast<int64_t>(tensor.bytes.size()));
  return sound;
}

} // namespace

std::string CudaBackend::findFailingKernel() {
  const Manifest &m = program.manifest;
  std::vector<Kept> kept;
  for (const TensorInfo &t : m.tensors) {
    Staging::Slot *slot = staging->find(t);
    if (t.bytes > 0 && (slot || t.dataOffset >= 0))
      kept.push_back(
          {t.offset, std::string(slot ? slot->bytes
                                      : program.data + t.dataOffsetOf(rank()),
                                 static_cast<size_t>(t.bytes))});
  }
  const std::string advice = "run its artifact with ckopt-run " +
                             foreignFlag("one-by-one") +
                             " to see which kernel it was";
  if (engine->ofRanks()) // the others do not run it again
    return advice;
  release(); // there may not be memory for two arenas
  ckrt_status status = CKRT_OK;
  auto searcher = Engine::create(program, options.device, 0, lock, status);
  if (!searcher)
    return advice;
  const Driver &cuda = searcher->driver();
  Current current(cuda, searcher->context());
  Stream stream = nullptr;
  if (cuda.streamCreate(&stream, kStreamNonBlocking) != kSuccess)
    return advice;
  std::string found;
  if (fillForSearch(*searcher, kept, stream))
    forEachLaunch(*searcher, m, static_cast<size_t>(lastFunction),
                  [&](size_t c, const LaunchInfo &launch) {
                    Result result = searcher->launch(launch, stream);
                    if (result == kSuccess)
                      result = cuda.streamSynchronize(stream);
                    if (result != kSuccess)
                      found = describe(launch, m.calls[c]) +
                              " fails when it runs alone: " +
                              searcher->text(result);
                    return result == kSuccess;
                  });
  (void)cuda.streamDestroy(stream);
  return found.empty() ? "no kernel fails when run alone; " + advice : found;
}
