//===- CudaLibraries.h - calls that cuBLASLt and cuDNN can run --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The compiler decides which calls go to the libraries. A call that they cannot
// run, or not in the workspace that the plan reserves, becomes a kernel of
// ckopt's own, so that loading an artifact cannot fail for this reason.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_RUNTIME_CUDALIBRARIES_H
#define CKOPT_RUNTIME_CUDALIBRARIES_H

#include "ckopt/Runtime/Primitive.h"

namespace ckopt::runtime {

/// As cudaLibraryRefuses() of Primitive.h, for a call with \p workspace bytes:
/// returns empty text, or the reason why the libraries cannot run the
/// descriptor in so many bytes on any device.
CKRT_EXPORT std::string cudaLibraryRefuses(const PrimitiveDesc &desc,
                                           int64_t workspace);

} // namespace ckopt::runtime

#endif // CKOPT_RUNTIME_CUDALIBRARIES_H
