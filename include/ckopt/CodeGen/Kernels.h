//===- Kernels.h - code for kernels -----------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Turns the body of one kernel (a private function of ckopt ops on tensors,
// attribute `ckopt.kernel`) into functions of the kernel ABI
//
//   void k(void *const *args, const int64_t *scalars,
//          int64_t begin, int64_t end, void *scratch)
//
// `args` are the operands, then the results. Stages of one kernel run one
// after another over the same args and scratch, each over its own trip count:
// [0, trip) cut anywhere at multiples of `grain` gives the same bits.
//
// For targets whose stages are launches (StageForm::Blocks) the same bodies are
// in block form: one function for each stage, with separate parameters,
// scf.forall over blocks around scf.foralls over threads (see
// docs/code-generation.md).
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_CODEGEN_KERNELS_H
#define CKOPT_CODEGEN_KERNELS_H

#include "ckopt/Target/TargetInfo.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/MathExtras.h"
#include <string>
#include <utility>

namespace ckopt {

/// On kernels whose code is for many sizes (docs/code-generation.md): the sizes
/// of dimensions that may be any other at run time. Code decides nothing by
/// them.
inline constexpr llvm::StringLiteral kOpenSizesAttr = "ckopt.open_sizes";

/// On modules whose kernels store 16-bit floats between each other (pass
/// mixed-precision): launches compute functions of elements by a GPU's own
/// approximations. All of them do, since an expression must have the same bits
/// in every kernel that computes it.
inline constexpr llvm::StringLiteral kApproximatesAttr = "ckopt.approximates";

/// One parallel loop: ckrt_parallel_for(symbol, args, scalars, trip, grain,
/// scratch), or a launch of `trip` blocks.
struct KernelStage {
  std::string symbol;
  int64_t trip = 0;
  int64_t grain = 1;
  /// Threads of a launch's block; 0 for a function over ranges.
  int64_t block = 0;
  /// For a launch: why it accesses single elements; empty if it accesses 16
  /// bytes at once as far as shapes allow.
  std::string scalarReason;
};

/// How a contraction is divided among blocks, for cost estimates.
struct ContractionShape {
  double products = 0; ///< multiplications of the result
  double computed =
      0; ///< multiplications of all tiles, including elements beyond the edges
  double tileBytes = 0; ///< bytes that all blocks load, mostly from a cache
  int64_t blocks = 0;   ///< blocks of the first launch; 0: no such shape
  int64_t resident = 1; ///< blocks that share a multiprocessor
  double share = 1; ///< share of the rate that blocks with tiles of 128 reach
};

/// How a call of the kernel runs.
struct KernelCode {
  /// An argument of a block's primitive: that of the call (operands, then
  /// results), this many bytes in; kFactor: the block of the factor.
  struct BlockArg {
    int64_t number = 0, offset = 0;
  };
  static constexpr int64_t kFactor = -1;
  /// A block of a factor, and its product.
  struct ProductBlock {
    unsigned primitive = 0; ///< of blockPrimitives
    int64_t firstTrip = 0, trips = 0;
    int64_t shift = 0; ///< bytes of the whole factor before the block
    llvm::SmallVector<BlockArg, 4> args;
    unsigned fill = 0; ///< the stage that makes the block
  };
  /// A library kernel: ckrt_execute of `primitive` on `primitiveArgs`. If it
  /// also has stages, these replace the library if it refuses the call. Without
  /// a primitive, the stages run in order.
  bool library = false;
  runtime::PrimitiveDesc primitive;
  /// For library kernels: the primitive's i-th argument is the call's argument
  /// number primitiveArgs[i] (operands, then results).
  llvm::SmallVector<unsigned> primitiveArgs;
  llvm::SmallVector<KernelStage> stages;
  /// A product by blocks of a factor: for one after the other, a stage writes
  /// it to the start of the workspace (`blockBytes`), and a primitive
  /// multiplies it, with the rest of the workspace. `primitive` is the first. A
  /// launch gets the block's number as its scalar, and the block in place of
  /// the result.
  llvm::SmallVector<ProductBlock, 0> blocks;
  llvm::SmallVector<runtime::PrimitiveDesc, 0> blockPrimitives;
  /// For launches: the first stage that computes each of these on its arguments
  /// where no library does, and how many. Empty: libraries do.
  llvm::SmallVector<std::pair<unsigned, unsigned>, 0> blockStages;
  int64_t blockBytes = 0;
  /// Where the rest of a launch's workspace begins.
  int64_t restOffset() const {
    return int64_t(llvm::alignTo(uint64_t(blockBytes), 256));
  }
  /// Bytes at `scratch` (64-byte aligned), which are part of the call's planned
  /// workspace.
  int64_t workspaceBytes = 0;
  /// Bytes of it that the stages of a library kernel use.
  int64_t ownScratchBytes = 0;
  llvm::SmallVector<ContractionShape, 1> shapes; ///< run one after another
  /// Bytes that all threads of the first launch load before they use one; 0:
  /// enough to keep memory busy.
  int64_t bytesInFlight = 0;
  /// (operand, result) pairs that may share all their bytes.
  llvm::SmallVector<std::pair<unsigned, unsigned>> reuse;
};

/// Returns what a pass with these settings plans and emits kernels for,
/// completing `settings`; fails with a diagnostic at the module.
llvm::FailureOr<CodegenOptions>
codegenOptions(mlir::ModuleOp module, KernelSettings &settings,
               llvm::StringRef matmulPrecision = "f32");

/// Decides how the kernel will run. Makes no code, is deterministic and cheap.
/// Fails with a diagnostic on an op that cannot be lowered.
llvm::FailureOr<KernelCode> planKernel(mlir::func::FuncOp kernel,
                                       const CodegenOptions &options);

/// Adds the stage functions of a generated kernel to `into`, as func.func of
/// llvm pointers, with the symbols of planKernel's result; adds nothing for
/// library kernels. Dialects used: func, scf, arith, math, vector, llvm.
/// `kernel` may be in `into` as well, and is not changed: symbols of stages are
/// "<kernel>.s<n>", of launches "<kernel>_s<n>".
mlir::LogicalResult emitKernel(mlir::func::FuncOp kernel,
                               const CodegenOptions &options,
                               mlir::ModuleOp into);

/// Erases the kernels of a module that no call names.
void eraseUnusedKernels(mlir::ModuleOp module);

/// Lowers the result of emitKernel (and scf, arith, math, vector, func, cf,
/// index in general) to the LLVM dialect. Functions of libm may remain
/// external: link or resolve -lm.
void buildKernelLoweringPipeline(mlir::OpPassManager &pm);

/// Registers the dialects of the ops that emitKernel and the pipeline create;
/// passes that call emitKernel add them to their dependent dialects.
void registerKernelDialects(mlir::DialectRegistry &registry);

/// Counts that show how well a kernel is vectorized, for tests and reports.
struct VectorReport {
  unsigned lanes = 1;      ///< of the vectorized loops
  unsigned unitLoads = 0;  ///< contiguous vector loads, in emitted code
  unsigned broadcasts = 0; ///< scalar loads, used by all lanes
  unsigned gathers = 0;    ///< gathers: separate loads of each lane
  unsigned libmCalls = 0;  ///< functions computed lane by lane
};
/// Emits the kernel into a temporary module and counts its operations.
llvm::FailureOr<VectorReport>
reportVectorization(mlir::func::FuncOp kernel, const CodegenOptions &options);

} // namespace ckopt

#endif // CKOPT_CODEGEN_KERNELS_H
