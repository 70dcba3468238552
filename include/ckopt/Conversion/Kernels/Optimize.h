//===- Optimize.h - LLVM's pipeline for generated kernels -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_CONVERSION_KERNELS_OPTIMIZE_H
#define CKOPT_CONVERSION_KERNELS_OPTIMIZE_H

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace ckopt {

/// Runs LLVM's default pipeline of a level (0 to 3) without its vectorizers:
/// kernels are vectorized when they are written, and LLVM's own could not be
/// told to keep the bits.
void optimizeKernels(llvm::Module &module, llvm::TargetMachine &machine,
                     unsigned level);

} // namespace ckopt

#endif // CKOPT_CONVERSION_KERNELS_OPTIMIZE_H
