//===- CkoptDialect.h - the ckopt dialect, its attributes -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_DIALECT_CKOPT_IR_CKOPTDIALECT_H
#define CKOPT_DIALECT_CKOPT_IR_CKOPTDIALECT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TensorEncoding.h"

#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h.inc"
#include "ckopt/Dialect/Ckopt/IR/CkoptEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "ckopt/Dialect/Ckopt/IR/CkoptAttributes.h.inc"

namespace ckopt {

/// Names of discardable attributes on function arguments, results and
/// functions; docs/architecture.md says what they mean.
namespace attrs {
inline constexpr llvm::StringLiteral kName = "ckopt.name";
inline constexpr llvm::StringLiteral kRole = "ckopt.role";
inline constexpr llvm::StringLiteral kInit = "ckopt.init";
inline constexpr llvm::StringLiteral kFanIn = "ckopt.fan_in";
inline constexpr llvm::StringLiteral kFanOut = "ckopt.fan_out";
inline constexpr llvm::StringLiteral kUpdates = "ckopt.updates";
/// On arguments and results: one rank's shard of a tensor of this type, and the
/// number of ranks that share it. On functions: the ranks of the run.
inline constexpr llvm::StringLiteral kWhole = "ckopt.whole";
inline constexpr llvm::StringLiteral kShards = "ckopt.shards";
inline constexpr llvm::StringLiteral kRanks = "ckopt.ranks";
inline constexpr llvm::StringLiteral kOffset = "ckopt.offset";
inline constexpr llvm::StringLiteral kArenaBytes = "ckopt.arena_bytes";
/// On modules: the alignment of every tensor and workspace of the arena, a
/// power of two above 64.
inline constexpr llvm::StringLiteral kAlignment = "ckopt.alignment";
/// On modules: what is fed to each step has a second place, where what the next
/// one is fed with waits. On functions behind plan-memory: the first and the
/// last byte plus one of the first places, and how far behind the second are.
inline constexpr llvm::StringLiteral kFedTwice = "ckopt.fed_twice";
inline constexpr llvm::StringLiteral kFed = "ckopt.fed";
inline constexpr llvm::StringLiteral kClone = "ckopt.clone";
/// On kernel calls: the node's number in the step before remat; a recomputed
/// clone has its original's number.
inline constexpr llvm::StringLiteral kNode = "ckopt.node";
inline constexpr llvm::StringLiteral kKernel = "ckopt.kernel";
/// On functions: operations of matmuls and convolutions that are computed from
/// 16-bit floats, and of all.
inline constexpr llvm::StringLiteral kBF16Products = "ckopt.bf16_products";
inline constexpr llvm::StringLiteral kF16Products = "ckopt.f16_products";
/// On library kernels: the precision class that round-products gave their
/// matmuls.
inline constexpr llvm::StringLiteral kProducts = "ckopt.products";
/// On kernels: launches of a call; and the time of a contraction over its time
/// at the full rate.
inline constexpr llvm::StringLiteral kLaunches = "ckopt.launches";
inline constexpr llvm::StringLiteral kProductTime = "ckopt.product_time";
/// On kernels of a GPU: bytes that all threads load before they use one, if
/// these may be too few to keep the memory busy.
inline constexpr llvm::StringLiteral kBytesInFlight = "ckopt.bytes_in_flight";
/// On any op: "save", "recompute" or "auto", for its results.
inline constexpr llvm::StringLiteral kRemat = "ckopt.remat";
/// On any op: the checkpointed regions that contain it, outermost first:
/// "encoder/layer0".
inline constexpr llvm::StringLiteral kCheckpoint = "ckopt.checkpoint";
} // namespace attrs

/// Values of `ckopt.role`.
namespace roles {
inline constexpr llvm::StringLiteral kInput = "input";
inline constexpr llvm::StringLiteral kTarget = "target";
inline constexpr llvm::StringLiteral kParameter = "parameter";
inline constexpr llvm::StringLiteral kFrozen = "frozen";
inline constexpr llvm::StringLiteral kState = "state";
inline constexpr llvm::StringLiteral kConstant = "constant";
inline constexpr llvm::StringLiteral kSeed = "seed";
inline constexpr llvm::StringLiteral kStep = "step";
inline constexpr llvm::StringLiteral kLearningRate = "learning_rate";
inline constexpr llvm::StringLiteral kOptimizerState = "optimizer_state";
/// A weight in fewer bits, which its update writes, too.
inline constexpr llvm::StringLiteral kCopy = "copy";
} // namespace roles

/// The physical order of a tensor's dimensions, outermost first (identity for
/// tensors without an encoding).
llvm::SmallVector<int64_t> getPhysicalOrder(mlir::RankedTensorType type);
/// Elements between neighbors along each logical dimension.
llvm::SmallVector<int64_t> getElementStrides(mlir::RankedTensorType type);
bool isRowMajor(mlir::RankedTensorType type);
/// `type` with the given physical order; the identity becomes no encoding.
mlir::RankedTensorType withOrder(mlir::RankedTensorType type,
                                 llvm::ArrayRef<int64_t> order);
/// Bytes of the tensor; i1 takes one byte an element.
int64_t getByteSize(mlir::RankedTensorType type);

/// The numpy broadcast of two shapes; nullopt if they do not broadcast.
std::optional<llvm::SmallVector<int64_t>>
broadcastShapes(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b);

namespace detail {
/// Equal shapes and element types; layouts may differ.
bool equalUpToLayout(mlir::TypeRange a, mlir::TypeRange b);
/// Equal shapes and element types, or f32 in one where the other has f16 or
/// bf16; layouts may differ.
bool equalUpToWidth(mlir::TypeRange a, mlir::TypeRange b);
/// Whether values of type `a` may be stored as `b`: the types are equal, or one
/// is f32 and the other f16 or bf16.
bool differOnlyInWidth(mlir::Type a, mlir::Type b);
} // namespace detail

} // namespace ckopt

#endif // CKOPT_DIALECT_CKOPT_IR_CKOPTDIALECT_H
