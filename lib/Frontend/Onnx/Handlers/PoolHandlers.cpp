//===- PoolHandlers.cpp - pooling -----------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// auto_pad and ceil_mode are resolved here into explicit pads, from which the
// ops' result sizes follow. The op gives a maximum's position within its
// window; arithmetic on the windows' positions turns it into the position in
// the operand that ONNX wants.
//
//===----------------------------------------------------------------------===//
#include "Window.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;

/// Reads a pool's window for `x` and computes the result's shape; changes the
/// window's `high` padding to give that size.
static bool preparePool(NodeImporter &n, Value &x, Window &w, Shape &shape) {
  if (n.rank(x) < 3) {
    n.error() << "needs an input of rank 3 or more, got " << x.getType();
    return false;
  }
  size_t spatial = size_t(n.rank(x) - 2);
  if (!readWindow(n, spatial, n.attrInts("kernel_shape"), w))
    return false;
  x = cropNegativePads(n, x, w);
  if (!x)
    return false;
  bool ceil = n.attrInt("ceil_mode", 0) != 0;
  resolveSame(w, n.shape(x).drop_front(2));
  w.padding = w.high;
  shape.assign(n.shape(x).begin(), n.shape(x).begin() + 2);
  for (size_t d = 0; d < spatial; ++d) {
    int64_t size = n.shape(x)[d + 2], stride = w.strides[d];
    int64_t span = size + w.low[d] + w.high[d] - w.extent(d);
    int64_t out = span < 0 ? 0 : span / stride + 1;
    if (ceil && span >= 0) {
      out = (span + stride - 1) / stride + 1;
      // No window may start in the padding after the input.
      if ((out - 1) * stride >= size + w.low[d])
        --out;
    }
    if (out < 1) {
      n.error() << "the window is larger than the padded input along spatial "
                   "dimension "
                << int64_t(d);
      return false;
    }
    w.high[d] = (out - 1) * stride + w.extent(d) - size - w.low[d];
    shape.push_back(out);
  }
  return true;
}

static SmallVector<NamedAttribute> poolAttributes(NodeImporter &n,
                                                  const Window &w) {
  return {n.named("kernel", w.kernel), n.named("strides", w.strides),
          n.named("pads_low", w.low), n.named("pads_high", w.high),
          n.named("dilations", w.dilations)};
}

/// Returns the maxima's positions in the whole operand, as ONNX counts them:
/// row-major, or with the first spatial dimension fastest (storage_order 1).
static Value placesInOperand(NodeImporter &n, Value x, Value index,
                             const Window &w) {
  Type type = n.b.getI64Type();
  auto rank = size_t(n.rank(x));
  bool firstFastest = n.attrInt("storage_order", 0) != 0;
  Shape strides(rank, 1);
  for (size_t d = 2; d < rank; ++d)
    for (size_t e = 2; e < rank; ++e)
      if (firstFastest ? e < d : e > d)
        strides[d] *= n.shape(x)[e];
  for (size_t e = 2; e < rank; ++e)
    strides[1] *= n.shape(x)[e];
  strides[0] = strides[1] * n.shape(x)[1];
  Value point = n.cast(index, type), place;
  auto number = [&](int64_t value) {
    return n.scalarOfType(double(value), type);
  };
  for (size_t d = 0; d < rank && point; ++d) {
    Shape along(rank - d, 1);
    along[0] = n.shape(index)[d];
    int64_t start = d < 2 ? 0 : -w.low[d - 2];
    int64_t step = d < 2 ? 1 : w.strides[d - 2];
    Value at = n.iota(along, type, 0, double(start), double(step));
    if (d >= 2) {
      int64_t later = 1;
      for (size_t e = d - 1; e < w.kernel.size(); ++e)
        later *= w.kernel[e];
      Value inWindow =
          n.make<ModOp>({n.div(point, number(later)), number(w.kernel[d - 2])});
      at = n.add(at, n.mul(inWindow, number(w.dilations[d - 2])));
    }
    at = n.mul(at, number(strides[d]));
    place = place ? n.add(place, at) : at;
  }
  return place;
}

static LogicalResult maxPool(NodeImporter &n) {
  Value x = n.in(0);
  Window w;
  Shape shape;
  if (!x || !preparePool(n, x, w, shape))
    return failure();
  if (x != n.in(0) && n.wants(1)) {
    n.unsupported() << "indices with negative pads";
    return failure();
  }
  // 8-bit integers are exact as floats.
  Type element = n.element(x);
  if (!n.isFloat(x))
    x = n.cast(x, n.b.getF32Type());
  if (!x)
    return failure();
  int64_t points = 1;
  for (int64_t size : w.kernel)
    points *= std::min<int64_t>(size, 1 << 10);
  Type index = points <= 127 ? n.b.getI8Type() : n.b.getI32Type();
  auto all = n.makeAll<MaxPoolOp>(
      {x}, poolAttributes(n, w),
      {n.tensor(shape, n.element(x)), n.tensor(shape, index)});
  if (all.size() != 2)
    return failure();
  n.set(0, n.cast(all[0], element));
  if (n.wants(1))
    n.set(1, placesInOperand(n, n.in(0), all[1], w));
  return success();
}

static LogicalResult averagePool(NodeImporter &n) {
  Value x = n.in(0);
  Window w;
  Shape shape;
  if (!x || !preparePool(n, x, w, shape))
    return failure();
  auto attributes = poolAttributes(n, w);
  size_t spatial = w.kernel.size();
  bool countPads = n.attrInt("count_include_pad", 0) != 0;
  bool beyond = false; // windows that exceed the padded input
  for (size_t d = 0; d < spatial; ++d)
    beyond |= w.high[d] > w.padding[d];
  if (countPads && beyond) {
    // The padding counts but entries beyond it do not, so the padding must be
    // added to the operand.
    Shape low(2, 0), high(2, 0), none(spatial + 2, 0);
    low.append(w.low);
    for (size_t d = 0; d < spatial; ++d) {
      high.push_back(w.padding[d]);
      w.high[d] -= w.padding[d];
      w.low[d] = 0;
    }
    x = n.make<PadOp>({x}, {n.named("low", low), n.named("high", high),
                            n.named("interior", none)});
    attributes = poolAttributes(n, w);
  } else if (countPads) {
    attributes.push_back(n.flag("count_include_pad"));
  }
  if (!x)
    return failure();
  n.set(0, n.make<AvgPoolOp>({x}, attributes, {n.tensor(shape, n.element(x))}));
  return success();
}

template <ReduceKind kind> static LogicalResult globalPool(NodeImporter &n) {
  Value x = n.in(0);
  if (!x)
    return failure();
  if (n.rank(x) < 3) {
    n.error() << "needs an input of rank 3 or more, got " << x.getType();
    return failure();
  }
  n.set(0, n.reduce(kind, x, llvm::to_vector(llvm::seq<int64_t>(2, n.rank(x))),
                    /*keepdims=*/true));
  return success();
}

/// Computes s^(1/p), with 0 and a derivative of 0 where s is 0.
static Value rootOf(NodeImporter &n, Value sum, double p) {
  if (p == 1)
    return sum;
  Value zero = n.scalar(0, sum);
  Value isZero = n.compare(ComparePredicate::EQ, sum, zero);
  Value safe = n.select(isZero, n.scalar(1, sum), sum);
  Value root = p == 2 ? n.make<SqrtOp>({safe})
                      : n.broadcast<PowOp>({safe, n.scalar(1 / p, sum)});
  return n.select(isZero, zero, root);
}

static Value absolutePower(NodeImporter &n, Value x, double p) {
  if (p == 2)
    return n.mul(x, x);
  x = n.make<AbsOp>({x});
  return p == 1 ? x : n.broadcast<PowOp>({x, n.scalar(p, x)});
}

/// Computes the p-norm of each window from an average times the window's
/// points, where padding counts as zeros.
static LogicalResult lpPool(NodeImporter &n) {
  Value x = n.in(0);
  Window w;
  Shape shape;
  if (!x || !preparePool(n, x, w, shape))
    return failure();
  double p = double(n.attrInt("p", 2));
  int64_t points = 1;
  Shape low(2, 0), high(2, 0), none(size_t(n.rank(x)), 0);
  for (size_t d = 0; d < w.kernel.size(); ++d) {
    points *= std::min<int64_t>(w.kernel[d], 1 << 10);
    low.push_back(w.low[d]);
    high.push_back(std::max<int64_t>(w.high[d], 0));
    w.low[d] = 0;
    w.high[d] = std::min<int64_t>(w.high[d], 0);
  }
  x = n.make<PadOp>(
      {absolutePower(n, x, p)},
      {n.named("low", low), n.named("high", high), n.named("interior", none)});
  if (!x)
    return failure();
  Value mean = n.make<AvgPoolOp>({x}, poolAttributes(n, w),
                                 {n.tensor(shape, n.element(x))});
  n.set(0, rootOf(n, n.mul(mean, n.scalar(double(points), x)), p));
  return success();
}

static LogicalResult globalLpPool(NodeImporter &n) {
  Value x = n.in(0);
  if (!x)
    return failure();
  double p = double(n.attrInt("p", 2));
  n.set(0, rootOf(n,
                  n.reduce(ReduceKind::Sum, absolutePower(n, x, p),
                           llvm::to_vector(llvm::seq<int64_t>(
                               std::min<int64_t>(2, n.rank(x)), n.rank(x))),
                           /*keepdims=*/true),
                  p));
  return success();
}

/// Computes x over its p-norm along an axis, 0 where that norm is 0.
static LogicalResult lpNormalization(NodeImporter &n) {
  Value x = n.in(0);
  if (!x)
    return failure();
  auto axis = n.normalAxis(n.attrInt("axis", -1), n.rank(x));
  double p = double(n.attrInt("p", 2));
  if (!axis)
    return failure();
  Value norm = rootOf(
      n, n.reduce(ReduceKind::Sum, absolutePower(n, x, p), {*axis}, true), p);
  Value zero = n.scalar(0, x);
  Value isZero = n.compare(ComparePredicate::EQ, norm, zero);
  Value safe = n.select(isZero, n.scalar(1, x), norm);
  n.set(0, n.select(isZero, zero, n.div(x, safe)));
  return success();
}

llvm::ArrayRef<HandlerEntry> onnx_frontend::poolHandlers() {
  static const HandlerEntry entries[] = {
      {"AveragePool", 1, averagePool},
      {"GlobalAveragePool", 1, globalPool<ReduceKind::Mean>},
      {"GlobalLpPool", 2, globalLpPool},
      {"GlobalMaxPool", 1, globalPool<ReduceKind::Max>},
      {"LpNormalization", 1, lpNormalization},
      {"LpPool", 2, lpPool},
      {"MaxPool", 1, maxPool},
  };
  return entries;
}
