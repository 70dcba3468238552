//===- BufferPeak.h - peak bytes of bufferized code -------------*- C++ -*-===//
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
/// arguments belong to its caller. Returns nothing for code that it cannot
/// follow: sizes known only at run time, branches between blocks, recursion,
/// unknown ops that allocate memory.
std::optional<int64_t> bufferPeak(mlir::func::FuncOp function,
                                  int64_t alignment);

} // namespace ckopt

#endif // CKOPT_ANALYSIS_BUFFERPEAK_H
