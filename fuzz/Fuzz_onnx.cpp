//===- Fuzz_onnx.cpp - libFuzzer entry, with mutations by structure -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "OnnxFuzz.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string wrong;
  ckopt::fuzzOnnx(data, size, wrong);
  if (!wrong.empty()) {
    std::fprintf(stderr, "%s\n", wrong.c_str());
    std::abort();
  }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size,
                                          size_t room, unsigned seed) {
  std::string mutated = ckopt::mutateOnnx(
      std::string(reinterpret_cast<char *>(data), size), seed);
  if (mutated.size() > room)
    return size;
  std::copy(mutated.begin(), mutated.end(), data);
  return mutated.size();
}
