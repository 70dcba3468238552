//===- PoolModels.cpp - pooling and its gradients -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pooling computes each point by a loop over a window: the forward ops over the
// input points that the window covers, the gradients over the windows that
// cover the point, so that no two points write to one place. Bounds are tested
// on scalars if lanes run over channels, else lane by lane. Windows of few
// points are unrolled, and only the points that can lie outside are tested. A
// gradient visits only the windows that can cover the point: for K points at
// stride S these are ceil(K / S), not K.
//
//===----------------------------------------------------------------------===//
#include "ElementModel.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;
using codegen::Index;
using Indices = SmallVector<AffineExpr>;

/// The most points of a window whose code is unrolled.
static constexpr int64_t kWrittenOut = 16;

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

  using WindowBody = function_ref<SmallVector<Value>(Index, ArrayRef<Value>)>;

  /// Loops over the points of a window with carried values.
  static SmallVector<Value> forWindow(Emitter &e, const Window &w,
                                      ArrayRef<Value> inits, WindowBody body) {
    return forBox(e, w.kernel, inits, body);
  }

  /// Loops over a box with carried values.
  static SmallVector<Value> forBox(Emitter &e, ArrayRef<int64_t> sizes,
                                   ArrayRef<Value> inits, WindowBody body) {
    int64_t points = 1;
    for (int64_t size : sizes)
      points *= size;
    Indices at;
    std::function<SmallVector<Value>(size_t, ArrayRef<Value>)> run =
        [&](size_t d, ArrayRef<Value> carried) -> SmallVector<Value> {
      if (d == sizes.size())
        return body(at, carried);
      if (sizes[d] == 1 || points <= kWrittenOut) {
        SmallVector<Value> result(carried);
        for (int64_t k = 0; k < sizes[d]; ++k) {
          at.push_back(e.c(k));
          result = run(d + 1, SmallVector<Value>(result));
          at.pop_back();
        }
        return result;
      }
      return e.forLoop(e.index(0), e.index(sizes[d]), 1, carried,
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

  /// Makes vectors of scalars if the point depends on the lane.
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
  /// Runs fn if the guard's scalar part holds, under the mask of its lanes.
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

  /// Returns the guard for window point k to lie inside of the input, at `at`.
  static Emitter::Guard inputGuard(Emitter &e, const Window &w, Index at,
                                   Index k) {
    Emitter::Guard guard;
    for (size_t d = 0; d < w.rank(); ++d) {
      auto known = dyn_cast<AffineConstantExpr>(k[d]);
      int64_t first = known ? known.getValue() : 0,
              last = known ? known.getValue() : w.kernel[d] - 1;
      int64_t lowest = first * w.dilations[d] - w.low[d],
              highest = (w.out[d] - 1) * w.strides[d] + last * w.dilations[d] -
                        w.low[d];
      e.require(guard, at[d], 0, w.in[d],
                std::pair<int64_t, int64_t>(lowest, highest + 1));
    }
    return guard;
  }

  /// For gradients: loops over the windows that can cover input position
  /// `spatial`; `body` gets the window point k that lies there, the window's
  /// output position, and the guard for both to exist. The points come in
  /// ascending order.
  static SmallVector<Value> forCovering(
      Emitter &e, const Window &w, Index spatial, ArrayRef<Value> inits,
      function_ref<SmallVector<Value>(Index k, Index output,
                                      const Emitter::Guard &, ArrayRef<Value>)>
          body) {
    SmallVector<int64_t> sizes;
    for (size_t d = 0; d < w.rank(); ++d)
      sizes.push_back(w.dilations[d] == 1
                          ? llvm::divideCeil(w.kernel[d], w.strides[d])
                          : w.kernel[d]);
    return forBox(e, sizes, inits, [&](Index j, ArrayRef<Value> carried) {
      Emitter::Guard guard;
      Indices k, output;
      for (size_t d = 0; d < w.rank(); ++d) {
        int64_t stride = w.strides[d];
        AffineExpr at = spatial[d] + w.low[d], o;
        auto known = dyn_cast<AffineConstantExpr>(j[d]);
        int64_t first = known ? known.getValue() : 0,
                last = known ? known.getValue() : sizes[d] - 1;
        if (w.dilations[d] == 1) { // k = at mod stride + j * stride
          k.push_back(at % stride + j[d] * stride);
          o = at.floorDiv(stride) - j[d];
          e.require(
              guard, k.back(), 0, w.kernel[d],
              std::pair<int64_t, int64_t>(first * stride, (last + 1) * stride));
          first *= stride;
          last *= stride;
        } else {
          k.push_back(j[d]);
          o = at - j[d] * w.dilations[d];
          if (stride > 1) {
            e.requireEqual(guard, o % stride, 0);
            o = o.floorDiv(stride);
          }
          first *= w.dilations[d];
          last *= w.dilations[d];
        }
        int64_t lowest = llvm::divideFloorSigned(w.low[d] - last, stride);
        int64_t highest =
            llvm::divideFloorSigned(w.in[d] - 1 + w.low[d] - first, stride);
        e.require(guard, o, 0, w.out[d],
                  std::pair<int64_t, int64_t>(lowest, highest + 1));
        output.push_back(o);
      }
      return body(k, output, guard, carried);
    });
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
    bool some = false; // whether some point is certain to be inside
    SmallVector<Value> won =
        forWindow(e, w, inits, [&](Index k, ArrayRef<Value> best) {
          Indices point = inputPoint(w, index, k);
          AffineExpr number = pointNumber(e, w, k);
          auto guard = inputGuard(e, w, ArrayRef(point).drop_front(2), k);
          auto next = guarded(e, guard, best, [&] {
            Value x = widen(e.emit(pool.getInput(), point));
            Value here = arith::TruncIOp::create(e.b, i32, e.scalar(number));
            // The larger one, the first NaN, or the first point of all.
            Value take = e.andi(e.cmpf(P::UGT, x, best[0]),
                                e.cmpf(P::ORD, best[0], best[0]));
            if (!some)
              take = e.ori(take, e.cmpi(arith::CmpIPredicate::slt, best[1],
                                        e.like(best[1], 0)));
            return SmallVector<Value>{e.select(take, x, best[0]),
                                      e.select(take, widen(here), best[1])};
          });
          some |= !guard.scalarCondition && !guard.laneCondition &&
                  isa<AffineConstantExpr>(number);
          return next;
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
    return forCovering(e, w, index.drop_front(2), widen(e.constant(type, 0.0)),
                       [&](Index k, Index output, const Emitter::Guard &guard,
                           ArrayRef<Value> sum) {
                         Indices point(index.take_front(2));
                         llvm::append_range(point, output);
                         AffineExpr number = pointNumber(e, w, k);
                         return guarded(e, guard, sum, [&] {
                           return addIfWon(e, pool, point, number, sum[0],
                                           widen);
                         });
                       })
        .front();
  }

private:
  static SmallVector<Value> addIfWon(Emitter &e, MaxPoolGradOp pool,
                                     Index point, AffineExpr number, Value sum,
                                     function_ref<Value(Value)> widen) {
    Value where = widen(e.emit(pool.getIndex(), point));
    Value here = e.materialize(number);
    Type type = e.typeLike(Emitter::elementType(where), here);
    if (Emitter::elementType(here) != Emitter::elementType(where))
      here = arith::TruncIOp::create(e.b, type, here);
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
                        inputGuard(e, w, ArrayRef(point).drop_front(2), k);
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
    return forCovering(e, w, index.drop_front(2), widen(e.constant(type, 0.0)),
                       [&](Index, Index output, const Emitter::Guard &guard,
                           ArrayRef<Value> sum) {
                         Indices point(index.take_front(2));
                         llvm::append_range(point, output);
                         return guarded(e, guard, sum, [&] {
                           Value g = e.emit(pool.getGrad(), point);
                           g = e.div(g,
                                     divisor(e, w, output,
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
