//===- Api.cpp - the stand-in driver's entries ----------------------------===//
//
// The names and signatures of libcuda.so.1 that the runtime uses, over Machine.
//
//===----------------------------------------------------------------------===//
#include "Machine.h"

#include <cstdio>
#include <cstring>
#include <dlfcn.h>

using namespace standin;

#define STANDIN extern "C" __attribute__((visibility("default"))) Result
#define ENTER(...)                                                             \
  Machine &machine = Machine::get();                                           \
  std::lock_guard<std::recursive_mutex> lock(machine.mutex);                   \
  if (Result failure = machine.enter(__VA_ARGS__))                             \
  return failure

static std::string text(int64_t value) { return std::to_string(value); }

//===----------------------------------------------------------------------===//
// Driver, devices, contexts
//===----------------------------------------------------------------------===//

STANDIN cuInit(unsigned) {
  ENTER("cuInit", "", false);
  if (machine.devices == 0)
    return kNoDevice;
  machine.initialized = true;
  return kSuccess;
}

STANDIN cuDriverGetVersion(int *version) {
  ENTER("cuDriverGetVersion", "", false);
  *version = machine.version;
  return kSuccess;
}

STANDIN cuGetErrorName(Result code, const char **name) {
  *name = code == kOutOfMemory      ? "CUDA_ERROR_OUT_OF_MEMORY"
          : code == kNoDevice       ? "CUDA_ERROR_NO_DEVICE"
          : code == kInvalidPtx     ? "CUDA_ERROR_INVALID_PTX"
          : code == kIllegalAddress ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : code == kUnknown        ? "CUDA_ERROR_UNKNOWN"
                                    : "CUDA_ERROR_OTHER";
  return kSuccess;
}

STANDIN cuGetErrorString(Result code, const char **what) {
  static thread_local std::string kept;
  kept = "stand-in failure " + text(code);
  *what = kept.c_str();
  return kSuccess;
}

STANDIN cuDeviceGetCount(int *count) {
  ENTER("cuDeviceGetCount", "", false);
  *count = machine.devices;
  return kSuccess;
}

STANDIN cuDeviceGet(Device *device, int ordinal) {
  ENTER("cuDeviceGet", text(ordinal), false);
  if (ordinal < 0 || ordinal >= machine.devices)
    return kInvalidDevice;
  *device = ordinal;
  return kSuccess;
}

STANDIN cuDeviceGetName(char *name, int size, Device device) {
  ENTER("cuDeviceGetName", "", false);
  std::snprintf(name, static_cast<size_t>(size), "Stand-in %d", device);
  return kSuccess;
}

STANDIN cuDeviceGetAttribute(int *value, DeviceAttribute attribute, Device) {
  ENTER("cuDeviceGetAttribute", text(attribute), false);
  *value = attribute == kComputeCapabilityMajor   ? machine.capability / 10
           : attribute == kComputeCapabilityMinor ? machine.capability % 10
                                                  : 4;
  return kSuccess;
}

STANDIN cuCtxCreate_v2(Context *context, unsigned, Device device) {
  ENTER("cuCtxCreate", text(device), false);
  if (machine.usedBytes() + Machine::kContextBytes > machine.totalBytes)
    return kOutOfMemory;
  auto made = std::make_unique<ContextOpaque>();
  made->number = ++machine.nextNumber;
  *context = made.get();
  machine.contexts.push_back(std::move(made));
  machine.stack().push_back(*context);
  return kSuccess;
}

STANDIN cuCtxDestroy_v2(Context context) {
  ENTER("cuCtxDestroy", "", false);
  if (!Machine::live(machine.contexts, context))
    return machine.violation("destroys a context that is none");
  for (const Block &block : machine.deviceBlocks)
    if (block.context == context && context->failure == kSuccess)
      machine.violation("a context goes while " + block.name + " lives");
  // A failed context refused to unload its modules; they go with it.
  if (context->failure != kSuccess)
    machine.modules.remove_if(
        [&](const auto &module) { return module->context == context; });
  auto &stack = machine.stack();
  if (!stack.empty() && stack.back() == context)
    stack.pop_back();
  Machine::destroy(machine.contexts, context);
  return kSuccess;
}

STANDIN cuCtxPushCurrent_v2(Context context) {
  // Not logged: it says nothing about order.
  Machine &machine = Machine::get();
  std::lock_guard<std::recursive_mutex> lock(machine.mutex);
  if (!Machine::live(machine.contexts, context))
    return machine.violation("pushes a context that is none");
  machine.stack().push_back(context);
  return kSuccess;
}

STANDIN cuCtxPopCurrent_v2(Context *context) {
  Machine &machine = Machine::get();
  std::lock_guard<std::recursive_mutex> lock(machine.mutex);
  if (machine.stack().empty())
    return machine.violation("pops a context where there is none");
  *context = machine.stack().back();
  machine.stack().pop_back();
  return kSuccess;
}

STANDIN cuCtxGetCurrent(Context *context) {
  Machine &machine = Machine::get();
  std::lock_guard<std::recursive_mutex> lock(machine.mutex);
  *context = machine.current();
  return kSuccess;
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

STANDIN cuModuleLoadDataEx(Module *module, const void *image, unsigned count,
                           JitOption *options, void **values) {
  std::string code = static_cast<const char *>(image);
  ENTER("cuModuleLoadDataEx", text(int64_t(code.size())));
  auto made = std::make_unique<ModuleOpaque>();
  made->context = machine.current();
  made->bytes = static_cast<int64_t>(code.size());
  made->kernels = Machine::openKernels();
  std::string wrong = parsePtx(code, made->text);
  Result result = wrong.empty() ? kSuccess : kInvalidPtx;
  if (result == kSuccess && made->text.target > machine.capability)
    result = kNoBinaryForGpu;
  if (result == kInvalidPtx) {
    char *log = nullptr;
    size_t size = 0;
    for (unsigned i = 0; i < count; ++i) {
      if (options[i] == kErrorLogBuffer)
        log = static_cast<char *>(values[i]);
      if (options[i] == kErrorLogBufferSizeBytes)
        size = reinterpret_cast<size_t>(values[i]);
    }
    if (log && size)
      std::snprintf(log, size, "%s", wrong.c_str());
  }
  if (result == kSuccess &&
      machine.usedBytes() + made->bytes > machine.totalBytes)
    result = kOutOfMemory;
  if (result != kSuccess)
    return result;
  *module = made.get();
  machine.modules.push_back(std::move(made));
  return kSuccess;
}

STANDIN cuModuleUnload(Module module) {
  ENTER("cuModuleUnload", "");
  return Machine::destroy(machine.modules, module)
             ? kSuccess
             : machine.violation("unloads a module that is none");
}

STANDIN cuModuleGetFunction(Function *function, Module module,
                            const char *name) {
  ENTER("cuModuleGetFunction", name);
  auto found = module->text.entries.find(name);
  if (found == module->text.entries.end())
    return kNotFound;
  FunctionOpaque made;
  made.symbol = name;
  made.entry = &found->second;
  if (module->kernels) {
    std::string symbol = made.symbol + "__emul";
    made.code = reinterpret_cast<void (*)(void *const *)>(
        dlsym(module->kernels, symbol.c_str()));
    if (!made.code) {
      machine.violation("CKOPT_STANDIN_KERNELS has no " + symbol);
      return kNotFound;
    }
  }
  module->functions.push_back(std::move(made));
  *function = &module->functions.back();
  return kSuccess;
}

STANDIN cuFuncGetAttribute(int *value, FunctionAttribute attribute,
                           Function function) {
  ENTER("cuFuncGetAttribute", text(attribute));
  *value = attribute == kMaxThreadsPerBlock
               ? static_cast<int>(function->entry->maxThreads)
           : attribute == kSharedSizeBytes
               ? static_cast<int>(function->entry->sharedBytes)
           : attribute == kNumRegs ? 32
                                   : 0;
  return kSuccess;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

STANDIN cuMemGetInfo_v2(size_t *available, size_t *total) {
  ENTER("cuMemGetInfo", "");
  *total = static_cast<size_t>(machine.totalBytes);
  *available = static_cast<size_t>(machine.totalBytes - machine.usedBytes());
  return kSuccess;
}

STANDIN cuMemAlloc_v2(DevicePointer *pointer, size_t bytes) {
  ENTER("cuMemAlloc", text(int64_t(bytes)));
  char *memory = nullptr;
  Result result = machine.allocate(machine.deviceBlocks, "D", bytes, memory);
  *pointer = reinterpret_cast<DevicePointer>(memory);
  return result;
}

STANDIN cuMemFree_v2(DevicePointer pointer) {
  Machine::get().log("cuMemFree " + Machine::get().place(pointer));
  Machine &machine = Machine::get();
  std::lock_guard<std::recursive_mutex> lock(machine.mutex);
  return machine.release(machine.deviceBlocks,
                         reinterpret_cast<const void *>(pointer));
}

STANDIN cuMemHostAlloc(void **pointer, size_t bytes, unsigned) {
  ENTER("cuMemHostAlloc", text(int64_t(bytes)));
  char *memory = nullptr;
  Result result = machine.allocate(machine.hostBlocks, "H", bytes, memory);
  *pointer = memory;
  return result;
}

STANDIN cuMemFreeHost(void *pointer) {
  Machine &machine = Machine::get();
  std::lock_guard<std::recursive_mutex> lock(machine.mutex);
  machine.log("cuMemFreeHost");
  return machine.release(machine.hostBlocks, pointer);
}

//===----------------------------------------------------------------------===//
// Streams, events, copies
//===----------------------------------------------------------------------===//

STANDIN cuStreamCreate(Stream *stream, unsigned) {
  ENTER("cuStreamCreate", "");
  auto made = std::make_unique<StreamOpaque>();
  made->number = static_cast<int>(machine.streams.size()) + 1;
  made->context = machine.current();
  *stream = made.get();
  machine.streams.push_back(std::move(made));
  return kSuccess;
}

static std::string nameOf(Stream stream) {
  return "S" + std::to_string(stream ? stream->number : 0);
}
static std::string nameOf(Event event) {
  return "E" + std::to_string(event ? event->number : 0);
}

STANDIN cuStreamDestroy_v2(Stream stream) {
  Machine &machine = Machine::get();
  std::lock_guard<std::recursive_mutex> lock(machine.mutex);
  machine.log("cuStreamDestroy " + nameOf(stream));
  if (stream->done != stream->queued)
    machine.violation("a stream goes while it has work");
  return Machine::destroy(machine.streams, stream)
             ? kSuccess
             : machine.violation("destroys a stream that is none");
}

STANDIN cuStreamSynchronize(Stream stream) {
  // Work is done before the call can fail, as on a device.
  Machine &machine = Machine::get();
  std::lock_guard<std::recursive_mutex> lock(machine.mutex);
  if (stream->capture)
    return machine.violation("waits for a stream that captures");
  if (Result failure =
          machine.enter("cuStreamSynchronize", nameOf(stream), false)) {
    stream->context->failure = failure;
    (void)machine.drainAll(stream);
    return failure;
  }
  return machine.drainAll(stream);
}

STANDIN cuEventCreate(Event *event, unsigned) {
  ENTER("cuEventCreate", "");
  auto made = std::make_unique<EventOpaque>();
  made->number = static_cast<int>(machine.events.size()) + 1;
  made->context = machine.current();
  *event = made.get();
  machine.events.push_back(std::move(made));
  return kSuccess;
}

STANDIN cuEventDestroy_v2(Event event) {
  Machine &machine = Machine::get();
  std::lock_guard<std::recursive_mutex> lock(machine.mutex);
  machine.log("cuEventDestroy " + nameOf(event));
  return Machine::destroy(machine.events, event)
             ? kSuccess
             : machine.violation("destroys an event that is none");
}

STANDIN cuEventRecord(Event event, Stream stream) {
  ENTER("cuEventRecord", nameOf(event) + " " + nameOf(stream));
  if (stream->capture)
    return machine.violation("records an event in a stream that captures");
  machine.push(stream, [] { return kSuccess; });
  event->stream = stream;
  event->position = stream->queued;
  return kSuccess;
}

STANDIN cuEventSynchronize(Event event) {
  ENTER("cuEventSynchronize", nameOf(event));
  return event->stream ? machine.drain(event->stream, event->position)
                       : kSuccess;
}

STANDIN cuStreamWaitEvent(Stream stream, Event event, unsigned) {
  ENTER("cuStreamWaitEvent", nameOf(stream) + " " + nameOf(event));
  if (stream->capture)
    return machine.violation("waits for an event in a stream that captures");
  Stream other = event->stream;
  uint64_t position = event->position;
  if (other)
    machine.push(stream, [other, position]() -> Result {
      return Machine::get().drain(other, position);
    });
  return kSuccess;
}

STANDIN cuMemcpyHtoDAsync_v2(DevicePointer to, const void *from, size_t bytes,
                             Stream stream) {
  Machine &all = Machine::get();
  const Block *pinned = all.hostBlock(from, bytes);
  ENTER(
      "cuMemcpyHtoDAsync",
      all.place(to) + " " +
          (pinned ? all.place(reinterpret_cast<uint64_t>(from)) : "pageable") +
          " " + text(int64_t(bytes)) + " " + nameOf(stream));
  if (stream->capture || !machine.deviceBlock(to, bytes))
    return machine.violation("copies to what is not allocated");
  auto *target = reinterpret_cast<char *>(to);
  if (pinned) {
    machine.push(stream, [=]() -> Result {
      std::memcpy(target, from, bytes);
      return kSuccess;
    });
    return kSuccess;
  }
  // Pageable memory is taken before the call returns.
  std::string taken(static_cast<const char *>(from), bytes);
  machine.push(stream, [=]() -> Result {
    std::memcpy(target, taken.data(), bytes);
    return kSuccess;
  });
  return kSuccess;
}

STANDIN cuMemcpyDtoHAsync_v2(void *to, DevicePointer from, size_t bytes,
                             Stream stream) {
  Machine &all = Machine::get();
  const Block *pinned = all.hostBlock(to, bytes);
  ENTER("cuMemcpyDtoHAsync",
        (pinned ? all.place(reinterpret_cast<uint64_t>(to)) : "pageable") +
            " " + all.place(from) + " " + text(int64_t(bytes)) + " " +
            nameOf(stream));
  if (stream->capture || !machine.deviceBlock(from, bytes))
    return machine.violation("copies from what is not allocated");
  auto *source = reinterpret_cast<const char *>(from);
  machine.push(stream, [=]() -> Result {
    std::memcpy(to, source, bytes);
    return kSuccess;
  });
  return kSuccess;
}

//===----------------------------------------------------------------------===//
// Launches and graphs
//===----------------------------------------------------------------------===//

STANDIN cuLaunchKernel(Function function, unsigned gridX, unsigned gridY,
                       unsigned gridZ, unsigned blockX, unsigned blockY,
                       unsigned blockZ, unsigned sharedBytes, Stream stream,
                       void **parameters, void **) {
  ENTER("cuLaunchKernel", function->symbol + " " + text(gridX) + " " +
                              text(blockX) + " " + nameOf(stream));
  if (gridY != 1 || gridZ != 1 || blockY != 1 || blockZ != 1 || sharedBytes)
    return machine.violation("launches in more than one dimension");
  Launch launch;
  launch.function = function, launch.grid = gridX, launch.block = blockX;
  for (size_t i = 0; i < function->entry->parameters.size(); ++i) {
    uint64_t value = 0;
    std::memcpy(&value, parameters[i],
                static_cast<size_t>(function->entry->parameters[i].bytes));
    launch.values.push_back(value);
  }
  if (Result result = machine.check(launch))
    return result;
  machine.enqueue(stream, std::move(launch));
  return kSuccess;
}

STANDIN cuStreamBeginCapture_v2(Stream stream, CaptureMode) {
  ENTER("cuStreamBeginCapture", nameOf(stream));
  if (stream->capture)
    return machine.violation("captures twice");
  stream->capture = std::make_unique<GraphOpaque>();
  return kSuccess;
}

STANDIN cuStreamEndCapture(Stream stream, Graph *graph) {
  Machine &machine = Machine::get();
  std::lock_guard<std::recursive_mutex> lock(machine.mutex);
  if (!stream->capture)
    return machine.violation("ends a capture that never began");
  if (Result failure = machine.enter("cuStreamEndCapture", nameOf(stream))) {
    stream->capture.reset(); // it is over all the same
    *graph = nullptr;
    return failure;
  }
  *graph = stream->capture.get();
  machine.graphs.push_back(std::move(stream->capture));
  return kSuccess;
}

STANDIN cuGraphInstantiate_v2(GraphExec *executable, Graph graph, void **,
                              char *, size_t) {
  ENTER("cuGraphInstantiate", "");
  if (!Machine::live(machine.graphs, graph))
    return machine.violation("instantiates what is no graph");
  auto made = std::make_unique<GraphExecOpaque>();
  made->launches = graph->launches;
  *executable = made.get();
  machine.executables.push_back(std::move(made));
  return kSuccess;
}

STANDIN cuGraphLaunch(GraphExec executable, Stream stream) {
  ENTER("cuGraphLaunch", nameOf(stream));
  if (!Machine::live(machine.executables, executable) || stream->capture)
    return machine.violation("replays what is not instantiated");
  for (const Launch &launch : executable->launches)
    machine.push(stream, [launch] { return Machine::get().execute(launch); });
  return kSuccess;
}

STANDIN cuGraphExecDestroy(GraphExec executable) {
  Machine &machine = Machine::get();
  std::lock_guard<std::recursive_mutex> lock(machine.mutex);
  machine.log("cuGraphExecDestroy");
  return Machine::destroy(machine.executables, executable)
             ? kSuccess
             : machine.violation("destroys a graph that is none");
}

STANDIN cuGraphDestroy(Graph graph) {
  Machine &machine = Machine::get();
  std::lock_guard<std::recursive_mutex> lock(machine.mutex);
  machine.log("cuGraphDestroy");
  return Machine::destroy(machine.graphs, graph)
             ? kSuccess
             : machine.violation("destroys a graph that is none");
}
