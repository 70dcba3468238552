//===- Emitter.h - elements of fused ops, on demand -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pull-based code generation: emit(value, index) makes the code of one element
// (or of W elements along a lane dimension) of any tensor of a kernel's body,
// recursing into operands through the op's ElementModel. An index is a list of
// affine expressions over loop dimensions and symbols (indices known only at
// run time, such as a gather's), so that slices, transposes, reshapes and
// merged loops compose and simplify symbolically; loads see the final linear
// offset and choose: scalar and broadcast, contiguous vector, or gather.
//
// Levels: every expression belongs to the outermost loop that binds its
// dimensions; values are placed there and memoized by (value, index, mask), so
// values that do not vary in the inner loop are computed outside of it.
//
// Bits: an element's operations never depend on the lane, the loop or the
// chunk that computes it: remainders run the same vector code under a mask.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_CODEGEN_EMIT_EMITTER_H
#define CKOPT_LIB_CODEGEN_EMIT_EMITTER_H

#include "ValueBuilder.h"
#include "ckopt/CodeGen/Kernels.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/AffineMap.h"
#include "llvm/ADT/DenseMap.h"

namespace ckopt::codegen {

using mlir::AffineExpr;
using mlir::ArrayRef;
using mlir::SmallVector;
using Index = ArrayRef<AffineExpr>;

/// Returns the index with zeros where a dimension has size 1.
SmallVector<AffineExpr> normalized(mlir::RankedTensorType type, Index index);

/// Returns the constant by which e grows with the dimension, if there is one.
std::optional<int64_t> factorOf(AffineExpr e, AffineExpr dim);

/// Threads of a GPU that run in lockstep.
inline constexpr int64_t kWarp = 32;

/// Returns the type in which elements of `element` are computed: f32 for f16
/// and bf16, signless integers for unsigned ones.
Type computeType(Type element);
/// Returns the type that elements have in memory: i1 is a byte.
Type storageType(Type element);

class Emitter : public ValueBuilder {
public:
  /// Makes an emitter into `stage` (ABI signature, empty entry block).
  Emitter(mlir::func::FuncOp kernel, mlir::func::FuncOp stage,
          mlir::OpBuilder &builder, unsigned lanes);
  /// Makes an emitter at the builder's place in a launch, whose arguments are
  /// the kernel's operands and results, then an i64 for each scalar of the call
  /// (added when it is first used), then the scratch.
  static Emitter forLaunch(mlir::func::FuncOp kernel, mlir::func::FuncOp launch,
                           mlir::OpBuilder &builder, unsigned lanes);

  //===--- Dimensions and expressions -------------------------------------===//
  AffineExpr c(int64_t value) {
    return mlir::getAffineConstantExpr(value, ctx);
  }
  /// Adds a loop dimension bound to `iv` (i64) at the current level; if `lane`
  /// is set, lane l has the value iv + l.
  AffineExpr addDim(Value iv, bool lane = false);
  /// Adds an index computed by code: i64, or a vector of the lane index type.
  AffineExpr addSymbol(Value v, bool nonNegative);
  /// Adds an index that was read from a tensor, in a dimension of `size` > 0:
  /// negative ones count from the end; an index that is still out of range is
  /// clamped, so that no access leaves the tensor.
  AffineExpr addReadIndex(Value read, int64_t size);
  bool dependsOnLane(AffineExpr e) const;
  /// Returns the constant difference between lanes, if there is one.
  std::optional<int64_t> laneStride(AffineExpr e) const;
  bool isNonNegative(AffineExpr e) const;
  /// Returns whether lane 0 of e is known to be a multiple of n, which divides
  /// or is a multiple of the number of lanes: lane dimensions start at
  /// multiples of it.
  bool isMultipleOf(AffineExpr e, int64_t n) const;
  /// Returns e as i64; its value in lane 0 if it depends on the lane.
  Value scalar(AffineExpr e);
  /// Returns e as a vector of laneIndexType().
  Value laneVector(AffineExpr e);
  /// Returns e as a scalar or as a laneVector, whichever it needs.
  Value materialize(AffineExpr e);
  Type laneIndexType() { return indexType; }
  /// Makes lanes hold i64 indices rather than i32, for huge tensors.
  void useWideLaneIndices() { indexType = b.getI64Type(); }
  /// Returns e with nested divisions and remainders resolved where possible.
  static AffineExpr simplify(AffineExpr e);
  /// Returns the sum of index[d] * strides[d], simplified.
  static AffineExpr linearize(Index index, ArrayRef<int64_t> strides,
                              mlir::MLIRContext *ctx);

  //===--- Elements -------------------------------------------------------===//
  /// Returns the element of `tensor` at `index`, in its compute type; a vector
  /// if the index depends on the lane, else (mostly) a scalar.
  Value emit(Value tensor, Index index);
  /// Records the element of another result of an op whose model computes
  /// several.
  void remember(Value tensor, Index index, Value element);
  /// Makes later reads of `tensor` load from `buffer` (of its compute type) if
  /// the index equals `pattern` except for component `component`, which is the
  /// position in the buffer: it holds all of that dimension.
  void cache(Value tensor, Index pattern, unsigned component, Value buffer);
  /// Stores to the kernel's result `result` of logical type `type`.
  void store(unsigned result, mlir::RankedTensorType type, Index index,
             Value element);
  /// Loads the element of the kernel's result `result`, which was stored
  /// before.
  Value reload(unsigned result, mlir::RankedTensorType type, Index index);
  /// Returns x, f32, rounded to `half`, f16 or bf16, but in f32.
  Value rounded(Type half, Value x);
  /// Loads element `offset` of the buffer at `base`.
  Value loadFrom(Value base, Type element, AffineExpr offset);
  void storeTo(Value base, Type element, AffineExpr offset, Value v);
  /// Emits, once and at the outermost level, a value of `fn` that varies with
  /// no loop. `slot` distinguishes several values of one op.
  Value once(mlir::Operation *op, unsigned slot,
             llvm::function_ref<Value()> fn);
  /// Returns values that several vectors of one group share, computed for `at`
  /// once in the current level.
  SmallVector<Value> sharedBy(const void *owner, AffineExpr at, unsigned count,
                              llvm::function_ref<SmallVector<Value>()> fn);
  /// The position of the current vector among the adjacent vectors of a loop
  /// iteration.
  struct Group {
    unsigned vector = 0, count = 1;
  } group;
  /// Loads of vectors of lanes whose offset grows with `dim` by `factor` (any
  /// load, if `dim` is null) also prefetch the bytes `ahead` elements after
  /// them, which need not exist; `locality` is 3 for the nearest cache.
  struct Fetch {
    AffineExpr ahead, dim;
    int64_t factor = 0;
    unsigned locality = 2;
  };
  std::optional<Fetch> fetch;
  /// Makes stores of whole vectors at multiples of their size go past the
  /// caches; bases have to be aligned, and fenceStores() has to follow.
  bool pastCaches = false;
  void fenceStores();
  /// The points along loop dimension `dim` that are computed together for one
  /// vector of lanes; the first `columns` are inside. The current one is number
  /// `point` of `points`, at dim + point.
  struct Tile {
    AffineExpr dim;
    int64_t point, points, columns;
    Value mask;     ///< current mask at the begin of the tile
    unsigned floor; ///< the level that no value of the tile leaves
  };
  std::optional<Tile> tile;
  /// Begins a tile at the current level.
  void beginTile(AffineExpr dim, int64_t points, int64_t columns) {
    tile = Tile{dim, 0, points, columns, mask, floor};
  }
  /// Returns the scalar `position` of the call's list of scalars, an i64.
  Value callScalar(int64_t position);
  /// Returns the address of the kernel's argument (operands, then results).
  Value argument(unsigned number) const { return argPtrs[number]; }
  /// Sets other addresses of arguments, for a launch of several tensors.
  void setArguments(ArrayRef<Value> addresses) { argPtrs.assign(addresses); }
  /// Returns the address of a constant table.
  Value constantTable(mlir::DenseElementsAttr values);
  /// Returns the address of 16 bytes that are zero.
  Value zeros();

  /// Runs `fn` with lanes outside of `lanesInside` switched off. `level` is the
  /// mask's level, by default the current one.
  Value withMask(Value lanesInside, llvm::function_ref<Value()> fn,
                 std::optional<unsigned> level = {});
  Value getMask() const { return mask; }
  /// Conditions on one point: `scalar` for all lanes, `lanes` for each.
  struct Guard {
    Value scalarCondition, laneCondition;
  };
  /// Adds low <= e < high to the guard, unless it is known to hold.
  void require(Guard &guard, AffineExpr e, int64_t low, int64_t high,
               std::optional<std::pair<int64_t, int64_t>> known = {});
  void requireEqual(Guard &guard, AffineExpr e, int64_t value);
  /// Returns tensor[index] if the guard holds, else `otherwise`. Never reads
  /// outside of the tensor.
  Value emitGuarded(const Guard &guard, Value tensor, Index index,
                    Value otherwise);

  //===--- Control flow ---------------------------------------------------===//
  using LoopBody = llvm::function_ref<SmallVector<Value>(
      Value iv, mlir::ValueRange carried)>;
  SmallVector<Value> forLoop(Value low, Value high, int64_t step,
                             ArrayRef<Value> inits, LoopBody body);
  /// Emits a branch; `otherwise` may be null if nothing is returned.
  SmallVector<Value> ifThen(Value condition,
                            llvm::function_ref<SmallVector<Value>()> then,
                            llvm::function_ref<SmallVector<Value>()> otherwise);

  /// Returns the values of choices[number]; all choices are computed before.
  SmallVector<Value> choose(Value number, ArrayRef<SmallVector<Value>> choices);

  /// Emits a loop over threads of a block: one barrier interval. The loop gets
  /// `attributes`.
  void forThreads(int64_t count, llvm::function_ref<void(Value thread)> body,
                  ArrayRef<mlir::NamedAttribute> attributes = {});
  /// Returns the number of the thread of the innermost forThreads, as an index.
  Value threadIndex() const { return thread; }
  /// Makes a buffer of `count` elements that the threads of a block share.
  Value sharedBuffer(Type element, int64_t count);
  /// Makes `count` numbers for each of `threads` threads, kept between
  /// intervals: [threadIndex()][number].
  Value privateBuffer(Type element, int64_t threads, int64_t count);

  Value begin, end, scratch; ///< the stage's arguments
  mlir::func::FuncOp kernel, stage;
  mlir::MLIRContext *ctx;
  VectorReport report;

  /// Set if emission failed (after a diagnostic), so that the code is unusable.
  bool failed = false;
  void fail(mlir::Operation *op, const llvm::Twine &message);

  unsigned currentLevel() const { return unsigned(levels.size()) - 1; }

private:
  struct Launch {};
  Emitter(Launch, mlir::func::FuncOp kernel, mlir::func::FuncOp launch,
          mlir::OpBuilder &builder, unsigned lanes);
  struct Dim {
    Value iv;
    bool lane;
    unsigned level;
  };
  struct Symbol {
    Value value;
    bool nonNegative;
    unsigned level;
  };
  struct Level {
    mlir::Operation *child; ///< ops are inserted before it; null: at the end
    unsigned id;
  };
  struct Entry {
    Value value;
    unsigned level, id;
  };
  struct AtLevel;
  using Key = std::tuple<void *, const void *, void *>;

  unsigned levelOf(AffineExpr e) const;
  unsigned levelOf(Index index, bool &lane) const;
  std::optional<Value> recall(const Key &key) const;
  Key keyOf(Value tensor, Index index, bool lane);
  Value load(Value base, mlir::RankedTensorType type, Index index);
  Value emitAt(Value tensor, Index index);
  Value divide(Value x, int64_t by, bool remainder, bool nonNegative);
  Value pointer(Value base, Type element, Value offset);
  /// Returns a vector of the lanes' addresses; `stride` as of laneStride().
  Value lanePointers(Value base, Type element, AffineExpr offset,
                     std::optional<int64_t> stride);
  /// Returns whether a load at `offset`, with `stride` between neighboring
  /// lanes, is of a transposed tile whose elements may all be read.
  bool isTransposed(AffineExpr offset, std::optional<int64_t> stride) const;
  Value loadTransposed(Value base, Type storage, AffineExpr offset,
                       int64_t stride);
  /// Returns the mask, or one that all lanes pass.
  Value anyMask();
  void enter(mlir::Operation *child);
  void leave();

  struct Cached {
    Value tensor;
    SmallVector<AffineExpr> pattern;
    unsigned component;
    Value buffer;
  };
  SmallVector<Cached> caches;
  Value scalarsPtr; ///< null in a launch
  Value thread, zeroTable;
  SmallVector<Value> argPtrs;
  int64_t launchScalars = 0;
  bool approximatesElements = false; ///< kApproximatesAttr, in a launch
  SmallVector<Dim> dims;
  SmallVector<Symbol> symbols;
  SmallVector<Level> levels;
  unsigned nextLevelId = 0, floor = 0;
  llvm::DenseMap<Key, Entry> memo;
  llvm::DenseMap<AffineExpr, Entry> scalarMemo, vectorMemo;
  Value mask;
  unsigned maskLevel = 0;
  Type indexType;
  unsigned tables = 0;
};

} // namespace ckopt::codegen

#endif // CKOPT_LIB_CODEGEN_EMIT_EMITTER_H
