//===- EngineCode.cpp - the code of a step on a device --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads a step's code: from the file that an earlier load left (CodeFile.h), or
// compiled by the driver, which says what is wrong with it. Each kernel is
// looked up, and must run with its threads and shared memory here.
//
//===----------------------------------------------------------------------===//
#include "Engine.h"
#include "ckopt/Runtime/CudaCapabilities.h"

#include <algorithm>

using namespace ckopt::runtime;
using namespace ckopt::runtime::cuda;

int Engine::dynamicBytes(const KernelInfo &kernel) {
  constexpr int64_t kMostDeclared = 48 * 1024;
  return kernel.sharedBytes > kMostDeclared
             ? static_cast<int>(kernel.sharedBytes)
             : 0;
}

ckrt_status Engine::findKernel(const KernelInfo &kernel) {
  Function function = nullptr;
  Result result =
      cuda.moduleGetFunction(&function, module, kernel.symbol.c_str());
  int threads = 0, local = 0, registers = 0;
  for (auto [attribute, value] :
       {std::pair(kMaxThreadsPerBlock, &threads),
        std::pair(kLocalSizeBytes, &local), std::pair(kNumRegs, &registers)})
    if (result == kSuccess)
      result = cuda.funcGetAttribute(value, attribute, function);
  if (result != kSuccess)
    return failed("the compiled code has no usable kernel " + kernel.symbol,
                  result);
  if (threads < kernel.block)
    return fail(CKRT_DEVICE_CODE,
                name() + ": kernel " + kernel.symbol + " runs with at most " +
                    std::to_string(threads) + " threads a block here (" +
                    std::to_string(registers) + " registers each), not " +
                    std::to_string(kernel.block));
  if (int bytes = dynamicBytes(kernel)) {
    result = cuda.funcSetAttribute(function, kMaxDynamicSharedBytes, bytes);
    if (result != kSuccess) {
      int less = codeCapability(report.compute_capability);
      if (less == manifest.device.sm)
        less = kLeastCapability;
      return failed("kernel " + kernel.symbol + " needs " +
                        std::to_string(bytes) + " bytes of shared memory" +
                        (manifest.device.sm > kLeastCapability
                             ? " (" + Setting("sm", std::to_string(less)) +
                                   " makes code that needs less)"
                             : ""),
                    result);
    }
  }
  functions.push_back(function);
  report.local_bytes = std::max<int64_t>(report.local_bytes, local);
  report.registers = std::max(report.registers, registers);
  return CKRT_OK;
}

/// Compiles PTX to a file's bytes.
Result Engine::link(const std::string &code, std::string &made) const {
  LinkState state = nullptr;
  Result result = cuda.linkCreate(0, nullptr, nullptr, &state);
  if (result != kSuccess)
    return result;
  void *bytes = nullptr;
  size_t size = 0;
  result = cuda.linkAddData(state, kInputPtx, const_cast<char *>(code.c_str()),
                            code.size() + 1, "ckopt", 0, nullptr, nullptr);
  if (result == kSuccess)
    result = cuda.linkComplete(state, &bytes, &size);
  if (result == kSuccess) // they are the state's
    made.assign(static_cast<const char *>(bytes), size);
  (void)cuda.linkDestroy(state);
  return result;
}

/// Loads what a file has of the code, or compiles it for one. Whatever is wrong
/// with that, the driver loads the PTX, and says what is wrong with it.
Result Engine::loadModule(const std::string &code, const CodeFile &file,
                          char *log, size_t size) {
  std::string made = file.read();
  const bool isNew = made.empty();
  if (isNew && file.exists() && link(code, made) != kSuccess)
    made.clear();
  if (!made.empty() && cuda.moduleLoadDataEx(&module, made.data(), 0, nullptr,
                                             nullptr) == kSuccess) {
    if (isNew)
      file.write(made);
    return kSuccess;
  }
  JitOption options[] = {kErrorLogBuffer, kErrorLogBufferSizeBytes};
  // The driver takes this size as a value in a table of pointers.
  void *values[] = {log, reinterpret_cast<void *>(size)};
  return cuda.moduleLoadDataEx(&module, code.c_str(), 2, options, values);
}

ckrt_status Engine::loadCode(const std::string &code, const LockFile &lock) {
  report.kernels = static_cast<int32_t>(manifest.kernels.size());
  if (manifest.kernels.empty())
    return CKRT_OK;
  char log[4096] = {};
  int64_t before = freeBytes();
  CodeFile file(lock.beside(".cubin-" +
                            std::to_string(report.compute_capability) + "-" +
                            std::to_string(report.driver_version)),
                code);
  Result result = loadModule(code, file, log, sizeof(log) - 1);
  if (result != kSuccess) {
    module = nullptr;
    if (result == kOutOfMemory)
      return fail(CKRT_DEVICE_MEMORY,
                  name() +
                      ": no memory for the code: " + std::to_string(before) +
                      " of " + std::to_string(report.total_bytes) +
                      " bytes are free, and the arena needs " +
                      std::to_string(tail + manifest.arenaBytes) +
                      " more: free memory that others hold");
    ckrt_status status = statusOf(result) == CKRT_DEVICE_LOST
                             ? CKRT_DEVICE_LOST
                             : CKRT_DEVICE_CODE;
    std::string text =
        name() + ": the driver cannot compile the code: " + cuda.text(result);
    return fail(status, log[0] ? text + "\n" + log : text);
  }
  for (const KernelInfo &kernel : manifest.kernels)
    if (ckrt_status status = findKernel(kernel))
      return status;
  report.code_bytes = taken(before);
  return CKRT_OK;
}

bool Engine::isOfGeneration(const ckrt_program &program) {
  const std::string &code = program.deviceCode;
  return code.find("mma.sync") != std::string::npos ||
         code.find(".approx") != std::string::npos;
}

ckrt_status Engine::lockGeneration(const ckrt_program &program,
                                   LockFile &lock) const {
  std::string error;
  if (!isOfGeneration(program) || libraries->hasCalls())
    return CKRT_OK; // libraries' calls are of one device
  if (!lock.fact("compute_capability",
                 std::to_string(report.compute_capability), error))
    return fail(CKRT_LOCK, error);
  lock.noteCard(report.name);
  return CKRT_OK;
}
