//===- Sampling.cpp - reading between the points of a grid ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The operand becomes a matrix with one row of channels for each point, so
// that a tap of the interpolation is a gather of rows, and its gradient adds
// rows. A value is the sum over all combinations of taps along the dimensions
// (2 or 4 along each), each weighted by the product of its weights. Points
// outside are handled as in PyTorch: the coordinate is moved inside first; for
// cubics, each tap is moved. Coordinates that are moved, or lie at the border,
// have a gradient of 0. A coordinate that is NaN reads row 0 (its weight is
// NaN).
//
//===----------------------------------------------------------------------===//
#include "Sampling.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;
using P = ComparePredicate;

namespace {
/// A tap along one dimension: an index inside the operand, as i64, and a weight
/// (null for 1).
struct GridTap {
  Value index, weight;
};
} // namespace

/// Clamps `at` to 0..last.
static Value moveInside(NodeImporter &n, Value at, double last) {
  Value zero = n.scalar(0, at), end = n.scalar(last, at);
  at = n.select(n.compare(P::LE, at, zero), zero, at);
  return n.select(n.compare(P::GE, at, end), end, at);
}

/// Mirrors `at` into lo..hi.
static Value reflect(NodeImporter &n, Value at, double lo, double hi) {
  double span = hi - lo;
  if (span <= 0)
    return n.mul(at, n.scalar(0, at));
  Value zero = n.scalar(0, at), length = n.scalar(span, at);
  Value past = n.sub(at, n.scalar(lo, at));
  past = n.select(n.compare(P::LT, past, zero), n.make<NegOp>({past}), past);
  Value flips = n.make<FloorOp>({n.div(past, length)});
  Value extra = n.sub(past, n.mul(flips, length));
  Value half = n.mul(flips, n.scalar(0.5, at));
  Value even = n.compare(P::EQ, n.make<FloorOp>({half}), half);
  return n.add(n.select(even, extra, n.sub(length, extra)), n.scalar(lo, at));
}

static Value bringInside(NodeImporter &n, Value at, int64_t size,
                         const SampleOptions &options) {
  double last = double(size - 1);
  if (options.outside == Outside::Reflect)
    at = options.mirrorOnPoints ? reflect(n, at, 0, last)
                                : reflect(n, at, -0.5, last + 0.5);
  return options.outside == Outside::Zeros ? at : moveInside(n, at, last);
}

/// Returns the tap at `place`, a whole number as a float, of `size` points.
static GridTap tapAt(NodeImporter &n, Value place, Value weight, int64_t size,
                     const SampleOptions &options) {
  Value inside = n.broadcast<AndOp>(
      {n.compare(P::GE, place, n.scalar(0, place)),
       n.compare(P::LE, place, n.scalar(double(size - 1), place))});
  Value zero = n.scalar(0, place);
  GridTap tap;
  tap.index = n.cast(n.select(inside, place, zero), n.b.getI64Type());
  tap.weight = weight;
  if (options.outside == Outside::Zeros) {
    Value one = weight ? weight : n.scalar(1, place);
    tap.weight = n.select(inside, one, zero);
  }
  return tap;
}

/// Returns Keys' weights for the taps at -1, 0, 1 and 2, where `t` is the
/// distance from the tap at 0.
static SmallVector<Value> cubicWeights(NodeImporter &n, Value t) {
  constexpr double a = -0.75;
  auto number = [&](double x) { return n.scalar(x, t); };
  auto inner = [&](Value x) { // ((a + 2) x - (a + 3)) x^2 + 1
    return n.add(
        n.mul(n.sub(n.mul(x, number(a + 2)), number(a + 3)), n.mul(x, x)),
        number(1));
  };
  auto outer = [&](Value x) { // ((a x - 5 a) x + 8 a) x - 4 a
    Value y = n.sub(n.mul(x, number(a)), number(5 * a));
    y = n.add(n.mul(y, x), number(8 * a));
    return n.sub(n.mul(y, x), number(4 * a));
  };
  return {outer(n.add(t, number(1))), inner(t), inner(n.sub(number(1), t)),
          outer(n.sub(number(2), t))};
}

/// Returns all taps along a dimension of `size` points.
static SmallVector<GridTap> tapsAlong(NodeImporter &n, Value at, int64_t size,
                                      const SampleOptions &options) {
  bool cubic = options.mode == Interpolation::Cubic;
  if (!cubic)
    at = bringInside(n, at, size, options);
  if (options.mode == Interpolation::Nearest)
    return {tapAt(n, n.make<RoundOp>({at}), {}, size, options)};
  Value first = n.make<FloorOp>({at});
  Value past = n.sub(at, first);
  SmallVector<Value> weights;
  if (cubic)
    weights = cubicWeights(n, past);
  else
    weights = {n.sub(n.scalar(1, past), past), past};
  SmallVector<GridTap> taps;
  for (auto [i, weight] : llvm::enumerate(weights)) {
    int64_t step = int64_t(i) - (cubic ? 1 : 0);
    Value place = step ? n.add(first, n.scalar(double(step), first)) : first;
    if (cubic)
      place = bringInside(n, place, size, options);
    taps.push_back(tapAt(n, place, weight, size, options));
  }
  return taps;
}

Value onnx_frontend::sample(NodeImporter &n, Value x,
                            ArrayRef<Value> coordinates,
                            const SampleOptions &options, Value samples) {
  if (!x || llvm::is_contained(coordinates, Value()))
    return {};
  Shape shape(n.shape(x)), last;
  int64_t batch = shape[0], channels = shape[1], points = 1;
  auto rank = int64_t(shape.size());
  for (int64_t d = 2; d < rank; ++d)
    points *= shape[size_t(d)];
  last.push_back(0);
  last.append(llvm::to_vector(llvm::seq<int64_t>(2, rank)));
  last.push_back(1);
  if (points == 0) {
    n.error() << "reads points of " << x.getType() << ", which has none";
    return {};
  }
  Value rows = n.reshape(n.transpose(x, last), {batch * points, channels});
  SmallVector<SmallVector<GridTap>> taps;
  for (auto [d, at] : llvm::enumerate(coordinates))
    taps.push_back(tapsAlong(n, at, shape[d + 2], options));
  Type index = n.b.getI64Type();
  Shape first(size_t(n.rank(coordinates[0])), 1), wide(n.shape(coordinates[0]));
  first[0] = wide[0];
  wide.push_back(1);
  Value origin = samples ? n.mul(n.reshape(samples, first),
                                 n.scalarOfType(double(points), index))
                         : n.iota(first, index, 0, 0, double(points));
  Value sum;
  SmallVector<size_t> chosen(taps.size(), 0);
  for (bool done = false; !done && !n.hasFailed();) {
    Value row, weight;
    for (auto [d, choice] : llvm::enumerate(chosen)) {
      const GridTap &tap = taps[d][choice];
      row = row ? n.add(n.mul(row, n.scalarOfType(double(shape[d + 2]), index)),
                        tap.index)
                : tap.index;
      if (tap.weight)
        weight = weight ? n.mul(weight, tap.weight) : tap.weight;
    }
    Value term = n.make<GatherOp>({rows, n.add(row, origin)},
                                  {n.named("axis", int64_t(0))});
    if (weight)
      term = n.mul(term, n.reshape(weight, wide));
    if (sum && options.largest)
      term = n.broadcast<MaximumOp>({sum, term});
    sum = sum && !options.largest ? n.add(sum, term) : term;
    done = true;
    for (size_t d = chosen.size(); d-- > 0 && done;) {
      done = ++chosen[d] == taps[d].size();
      chosen[d] = done ? 0 : chosen[d];
    }
  }
  return sum;
}

Value onnx_frontend::channelsFirst(NodeImporter &n, Value x) {
  if (!x)
    return {};
  Shape order{0, n.rank(x) - 1};
  for (int64_t d = 1; d < n.rank(x) - 1; ++d)
    order.push_back(d);
  return n.transpose(x, order);
}
