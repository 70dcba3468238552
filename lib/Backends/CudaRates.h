//===- CudaRates.h - how fast GPUs run our kernels --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_BACKENDS_CUDARATES_H
#define CKOPT_LIB_BACKENDS_CUDARATES_H

#include "ckopt/Runtime/Primitive.h"
#include "ckopt/Target/MachineRates.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace ckopt {

/// Rates of a device that is known by name (a100, h100, h200, l4), where
/// products of f32 round their operands so; else those of a file of
/// ckopt-profile/1, over an H100's.
llvm::Expected<MachineRates> cudaRates(llvm::StringRef given,
                                       runtime::ProductPrecision precision);

/// Returns the multiprocessors of a device that is known by name.
int32_t cudaMultiprocessors(llvm::StringRef name);

} // namespace ckopt

#endif // CKOPT_LIB_BACKENDS_CUDARATES_H
