//===- BlockToGPU.h - steps from block form to the GPU dialect --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TARGET_CUDA_BLOCKTOPTX_BLOCKTOGPU_H
#define CKOPT_LIB_TARGET_CUDA_BLOCKTOPTX_BLOCKTOGPU_H

#include "BlockForm.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace ckopt::blockform {

/// Name of the gpu.module that holds all kernels.
inline constexpr llvm::StringLiteral kModuleName = "ckopt_kernels";

/// Reports every operation of the kernel for which LLVM's NVPTX target has no
/// code of its own.
mlir::LogicalResult checkSelectable(const Kernel &kernel);

/// Returns whether any value in the kernel is f64.
bool usesF64(const Kernel &kernel);

/// Numbers of trees whose lane steps became shuffles, and of those that stay as
/// they are.
struct TreeCount {
  int64_t shuffled = 0, plain = 0;
};
/// Merges each sequence of five lane steps into one interval of 32 threads.
TreeCount mergeLaneSteps(const Kernel &kernel);

/// Erases each barrier that separates no conflicting accesses of shared or
/// global memory.
void removeNeedlessBarriers(mlir::gpu::GPUFuncOp function);

/// Returns whether 2^exponent is known to divide a number.
bool isMultiple(mlir::Value number, unsigned exponent);

/// Sets the alignment of every access of the function to the best provable one.
void deriveAlignment(mlir::gpu::GPUFuncOp function);

/// Moves all kernels of the module into one gpu.module. Their descriptions go
/// to `infos`, unless null, in the order of the module.
mlir::LogicalResult
lowerToGPU(mlir::ModuleOp module,
           llvm::SmallVectorImpl<PtxKernel> *infos = nullptr);

} // namespace ckopt::blockform

#endif // CKOPT_LIB_TARGET_CUDA_BLOCKTOPTX_BLOCKTOGPU_H
