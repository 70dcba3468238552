//===- Cudnn.h - declarations of cuDNN 9's graph interface ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Declarations of what ckopt uses of cuDNN's graph interface, whose descriptors
// are opaque and have numbered attributes. A test compares the numbers with the
// library's header where that is installed.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CUDA_CUDNN_H
#define CKOPT_LIB_RUNTIME_CUDA_CUDNN_H

#include "Driver.h"

namespace ckopt::runtime::cuda {

/// CKOPT_DNN_NUMBER(name here, name in cuDNN's header, number).
enum DnnNumber : int {
#define CKOPT_DNN_NUMBER(name, symbol, number) name = number,
#include "CudnnNumbers.def"
#undef CKOPT_DNN_NUMBER
};

struct DnnEntries {
#define CKOPT_ENTRY(member, symbol, result, parameters)                        \
  result(*member) parameters;
#include "CudnnEntries.def"
#undef CKOPT_ENTRY
};

} // namespace ckopt::runtime::cuda

#endif // CKOPT_LIB_RUNTIME_CUDA_CUDNN_H
