//===- Nest.h - loops that reduce, with fixed trees -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The reduced loops of a domain, for one point of the kept ones. Two forms:
// - rows: the innermost reduced loop runs on lanes. Four vector accumulators
//   (elements j, j+W, j+2W, j+3W mod 4W), then (a0+a1)+(a2+a3), then halves of
//   the vector until one number is left.
// - columns: a kept loop runs on lanes, every lane reduces its own column in
//   the order of the loops; several neighboring vectors of columns at once. In
//   both, an accumulator takes a short chain of additions, whose sum is a term
//   of the next chain. So rounding errors grow with the length of a chain and
//   the number of such levels, not with the number of points. (A long chain of
//   positive terms drops the low bits of each, mostly in one direction.) The
//   order of additions depends on the shape only.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_CODEGEN_EMIT_NEST_H
#define CKOPT_LIB_CODEGEN_EMIT_NEST_H

#include "Domain.h"
#include "Emitter.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"

namespace ckopt::codegen {

/// One reduction of a nest.
struct Reducer {
  ReduceKind kind; ///< Mean accumulates like Sum
  Type type;       ///< type of the accumulator
  bool isSigned = true;
  bool ignoreNaN = false; ///< of floats: the largest number, ignoring NaNs
  Value identity(Emitter &e) const; ///< scalar
  /// Whether the order of terms changes the result.
  bool rounds() const {
    return isa<mlir::FloatType>(type) && kind != ReduceKind::Max &&
           kind != ReduceKind::Min;
  }
  Value combine(Emitter &e, Value x, Value y) const;
};

/// How a loop that adds its points to accumulators is cut: into blocks of
/// sizes[0] points, those into blocks of sizes[1], and so on. Each block starts
/// from zero, and its sum is a term of the block around it.
struct ChainBlocks {
  SmallVector<int64_t> sizes; ///< ascending; none: the loop is one chain
  int64_t chain = 1;          ///< the most terms of the outermost chain
};

/// Cuts a loop of at most `count` points, each of which adds `inner` terms to
/// an accumulator.
ChainBlocks blocksOf(int64_t count, int64_t inner);

/// Emits a loop [low, high) of points `step` apart that is cut into `blocks`.
/// `run` emits the loop of a range, starting from the given accumulators:
/// `carried` has one for each reducer, or a multiple of that. `count`: points,
/// if known.
SmallVector<Value>
emitBlocked(Emitter &e, const ChainBlocks &blocks, Value low, Value high,
            int64_t step, std::optional<int64_t> count,
            ArrayRef<Reducer> reducers, ArrayRef<Value> carried,
            llvm::function_ref<SmallVector<Value>(Value low, Value high,
                                                  ArrayRef<Value> carried)>
                run);

/// Runs the reduced loops: in one thread (Nest), or by a block (BlockNest).
class PointNest {
public:
  /// Returns elements at a logical index, one for each reducer; `vector`
  /// numbers the vectors of columns.
  using Body = llvm::function_ref<SmallVector<Value>(Index, unsigned vector)>;
  virtual ~PointNest() = default;
  /// Returns one value for each reducer (Nest with columns: for each vector of
  /// them).
  virtual SmallVector<Value> reduce(ArrayRef<Reducer> reducers, Body body) = 0;
  /// Calls body at every point, in the same loops as reduce().
  virtual void
  forEach(llvm::function_ref<void(Index, unsigned vector)> body) = 0;
  /// Restricts the outermost reduced loop to [low, high), which is `most`
  /// points, or fewer unless `exact`.
  virtual void setRange(Value low, Value high, int64_t most, bool exact) = 0;
  /// Returns a value of the current point, which `make` emits. If points stay
  /// in registers it is emitted only in the first pass. `key` names the value.
  virtual Value keep(unsigned key, llvm::function_ref<Value()> make) {
    return make();
  }
  /// Whether keep() keeps anything.
  virtual bool keeps() const { return false; }
  /// Returns the largest number m of body(), ignoring NaNs, and the sum of
  /// exp(x
  /// - m), in one pass over memory; nothing: reduce() does it in two.
  virtual std::optional<std::pair<Value, Value>>
  reduceExponentials(Type type, llvm::function_ref<Value(Index)> body) {
    return std::nullopt;
  }
};

class Nest : public PointNest {
public:
  /// `at` holds positions of all loops; those of `reduced` are set while
  /// looping. `laneReduced` selects the form "rows". For the form "columns",
  /// one of `at` is a lane dimension.
  Nest(Emitter &e, const Domain &domain, ArrayRef<unsigned> reduced,
       bool laneReduced, ArrayRef<AffineExpr> at)
      : e(e), domain(domain), reduced(reduced), laneReduced(laneReduced),
        at(at) {}

  void setRange(Value low, Value high, int64_t most, bool exact) override {
    rangeLow = low;
    rangeHigh = high;
    rangeMost = most;
    rangeExact = exact;
  }
  /// Selects columns: several vectors of columns are reduced at once; vector u
  /// is `lane` shifted by u vectors, under masks[u] (null: all), made at
  /// `maskLevel`.
  void setColumns(unsigned laneLoop, AffineExpr lane,
                  ArrayRef<Value> columnMasks, unsigned level) {
    columnLoop = laneLoop;
    columnLane = lane;
    masks.assign(columnMasks.begin(), columnMasks.end());
    maskLevel = level;
  }

  /// Uses no lanes at all: every value is a scalar (for a thread of a GPU).
  void setScalar() { scalars = true; }

  /// The form "rows" returns a scalar for each reducer. The form "columns"
  /// returns a vector for each (vector of columns, reducer), reducers fastest.
  SmallVector<Value> reduce(ArrayRef<Reducer> reducers, Body body) override;
  void forEach(llvm::function_ref<void(Index, unsigned vector)> body) override;

  unsigned vectors() const { return std::max<size_t>(masks.size(), 1); }

private:
  SmallVector<Value> loop(unsigned level, ArrayRef<Value> carried,
                          ArrayRef<Reducer> reducers, Body body);
  SmallVector<Value> rowLoop(ArrayRef<Value> carried,
                             ArrayRef<Reducer> reducers, Body body);
  SmallVector<Value> columnPoint(ArrayRef<Value> carried,
                                 ArrayRef<Reducer> reducers, Body body);
  void bounds(unsigned level, Value &low, Value &high,
              std::optional<int64_t> &count);
  /// Returns how the loop at `level` is cut; nothing is cut if no addition
  /// rounds.
  ChainBlocks blocksAt(unsigned level) const;
  Value tree(const Reducer &reducer, SmallVector<Value> accumulators);
  Value widened(Value v) { return scalars ? v : e.splat(v); }

  Emitter &e;
  const Domain &domain;
  SmallVector<unsigned> reduced;
  bool laneReduced, scalars = false, rounds = false;
  SmallVector<AffineExpr> at;
  Value rangeLow, rangeHigh;
  int64_t rangeMost = 0;
  bool rangeExact = false;
  unsigned columnLoop = 0;
  AffineExpr columnLane;
  SmallVector<Value> masks;
  unsigned maskLevel = 0;
};

} // namespace ckopt::codegen

#endif // CKOPT_LIB_CODEGEN_EMIT_NEST_H
