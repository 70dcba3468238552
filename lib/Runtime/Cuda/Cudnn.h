//===- Cudnn.h - declarations of cuDNN 9 ------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Declarations of cuDNN's classic interface, which version 9 keeps. It is used
// because its heuristics tell which algorithms are deterministic. A test
// compares the declarations with the library's header where that is installed.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CUDA_CUDNN_H
#define CKOPT_LIB_RUNTIME_CUDA_CUDNN_H

#include "Driver.h"

namespace ckopt::runtime::cuda {

/// cudnnConvolution{Fwd,BwdData,BwdFilter}AlgoPerf_t, which have the same
/// layout.
struct DnnResult {
  int algorithm;
  int status;
  float time;
  size_t memory;
  int determinism;
  int mathType;
  int reserved[3];
};

enum DnnNumber : int {
  kDnnFloat = 0,
  kDnnDouble = 1,
  kDnnHalf = 2,
  kDnnBFloat16 = 9,
  kDnnNchw = 0,
  kDnnNhwc = 1,
  kDnnDefaultMath = 0, ///< f32 as f32 or TF32
  kDnnTensorMath = 1,  ///< on tensor cores where it can: f32 as TF32
  kDnnFmaMath = 3,     ///< no tensor cores, no TF32
  kDnnCrossCorrelation = 1,
  kDnnDeterministic = 1,
};

struct DnnEntries {
#define CKOPT_ENTRY(member, symbol, result, parameters)                        \
  result(*member) parameters;
#include "CudnnEntries.def"
#undef CKOPT_ENTRY
};

} // namespace ckopt::runtime::cuda

#endif // CKOPT_LIB_RUNTIME_CUDA_CUDNN_H
