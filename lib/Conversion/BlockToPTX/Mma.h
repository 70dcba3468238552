//===- Mma.h - products of warps, to loops and to tensor cores --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_CONVERSION_BLOCKTOPTX_MMA_H
#define CKOPT_LIB_CONVERSION_BLOCKTOPTX_MMA_H

#include "BlockForm.h"
#include "ckopt/Dialect/Block/IR/BlockDialect.h"

namespace ckopt::blockform {

/// Returns why `mma` may not stand at its place, or "".
std::string mistakeOf(block::MmaOp mma);

/// Replaces every operation of the block dialect in the kernel by one thread's
/// code. block.mma becomes loops, or loads of fragments and nvvm.mma.sync;
/// block.round_tf32 becomes integer operations, or the GPU's conversion. Both
/// ways give the same bits.
void expandMma(const Kernel &kernel, bool byWarps);

} // namespace ckopt::blockform

#endif // CKOPT_LIB_CONVERSION_BLOCKTOPTX_MMA_H
