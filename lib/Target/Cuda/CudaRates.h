//===- CudaRates.h - how fast GPUs run our kernels --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TARGET_CUDA_CUDARATES_H
#define CKOPT_LIB_TARGET_CUDA_CUDARATES_H

#include "ckopt/Runtime/Primitive.h"
#include "ckopt/Target/MachineRates.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace ckopt {

/// Returns what cudaRates() reads: the name of a device that is known (a100,
/// h100, h200, l4), or NAME,FILE. Of a file of ckopt-profile/1 alone NAME is
/// the device that the file names, else `usual`. Files without rates are
/// errors.
llvm::Expected<std::string> settleCudaRates(llvm::StringRef given,
                                            llvm::StringRef usual);

/// Returns the file that NAME, FILE or NAME,FILE names; empty: none.
llvm::StringRef cudaRatesFile(llvm::StringRef given);

/// Returns the rates of the device, where products of f32 round their operands
/// so; those of the file replace them.
llvm::Expected<MachineRates> cudaRates(llvm::StringRef given,
                                       runtime::ProductPrecision precision);

/// Returns the multiprocessors of a device that is known by name.
int32_t cudaMultiprocessors(llvm::StringRef name);

} // namespace ckopt

#endif // CKOPT_LIB_TARGET_CUDA_CUDARATES_H
