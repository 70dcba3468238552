//===- SelectionKernel.cpp - top_k ----------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: the k best of n elements of each row, best first.
//
// Method: elements become integers whose signed order is the op's (`keyOf`);
// equal keys are ordered by index, so that no two elements are equal and every
// method finds the same indices.
// - k up to kSelected: k reductions, each of which finds the best element after
//   the last one found. Lanes run over elements or columns; on a GPU a block
//   handles a row.
// - larger k: the k best so far are a heap, worst first, in the result itself;
//   each element that beats the worst replaces it. Then the heap is sorted in
//   place. Each item (a thread on a GPU) handles a row, without scratch.
//
// Complexity: O(n k), or O(n log k), a row.
//
//===----------------------------------------------------------------------===//
#include "RowKernel.h"
#include "StructuredKernel.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;
using IntCompare = arith::CmpIPredicate;

/// The largest k for which repeated passes are faster than a heap.
static constexpr int64_t kSelected = 8;

/// Returns an integer of 32 or 64 bits that is larger the earlier x comes in
/// the op's order. NaN is larger than every number; zeros of both signs are
/// equal.
static Value keyOf(Emitter &e, TopKOp op, Value x) {
  Type element = getElementTypeOrSelf(op.getInput());
  bool is64 = element.getIntOrFloatBitWidth() == 64;
  Type type = is64 ? e.b.getI64Type() : e.b.getI32Type();
  APInt most = APInt::getSignedMaxValue(is64 ? 64 : 32);
  auto number = [&](const APInt &value) -> Value {
    return arith::ConstantOp::create(e.b, IntegerAttr::get(type, value));
  };
  Value key = x;
  if (isa<FloatType>(element)) {
    Value isNaN = e.cmpf(arith::CmpFPredicate::UNO, x, x);
    // Bits of a float are ordered by magnitude. Adding zero turns -0 into +0.
    key = e.bitcast(type, e.add(x, e.like(x, 0)));
    Value negative = e.cmpi(IntCompare::slt, key, e.like(key, 0));
    key = e.select(negative, e.xori(key, number(most)), key);
    key = e.select(isNaN, number(most), key);
  } else {
    bool isUnsigned = element.isUnsignedInteger();
    Type wanted = e.typeLike(type, x);
    if (element.getIntOrFloatBitWidth() < 32)
      key = isUnsigned ? Value(arith::ExtUIOp::create(e.b, wanted, x))
                       : Value(arith::ExtSIOp::create(e.b, wanted, x));
    else if (isUnsigned) // flip the sign bit to get unsigned order
      key = e.xori(key, number(~most));
  }
  return op.getSmallest()
             ? e.xori(key, number(APInt::getAllOnes(most.getBitWidth())))
             : key;
}

/// Returns whether index a comes before b if their elements are equal.
static Value comesFirst(Emitter &e, TopKOp op, Value a, Value b) {
  return e.cmpi(op.getLast() ? IntCompare::sgt : IntCompare::slt, a, b);
}

/// Returns v as an integer of `type`.
static Value resized(Emitter &e, Type type, Value v) {
  unsigned from = Emitter::elementType(v).getIntOrFloatBitWidth(),
           to = type.getIntOrFloatBitWidth();
  if (from == to)
    return v;
  Type wanted = e.typeLike(type, v);
  return from < to ? Value(arith::ExtSIOp::create(e.b, wanted, v))
                   : Value(arith::TruncIOp::create(e.b, wanted, v));
}

//===----------------------------------------------------------------------===//
// Small k
//===----------------------------------------------------------------------===//

void codegen::emitTopK(RowContext &row) {
  Emitter &e = row.e;
  auto op = cast<TopKOp>(row.op);
  int64_t axis = op.getAxis();
  Type element = getElementTypeOrSelf(op.getInput());
  Type keyType = element.getIntOrFloatBitWidth() == 64 ? e.b.getI64Type()
                                                       : e.b.getI32Type();
  Type placeType = row.length > std::numeric_limits<int32_t>::max()
                       ? e.b.getI64Type()
                       : e.b.getI32Type();
  Reducer best{ReduceKind::Max, keyType},
      first{op.getLast() ? ReduceKind::Max : ReduceKind::Min, placeType};
  Value lastKey, lastPlace;
  auto keyAt = [&](Index i) { return keyOf(e, op, row.operand(0, i)); };
  auto placeAt = [&](Index i) {
    return resized(e, placeType, e.materialize(i[axis]));
  };
  // Returns whether an element was not chosen yet; null if none was chosen.
  auto isLeft = [&](Value key, Value place) -> Value {
    if (!lastKey)
      return {};
    Value behind = e.andi(e.cmpi(IntCompare::eq, key, lastKey),
                          comesFirst(e, op, lastPlace, place));
    return e.ori(e.cmpi(IntCompare::slt, key, lastKey), behind);
  };
  for (int64_t j = 0; j < int64_t(op.getK()); ++j) {
    Value key = row.reduce(best.kind, keyType, [&](Index i) {
      Value own = keyAt(i);
      Value left = isLeft(own, placeAt(i));
      return left ? e.select(left, own, best.identity(e)) : own;
    });
    Value place = row.reduce(first.kind, placeType, [&](Index i) {
      Value own = keyAt(i), at = placeAt(i);
      Value chosen = e.cmpi(IntCompare::eq, own, key);
      if (Value left = isLeft(own, at))
        chosen = e.andi(chosen, left);
      return e.select(chosen, at, first.identity(e));
    });
    SmallVector<AffineExpr> to(row.kept);
    to[axis] = e.c(j);
    row.store(0, to, resized(e, e.b.getI64Type(), place));
    lastKey = key;
    lastPlace = place;
  }
}

//===----------------------------------------------------------------------===//
// Large k
//===----------------------------------------------------------------------===//

namespace {

class HeapKernel : public AxisKernel {
public:
  HeapKernel(func::FuncOp kernel, const CodegenOptions &options, TopKOp topK)
      : AxisKernel(kernel, options, topK,
                   cast<RankedTensorType>(topK.getInput().getType()).getShape(),
                   int64_t(topK.getAxis())),
        topK(topK), k(topK.getK()) {}

protected:
  LogicalResult analyze() override {
    columnWork = shape[axis] * int64_t(llvm::Log2_64_Ceil(k + 1));
    // The result must not take the operand's bytes, since elements are compared
    // until the end.
    return planOp(/*inPlace=*/false);
  }

  void emitItem(Emitter &e, const Place &place) override {
    SmallVector<AffineExpr> at(place.point);
    if (columns)
      at.back() = e.addDim(place.low);
    emitRow(e, at);
  }

private:
  /// An element: its index along the axis, and its key.
  struct Candidate {
    Value place, key;
  };

  Candidate candidate(Emitter &e, ArrayRef<AffineExpr> at, Value place) {
    SmallVector<AffineExpr> index(at);
    index[axis] = e.addSymbol(place, /*nonNegative=*/true);
    return {place, keyOf(e, topK, e.emit(topK.getInput(), index))};
  }
  /// Returns whether a comes after b in the result.
  Value isWorse(Emitter &e, const Candidate &a, const Candidate &b) {
    Value behind = e.andi(e.cmpi(IntCompare::eq, a.key, b.key),
                          comesFirst(e, topK, b.place, a.place));
    return e.ori(e.cmpi(IntCompare::slt, a.key, b.key), behind);
  }

  //===--- The heap: result elements 0 to k - 1 of the row ----------------===//

  SmallVector<AffineExpr> slot(Emitter &e, ArrayRef<AffineExpr> at,
                               Value number) {
    SmallVector<AffineExpr> index(at);
    index[axis] = e.addSymbol(number, /*nonNegative=*/true);
    return index;
  }
  Value get(Emitter &e, ArrayRef<AffineExpr> at, Value number) {
    return e.reload(0, topK.getType(), slot(e, at, number));
  }
  void put(Emitter &e, ArrayRef<AffineExpr> at, Value number, Value place) {
    e.store(0, topK.getType(), slot(e, at, number), place);
  }

  /// Inserts x into the heap of `size` elements in place of element `root`,
  /// whose children are heaps.
  void sift(Emitter &e, ArrayRef<AffineExpr> at, Value root, Value size,
            const Candidate &x) {
    Type i1 = e.b.getI1Type();
    int64_t depth = llvm::Log2_64_Ceil(k + 1);
    auto descend = [&](Value number) -> SmallVector<Value> {
      Value left = e.add(e.mul(number, e.index(2)), e.index(1));
      // If there is no right child, use the left one again.
      Value right = e.minimum(e.add(left, e.index(1)), e.sub(size, e.index(1)));
      Candidate a = candidate(e, at, get(e, at, left));
      Candidate b = candidate(e, at, get(e, at, right));
      Value rightIsWorse = isWorse(e, b, a);
      Candidate worse{e.select(rightIsWorse, b.place, a.place),
                      e.select(rightIsWorse, b.key, a.key)};
      Value moves = isWorse(e, worse, x);
      e.ifThen(
          moves,
          [&] {
            put(e, at, number, worse.place);
            return SmallVector<Value>();
          },
          nullptr);
      Value child = e.select(rightIsWorse, right, left);
      return {e.select(moves, child, number), moves};
    };
    SmallVector<Value> end = e.forLoop(
        e.index(0), e.index(depth), 1, {root, e.constant(i1, int64_t(1))},
        [&](Value, ValueRange carried) {
          Value number = carried[0];
          Value left = e.add(e.mul(number, e.index(2)), e.index(1));
          Value more = e.andi(carried[1], e.cmpi(IntCompare::slt, left, size));
          return e.ifThen(
              more, [&] { return descend(number); },
              [&] {
                return SmallVector<Value>{number, e.constant(i1, int64_t(0))};
              });
        });
    put(e, at, end.front(), x.place);
  }

  void emitRow(Emitter &e, ArrayRef<AffineExpr> at) {
    auto loop = [&](int64_t low, int64_t high, function_ref<void(Value)> fn) {
      e.forLoop(e.index(low), e.index(high), 1, {}, [&](Value i, ValueRange) {
        fn(i);
        return SmallVector<Value>();
      });
    };
    Value size = e.index(k), root = e.index(0);
    loop(0, k, [&](Value i) { put(e, at, i, i); });
    loop(0, k / 2, [&](Value i) {
      Value number = e.sub(e.index(k / 2 - 1), i);
      sift(e, at, number, size, candidate(e, at, get(e, at, number)));
    });
    loop(k, shape[axis], [&](Value i) {
      Candidate x = candidate(e, at, i);
      Candidate worst = candidate(e, at, get(e, at, root));
      e.ifThen(
          isWorse(e, worst, x),
          [&] {
            sift(e, at, root, size, x);
            return SmallVector<Value>();
          },
          nullptr);
    });
    // Move the worst remaining element to the end.
    loop(1, k, [&](Value i) {
      Value last = e.sub(size, i);
      Candidate x = candidate(e, at, get(e, at, last));
      put(e, at, last, get(e, at, root));
      sift(e, at, root, last, x);
    });
  }

  TopKOp topK;
  int64_t k;
};

} // namespace

void codegen::addSelectionKernels(StructuredKernels &kernels) {
  kernels.add<TopKOp>([](func::FuncOp kernel, const CodegenOptions &options,
                         Operation *op) -> std::unique_ptr<GeneratedKernel> {
    auto topK = cast<TopKOp>(op);
    if (int64_t(topK.getK()) <= kSelected)
      return makeRowKernel(kernel, options);
    return std::make_unique<HeapKernel>(kernel, options, topK);
  });
}
