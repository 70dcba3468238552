//===- BlockForm.h - a checked kernel in block form -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Analyzes a function in block form for both lowerings, and checks it
// completely: after `analyze` succeeds, neither lowering meets an unknown case.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TARGET_CUDA_BLOCKTOPTX_BLOCKFORM_H
#define CKOPT_LIB_TARGET_CUDA_BLOCKTOPTX_BLOCKFORM_H

#include "ckopt/Target/Cuda/BlockToPTX/BlockToPTX.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace ckopt::blockform {

/// The kernel of one launch.
struct Kernel {
  mlir::func::FuncOp function;
  mlir::scf::ForallOp blocks;
  int64_t grid = 1, block = 1;
  /// Number of pointers, scalars and scratch, which are the first arguments.
  unsigned launchParameters = 0;
  llvm::SmallVector<mlir::BlockArgument> sharedBuffers, privateBuffers;
  int64_t sharedBytes = 0;
};

/// Limits of every GPU from sm_80 on.
inline constexpr int64_t kMaxGrid = (int64_t(1) << 31) - 1;
inline constexpr int64_t kMaxBlock = 1024;
/// Parameters may take 4 KiB, 8 bytes each.
inline constexpr unsigned kMaxLaunchParameters = 512;
/// Limit of compute capability 9.0; limits of others are checked with the
/// manifest. Launches request more than 48 KiB (GPUToLLVM.cpp).
inline constexpr int64_t kMaxSharedBytes = 227 * 1024;
/// Alignment of every shared buffer.
inline constexpr int64_t kSharedAlign = 16;

/// Returns the functions of the module that are launches.
llvm::SmallVector<mlir::func::FuncOp> kernelsOf(mlir::ModuleOp module);

/// Checks the whole function; reports one diagnostic for each mistake.
mlir::FailureOr<Kernel> analyze(mlir::func::FuncOp function);

/// Returns whether this forall maps its iterations to the threads of a block.
bool isThreadForall(mlir::Operation *op);

/// Returns the number of iterations of a thread forall.
int64_t threadsOf(mlir::scf::ForallOp forall);

/// Returns the memref that a load or store of memref or vector accesses; null
/// for other operations.
mlir::Value bufferOf(mlir::Operation *op);
/// Returns the indices of such an access.
mlir::OperandRange indicesOf(mlir::Operation *op);
/// Returns v before casts between index and integers; thread numbers fit in all
/// types.
mlir::Value withoutCasts(mlir::Value v);
/// Returns whether `op` writes to memory.
bool isStore(mlir::Operation *op);

/// Moves the operations of `forall`'s body, without its terminator, before
/// `point`, with `number` as the iteration number. The empty forall stays.
void inlineBody(mlir::scf::ForallOp forall, mlir::Operation *point,
                mlir::Value number);

} // namespace ckopt::blockform

#endif // CKOPT_LIB_TARGET_CUDA_BLOCKTOPTX_BLOCKFORM_H
