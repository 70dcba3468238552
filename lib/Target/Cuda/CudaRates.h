//===- CudaRates.h - speeds of GPUs -----------------------------*- C++ -*-===//
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

/// Returns the name that cudaRates() reads: a known device, or NAME,FILE. For a
/// file of ckopt-profile/1 without a name, NAME is the device in the file, else
/// `usual`. Files without rates are errors.
llvm::Expected<std::string> settleCudaRates(llvm::StringRef given,
                                            llvm::StringRef usual);

/// Returns the file in NAME, FILE or NAME,FILE; empty: none.
llvm::StringRef cudaRatesFile(llvm::StringRef given);

/// Returns the rates of the device if f32 matmuls round their operands so;
/// those of the file replace them.
llvm::Expected<MachineRates> cudaRates(llvm::StringRef given,
                                       runtime::ProductPrecision precision);

/// Returns the known device that a driver calls so ("NVIDIA H100 80GB HBM3"),
/// or `usual`.
llvm::StringRef cudaDeviceNamed(llvm::StringRef name, llvm::StringRef usual);

/// Returns the multiprocessors of a known device.
int32_t cudaMultiprocessors(llvm::StringRef name);

} // namespace ckopt

#endif // CKOPT_LIB_TARGET_CUDA_CUDARATES_H
