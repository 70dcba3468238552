//===- OwnCode.cpp - kernels of the runtime itself ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "OwnCode.h"

using namespace ckopt::runtime::cuda;

OwnCode::~OwnCode() {
  if (module)
    (void)cuda.moduleUnload(module);
}

Result OwnCode::load(const char *text) {
  Result result = cuda.moduleLoadDataEx(&module, text, 0, nullptr, nullptr);
  if (result != kSuccess)
    module = nullptr;
  return result;
}

Result OwnCode::launch(Function kernel, uint64_t blocks,
                       std::initializer_list<uint64_t> values,
                       Stream stream) const {
  constexpr size_t kMost = 8;
  uint64_t copies[kMost];
  void *parameters[kMost];
  size_t count = 0;
  for (uint64_t value : values) {
    copies[count] = value;
    parameters[count] = &copies[count];
    ++count;
  }
  return cuda.launchKernel(kernel, static_cast<unsigned>(blocks), 1, 1,
                           kThreads, 1, 1, 0, stream, parameters, nullptr);
}
