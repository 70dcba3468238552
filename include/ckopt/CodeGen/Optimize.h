//===- Optimize.h - LLVM's pipeline for generated kernels -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_CODEGEN_OPTIMIZE_H
#define CKOPT_CODEGEN_OPTIMIZE_H

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace ckopt {

/// Runs LLVM's default pipeline of a level (0 to 3) without its vectorizers:
/// kernels are already vectorized, and LLVM's vectorizers might change the bits
/// of results.
void optimizeKernels(llvm::Module &module, llvm::TargetMachine &machine,
                     unsigned level);

} // namespace ckopt

#endif // CKOPT_CODEGEN_OPTIMIZE_H
