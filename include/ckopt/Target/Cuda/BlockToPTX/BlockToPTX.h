//===- BlockToPTX.h - block form to CPU loops and to PTX --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Block form represents a GPU kernel before threads are assigned: a func.func
// for each launch, whose body is one scf.forall over blocks (mapping
// #gpu.block<x>). That contains uniform code and scf.foralls over threads
// (mapping #gpu.thread<x>), one for each interval between two barriers. Threads
// communicate only through shared buffers. lib/Target/Cuda/BlockToPTX/README.md
// defines the form.
//
// Since nothing in it needs a GPU, the same form is lowered twice: to plain
// loops, which check it on the CPU (a thread loop that runs backward must give
// the same bits, or threads race), and to PTX. Only the lowering to PTX adds
// barriers, thread numbers and the shuffles of the last 32 lanes of a tree.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TARGET_CUDA_BLOCKTOPTX_BLOCKTOPTX_H
#define CKOPT_TARGET_CUDA_BLOCKTOPTX_BLOCKTOPTX_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>
#include <vector>

namespace ckopt {

/// Attributes of a function in block form: blocks of the launch, threads of a
/// block (i64), and blocks that a multiprocessor must be able to hold at once
/// (i32, optional), which bounds registers. On a thread forall: one step of a
/// tree over the last 32 lanes.
namespace blockform {
inline constexpr llvm::StringLiteral kGrid = "ckopt.gpu.grid";
inline constexpr llvm::StringLiteral kBlock = "ckopt.gpu.block";
inline constexpr llvm::StringLiteral kResident = "ckopt.gpu.resident";
inline constexpr llvm::StringLiteral kLaneStep = "ckopt.gpu.lane_step";
} // namespace blockform

/// Checks every function that has `ckopt.gpu.grid`; reports one diagnostic for
/// each mistake. Both lowerings below check first.
mlir::LogicalResult verifyBlockForm(mlir::ModuleOp module);

//===----------------------------------------------------------------------===//
// On the CPU
//===----------------------------------------------------------------------===//

/// Turns every function of the block form into a function
/// `void SYMBOL(pointers..., i64 scalars..., scratch, i1 descending)` of the
/// LLVM dialect and adds two wrappers, `void SYMBOL__emul(void *const *params)`
/// and SYMBOL__emul_descending, params[i] pointing to the i-th launch parameter
/// as cuLaunchKernel's kernelParams do. The latter runs blocks and threads from
/// the last to the first: all results have the same bits, unless threads race.
/// Shared and private buffers start as bytes 0x00 when ascending and 0xFF when
/// descending, so that a read before the first write shows as well. Functions
/// of libm may remain external. The caller sets the float mode (flush to zero,
/// denormals are zero) that the kernels are to run in.
void buildBlockToLoopsPipeline(mlir::OpPassManager &pm);

/// Returns SYMBOL__emul, or SYMBOL__emul_descending.
std::string emulationSymbol(llvm::StringRef kernel, bool descending = false);

//===----------------------------------------------------------------------===//
// PTX
//===----------------------------------------------------------------------===//

struct PtxOptions {
  unsigned sm = 80;           ///< 80 or 90
  bool keepDenormals = false; ///< of f32; f64 always keeps them
  bool tf32 = false; ///< f32 operands of matmuls may be rounded to TF32
  /// Each thread first lets the next kernel begin and waits for the kernels
  /// before it (`griddepcontrol`), so that a launch need not wait for them. For
  /// sm 90.
  bool programmatic = false;
};

/// A kernel, as it is launched.
struct PtxKernel {
  enum class Parameter { Pointer, Scalar }; ///< 8 bytes each
  std::string symbol;
  /// Parameters in the order of kernelParams; the last one is the scratch
  /// pointer.
  std::vector<Parameter> parameters;
  int64_t grid = 1, block = 1; ///< x; y and z are 1
  int64_t sharedBytes = 0;     ///< static shared memory of a block
  bool usesF64 = false;        ///< uses f64 because its source does
  bool approximates = false;   ///< uses approximations, likewise
  /// Counts of accesses of global memory in the code: 16 bytes wide, and
  /// narrower.
  int64_t wideAccesses = 0, narrowAccesses = 0;
  /// Number of code sequences without branch, label or barrier that load from
  /// global memory, and the most loads in one of them: such loads need not wait
  /// for each other.
  int64_t loadStretches = 0, mostLoads = 0;
  /// Number of vectors in the source that became narrower accesses, since no
  /// alignment of 16 bytes could be proved.
  int64_t splitVectors = 0;
  /// Number of reduction trees whose last 32 lanes became shuffles, and number
  /// of other trees.
  int64_t shuffledTrees = 0, plainTrees = 0;
};

struct PtxModule {
  std::string text;
  unsigned sm = 0;
  unsigned isaMajor = 0, isaMinor = 0; ///< PTX version: 7.0 or 7.8
  /// The lowest result of cuDriverGetVersion that suffices: 11000 or 11080.
  int driverVersion = 0;
  /// The same as text: "450.36 (CUDA 11.0)".
  std::string oldestDriver;
  std::vector<PtxKernel> kernels;
};

/// Emits code for all launches of `blockForm`, which stays unchanged. It runs
/// in process: neither a CUDA toolkit nor the environment is looked at. Fails
/// with ExitUnsupported if an operation has no code on a GPU, naming it in
/// diagnostics, and with ExitInternal if the PTX does not pass scanPtx.
llvm::Expected<PtxModule> emitPtx(mlir::ModuleOp blockForm,
                                  const PtxOptions &options);

/// A construct that PTX must not contain: see scanPtx.
struct PtxViolation {
  std::string kernel; ///< empty if outside of kernels
  unsigned line = 0;  ///< from 1
  std::string text;   ///< the line, trimmed
  std::string reason;
};

/// Finds calls of undefined functions, local memory, device malloc, dynamic
/// shared memory, float arithmetic without rounding mode, approximations (but
/// ex2 and rcp of f32 in the kernels `approximating`), float atomics, f64
/// in kernels not named in `f64Kernels`, and TF32 unless `tf32`. If
/// `programmatic`, also what comes before a kernel's wait for others and may
/// depend on them: accesses of global memory, and branches around the wait.
std::vector<PtxViolation>
scanPtx(llvm::StringRef text, llvm::ArrayRef<std::string> f64Kernels = {},
        bool tf32 = false, llvm::ArrayRef<std::string> approximating = {},
        bool programmatic = false);

/// The figures that ptxas reports for a kernel.
struct AssembledKernel {
  std::string symbol;
  int64_t registers = 0, spillStoreBytes = 0, spillLoadBytes = 0,
          sharedBytes = 0, stackBytes = 0;
};

/// Returns the path of ptxas: on PATH, in $CUDA_HOME/bin or
/// /usr/local/cuda/bin; nothing if it is not installed. It is only for reports
/// and tests; no code depends on it.
std::optional<std::string> findPtxas();

/// Assembles with the given ptxas for `sm` and discards the machine code. On
/// failure its messages become the error.
llvm::Expected<std::vector<AssembledKernel>>
assemble(llvm::StringRef ptx, unsigned sm, llvm::StringRef ptxas);

} // namespace ckopt

#endif // CKOPT_TARGET_CUDA_BLOCKTOPTX_BLOCKTOPTX_H
