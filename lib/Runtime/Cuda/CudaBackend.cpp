//===- CudaBackend.cpp - memory of a session on a CUDA device -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Makes and destroys the backend, and copies between host and arena. Copies of
// n bytes take O(n).
//
//===----------------------------------------------------------------------===//
#include "CudaBackend.h"
#include "ckopt/Runtime/LastFailure.h"

#include <algorithm>
#include <cstdlib>

using namespace ckopt::runtime;
using namespace ckopt::runtime::cuda;

static std::string lockPathOf(const ckrt_program &program,
                              const ckrt_session_options &options) {
  if (options.lock_file || program.folder.empty())
    return options.lock_file ? options.lock_file : "";
  std::string folder = program.folder;
  while (folder.size() > 1 && folder.back() == '/')
    folder.pop_back();
  // "." and ".." have other names, beside which the file lies.
  if (std::string last = folder.substr(folder.rfind('/') + 1);
      last == "." || last == "..")
    if (char *real = realpath(folder.c_str(), nullptr)) {
      folder = real;
      free(real);
    }
  return folder + ".lock";
}

CudaBackend::CudaBackend(ckrt_program &program,
                         const ckrt_session_options &options)
    : program(program), options(options),
      lockPath(lockPathOf(program, options)) {
  this->options.lock_file = nullptr; // the caller owns the string
}

/// Gives each rank its own lock file: ranks have different devices, and
/// libraries may refuse different calls.
void CudaBackend::chooseLock() {
  if (lockPath.empty() || ranksOf(program.manifest) == 1)
    return;
  World *world = World::current();
  if (auto comm = NcclComm::current())
    lockPath += ".rank-" + std::to_string(comm->rank());
  else if (world)
    lockPath += ".rank-" + std::to_string(world->rank());
}

/// Decides the device of a rank if none was given.
ckrt_status CudaBackend::chooseDevice() {
  if (options.device >= 0)
    return CKRT_OK;
  options.device = 0;
  if (ranksOf(program.manifest) == 1)
    return CKRT_OK;
  MessageText why;
  bool tooOld = false;
  const Driver *driver = Driver::open(why, tooOld);
  if (!driver)
    return fail(tooOld ? CKRT_DEVICE_TOO_OLD : CKRT_NO_DEVICE, why);
  std::string error;
  if (auto comm = NcclComm::current())
    options.device = comm->ordinal();
  else if (World *world = World::current())
    options.device = rankDevice(*driver, *world, error);
  return options.device < 0 ? fail(CKRT_NO_DEVICE, error) : CKRT_OK;
}

ckrt_status CudaBackend::create() {
  chooseLock();
  ckrt_status status = chooseDevice();
  if (status == CKRT_OK)
    status = readLock();
  if (status != CKRT_OK)
    return status;
  Libraries::OnRefused onRefused;
  if (options.on_refused)
    onRefused = [this](int32_t primitive, const std::string &why) {
      options.on_refused(options.refused_user, primitive, 0, why.c_str());
    };
  engine = Engine::create(program, options.device, bytesBehind(), lock, status,
                          std::move(onRefused));
  if (!engine)
    return status;
  Current current(engine->driver(), engine->context());
  status = makeStreams();
  if (status == CKRT_OK)
    status = runLibrariesOnce(/*ofRanks=*/false);
  if (status == CKRT_OK)
    status = runLibrariesOnce(/*ofRanks=*/true);
  if (status == CKRT_OK)
    status = writeLock();
  if (status == CKRT_OK && !options.one_by_one)
    status = captureAll();
  return status == CKRT_OK && hasPattern() ? makePattern() : status;
}

/// Where neither libraries nor the generation of the device decide bits, there
/// is nothing to fix.
ckrt_status CudaBackend::readLock() {
  std::string error;
  lock.place(lockPath);
  bool needed = Libraries(program.manifest, lock).hasCalls() ||
                Engine::isOfGeneration(program);
  return !needed || lock.read(lockPath, error) ? CKRT_OK
                                               : fail(CKRT_LOCK, error);
}

ckrt_status CudaBackend::writeLock() {
  std::string error;
  switch (lock.write(error)) {
  case LockFile::Written::Yes:
    return CKRT_OK;
  case LockFile::Written::Differs:
    return fail(CKRT_LOCK, error);
  case LockFile::Written::No: // without libraries nothing was chosen
    if (!engine->whoRunsWhat().hasCalls())
      return CKRT_OK;
    break;
  }
  return fail(CKRT_IO, error);
}

ckrt_status CudaBackend::makeStreams() {
  const Driver &cuda = engine->driver();
  Result result = kSuccess;
  for (Stream *stream : {&stepStream, &copyStream, &lossStream})
    if (result == kSuccess)
      result = cuda.streamCreate(stream, kStreamNonBlocking);
  for (Event *event : {&stepDone, &copyDone, &lossRead, &fedTaken})
    if (result == kSuccess)
      result = cuda.eventCreate(event, kEventDisableTiming);
  flights = std::make_unique<Flights>(cuda, program.manifest);
  if (result == kSuccess)
    result = flights->create();
  if (result != kSuccess)
    return engine->failed("cannot make streams and events", result);
  staging = std::make_unique<Staging>(cuda, program.manifest);
  result = staging->create();
  engine->report.pinned_bytes = staging->bytes();
  if (result != kSuccess)
    return engine->failed("cannot allocate " +
                              std::to_string(staging->bytes()) +
                              " bytes of pinned host memory for batches",
                          result);
  return CKRT_OK;
}

CudaBackend::~CudaBackend() { release(); }

void CudaBackend::release() {
  if (!engine)
    return;
  const Driver &cuda = engine->driver();
  {
    // All work must end before its memory is freed. Failures are ignored: they
    // were reported, or no call waits for them.
    Current current(cuda, engine->context());
    for (Stream stream : {copyStream, lossStream, stepStream,
                          flights ? flights->messages() : nullptr})
      if (stream)
        (void)engine->wait(stream);
    for (GraphExec graph : graphs)
      if (graph)
        (void)cuda.graphExecDestroy(graph);
    staging.reset();
    flights.reset();
    finiteCheck.reset();
    stridedCopy.reset();
    pattern.reset();
    for (Event event : {stepDone, copyDone, lossRead, fedTaken, handover})
      if (event)
        (void)cuda.eventDestroy(event);
    for (Stream stream : {stepStream, copyStream, lossStream})
      if (stream)
        (void)cuda.streamDestroy(stream);
  }
  graphs.clear();
  stepDone = copyDone = lossRead = fedTaken = handover = nullptr;
  stepStream = copyStream = lossStream = nullptr;
  engine.reset();
}

ckrt_status CudaBackend::broken(const std::string &what, Result result) {
  ckrt_status status = engine->failed(what, result);
  brokenStatus = status;
  brokenText = lastFailure();
  if (status == CKRT_KERNEL && lastFunction >= 0)
    brokenText += "; " + findFailingKernel();
  release();
  return repeatFailure();
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

ckrt_status CudaBackend::download(char *to, int64_t offset, int64_t bytes) {
  const Driver &cuda = engine->driver();
  Result result = cuda.streamWaitEvent(copyStream, stepDone, 0);
  if (result == kSuccess && bytes > 0)
    result = cuda.memcpyDtoHAsync(to, engine->at(offset),
                                  static_cast<size_t>(bytes), copyStream);
  if (result == kSuccess)
    result = engine->wait(copyStream);
  return result == kSuccess ? CKRT_OK
                            : broken("cannot read " + std::to_string(bytes) +
                                         " bytes of the arena",
                                     result);
}

/// Copies to the device; returns when `from` may be used again.
ckrt_status CudaBackend::upload(int64_t offset, const char *from,
                                int64_t bytes) {
  const Driver &cuda = engine->driver();
  Result result = cuda.streamWaitEvent(copyStream, stepDone, 0);
  if (result == kSuccess && bytes > 0)
    result = cuda.memcpyHtoDAsync(engine->at(offset), from,
                                  static_cast<size_t>(bytes), copyStream);
  if (result == kSuccess)
    result = engine->wait(copyStream);
  return result == kSuccess ? CKRT_OK
                            : broken("cannot write " + std::to_string(bytes) +
                                         " bytes of the arena",
                                     result);
}

bool CudaBackend::isFedTwice(const TensorInfo &tensor) const {
  const DeviceInfo &device = program.manifest.device;
  return device.fedShift && tensor.bytes > 0 &&
         tensor.offset >= device.fedBegin &&
         tensor.offset + tensor.bytes <= device.fedEnd;
}

/// Second places have all that was fed last, even what was fed long ago.
int64_t CudaBackend::placeOf(const TensorInfo &tensor) const {
  return tensor.offset +
         (isFedTwice(tensor) ? program.manifest.device.fedShift : 0);
}

Result CudaBackend::takeFed() {
  const Driver &cuda = engine->driver();
  const DeviceInfo &device = program.manifest.device;
  Result result = cuda.streamWaitEvent(stepStream, copyDone, 0);
  if (result == kSuccess) // the step writes the loss again
    result = cuda.streamWaitEvent(stepStream, lossRead, 0);
  if (!fedWaits || result != kSuccess)
    return result;
  result = cuda.memcpyDtoDAsync(
      engine->at(device.fedBegin),
      engine->at(device.fedBegin + device.fedShift),
      static_cast<size_t>(device.fedEnd - device.fedBegin), stepStream);
  if (result == kSuccess)
    result = cuda.eventRecord(fedTaken, stepStream);
  fedWaits = result != kSuccess;
  return result;
}

ckrt_status CudaBackend::open(const TensorInfo &tensor, Access access,
                              char *&bytes) {
  if (!engine)
    return repeatFailure();
  Current current(engine->driver(), engine->context());
  Staging::Slot *slot = staging->find(tensor);
  if (slot) {
    bytes = slot->bytes;
    // An earlier copy may still read the slot.
    Result result = engine->wait(slot->copied);
    if (result != kSuccess)
      return broken("cannot wait for the copy of '" + tensor.name + "'",
                    result);
  } else {
    bounce.resize(static_cast<size_t>(tensor.bytes));
    bytes = bounce.data();
  }
  return access == Access::Write
             ? CKRT_OK
             : download(bytes, placeOf(tensor), tensor.bytes);
}

ckrt_status CudaBackend::read(const TensorInfo &tensor, int64_t begin,
                              int64_t size, const char *&bytes) {
  if (!engine)
    return repeatFailure();
  if (staging->find(tensor)) { // is small
    char *all = nullptr;
    ckrt_status status = open(tensor, Access::Read, all);
    bytes = all + begin;
    return status;
  }
  Current current(engine->driver(), engine->context());
  bounce.resize(static_cast<size_t>(size));
  bytes = bounce.data();
  return download(bounce.data(), tensor.offset + begin, size);
}

ckrt_status CudaBackend::close(const TensorInfo &tensor, Access access) {
  if (!engine)
    return repeatFailure();
  if (access == Access::Read)
    return CKRT_OK;
  peak = std::max(peak, placeOf(tensor) + tensor.bytes);
  Current current(engine->driver(), engine->context());
  Staging::Slot *slot = staging->find(tensor);
  if (!slot)
    return upload(tensor.offset, bounce.data(), tensor.bytes);
  return queueCopy(*slot, tensor);
}

ckrt_status CudaBackend::queueCopy(const Staging::Slot &slot,
                                   const TensorInfo &tensor) {
  const Driver &cuda = engine->driver();
  Current current(cuda, engine->context());
  auto place = engine->at(placeOf(tensor));
  auto bytes = static_cast<size_t>(tensor.bytes);
  Result result = cuda.streamWaitEvent(
      copyStream, isFedTwice(tensor) ? fedTaken : stepDone, 0);
  if (result == kSuccess)
    result = cuda.memcpyHtoDAsync(place, slot.bytes, bytes, copyStream);
  for (Event event : {slot.copied, copyDone})
    if (result == kSuccess)
      result = cuda.eventRecord(event, copyStream);
  fedWaits |= isFedTwice(tensor);
  return result == kSuccess
             ? CKRT_OK
             : broken("cannot copy '" + tensor.name + "'", result);
}

ckrt_status CudaBackend::synchronize() {
  if (!engine)
    return repeatFailure();
  const Driver &cuda = engine->driver();
  Current current(cuda, engine->context());
  Result result = kSuccess;
  for (Stream stream : {stepStream, copyStream, lossStream})
    if (result == kSuccess)
      result = engine->wait(stream);
  return result == kSuccess ? CKRT_OK : broken("the step failed", result);
}

ckrt_status CudaBackend::allocations(ckrt_allocation_stats &) {
  return fail(CKRT_UNSUPPORTED,
              "ckrt_allocations: allocations are counted on the CPU alone; "
              "ckrt_device says what the driver took");
}

std::string CudaBackend::rankDevices() {
  return engine && engine->ofRanks() ? engine->ofRanks()->devices() : "";
}

ckrt_status CudaBackend::deviceReport(ckrt_device_report &report) {
  if (!engine)
    return repeatFailure();
  Current current(engine->driver(), engine->context());
  report = engine->report;
  report.context_bytes = engine->contextBytes();
  return CKRT_OK;
}

ckrt_status CudaBackend::libraryChoices(ckrt_library_hook hook, void *user) {
  if (!engine)
    return repeatFailure();
  engine->whoRunsWhat().tell(hook, user);
  return CKRT_OK;
}

std::unique_ptr<Backend>
ckopt::runtime::makeCudaBackend(ckrt_program &program,
                                const ckrt_session_options &options,
                                ckrt_status &status) {
  auto backend = std::make_unique<CudaBackend>(program, options);
  status = backend->create();
  return status == CKRT_OK ? std::move(backend) : nullptr;
}
