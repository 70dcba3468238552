//===- OwnKernel.h - a kernel of the runtime's own --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the runtime does itself with a device's memory, beside a step's kernels:
// threads of one grid go through elements, as many as there are.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CUDA_OWNKERNEL_H
#define CKOPT_LIB_RUNTIME_CUDA_OWNKERNEL_H

#include "Driver.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace ckopt::runtime::cuda {

/// The context must be current for every call.
class OwnKernel {
public:
  explicit OwnKernel(const Driver &cuda) : cuda(cuda) {}
  ~OwnKernel() {
    if (module)
      (void)cuda.moduleUnload(module);
  }
  OwnKernel(const OwnKernel &) = delete;
  OwnKernel &operator=(const OwnKernel &) = delete;

  bool isLoaded() const { return function != nullptr; }
  /// `code`: PTX with the kernel of that name, of blocks of 256 threads.
  Result load(const char *code, const char *name) {
    Result result = cuda.moduleLoadDataEx(&module, code, 0, nullptr, nullptr);
    if (result != kSuccess) {
      module = nullptr;
      return result;
    }
    result = cuda.moduleGetFunction(&function, module, name);
    if (result != kSuccess) // the next call loads it again
      (void)cuda.moduleUnload(std::exchange(module, nullptr));
    return result;
  }
  /// Puts a launch for `count` elements into the stream.
  Result launch(uint64_t count, std::vector<uint64_t> values, Stream stream) {
    constexpr uint64_t kMostBlocks = 1024;
    return launchBlocks(
        std::min((count + kThreads - 1) / kThreads, kMostBlocks),
        std::move(values), stream);
  }
  Result launchBlocks(uint64_t blocks, std::vector<uint64_t> values,
                      Stream stream) {
    std::vector<void *> parameters;
    for (uint64_t &value : values)
      parameters.push_back(&value);
    return cuda.launchKernel(function, static_cast<unsigned>(blocks), 1, 1,
                             kThreads, 1, 1, 0, stream, parameters.data(),
                             nullptr);
  }

private:
  static constexpr unsigned kThreads = 256;
  const Driver &cuda;
  Module module = nullptr;
  Function function = nullptr;
};

} // namespace ckopt::runtime::cuda

#endif // CKOPT_LIB_RUNTIME_CUDA_OWNKERNEL_H
