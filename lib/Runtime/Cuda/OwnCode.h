//===- OwnCode.h - kernels of the runtime itself ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Some looks at an arena read more than is worth copying to the host. They are
// kernels of the runtime, for every device that it runs on: PTX texts of a few
// lines, which the driver compiles when they are first needed.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CUDA_OWNCODE_H
#define CKOPT_LIB_RUNTIME_CUDA_OWNCODE_H

#include "Driver.h"

#include <initializer_list>

namespace ckopt::runtime::cuda {

/// A loaded text. The context that loads it must be current for every call.
class OwnCode {
public:
  /// Threads of a block of every kernel.
  static constexpr unsigned kThreads = 256;

  explicit OwnCode(const Driver &cuda) : cuda(cuda) {}
  ~OwnCode();
  OwnCode(const OwnCode &) = delete;
  OwnCode &operator=(const OwnCode &) = delete;

  Result load(const char *text);
  /// Finds a kernel of the text.
  Result find(Function &kernel, const char *name) const {
    return cuda.moduleGetFunction(&kernel, module, name);
  }
  /// Launches a kernel whose parameters have 64 bits each, at most 8.
  Result launch(Function kernel, uint64_t blocks,
                std::initializer_list<uint64_t> values, Stream stream) const;

private:
  const Driver &cuda;
  Module module = nullptr;
};

} // namespace ckopt::runtime::cuda

#endif // CKOPT_LIB_RUNTIME_CUDA_OWNCODE_H
