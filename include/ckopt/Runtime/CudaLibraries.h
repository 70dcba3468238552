//===- CudaLibraries.h - calls that cuBLASLt and cuDNN can run --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The compiler decides which calls may use the libraries. A call that they
// cannot run on any device, or not in the workspace that the plan reserves,
// becomes a kernel of ckopt's own. Refusals of a device's library show when a
// step is loaded.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_RUNTIME_CUDALIBRARIES_H
#define CKOPT_RUNTIME_CUDALIBRARIES_H

#include "ckopt/Runtime/Primitive.h"

namespace ckopt::runtime {

/// Returns how many tensors a library's launch has; of attention, only what
/// libraries take (no bias, mask, segments or dropout).
inline size_t cudaLibraryArguments(const PrimitiveDesc &desc) {
  if (isAttention(desc.kind))
    return desc.kind == PrimitiveKind::Attention ? 5 : 9;
  return size_t(3) + desc.accumulate + desc.hasBias;
}

/// Returns the bytes of workspace that the libraries need for a descriptor at
/// most, or 0 if that depends on the algorithm that they choose.
CKRT_EXPORT int64_t cudaLibraryWorkspace(const PrimitiveDesc &desc);

/// Returns the bytes of the operands and the result of a matmul or convolution.
CKRT_EXPORT int64_t cudaLibraryTensorBytes(const PrimitiveDesc &desc);

} // namespace ckopt::runtime

#endif // CKOPT_RUNTIME_CUDALIBRARIES_H
