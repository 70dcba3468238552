//===- Api.cpp - the stand-in driver's entries ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Defines the functions of libcuda.so.1 that the runtime uses, on top of
// Machine: driver, devices, contexts, code, memory. Streams, copies and
// launches are in ApiWork.cpp.
//
//===----------------------------------------------------------------------===//
#include "Api.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <utility>

using namespace standin;

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
  std::snprintf(name, static_cast<size_t>(size), "%s %d", machine.name.c_str(),
                machine.visible[static_cast<size_t>(device)]);
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
  if (machine.stack().full())
    return machine.violation("pushes a context on many that none popped");
  auto made = std::make_unique<ContextOpaque>();
  made->number = ++machine.nextNumber;
  *context = made.get();
  machine.contexts.push_back(std::move(made));
  machine.stack().push(*context);
  return kSuccess;
}

static Result destroyContext(Machine &machine, Context context) {
  if (!Machine::live(machine.contexts, context))
    return machine.violation("destroys a context that is none");
  for (const Block &block : machine.deviceBlocks)
    if (block.context == context && context->failure == kSuccess)
      machine.violation("a context goes while " + block.name + " lives");
  // A failed context refused to unload its modules, so they are deleted with
  // it.
  if (context->failure != kSuccess)
    machine.modules.remove_if(
        [&](const auto &module) { return module->context == context; });
  machine.streams.remove_if([&](const auto &stream) {
    return stream->context == context && stream->number <= 0;
  });
  auto &stack = machine.stack();
  if (!stack.empty() && stack.back() == context)
    stack.pop();
  Machine::destroy(machine.contexts, context);
  return kSuccess;
}

STANDIN cuCtxDestroy_v2(Context context) {
  ENTER("cuCtxDestroy", "", false);
  for (const auto &[device, primary] : machine.primaries)
    if (context == primary.first)
      return machine.violation("destroys a primary context");
  return destroyContext(machine, context);
}

STANDIN cuDevicePrimaryCtxRetain(Context *context, Device device) {
  ENTER("cuDevicePrimaryCtxRetain", text(device), false);
  auto &[primary, retained] = machine.primaries[device];
  if (!primary) {
    if (machine.usedBytes() + Machine::kContextBytes > machine.totalBytes)
      return kOutOfMemory;
    auto made = std::make_unique<ContextOpaque>();
    made->number = ++machine.nextNumber;
    primary = made.get();
    machine.contexts.push_back(std::move(made));
  }
  ++retained;
  *context = primary;
  return kSuccess;
}

STANDIN cuDevicePrimaryCtxRelease_v2(Device device) {
  ENTER("cuDevicePrimaryCtxRelease", text(device), false);
  auto &[primary, retained] = machine.primaries[device];
  if (retained == 0)
    return machine.violation("releases a primary context that is not held");
  return --retained > 0
             ? kSuccess
             : destroyContext(machine, std::exchange(primary, nullptr));
}

STANDIN cuCtxPushCurrent_v2(Context context) {
  // This call is not logged, because it says nothing about order.
  Machine &machine = Machine::get();
  std::lock_guard<std::recursive_mutex> lock(machine.mutex);
  if (!Machine::live(machine.contexts, context))
    return machine.violation("pushes a context that is none");
  if (machine.stack().full())
    return machine.violation("pushes a context on many that none popped");
  machine.stack().push(context);
  return kSuccess;
}

STANDIN cuCtxPopCurrent_v2(Context *context) {
  Machine &machine = Machine::get();
  std::lock_guard<std::recursive_mutex> lock(machine.mutex);
  if (machine.stack().empty())
    return machine.violation("pops a context where there is none");
  *context = machine.stack().back();
  machine.stack().pop();
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

static constexpr char kCompiled[] = "compiled by the stand-in\n";

STANDIN cuLinkCreate_v2(unsigned, JitOption *, void **, LinkState *state) {
  ENTER("cuLinkCreate", "");
  *state = new LinkOpaque;
  return kSuccess;
}

STANDIN cuLinkAddData_v2(LinkState state, JitInput, void *data, size_t size,
                         const char *, unsigned, JitOption *, void **) {
  ENTER("cuLinkAddData", text(int64_t(size)));
  std::string code(static_cast<const char *>(data), size);
  standin::PtxText parsed;
  if (!parsePtx(code.c_str(), parsed).empty())
    return kInvalidPtx;
  state->code = kCompiled + code; // with the zero at its end
  return kSuccess;
}

STANDIN cuLinkComplete(LinkState state, void **code, size_t *size) {
  ENTER("cuLinkComplete", "");
  *code = state->code.data();
  *size = state->code.size();
  return kSuccess;
}

STANDIN cuLinkDestroy(LinkState state) {
  ENTER("cuLinkDestroy", "");
  delete state;
  return kSuccess;
}

STANDIN cuModuleLoadDataEx(Module *module, const void *image, unsigned count,
                           JitOption *options, void **values) {
  std::string code = static_cast<const char *>(image);
  bool isCompiled = code.rfind(kCompiled, 0) == 0;
  if (isCompiled)
    code.erase(0, sizeof(kCompiled) - 1);
  ENTER("cuModuleLoadDataEx",
        text(int64_t(code.size())) + (isCompiled ? " compiled" : ""));
  auto made = std::make_unique<ModuleOpaque>();
  made->context = machine.current();
  made->bytes = static_cast<int64_t>(code.size());
  made->kernels = Machine::openKernels();
  std::string wrong = parsePtx(code, made->text);
  // The runtime's own kernels have no CPU code.
  bool isRuntimes = code.find("ckopt_runtime_") != std::string::npos;
  if (wrong.empty() && (Machine::runsPtx() || isRuntimes))
    made->program = ptx::parse(code, wrong);
  if (made->program)
    made->kernels = nullptr;
  Result result = wrong.empty() ? kSuccess : kInvalidPtx;
  // PTX 7.0 came with CUDA 11.0, 8.0 with 12.0.
  int ptx = made->text.version;
  if (result == kSuccess &&
      machine.version < (ptx / 10 + 4) * 1000 + ptx % 10 * 10)
    result = kUnsupportedPtxVersion;
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
  made.context = module->context;
  made.symbol = name;
  made.entry = &found->second;
  made.program = module->program.get();
  if (module->kernels) {
    const char *order = std::getenv("CKOPT_STANDIN_DESCENDING");
    bool descending = order && std::strcmp(order, "1") == 0;
    std::string symbol =
        made.symbol + (descending ? "__emul_descending" : "__emul");
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

/// What a block may have: the least of compute capabilities from 8.0 on, and
/// what data centers' devices from 9.0 on have.
static int64_t mostSharedBytes() {
  int capability = Machine::get().capability;
  return (capability >= 90 && capability < 120 ? 227 : 99) << 10;
}

STANDIN cuFuncSetAttribute(Function function, FunctionAttribute attribute,
                           int value) {
  ENTER("cuFuncSetAttribute",
        function->symbol + " " + text(attribute) + " " + text(value));
  if (attribute != kMaxDynamicSharedBytes || value < 0 ||
      value > mostSharedBytes() - int64_t(function->entry->sharedBytes))
    return kInvalidValue;
  function->dynamicBytes = static_cast<unsigned>(value);
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

STANDIN cuPointerGetAttribute(void *value, PointerAttribute attribute,
                              DevicePointer pointer) {
  ENTER("cuPointerGetAttribute", machine.place(pointer));
  const Block *block = machine.deviceBlock(pointer, 1);
  if (!block)
    return kInvalidValue;
  // Virtual memory consists of ranges that are mapped one by one.
  const int64_t page = machine.page;
  const auto start = reinterpret_cast<DevicePointer>(block->memory);
  const DevicePointer into =
      page ? (pointer - start) / uint64_t(page) * uint64_t(page) : 0;
  int device = 0; // a context of the caller's own is on the first one
  switch (attribute) {
  case kPointerDeviceOrdinal:
    for (const auto &[number, primary] : machine.primaries)
      if (primary.first == block->context)
        device = number;
    *static_cast<int *>(value) = device;
    return kSuccess;
  case kPointerRangeStart:
    *static_cast<DevicePointer *>(value) = start + into;
    return kSuccess;
  case kPointerRangeSize:
    *static_cast<size_t *>(value) =
        page ? std::min(size_t(page), block->bytes - size_t(into))
             : block->bytes;
    return kSuccess;
  case kPointerIsLegacy:
    *static_cast<int *>(value) = !page;
    return kSuccess;
  }
  return kInvalidValue;
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
