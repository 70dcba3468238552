//===- Engine.cpp - a device with loaded code and an arena ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks come in order of their cost: driver, device, versions, then a context,
// the code (EngineCode.cpp), the arena. Free memory is read between these
// steps; the differences show how much each took in addition to the planned
// bytes.
//
//===----------------------------------------------------------------------===//
#include "Engine.h"
#include "DeviceFacts.h"
#include "ckopt/Runtime/CudaCapabilities.h"

#include <algorithm>
#include <cstring>

using namespace ckopt::runtime;
using namespace ckopt::runtime::cuda;

ckrt_status ckopt::runtime::cuda::statusOf(Result result) {
  switch (result) {
  case kSuccess:
    return CKRT_OK;
  case kOutOfMemory:
    return CKRT_DEVICE_MEMORY;
  case kNoDevice:
  case kInvalidDevice:
  case kStubLibrary:
  case kSystemNotReady:
    return CKRT_NO_DEVICE;
  case kInvalidImage:
  case kNoBinaryForGpu:
  case kInvalidPtx:
  case kJitCompilerNotFound:
  case kUnsupportedPtxVersion:
  case kJitCompilationDisabled:
  case kNotFound:
    return CKRT_DEVICE_CODE;
  case kLibraryFailed:
    return CKRT_NO_LIBRARY;
  case kRankFailed:
    return CKRT_RANK;
  case kDeinitialized:
  case kDeviceUnavailable:
  case kEccUncorrectable:
  case kNvlinkUncorrectable:
  case kContained:
  case kContextIsDestroyed:
  case kUnknown:
    return CKRT_DEVICE_LOST;
  case kIllegalAddress:
  case kLaunchOutOfResources:
  case kLaunchTimeout:
  case kAssert:
  case kTensorMemoryLeak:
    return CKRT_KERNEL;
  default:
    return result >= kHardwareStackError && result <= kLaunchFailed
               ? CKRT_KERNEL
               : CKRT_EXECUTION;
  }
}

std::string Engine::name() const {
  return "cuda:" + std::to_string(report.ordinal) +
         (report.name[0] ? std::string(" (") + report.name + ")" : "");
}

std::string Engine::text(Result result) const {
  return result == kLibraryFailed ? libraryError
         : result == kRankFailed  ? rankError
                                  : cuda.text(result);
}

ckrt_status Engine::failed(const MessageText &what, Result result) const {
  if (result == kRankFailed) // the message is about another process
    return fail(CKRT_RANK, rankError);
  return fail(statusOf(result), name() + ": " + what + ": " + text(result));
}

ckrt_status Engine::openDevice(int ordinal) {
  report.ordinal = ordinal;
  ckrt_device_facts facts = {};
  if (ckrt_status status = describeDevice(cuda, ordinal, device, facts))
    return status;
  static_assert(sizeof(report.name) == sizeof(facts.name));
  std::memcpy(report.name, facts.name, sizeof(report.name));
  report.compute_capability = facts.compute_capability;
  report.multiprocessors = facts.multiprocessors;
  report.driver_version = facts.driver_version;
  return CKRT_OK;
}

ckrt_status Engine::checkDevice() {
  const DeviceInfo &needs = manifest.device;
  auto capability = [](int sm) {
    return std::to_string(sm / 10) + "." + std::to_string(sm % 10);
  };
  if (report.compute_capability < needs.sm)
    return fail(CKRT_DEVICE_TOO_OLD,
                name() + " has compute capability " +
                    capability(report.compute_capability) +
                    ", the artifact needs " + capability(needs.sm) +
                    " or higher" +
                    (report.compute_capability >= kLeastCapability
                         ? ": compile with " +
                               Setting("sm", std::to_string(codeCapability(
                                                 report.compute_capability)))
                         : ", and no code of ckopt runs on less than " +
                               capability(kLeastCapability)));
  if (cuda.version < needs.minDriver)
    return fail(CKRT_DEVICE_TOO_OLD,
                "the CUDA driver supports CUDA " + versionText(cuda.version) +
                    ", the artifact (PTX " + capability(needs.ptxIsa) +
                    ") needs one for CUDA " + versionText(needs.minDriver) +
                    " or later: update NVIDIA's driver");
  return CKRT_OK;
}

ckrt_status Engine::allocate() {
  used = (std::max<int64_t>(manifest.arenaBytes, 1) + 63) / 64 * 64;
  int64_t before = freeBytes();
  Result result = cuda.memAlloc(&arena, static_cast<size_t>(allBytes()));
  if (result == kOutOfMemory)
    return fail(CKRT_DEVICE_MEMORY,
                name() + ": the arena needs " + std::to_string(allBytes()) +
                    " bytes, " + std::to_string(before) + " of " +
                    std::to_string(report.total_bytes) +
                    " are free: compile with a smaller " +
                    Setting("memory-budget") +
                    " or batch, or free memory that others hold");
  if (result != kSuccess)
    return failed("cannot allocate the arena of " + std::to_string(allBytes()) +
                      " bytes",
                  result);
  if (arena % kDeviceAlignment != 0)
    return fail(CKRT_DEVICE_MEMORY,
                name() + ": the driver's memory is not aligned to " +
                    std::to_string(kDeviceAlignment) + " bytes");
  report.arena_bytes = taken(before);
  return CKRT_OK;
}

int64_t Engine::freeBytes() const {
  size_t available = 0, total = 0;
  return cuda.memGetInfo(&available, &total) == kSuccess
             ? static_cast<int64_t>(available)
             : -1;
}

int64_t Engine::taken(int64_t before) const {
  int64_t now = freeBytes();
  return before < 0 || now < 0 || now > before ? -1 : before - now;
}

int64_t Engine::contextBytes() const {
  int64_t before = freeBytes();
  Context made = nullptr, popped = nullptr;
  if (cuda.ctxCreate(&made, 0, device) != kSuccess)
    return -1;
  int64_t bytes = taken(before);
  (void)cuda.ctxPopCurrent(&popped);
  (void)cuda.ctxDestroy(made);
  return bytes;
}

std::unique_ptr<Engine> Engine::create(const ckrt_program &program, int ordinal,
                                       int64_t tail, LockFile &lock,
                                       ckrt_status &status,
                                       Libraries::OnRefused onRefused) {
  MessageText error;
  bool tooOld = false;
  const Driver *driver = Driver::open(error, tooOld);
  if (!driver) {
    status = fail(tooOld ? CKRT_DEVICE_TOO_OLD : CKRT_NO_DEVICE, error);
    return nullptr;
  }
  std::unique_ptr<Engine> engine(new Engine(*driver, program.manifest));
  engine->tail = tail;
  status = engine->openDevice(ordinal);
  if (status == CKRT_OK)
    status = engine->checkDevice();
  if (status != CKRT_OK)
    return nullptr;
  engine->libraries =
      std::make_unique<Libraries>(program.manifest, lock, std::move(onRefused));
  // CUDA's runtime uses a device's primary context, and with it its libraries
  // and all who share memory with a step.
  Context made = nullptr;
  Result result = driver->primaryRetain(&made, engine->device);
  if (result != kSuccess) {
    // During a step this result means that the device was lost; here, that it
    // was never available.
    status = result == kDeviceUnavailable
                 ? fail(CKRT_NO_DEVICE,
                        engine->name() +
                            ": another process has the device to itself "
                            "(exclusive mode): " +
                            driver->text(result))
                 : engine->failed("cannot make a context", result);
    return nullptr;
  }
  engine->retained = made;
  Current current(*driver, made);
  size_t available = 0, total = 0;
  result = current.result;
  if (result == kSuccess)
    result = driver->memGetInfo(&available, &total);
  if (result != kSuccess) {
    status = engine->failed("cannot use the context", result);
    return nullptr;
  }
  engine->report.total_bytes = static_cast<int64_t>(total);
  engine->report.used_bytes = static_cast<int64_t>(total - available);
  int64_t before = engine->freeBytes();
  status = engine->lockGeneration(program, lock);
  if (status == CKRT_OK)
    status = engine->libraries->create(engine->report);
  engine->report.library_bytes = engine->taken(before);
  if (status == CKRT_OK)
    status = Collectives::create(program.manifest, *driver, engine->report,
                                 engine->collectives);
  if (engine->collectives && status == CKRT_OK)
    engine->report.nccl_bytes = engine->collectives->connection().bytes();
  if (status == CKRT_OK)
    status = engine->loadCode(program.deviceCode, lock);
  if (status == CKRT_OK)
    status = engine->allocate();
  return status == CKRT_OK ? std::move(engine) : nullptr;
}

Engine::~Engine() {
  if (!retained)
    return;
  {
    // Failures are ignored here: a lost device frees nothing.
    Current current(cuda, retained);
    libraries.reset();
    collectives.reset();
    if (arena)
      (void)cuda.memFree(arena);
    if (module)
      (void)cuda.moduleUnload(module);
  }
  (void)cuda.primaryRelease(device);
}

Result Engine::wait(Stream stream) {
  if (!collectives)
    return cuda.streamSynchronize(stream);
  Result result = kSuccess;
  return collectives->connection().wait(
             [&] { return cuda.streamQuery(stream); }, result, rankError)
             ? result
             : kRankFailed;
}

Result Engine::wait(Event event) {
  if (!collectives)
    return cuda.eventSynchronize(event);
  Result result = kSuccess;
  return collectives->connection().wait([&] { return cuda.eventQuery(event); },
                                        result, rankError)
             ? result
             : kRankFailed;
}

/// Returns whether kernels may begin early. Graphs keep such an order of their
/// kernels from CUDA 12.3 on.
bool Engine::launchesEarly() const {
  constexpr int kLeastDriver = 12030;
  return manifest.device.programmatic && cuda.launchKernelEx &&
         cuda.version >= kLeastDriver;
}

Result Engine::launch(const LaunchInfo &launch, Stream stream,
                      bool behindKernel) {
  if (launch.primitive >= 0 &&
      isOfRanks(manifest.primitives[launch.primitive].kind))
    return collectives ? collectives->enqueue(launch, at(0), stream, rankError)
                       : kInvalidValue;
  if (launch.primitive >= 0) {
    Places places = {};
    for (size_t i = 0; i < launch.pointers.size(); ++i)
      places.args[i] = at(launch.pointers[i].offset);
    places.workspace = at(launch.scratchOffset);
    if (DeviceRange zeros = libraries->zeros(launch.primitive, places);
        zeros.bytes)
      if (Result result = cuda.memsetD8Async(zeros.at, 0, zeros.bytes, stream))
        return result;
    return libraries->enqueue(launch.primitive, places, stream, libraryError)
               ? kSuccess
               : kLibraryFailed;
  }
  const KernelInfo &kernel = manifest.kernels[launch.kernel];
  std::vector<uint64_t> values;
  values.reserve(launch.pointers.size() + launch.scalars.size() + 1);
  for (const LaunchPointer &pointer : launch.pointers)
    values.push_back(at(pointer.offset));
  for (int64_t scalar : launch.scalars)
    values.push_back(static_cast<uint64_t>(scalar));
  values.push_back(at(launch.scratchOffset));
  std::vector<void *> parameters;
  for (uint64_t &value : values)
    parameters.push_back(&value);
  const auto grid = static_cast<unsigned>(kernel.grid),
             block = static_cast<unsigned>(kernel.block),
             sharedBytes = static_cast<unsigned>(dynamicBytes(kernel));
  if (!behindKernel || !launchesEarly())
    return cuda.launchKernel(functions[launch.kernel], grid, 1, 1, block, 1, 1,
                             sharedBytes, stream, parameters.data(), nullptr);
  const LaunchAttribute early = {
      kProgrammaticSerialization, 0, /*value=*/1, {}};
  const LaunchConfig config = {{grid, 1, 1}, {block, 1, 1}, sharedBytes,
                               stream,       &early,        1};
  return cuda.launchKernelEx(&config, functions[launch.kernel],
                             parameters.data(), nullptr);
}
