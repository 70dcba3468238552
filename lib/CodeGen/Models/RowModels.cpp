//===- RowModels.cpp - softmax, layer norm, cross entropy -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Models of row ops: passes over a row that stays in the first cache levels, or
// on a GPU in registers. Without registers each pass computes fused operands
// again rather than keeping them. A pass that stores comes last, or reads each
// point only before writing it (reuse).
//
//===----------------------------------------------------------------------===//
#include "Emit/MathFunctions.h"
#include "Kinds/RowKernel.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;
using codegen::Index;

/// Returns the dimensions of an operand from `axis` on.
static SmallVector<int64_t> from(Operation *op, unsigned operand,
                                 int64_t axis) {
  int64_t rank =
      cast<RankedTensorType>(op->getOperand(operand).getType()).getRank();
  SmallVector<int64_t> axes;
  for (int64_t d = axis; d < rank; ++d)
    axes.push_back(d);
  return axes;
}

static Type typeOf(RowContext &row, unsigned operand) {
  return computeType(getElementTypeOrSelf(row.op->getOperand(operand)));
}

/// Returns the largest number of the row of `element`. NaNs are ignored here,
/// since they make the sum of exponentials NaN.
static Value emitRowMax(RowContext &row, function_ref<Value(Index)> element) {
  Reducer reducer{ReduceKind::Max, typeOf(row, 0)};
  reducer.ignoreNaN = true;
  return row
      .reduce({reducer},
              [&](Index i) { return SmallVector<Value>{element(i)}; })
      .front();
}

/// Returns the largest number of the row of `element`, and the sum of the
/// exponentials of differences to it.
static std::pair<Value, Value>
emitExponentials(RowContext &row, function_ref<Value(Index)> element) {
  Emitter &e = row.e;
  Type type = typeOf(row, 0);
  if (auto both = row.nest.reduceExponentials(type, element))
    return *both;
  Value max = emitRowMax(row, element);
  Value sum = row.sumFetching(type, [&](Index i) {
    return emitExpNonPositive(e, e.sub(element(i), max));
  });
  return {max, sum};
}

static void emitSoftmax(RowContext &row) {
  Emitter &e = row.e;
  Type type = typeOf(row, 0);
  auto element = [&](Index i) { return row.operand(0, i); };
  Value max = emitRowMax(row, element);
  auto exponential = [&](Index i) {
    return row.keep(
        0, [&] { return emitExpNonPositive(e, e.sub(element(i), max)); });
  };
  // The exponentials are kept in registers, or in the result if its type holds
  // them exactly.
  bool keep = !row.keeps() && row.isUsed(0) &&
              getElementTypeOrSelf(row.op->getResult(0)) == type;
  Value sum = row.sumFetching(type, [&](Index i) {
    Value x = exponential(i);
    if (keep)
      row.store(0, i, x);
    return x;
  });
  Value scale = e.quotient(e.like(sum, 1), sum);
  row.forEach([&](Index i) {
    row.store(0, i, e.mul(keep ? row.stored(0, i) : exponential(i), scale));
  });
}

static void emitLogSoftmax(RowContext &row) {
  Emitter &e = row.e;
  auto element = [&](Index i) { return row.operand(0, i); };
  auto [max, sum] = emitExponentials(row, element);
  Value log = emitLog(e, sum);
  row.forEach(
      [&](Index i) { row.store(0, i, e.sub(e.sub(element(i), max), log)); });
}

static void emitSoftmaxGrad(RowContext &row) {
  Emitter &e = row.e;
  Value sum = row.reduce(ReduceKind::Sum, typeOf(row, 0), [&](Index i) {
    return e.mul(row.operand(0, i), row.operand(1, i));
  });
  row.forEach([&](Index i) {
    row.store(0, i, e.mul(row.operand(1, i), e.sub(row.operand(0, i), sum)));
  });
}

static void emitLogSoftmaxGrad(RowContext &row) {
  Emitter &e = row.e;
  Value sum = row.reduce(ReduceKind::Sum, typeOf(row, 0),
                         [&](Index i) { return row.operand(0, i); });
  row.forEach([&](Index i) {
    Value y = emitExp(e, row.operand(1, i));
    row.store(0, i, e.sub(row.operand(0, i), e.mul(y, sum)));
  });
}

/// Returns the index of a row op's parameter, whose dimensions are the domain's
/// last.
static SmallVector<AffineExpr> trailing(RowContext &row, Value parameter,
                                        Index i) {
  auto type = cast<RankedTensorType>(parameter.getType());
  SmallVector<AffineExpr> index;
  for (auto [size, at] :
       llvm::zip_equal(type.getShape(), i.take_back(type.getRank())))
    index.push_back(size == 1 ? row.e.c(0) : at);
  return index;
}

static void emitLayerNorm(RowContext &row) {
  Emitter &e = row.e;
  auto norm = cast<LayerNormOp>(row.op);
  Type type = typeOf(row, 0);
  Value n = e.constant(type, double(row.length));
  auto input = [&](Index i) { return row.operand(0, i); };
  Value mean = e.div(row.reduce(ReduceKind::Sum, type, input), n);
  Value squares = row.sumFetching(type, [&](Index i) {
    Value d = e.sub(input(i), mean);
    return e.mul(d, d);
  });
  Value variance = e.div(squares, n);
  Value rstd = emitRsqrt(
      e,
      e.add(variance, e.like(variance, norm.getEpsilon().convertToDouble())));
  auto normalized = [&](Index i) {
    return row.keep(0, [&] {
      Value y = e.mul(e.sub(input(i), mean), rstd);
      if (Value scale = norm.getScale())
        y = e.mul(y, e.emit(scale, trailing(row, scale, i)));
      if (Value bias = norm.getBias())
        y = e.add(y, e.emit(bias, trailing(row, bias, i)));
      return y;
    });
  };
  if (row.keeps()) // no load of scale and bias waits behind a store
    row.forEach([&](Index i) { normalized(i); });
  row.forEach([&](Index i) { row.store(0, i, normalized(i)); });
  SmallVector<AffineExpr> outer(ArrayRef(row.kept).take_front(norm.getAxis()));
  row.store(1, outer, mean);
  row.store(2, outer, rstd);
}

/// Returns the gradient of a norm's result, times its scale if it has one.
static Value scaledGrad(RowContext &row, Value scale, Index i) {
  return row.keep(0, [&] {
    Value g = row.operand(0, i);
    return scale ? row.e.mul(g, row.e.emit(scale, trailing(row, scale, i))) : g;
  });
}

static void emitLayerNormGrad(RowContext &row) {
  Emitter &e = row.e;
  auto norm = cast<LayerNormGradOp>(row.op);
  Type type = typeOf(row, 0);
  SmallVector<AffineExpr> outer(ArrayRef(row.kept).take_front(norm.getAxis()));
  Value mean = e.emit(norm.getMean(), outer);
  Value rstd = e.emit(norm.getRstd(), outer);
  auto scaled = [&](Index i) { return scaledGrad(row, norm.getScale(), i); };
  auto normalized = [&](Index i) {
    return row.keep(
        1, [&] { return e.mul(e.sub(row.operand(1, i), mean), rstd); });
  };
  Reducer sum{ReduceKind::Sum, type};
  SmallVector<Value> sums = row.reduce({sum, sum}, [&](Index i) {
    Value g = scaled(i);
    return SmallVector<Value>{g, e.mul(g, normalized(i))};
  });
  Value n = e.constant(type, double(row.length));
  Value meanG = e.div(sums[0], n), meanGH = e.div(sums[1], n);
  row.forEach([&](Index i) {
    Value d = e.sub(e.sub(scaled(i), meanG), e.mul(normalized(i), meanGH));
    row.store(0, i, e.mul(rstd, d));
  });
}

static void emitRmsNorm(RowContext &row) {
  Emitter &e = row.e;
  auto norm = cast<RmsNormOp>(row.op);
  Type type = typeOf(row, 0);
  auto input = [&](Index i) { return row.operand(0, i); };
  Value sum = row.reduce(ReduceKind::Sum, type, [&](Index i) {
    Value x = input(i);
    return e.mul(x, x);
  });
  Value mean = e.div(sum, e.constant(type, double(row.length)));
  Value rstd = emitRsqrt(
      e, e.add(mean, e.like(mean, norm.getEpsilon().convertToDouble())));
  Type stored = getElementTypeOrSelf(norm.getOutput());
  auto scaled = [&](Index i) {
    return row.keep(0, [&] {
      Value y = e.mul(input(i), rstd);
      if (norm.getRounds() && stored != type)
        y = e.rounded(stored, y);
      if (Value scale = norm.getScale())
        y = e.mul(y, e.emit(scale, trailing(row, scale, i)));
      return y;
    });
  };
  if (row.keeps()) // no load of scale waits behind a store
    row.forEach([&](Index i) { scaled(i); });
  row.forEach([&](Index i) { row.store(0, i, scaled(i)); });
  row.store(1, ArrayRef(row.kept).take_front(norm.getAxis()), rstd);
}

static void emitRmsNormGrad(RowContext &row) {
  Emitter &e = row.e;
  auto norm = cast<RmsNormGradOp>(row.op);
  Type type = typeOf(row, 1);
  Value rstd =
      e.emit(norm.getRstd(), ArrayRef(row.kept).take_front(norm.getAxis()));
  auto scaled = [&](Index i) { return scaledGrad(row, norm.getScale(), i); };
  auto normalized = [&](Index i) {
    return row.keep(1, [&] { return e.mul(row.operand(1, i), rstd); });
  };
  Value sum = row.reduce(ReduceKind::Sum, type, [&](Index i) {
    return e.mul(scaled(i), normalized(i));
  });
  Value meanGH = e.div(sum, e.constant(type, double(row.length)));
  row.forEach([&](Index i) {
    Value d = e.sub(scaled(i), e.mul(normalized(i), meanGH));
    row.store(0, i, e.mul(rstd, d));
  });
}

static void emitCrossEntropy(RowContext &row) {
  Emitter &e = row.e;
  auto loss = cast<CrossEntropyOp>(row.op);
  int64_t axis = loss.getAxis();
  // Logits of padded classes are 0 times a number, which may be NaN.
  auto logit = [&](Index i) -> Value {
    Value x = row.operand(0, i);
    if (!loss.isPadded())
      return x;
    Value place = e.materialize(i[axis]);
    Value exists = e.cmpi(arith::CmpIPredicate::slt, place,
                          e.like(place, double(loss.getNumClasses())));
    return e.select(exists, x,
                    e.like(x, -std::numeric_limits<double>::infinity()));
  };
  auto [max, sum] = emitExponentials(row, logit);
  Value log = emitLog(e, sum), lse = e.add(max, log);
  // The rounding error of lse, exactly (Knuth's two-sum).
  Value part = e.sub(lse, max);
  Value lost = e.add(e.sub(max, e.sub(lse, part)), e.sub(log, part));
  SmallVector<AffineExpr> at = row.kept;
  at.erase(at.begin() + axis);
  Value target = e.emit(loss.getTargets(), at);
  Value ignored =
      e.cmpi(arith::CmpIPredicate::eq, target,
             e.like(target, double(int64_t(loss.getIgnoreIndex()))));
  // Clamp labels, so that no read leaves the row.
  Value safe = e.minimum(e.maximum(target, e.like(target, 0)),
                         e.like(target, double(loss.getNumClasses() - 1)));
  Type index =
      Emitter::isVector(safe) ? e.laneIndexType() : Type(e.b.getI64Type());
  unsigned before = Emitter::elementType(safe).getIntOrFloatBitWidth();
  if (before < index.getIntOrFloatBitWidth())
    safe = arith::ExtSIOp::create(e.b, e.typeLike(index, safe), safe);
  else if (before > index.getIntOrFloatBitWidth())
    safe = arith::TruncIOp::create(e.b, e.typeLike(index, safe), safe);
  SmallVector<AffineExpr> point = row.kept;
  point[axis] = e.addSymbol(safe, /*nonNegative=*/true);
  Value x = row.operand(0, point);
  Value result = e.add(e.sub(max, x), log);
  row.store(0, at, e.select(ignored, e.like(result, 0), result));
  row.store(1, at, lse);
  row.store(2, at, lost);
}

const RowModel *codegen::lookupRowModel(Operation *op) {
  static const llvm::StringMap<RowModel> models = [] {
    llvm::StringMap<RowModel> made;
    auto softmax = [&]<typename Op>(void (*emit)(RowContext &)) {
      made[Op::getOperationName()] = {0,
                                      [](Operation *op) {
                                        return SmallVector<int64_t>{
                                            int64_t(cast<Op>(op).getAxis())};
                                      },
                                      emit};
    };
    softmax.operator()<SoftmaxOp>(emitSoftmax);
    softmax.operator()<LogSoftmaxOp>(emitLogSoftmax);
    softmax.operator()<SoftmaxGradOp>(emitSoftmaxGrad);
    softmax.operator()<LogSoftmaxGradOp>(emitLogSoftmaxGrad);
    softmax.operator()<CrossEntropyOp>(emitCrossEntropy);
    auto norm = [&]<typename Op>(unsigned input, void (*emit)(RowContext &)) {
      made[Op::getOperationName()] = {input,
                                      [input](Operation *op) {
                                        return from(op, input,
                                                    cast<Op>(op).getAxis());
                                      },
                                      emit};
    };
    norm.operator()<LayerNormOp>(0, emitLayerNorm);
    norm.operator()<LayerNormGradOp>(1, emitLayerNormGrad);
    norm.operator()<RmsNormOp>(0, emitRmsNorm);
    norm.operator()<RmsNormGradOp>(1, emitRmsNormGrad);
    made[TopKOp::getOperationName()] = {
        0,
        [](Operation *op) {
          return SmallVector<int64_t>{int64_t(cast<TopKOp>(op).getAxis())};
        },
        emitTopK,
        /*inPlace=*/false};
    return made;
  }();
  auto it = models.find(op->getName().getStringRef());
  return it == models.end() ? nullptr : &it->second;
}
