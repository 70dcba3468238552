//===- FiniteCheck.h - whether a device's numbers are finite ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: a training run looks now and then whether weights and optimizer
// state are finite; to copy them to the host takes longer than the steps
// between. Method: a kernel of the runtime's own reads them where they lie and
// sets one word if an exponent has all bits set, of any type of floats. Cost:
// one pass over their bytes, and 4 bytes to the host.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CUDA_FINITECHECK_H
#define CKOPT_LIB_RUNTIME_CUDA_FINITECHECK_H

#include "Engine.h"
#include "OwnKernel.h"

namespace ckopt::runtime::cuda {

class FiniteCheck {
public:
  /// The engine's context must be current for every call.
  explicit FiniteCheck(const Engine &engine)
      : engine(engine), kernel(engine.driver()) {}
  ~FiniteCheck();
  FiniteCheck(const FiniteCheck &) = delete;
  FiniteCheck &operator=(const FiniteCheck &) = delete;

  /// Loads the kernel and allocates the word; what there is not memory for ends
  /// with kOutOfMemory.
  Result create();
  /// Puts into the stream: the word is 0.
  Result begin(Stream stream);
  /// The part of `bytes` bytes of floats that add() looks at: all, but for the
  /// last number of an odd number of 16-bit ones.
  static int64_t bytesSeen(int64_t bytes) { return bytes / 4 * 4; }
  /// Puts into the stream: the word is not 0 if one of the floats in `bytes`
  /// bytes is not finite.
  Result add(DevicePointer from, int64_t bytes, DType dtype, Stream stream);
  /// Puts into the stream a copy of the word.
  Result end(uint32_t &word, Stream stream);

private:
  const Engine &engine;
  OwnKernel kernel;
  DevicePointer found = 0;
};

} // namespace ckopt::runtime::cuda

#endif // CKOPT_LIB_RUNTIME_CUDA_FINITECHECK_H
