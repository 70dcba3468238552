//===- OrderHandlers.cpp - running sums, largest elements, reversal -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// TopK reads its values at the indices that top_k chose, so that gradients use
// the same choice. The other operators here give indices only, which have no
// gradient.
//
//===----------------------------------------------------------------------===//
#include "NodeImporter.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;
using P = ComparePredicate;

//===----------------------------------------------------------------------===//
// Running sums and products
//===----------------------------------------------------------------------===//

/// Returns the axis that operand 1 names; nothing after an error.
static std::optional<int64_t> runningAxis(NodeImporter &n) {
  Value x = n.in(0);
  auto given = n.constInts(1);
  if (!x || !given)
    return std::nullopt;
  if (given->size() != 1) {
    n.error() << "operand 1 must be one axis";
    return std::nullopt;
  }
  auto axis = n.normalAxis(given->front(), n.rank(x));
  if (!axis || n.cutsBatch(*axis))
    return std::nullopt;
  return axis;
}

static LogicalResult runningSum(NodeImporter &n) {
  auto axis = runningAxis(n);
  if (!axis)
    return failure();
  SmallVector<NamedAttribute> attributes{n.named("axis", *axis)};
  for (StringRef name : {"exclusive", "reverse"})
    if (n.attrInt(name, 0))
      attributes.push_back(n.flag(name));
  n.set(0, n.make<CumulativeSumOp>({n.in(0)}, attributes));
  return success();
}

/// Shifts `x` by `by` entries along `axis` (away from the start), and fills
/// with ones.
static Value shifted(NodeImporter &n, Value x, int64_t axis, int64_t by,
                     bool reverse) {
  if (!x)
    return {};
  int64_t size = n.shape(x)[axis];
  by = std::min(by, size);
  Shape none(size_t(n.rank(x)), 0), pads(none);
  pads[size_t(axis)] = by;
  return n.make<PadOp>({n.sliceAxis(x, axis, reverse ? by : 0, size - by)},
                       {n.named("low", reverse ? none : pads),
                        n.named("high", reverse ? pads : none),
                        n.named("interior", none), n.namedF("value", 1)});
}

/// Multiplies 2, 4, 8, ... elements at a time: a logarithmic number of steps,
/// and gradients that stay right where an element is 0.
static LogicalResult runningProduct(NodeImporter &n) {
  auto axis = runningAxis(n);
  if (!axis)
    return failure();
  bool reverse = n.attrInt("reverse", 0) != 0;
  Value result = n.in(0);
  if (n.attrInt("exclusive", 0))
    result = shifted(n, result, *axis, 1, reverse);
  for (int64_t by = 1; by < n.shape(n.in(0))[*axis]; by *= 2)
    result = n.mul(result, shifted(n, result, *axis, by, reverse));
  n.set(0, result);
  return success();
}

//===----------------------------------------------------------------------===//
// Largest elements
//===----------------------------------------------------------------------===//

/// Returns indices along `axis` as 64-bit integers.
static Value topIndices(NodeImporter &n, Value x, int64_t axis, int64_t k,
                        bool smallest, bool last) {
  SmallVector<NamedAttribute> attributes{n.named("axis", axis),
                                         n.named("k", k)};
  if (smallest)
    attributes.push_back(n.flag("smallest"));
  if (last)
    attributes.push_back(n.flag("last"));
  return n.make<TopKOp>({x}, attributes);
}

static LogicalResult topOf(NodeImporter &n, int64_t k) {
  Value x = n.in(0);
  if (!x)
    return failure();
  auto axis = n.normalAxis(n.attrInt("axis", -1), n.rank(x));
  if (!axis || n.cutsBatch(*axis))
    return failure();
  if (k < 0 || k > n.shape(x)[*axis]) {
    n.error() << "takes " << k << " of the " << n.shape(x)[*axis]
              << " elements along axis " << *axis;
    return failure();
  }
  Value indices =
      topIndices(n, x, *axis, k, n.attrInt("largest", 1) == 0, false);
  n.set(0, n.make<GatherElementsOp>({x, indices}, {n.named("axis", *axis)}));
  n.set(1, n.cast(indices, n.b.getI64Type()));
  return success();
}

static LogicalResult topByAttribute(NodeImporter &n) {
  return topOf(n, n.attrInt("k", -1));
}

static LogicalResult topByOperand(NodeImporter &n) {
  auto k = n.constInts(1);
  if (!k || k->size() != 1) {
    if (k)
      n.error() << "operand 1 must be one number";
    return failure();
  }
  return topOf(n, k->front());
}

template <bool smallest> static LogicalResult extremum(NodeImporter &n) {
  Value x = n.in(0);
  if (!x)
    return failure();
  auto axis = n.normalAxis(n.attrInt("axis", 0), n.rank(x));
  if (!axis || n.cutsBatch(*axis))
    return failure();
  // The smallest floats are the largest of the negated ones; NaN comes first in
  // both, as in numpy and PyTorch. NaN is last in ascending sorts, which TopK
  // treats as largest.
  bool negated = smallest && n.isFloat(x);
  Value indices = n.cast(topIndices(n, negated ? n.make<NegOp>({x}) : x, *axis,
                                    1, smallest && !negated,
                                    n.attrInt("select_last_index", 0) != 0),
                         n.b.getI64Type());
  if (!n.attrInt("keepdims", 1)) {
    Shape shape(n.shape(x));
    shape.erase(shape.begin() + *axis);
    indices = n.reshape(indices, shape);
  }
  n.set(0, indices);
  return success();
}

/// Returns 1 at the first largest element along `axis`, else 0.
static Value hardmaxOf(NodeImporter &n, Value x, int64_t axis) {
  if (!x)
    return {};
  Shape along(size_t(n.rank(x)), 1);
  along[size_t(axis)] = n.shape(x)[axis];
  Value winner = topIndices(n, x, axis, 1, false, false);
  if (!winner)
    return {};
  return n.cast(
      n.compare(P::EQ, winner, n.iota(along, n.element(winner), axis)),
      n.element(x));
}

static LogicalResult hardmax(NodeImporter &n) {
  Value x = n.in(0);
  if (!x)
    return failure();
  auto axis = n.normalAxis(n.attrInt("axis", -1), n.rank(x));
  if (!axis)
    return failure();
  n.set(0, hardmaxOf(n, x, *axis));
  return success();
}

/// Before opset 13, hardmax ran over all dimensions from `axis` on, taken as
/// one.
static LogicalResult hardmaxCoerced(NodeImporter &n) {
  Value x = n.in(0);
  if (!x)
    return failure();
  auto axis = n.normalAxis(n.attrInt("axis", 1), n.rank(x));
  if (!axis)
    return failure();
  Shape flat(n.shape(x).take_front(*axis));
  flat.push_back(1);
  for (int64_t size : n.shape(x).drop_front(*axis))
    flat.back() *= size;
  n.set(0, n.reshape(hardmaxOf(n, n.reshape(x, flat), *axis), n.shape(x)));
  return success();
}

//===----------------------------------------------------------------------===//
// ReverseSequence
//===----------------------------------------------------------------------===//

/// Step t of sequence b becomes step length[b] - 1 - t for t < length[b].
static LogicalResult reverseSequence(NodeImporter &n) {
  Value x = n.in(0), length = n.in(1);
  if (!x || !length)
    return failure();
  int64_t time = n.attrInt("time_axis", 0), batch = n.attrInt("batch_axis", 1);
  if (n.rank(x) < 2 || time + batch != 1 || time * batch != 0 ||
      n.shape(length) != ArrayRef<int64_t>({n.shape(x)[batch]})) {
    n.error() << "cannot reverse " << x.getType() << " by lengths of type "
              << length.getType() << " with time_axis = " << time
              << " and batch_axis = " << batch;
    return failure();
  }
  if (n.cutsBatch(time))
    return failure();
  int64_t steps = n.shape(x)[time], sequences = n.shape(x)[batch];
  Type index = n.b.getI64Type();
  auto along = [&](int64_t axis, int64_t size) {
    return axis == 0 ? Shape{size, 1} : Shape{1, size};
  };
  Value step = n.iota(along(time, steps), index, time);
  Value sequence = n.iota(along(batch, sequences), index, batch);
  length = n.reshape(n.cast(length, index), along(batch, sequences));
  Value source =
      n.select(n.compare(P::LT, step, length),
               n.sub(n.sub(length, n.scalar(1, length)), step), step);
  Value row =
      time == 0
          ? n.add(n.mul(source, n.scalar(double(sequences), source)), sequence)
          : n.add(n.mul(sequence, n.scalar(double(steps), sequence)), source);
  Shape flat(n.shape(x).drop_front(1));
  flat[0] = steps * sequences;
  n.set(0, n.make<GatherOp>({n.reshape(x, flat), row},
                            {n.named("axis", int64_t(0))}));
  return success();
}

llvm::ArrayRef<HandlerEntry> onnx_frontend::orderHandlers() {
  static const HandlerEntry entries[] = {
      {"ArgMax", 1, extremum<false>},
      {"ArgMin", 1, extremum<true>},
      {"CumProd", 26, runningProduct},
      {"CumSum", 11, runningSum},
      {"Hardmax", 1, hardmaxCoerced},
      {"Hardmax", 13, hardmax},
      {"ReverseSequence", 10, reverseSequence},
      {"TopK", 1, topByAttribute},
      {"TopK", 10, topByOperand},
  };
  return entries;
}
