//===- PrimitiveImpl.h - the libraries behind Primitive ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CPU_PRIMITIVEIMPL_H
#define CKOPT_LIB_RUNTIME_CPU_PRIMITIVEIMPL_H

#include "KernelEvidence.h"

namespace ckopt::runtime {

/// All of these expect a checked descriptor and a TeamScope of the planned
/// size; on failure they return null and set `error`.
std::unique_ptr<Primitive> createBlasMatMul(const PrimitiveDesc &desc);
std::unique_ptr<Primitive> createGemmConv(const PrimitiveDesc &desc);
std::unique_ptr<Primitive> createAttention(const PrimitiveDesc &desc,
                                           int32_t threads);
std::unique_ptr<Primitive> createOfRanks(const PrimitiveDesc &desc);
std::unique_ptr<Primitive> createDnnlMatMul(const PrimitiveDesc &desc,
                                            const KernelEvidence &evidence,
                                            std::string &error);
std::unique_ptr<Primitive> createDnnlConv(const PrimitiveDesc &desc,
                                          const KernelEvidence &evidence,
                                          std::string &error);

inline int64_t alignUp(int64_t bytes) { return (bytes + 63) / 64 * 64; }

/// Guards the last 64 bytes of a workspace: they are written before the library
/// runs and compared afterwards, so that a library that writes beyond its
/// scratchpad is caught at once.
struct WorkspaceGuard {
  static constexpr int64_t kBytes = 64;
  static constexpr unsigned char kValue = 0xC3;
  static void write(void *at);
  static bool intact(const void *at);
};

} // namespace ckopt::runtime

#endif // CKOPT_LIB_RUNTIME_CPU_PRIMITIVEIMPL_H
