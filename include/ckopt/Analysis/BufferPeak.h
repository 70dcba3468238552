//===- BufferPeak.h - the bytes that bufferized code has alive --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_ANALYSIS_BUFFERPEAK_H
#define CKOPT_ANALYSIS_BUFFERPEAK_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <optional>

namespace ckopt {

/// Returns the most bytes that a bufferized function and its callees have
/// allocated at once, each buffer rounded up to `alignment`; the buffers of its
/// arguments are its caller's. Returns nothing where that cannot be followed:
/// sizes that are known at run time alone, blocks that branch, recursion, ops
/// that give memory in ways of their own.
std::optional<int64_t> bufferPeak(mlir::func::FuncOp function,
                                  int64_t alignment);

} // namespace ckopt

#endif // CKOPT_ANALYSIS_BUFFERPEAK_H
