//===- PtxText.h - reading PTX as text --------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TARGET_CUDA_BLOCKTOPTX_PTXTEXT_H
#define CKOPT_LIB_TARGET_CUDA_BLOCKTOPTX_PTXTEXT_H

#include "ckopt/Target/Cuda/BlockToPTX/BlockToPTX.h"

namespace ckopt::blockform {

/// Counts each kernel's accesses of global memory by width.
void countAccesses(llvm::StringRef text,
                   llvm::MutableArrayRef<PtxKernel> kernels);

/// Returns whether the finding is f64 in a kernel that should not use it.
bool isAboutF64(const PtxViolation &violation);

} // namespace ckopt::blockform

#endif // CKOPT_LIB_TARGET_CUDA_BLOCKTOPTX_PTXTEXT_H
