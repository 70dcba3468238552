//===- CudaLibraries.h - what is left to cuBLASLt and cuDNN -----*- C++ -*-===//
//
// Known when compiling: what the libraries do not do, or not in the workspace
// that the plan reserves, is ckopt's own kernel, and nothing that a load could
// find out only on the device.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_RUNTIME_CUDALIBRARIES_H
#define CKOPT_RUNTIME_CUDALIBRARIES_H

#include "ckopt/Runtime/Primitive.h"

namespace ckopt::runtime {

/// cudaLibraryRefuses() for a call with \p workspace bytes: empty, or why the
/// libraries cannot run the descriptor in them on any device.
CKRT_EXPORT std::string cudaLibraryRefuses(const PrimitiveDesc &desc,
                                           int64_t workspace);

} // namespace ckopt::runtime

#endif // CKOPT_RUNTIME_CUDALIBRARIES_H
