//===- Mma.h - matmuls of warps as loops or tensor cores --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TARGET_CUDA_BLOCKTOPTX_MMA_H
#define CKOPT_LIB_TARGET_CUDA_BLOCKTOPTX_MMA_H

#include "BlockForm.h"
#include "ckopt/Dialect/Block/IR/BlockDialect.h"

namespace ckopt::blockform {

/// Returns why `mma` may not stand at its place, or "".
std::string mistakeOf(block::MmaOp mma);

/// Returns why `copy` may not stand at its place, or "".
std::string mistakeOf(block::CopyAsyncOp copy);

/// Replaces asynchronous copies by copies that a thread makes when it waits,
/// for the CPU. Foralls over threads are still there.
void expandCopies(const Kernel &kernel);

/// Replaces matmuls and roundings of the block dialect by one thread's code.
/// block.mma becomes loops, or loads of fragments and nvvm.mma.sync;
/// block.round_tf32 becomes integer operations, or the GPU's conversion. Both
/// ways give the same bits.
void expandMma(const Kernel &kernel, bool byWarps);

} // namespace ckopt::blockform

#endif // CKOPT_LIB_TARGET_CUDA_BLOCKTOPTX_MMA_H
