//===- PoolModels.cpp - pooling and its gradients -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pooling computes each point by a loop over a window: the forward ops over the
// input points that the window covers, the gradients over the windows that
// cover the point, so that no two points write to one place. Bounds are tested
// on scalars where lanes run over channels, else lane by lane.
//
//===----------------------------------------------------------------------===//
#include "Models/ElementModel.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;
using codegen::Index;
using Indices = SmallVector<AffineExpr>;

namespace {

/// The window attributes of any pooling op, and the spatial extents of input
/// and output.
struct Window {
  ArrayRef<int64_t> kernel, strides, low, high, dilations;
  SmallVector<int64_t> in, out; ///< spatial extents

  template <typename Op>
  Window(Op op, Value input, Value output)
      : kernel(op.getKernel()), strides(op.getStrides()), low(op.getPadsLow()),
        high(op.getPadsHigh()), dilations(op.getDilations()),
        in(cast<RankedTensorType>(input.getType()).getShape().drop_front(2)),
        out(cast<RankedTensorType>(output.getType()).getShape().drop_front(2)) {
  }
  size_t rank() const { return kernel.size(); }
  int64_t points() const {
    int64_t count = 1;
    for (int64_t size : kernel)
      count *= size;
    return count;
  }
};

struct PoolModel : ElementModel {
  std::optional<Indices> operandIndex(Operation *, unsigned,
                                      Index) const override {
    return std::nullopt;
  }
  SmallVector<AffineExpr> indexUses(Operation *, Index index) const override {
    return Indices(index);
  }

  /// Loops over the points of a window with carried values.
  static SmallVector<Value>
  forWindow(Emitter &e, const Window &w, ArrayRef<Value> inits,
            function_ref<SmallVector<Value>(Index, ArrayRef<Value>)> body) {
    Indices at;
    std::function<SmallVector<Value>(size_t, ArrayRef<Value>)> run =
        [&](size_t d, ArrayRef<Value> carried) -> SmallVector<Value> {
      if (d == w.rank())
        return body(at, carried);
      if (w.kernel[d] == 1) {
        at.push_back(e.c(0));
        SmallVector<Value> result = run(d + 1, carried);
        at.pop_back();
        return result;
      }
      return e.forLoop(e.index(0), e.index(w.kernel[d]), 1, carried,
                       [&](Value iv, ValueRange inner) {
                         at.push_back(e.addDim(iv));
                         SmallVector<Value> result =
                             run(d + 1, SmallVector<Value>(inner));
                         at.pop_back();
                         return result;
                       });
    };
    return run(0, inits);
  }

  /// Makes vectors of scalars where the point depends on the lane.
  struct Widener {
    Widener(Emitter &e, Index index)
        : e(e), lane(llvm::any_of(
                    index, [&](AffineExpr i) { return e.dependsOnLane(i); })) {}
    Value operator()(Value v) const { return lane ? e.splat(v) : v; }
    Emitter &e;
    bool lane;
  };

  /// Returns the input position of window point k at output position o, along
  /// d.
  static AffineExpr inputAt(const Window &w, size_t d, AffineExpr o,
                            AffineExpr k) {
    return o * w.strides[d] + k * w.dilations[d] - w.low[d];
  }

  /// Returns the index of the input point under window point k.
  static Indices inputPoint(const Window &w, Index index, Index k) {
    Indices point(index.take_front(2));
    for (size_t d = 0; d < w.rank(); ++d)
      point.push_back(inputAt(w, d, index[d + 2], k[d]));
    return point;
  }
  /// Returns the number of a window point, row-major.
  static AffineExpr pointNumber(Emitter &e, const Window &w, Index k) {
    AffineExpr number = e.c(0);
    for (size_t d = 0; d < w.rank(); ++d)
      number = number * w.kernel[d] + k[d];
    return number;
  }
  /// Runs fn where the guard's scalar part holds, under the mask of its lanes.
  static SmallVector<Value> guarded(Emitter &e, const Emitter::Guard &guard,
                                    ArrayRef<Value> otherwise,
                                    function_ref<SmallVector<Value>()> fn) {
    auto inside = [&] {
      if (!guard.laneCondition)
        return fn();
      SmallVector<Value> result;
      e.withMask(guard.laneCondition, [&] {
        result = fn();
        return Value();
      });
      for (auto [value, old] : llvm::zip_equal(result, otherwise))
        value = e.select(guard.laneCondition, value, old);
      return result;
    };
    if (!guard.scalarCondition)
      return inside();
    return e.ifThen(guard.scalarCondition, inside,
                    [&] { return SmallVector<Value>(otherwise); });
  }

  /// Returns the guard that window points lie inside of the input.
  static Emitter::Guard inputGuard(Emitter &e, const Window &w, Index at) {
    Emitter::Guard guard;
    for (size_t d = 0; d < w.rank(); ++d) {
      int64_t last = (w.out[d] - 1) * w.strides[d] +
                     (w.kernel[d] - 1) * w.dilations[d] - w.low[d];
      e.require(guard, at[d], 0, w.in[d],
                std::pair<int64_t, int64_t>(-w.low[d], last + 1));
    }
    return guard;
  }

  /// For gradients: returns the output position whose window point k is input
  /// position i, and the guard that there is one.
  static Indices outputAt(Emitter &e, const Window &w, Index spatial, Index k,
                          Emitter::Guard &guard) {
    Indices result;
    for (size_t d = 0; d < w.rank(); ++d) {
      AffineExpr at = spatial[d] + w.low[d] - k[d] * w.dilations[d];
      if (w.strides[d] > 1) {
        e.requireEqual(guard, at % w.strides[d], 0);
        at = at.floorDiv(w.strides[d]);
      }
      int64_t lowest = llvm::divideFloorSigned(
          w.low[d] - (w.kernel[d] - 1) * w.dilations[d], w.strides[d]);
      int64_t highest =
          llvm::divideFloorSigned(w.in[d] - 1 + w.low[d], w.strides[d]);
      e.require(guard, at, 0, w.out[d],
                std::pair<int64_t, int64_t>(lowest, highest + 1));
      result.push_back(at);
    }
    return result;
  }
};

struct MaxPoolModel : PoolModel {
  Value emit(Operation *op, unsigned result, Index index,
             Emitter &e) const override {
    auto pool = cast<MaxPoolOp>(op);
    Window w(pool, pool.getInput(), pool.getOutput());
    Type type = computeType(getElementTypeOrSelf(pool.getInput()));
    Type i32 = e.b.getI32Type();
    Widener widen(e, index);
    using P = arith::CmpFPredicate;
    SmallVector<Value> inits{
        widen(e.constant(type, -std::numeric_limits<double>::infinity())),
        widen(e.constant(i32, int64_t(-1)))};
    SmallVector<Value> won =
        forWindow(e, w, inits, [&](Index k, ArrayRef<Value> best) {
          Indices point = inputPoint(w, index, k);
          AffineExpr number = pointNumber(e, w, k);
          auto guard = inputGuard(e, w, ArrayRef(point).drop_front(2));
          return guarded(e, guard, best, [&] {
            Value x = widen(e.emit(pool.getInput(), point));
            Value here = arith::TruncIOp::create(e.b, i32, e.scalar(number));
            Value none =
                e.cmpi(arith::CmpIPredicate::slt, best[1], e.like(best[1], 0));
            Value nan =
                e.andi(e.cmpf(P::UNO, x, x), e.cmpf(P::ORD, best[0], best[0]));
            Value take = e.ori(e.ori(e.cmpf(P::OGT, x, best[0]), nan), none);
            return SmallVector<Value>{e.select(take, x, best[0]),
                                      e.select(take, widen(here), best[1])};
          });
        });
    Type narrow = computeType(getElementTypeOrSelf(pool.getIndex()));
    Value where = won[1];
    if (narrow != i32)
      where = arith::TruncIOp::create(e.b, e.typeLike(narrow, where), where);
    e.remember(pool.getOutput(), index, won[0]);
    e.remember(pool.getIndex(), index, where);
    return result == 0 ? won[0] : where;
  }
};

struct MaxPoolGradModel : PoolModel {
  Value emit(Operation *op, unsigned, Index index, Emitter &e) const override {
    auto pool = cast<MaxPoolGradOp>(op);
    Window w(pool, pool.getOutput(), pool.getGrad());
    Type type = computeType(getElementTypeOrSelf(pool.getGrad()));
    Widener widen(e, index);
    return forWindow(e, w, widen(e.constant(type, 0.0)),
                     [&](Index k, ArrayRef<Value> sum) {
                       Emitter::Guard guard;
                       Indices point(index.take_front(2));
                       llvm::append_range(
                           point,
                           outputAt(e, w, index.drop_front(2), k, guard));
                       AffineExpr number = pointNumber(e, w, k);
                       return guarded(e, guard, sum, [&] {
                         return addIfWon(e, pool, point, number, sum[0], widen);
                       });
                     })
        .front();
  }

private:
  static SmallVector<Value> addIfWon(Emitter &e, MaxPoolGradOp pool,
                                     Index point, AffineExpr number, Value sum,
                                     function_ref<Value(Value)> widen) {
    Value where = widen(e.emit(pool.getIndex(), point));
    Value here = e.scalar(number);
    here = arith::TruncIOp::create(e.b, Emitter::elementType(where), here);
    Value won = e.cmpi(arith::CmpIPredicate::eq, where, widen(here));
    Value g = widen(e.emit(pool.getGrad(), point));
    return {e.select(won, e.add(sum, g), sum)};
  }
};

/// Counts the points of the window at output position o along d that the
/// average includes.
static Value countAlong(Emitter &e, const Window &w, size_t d, AffineExpr o,
                        bool includePad) {
  int64_t first = includePad ? -w.low[d] : 0;
  int64_t end = includePad ? w.in[d] + w.high[d] : w.in[d];
  int64_t lowest = -w.low[d];
  int64_t highest = (w.out[d] - 1) * w.strides[d] +
                    (w.kernel[d] - 1) * w.dilations[d] - w.low[d];
  if (lowest >= first && highest < end)
    return e.index(w.kernel[d]);
  Value count;
  for (int64_t k = 0; k < w.kernel[d]; ++k) {
    Value at = e.materialize(PoolModel::inputAt(w, d, o, e.c(k)));
    Value inside =
        e.andi(e.cmpi(arith::CmpIPredicate::sge, at, e.like(at, double(first))),
               e.cmpi(arith::CmpIPredicate::slt, at, e.like(at, double(end))));
    Value one = e.select(inside, e.like(at, 1), e.like(at, 0));
    count = count ? e.add(count, one) : one;
  }
  return count;
}

/// Returns 1 / (points of the window at output position `spatial`), of `type`.
static Value divisor(Emitter &e, const Window &w, Index spatial,
                     bool includePad, Type type) {
  Value product;
  for (size_t d = 0; d < w.rank(); ++d) {
    Value count = countAlong(e, w, d, spatial[d], includePad);
    Value real = arith::SIToFPOp::create(e.b, e.typeLike(type, count), count);
    product = product ? e.mul(product, real) : real;
  }
  return product;
}

struct AvgPoolModel : PoolModel {
  Value emit(Operation *op, unsigned, Index index, Emitter &e) const override {
    auto pool = cast<AvgPoolOp>(op);
    Window w(pool, pool.getInput(), pool.getOutput());
    Type type = computeType(getElementTypeOrSelf(pool.getInput()));
    Widener widen(e, index);
    Value sum =
        forWindow(e, w, widen(e.constant(type, 0.0)),
                  [&](Index k, ArrayRef<Value> sum) {
                    Indices point = inputPoint(w, index, k);
                    auto guard =
                        inputGuard(e, w, ArrayRef(point).drop_front(2));
                    return guarded(e, guard, sum, [&] {
                      return SmallVector<Value>{
                          widen(e.add(sum[0], e.emit(pool.getInput(), point)))};
                    });
                  })
            .front();
    return e.div(sum, divisor(e, w, index.drop_front(2),
                              pool.getCountIncludePad(), type));
  }
};

struct AvgPoolGradModel : PoolModel {
  Value emit(Operation *op, unsigned, Index index, Emitter &e) const override {
    auto pool = cast<AvgPoolGradOp>(op);
    Window w(pool, pool.getOutput(), pool.getGrad());
    Type type = computeType(getElementTypeOrSelf(pool.getGrad()));
    Widener widen(e, index);
    return forWindow(e, w, widen(e.constant(type, 0.0)),
                     [&](Index k, ArrayRef<Value> sum) {
                       Emitter::Guard guard;
                       Indices spatial =
                           outputAt(e, w, index.drop_front(2), k, guard);
                       Indices point(index.take_front(2));
                       llvm::append_range(point, spatial);
                       return guarded(e, guard, sum, [&] {
                         Value g = e.emit(pool.getGrad(), point);
                         g = e.div(g, divisor(e, w, spatial,
                                              pool.getCountIncludePad(), type));
                         return SmallVector<Value>{widen(e.add(sum[0], g))};
                       });
                     })
        .front();
  }
};

} // namespace

void codegen::addPoolModels(ElementModels &models) {
  models.add<MaxPoolOp, MaxPoolModel>();
  models.add<MaxPoolGradOp, MaxPoolGradModel>();
  models.add<AvgPoolOp, AvgPoolModel>();
  models.add<AvgPoolGradOp, AvgPoolGradModel>();
}
