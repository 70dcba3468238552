//===- AttentionParts.h - executions of cuDNN's attention -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CUDA_ATTENTIONPARTS_H
#define CKOPT_LIB_RUNTIME_CUDA_ATTENTIONPARTS_H

#include "Driver.h"

#include "ckopt/Runtime/Primitive.h"

#include <functional>

namespace ckopt::runtime::cuda {

/// What one execution computes: so many samples, and so many key heads of each
/// with their query heads. All heads, if it is several samples.
struct AttentionParts {
  int64_t samples, keyHeads;
};
AttentionParts attentionParts(const PrimitiveDesc &desc);

/// Returns the bytes of workspace that an execution needs at most.
int64_t attentionWorkspace(const PrimitiveDesc &desc);

/// Calls `run` with the addresses of each part, until it returns false.
void forEachPart(const PrimitiveDesc &desc, const DevicePointer *args,
                 const std::function<bool(const DevicePointer *)> &run);

} // namespace ckopt::runtime::cuda

#endif // CKOPT_LIB_RUNTIME_CUDA_ATTENTIONPARTS_H
