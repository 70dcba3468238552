//===- BlockToPTX.h - block form to CPU loops and to PTX --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The block form is what a GPU kernel looks like before it has threads: a
// func.func for each launch, whose body is one scf.forall over blocks
// (mapping #gpu.block<x>); in it uniform code and scf.foralls over threads
// (mapping #gpu.thread<x>), one for each interval between two barriers, which
// communicate through shared buffers alone (lib/Conversion/BlockToPTX/README.md
// is its definition).
//
// Since nothing in it needs a GPU, the same form is lowered twice: to plain
// loops, which check it on the CPU (a thread loop that runs backward must give
// the same bits, or threads race), and to PTX. Only barriers, thread numbers
// and the shuffles of the last 32 lanes of a tree are added on the second way.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_CONVERSION_BLOCKTOPTX_BLOCKTOPTX_H
#define CKOPT_CONVERSION_BLOCKTOPTX_BLOCKTOPTX_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>
#include <vector>

namespace ckopt {

/// Attributes of a function in block form: blocks of the launch, threads of a
/// block (i64). On a thread forall: one step of a tree over the last 32 lanes.
namespace blockform {
inline constexpr llvm::StringLiteral kGrid = "ckopt.gpu.grid";
inline constexpr llvm::StringLiteral kBlock = "ckopt.gpu.block";
inline constexpr llvm::StringLiteral kLaneStep = "ckopt.gpu.lane_step";
} // namespace blockform

/// Checks every function that has `ckopt.gpu.grid`; one diagnostic for each
/// mistake. Both ways below do so first.
mlir::LogicalResult verifyBlockForm(mlir::ModuleOp module);

//===----------------------------------------------------------------------===//
// On the CPU
//===----------------------------------------------------------------------===//

struct BlockToLoopsOptions {
  /// Run blocks and threads from the last to the first. The bits of all
  /// results are those of the ascending order, or threads race. Shared and
  /// private buffers start as bytes 0x00 ascending and 0xFF descending, so a
  /// read before the first write shows, too.
  bool descending = false;
};

/// Turns every function of the block form into a function
/// `void SYMBOL(pointers..., i64 scalars..., scratch)` of the LLVM dialect and
/// adds a wrapper `void SYMBOL__emul(void *const *params)`, params[i] pointing
/// to the i-th launch parameter as cuLaunchKernel's kernelParams do. Functions
/// of libm may remain external. The caller sets the float mode (flush to zero,
/// denormals are zero) that the kernels are to run in.
void buildBlockToLoopsPipeline(mlir::OpPassManager &pm,
                               const BlockToLoopsOptions &options);

/// SYMBOL__emul.
std::string emulationSymbol(llvm::StringRef kernel);

//===----------------------------------------------------------------------===//
// PTX
//===----------------------------------------------------------------------===//

struct PtxOptions {
  unsigned sm = 80;           ///< 80 or 90
  bool keepDenormals = false; ///< f32; f64 always does
  bool tf32 = false;          ///< products may round their operands to TF32
};

/// One launch.
struct PtxKernel {
  enum class Parameter { Pointer, Scalar }; ///< 8 bytes each
  std::string symbol;
  /// In the order of kernelParams; the last one is the scratch pointer.
  std::vector<Parameter> parameters;
  int64_t grid = 1, block = 1; ///< x; y and z are 1
  int64_t sharedBytes = 0;     ///< static shared memory of a block
  bool usesF64 = false;        ///< computes with f64, as it was written to
  /// Accesses of global memory in the code: 16 bytes wide, narrower.
  int64_t wideAccesses = 0, narrowAccesses = 0;
  /// Vectors that the code asked for and that became narrower accesses, since
  /// no alignment of 16 bytes could be derived.
  int64_t splitVectors = 0;
  /// Trees whose last 32 lanes became shuffles; those that did not fit.
  int64_t shuffledTrees = 0, plainTrees = 0;
};

struct PtxModule {
  std::string text;
  unsigned sm = 0;
  unsigned isaMajor = 0, isaMinor = 0; ///< PTX version: 7.0 or 7.8
  /// The least that cuDriverGetVersion may say: 11000 or 11080.
  int driverVersion = 0;
  /// The same for people: "450.36 (CUDA 11.0)".
  std::string oldestDriver;
  std::vector<PtxKernel> kernels;
};

/// Code for all launches of `blockForm`, which stays as it is. In process:
/// neither a CUDA toolkit nor the environment is looked at. Fails (exit code
/// ExitUnsupported) where an operation has no code on a GPU, naming it in
/// diagnostics; ExitInternal where the PTX does not pass scanPtx.
llvm::Expected<PtxModule> emitPtx(mlir::ModuleOp blockForm,
                                  const PtxOptions &options);

/// What PTX must not contain: see scanPtx.
struct PtxViolation {
  std::string kernel; ///< empty outside of kernels
  unsigned line = 0;  ///< from 1
  std::string text;   ///< the line, trimmed
  std::string reason;
};

/// Calls of functions that are not there, local memory, device malloc, dynamic
/// shared memory, float arithmetic without rounding mode, approximations, float
/// atomics, f64 in kernels not named in `f64Kernels`, and TF32 unless `tf32`.
std::vector<PtxViolation> scanPtx(llvm::StringRef text,
                                  llvm::ArrayRef<std::string> f64Kernels = {},
                                  bool tf32 = false);

/// What ptxas says of a kernel.
struct AssembledKernel {
  std::string symbol;
  int64_t registers = 0, spillStoreBytes = 0, spillLoadBytes = 0,
          sharedBytes = 0, stackBytes = 0;
};

/// The path of ptxas: on PATH, in $CUDA_HOME/bin or /usr/local/cuda/bin; none
/// if it is not installed. For reports and tests alone: no code depends on it.
std::optional<std::string> findPtxas();

/// Assembles with the given ptxas for `sm` and throws the machine code away.
/// Its messages become the error.
llvm::Expected<std::vector<AssembledKernel>>
assemble(llvm::StringRef ptx, unsigned sm, llvm::StringRef ptxas);

} // namespace ckopt

#endif // CKOPT_CONVERSION_BLOCKTOPTX_BLOCKTOPTX_H
