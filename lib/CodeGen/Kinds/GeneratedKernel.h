//===- GeneratedKernel.h - kinds of generated kernels -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_CODEGEN_KINDS_GENERATEDKERNEL_H
#define CKOPT_LIB_CODEGEN_KINDS_GENERATEDKERNEL_H

#include "Emit/Domain.h"
#include "Emit/Emitter.h"
#include "ckopt/CodeGen/Kernels.h"
#include <memory>

namespace ckopt::codegen {

/// The least number of elements for which a separate parallel range pays.
inline constexpr int64_t kRangeElements = 16384;
/// Threads of a block in which each thread handles an item.
inline constexpr int64_t kBlockThreads = 256;

/// Returns the bytes of one element of each tensor that has at least half as
/// many elements as there are points: the bytes that are loaded or stored for a
/// point.
int64_t bytesOfPoint(mlir::TypeRange tensors, int64_t points);

/// An analyzed kernel: `code` is its plan, and emit() makes the stages.
class GeneratedKernel {
public:
  GeneratedKernel(mlir::func::FuncOp kernel, const CodegenOptions &options);
  virtual ~GeneratedKernel();
  virtual mlir::LogicalResult plan() = 0;
  virtual mlir::LogicalResult emit(mlir::ModuleOp into) = 0;

  KernelCode code;
  VectorReport report; ///< valid after emit()

protected:
  /// Adds a stage to the plan.
  void addStage(int64_t trip, int64_t grain);
  /// Emits stage `number`: its function, then the body by `fn`.
  mlir::LogicalResult emitStage(mlir::ModuleOp into, unsigned number,
                                llvm::function_ref<void(Emitter &)> fn);
  /// Adds the counts to the report; erases the function if emission failed.
  mlir::LogicalResult finishStage(Emitter &e);
  /// Adds a launch of `items` items, each handled by a thread, or by a block
  /// together.
  void addLaunch(int64_t items, int64_t block, bool together,
                 llvm::StringRef scalarReason = {});
  /// Emits launch `number`, in which each block handles one item. Elements
  /// belong to `of`, by default the kernel; for another function, `body` sets
  /// the arguments.
  mlir::LogicalResult
  emitLaunch(mlir::ModuleOp into, unsigned number,
             llvm::function_ref<void(Emitter &, Value block)> body,
             mlir::func::FuncOp of = {});
  /// Emits launch `number`, in which each thread handles one of `items` items.
  mlir::LogicalResult
  emitThreads(mlir::ModuleOp into, unsigned number, int64_t items,
              llvm::function_ref<void(Emitter &, Value item)> fn);
  /// Returns which dimensions of a shape may have other sizes at run time.
  SmallVector<bool> openDims(ArrayRef<int64_t> sizes) const;
  bool isOpen(int64_t size) const { return open.contains(size); }
  /// Returns whether lane indices need 64 bits.
  bool hasHugeTensors();

  /// Finds reuse pairs: arguments of a result's own type that are read only at
  /// the result's point. `accesses` are those of all results, over one identity
  /// index.
  void findReuse(const Accesses &accesses, llvm::ArrayRef<AffineExpr> point);

  mlir::func::FuncOp kernel;
  mlir::func::ReturnOp terminator;
  CodegenOptions options;
  mlir::MLIRContext *ctx;
  unsigned lanes;

private:
  llvm::SmallDenseSet<int64_t> open; ///< kOpenSizesAttr
};

/// A kernel with code for both forms of stages; the target chooses one.
class FormedKernel : public GeneratedKernel {
public:
  using GeneratedKernel::GeneratedKernel;
  mlir::LogicalResult plan() final;
  mlir::LogicalResult emit(mlir::ModuleOp into) final;

protected:
  /// Does the analysis that does not depend on the form.
  virtual mlir::LogicalResult analyze() = 0;
  virtual mlir::LogicalResult planRanges() = 0;
  virtual mlir::LogicalResult planBlocks() = 0;
  virtual mlir::LogicalResult emitRanges(mlir::ModuleOp into) = 0;
  virtual mlir::LogicalResult emitBlocks(mlir::ModuleOp into) = 0;
};

std::unique_ptr<GeneratedKernel>
makeElementwiseKernel(mlir::func::FuncOp kernel, const CodegenOptions &options);
/// Makes an update of states in codes, by rows that have a scale each.
std::unique_ptr<GeneratedKernel> makeCodedUpdate(mlir::func::FuncOp kernel,
                                                 const CodegenOptions &options);
/// Makes an elementwise kernel for ranges whose parallel dimension is a
/// multiple of the first dimension of its result, so that equal parts write
/// equal parts of that; it starts at the call's first scalar.
std::unique_ptr<GeneratedKernel> makeRowsKernel(mlir::func::FuncOp kernel,
                                                const CodegenOptions &options);
/// A part of an elementwise kernel's result: `count` entries of one dimension,
/// from `step` times the call's first scalar on (with step 0, from the first).
struct Part {
  unsigned axis = 0;
  int64_t count = 0, step = 0;
};
/// Makes a launch that computes a part of the result, and stores it as a tensor
/// of the part's own shape, row-major.
std::unique_ptr<GeneratedKernel> makePartKernel(mlir::func::FuncOp kernel,
                                                const CodegenOptions &options,
                                                Part part);
std::unique_ptr<GeneratedKernel>
makeJoinedKernel(mlir::func::FuncOp kernel, const CodegenOptions &options);
std::unique_ptr<GeneratedKernel>
makeReductionKernel(mlir::func::FuncOp kernel, const CodegenOptions &options);
std::unique_ptr<GeneratedKernel> makeRowKernel(mlir::func::FuncOp kernel,
                                               const CodegenOptions &options);
std::unique_ptr<GeneratedKernel>
makeStructuredKernel(mlir::func::FuncOp kernel, const CodegenOptions &options);
std::unique_ptr<GeneratedKernel>
makeLibraryKernel(mlir::func::FuncOp kernel, const CodegenOptions &options);
/// Make a product one factor of which the kernel makes from stored numbers: on
/// ranges, and in launches.
std::unique_ptr<GeneratedKernel>
makeStoredProduct(mlir::func::FuncOp kernel, const CodegenOptions &options);
std::unique_ptr<GeneratedKernel>
makeDeviceStoredProduct(mlir::func::FuncOp kernel,
                        const CodegenOptions &options);

/// Makes the same op as generated code, in launches.
std::unique_ptr<GeneratedKernel>
makeDeviceContraction(mlir::func::FuncOp kernel, const CodegenOptions &options);
/// Makes a product of places that `product` describes, of which the kernel's
/// only op gives the types.
std::unique_ptr<GeneratedKernel>
makeDeviceProduct(mlir::func::FuncOp kernel, const CodegenOptions &options,
                  const runtime::PrimitiveDesc &product);
std::unique_ptr<GeneratedKernel>
makeDeviceAttention(mlir::func::FuncOp kernel, const CodegenOptions &options);

/// Makes a collective, whose sums are launches.
std::unique_ptr<GeneratedKernel>
makeDeviceCollective(mlir::func::FuncOp kernel, const CodegenOptions &options);

/// Sets code.primitive and code.primitiveArgs from the only op of a library
/// kernel.
mlir::LogicalResult describePrimitive(mlir::func::FuncOp kernel,
                                      const CodegenOptions &options,
                                      KernelCode &code);

/// Describes a product of two matrices, whatever makes these.
mlir::LogicalResult describeProduct(mlir::Operation *op,
                                    const CodegenOptions &options,
                                    runtime::PrimitiveDesc &desc);

/// Returns the reuse pairs of a library kernel's op as pairs of the kernel,
/// whose primitive is described.
llvm::SmallVector<std::pair<unsigned, unsigned>>
libraryReuse(mlir::func::FuncOp kernel, const KernelCode &code);

/// Returns the value to compute for a result: a store itself rounds to f16 or
/// bf16, with the bits of a cast.
Value beforeRounding(Value result);

/// Returns the coordinates of number `t` in a row-major box, of its type (uses
/// divisions, so only for few t).
SmallVector<Value> split(Emitter &e, Value t, ArrayRef<int64_t> sizes);

/// Calls `body` with an index expression of a lane dimension for all of [low,
/// high): full vectors, then the remainder under a mask. `count` is high - low
/// if known.
void vectorLoop(Emitter &e, Value low, Value high, std::optional<int64_t> count,
                llvm::function_ref<void(AffineExpr)> body);
/// Returns a mask in which lane l is on if at + l < high.
Value maskBelow(Emitter &e, Value at, Value high);

} // namespace ckopt::codegen

#endif // CKOPT_LIB_CODEGEN_KINDS_GENERATEDKERNEL_H
