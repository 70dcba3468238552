//===- ReductionHandlers.cpp - reductions ---------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "NodeImporter.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;

namespace {
struct Reduction {
  Value x;
  Shape axes;
  bool keepdims;
};
} // namespace

/// Reads operand, axes and keepdims; nothing after an error. With
/// noop_with_empty_axes there may be no axes: each element is a sum of its own,
/// whose square, logarithm or root is taken as ever.
static std::optional<Reduction> prepare(NodeImporter &n) {
  Value x = n.in(0);
  if (!x)
    return std::nullopt;
  bool keepdims = n.attrInt("keepdims", 1) != 0;
  auto axes = n.axes(1, n.rank(x));
  if (n.hasFailed())
    return std::nullopt;
  if (!axes || axes->empty())
    axes = n.attrInt("noop_with_empty_axes", 0)
               ? Shape()
               : llvm::to_vector(llvm::seq<int64_t>(0, n.rank(x)));
  return Reduction{x, *axes, keepdims};
}

/// Returns whether the node came from PyTorch's max(dim) or min(dim), which
/// choose one element; amax and amin share the gradient among equal ones.
static bool choosesOne(const Node &node, ReduceKind kind) {
  StringRef call = kind == ReduceKind::Max ? "aten.max.dim" : "aten.min.dim";
  return StringRef(node.fxTarget) == call ||
         StringRef(node.fxNode).contains(("torch.ops." + call + "]").str());
}

/// Reads the first largest (smallest) element of each row by its index, so that
/// the gradient goes to it alone, as in PyTorch.
static LogicalResult chosen(NodeImporter &n, const Reduction &r,
                            ReduceKind kind) {
  int64_t axis = r.axes.front();
  Value keyed = kind == ReduceKind::Min ? n.make<NegOp>({r.x}) : r.x;
  Value index =
      n.make<TopKOp>({keyed}, {n.named("axis", axis), n.named("k", 1)});
  Value value = n.make<GatherElementsOp>({r.x, index}, {n.named("axis", axis)});
  if (value && !r.keepdims) {
    Shape shape(n.shape(value));
    shape.erase(shape.begin() + axis);
    value = n.reshape(value, shape);
  }
  n.set(0, value);
  return success();
}

template <ReduceKind kind> static LogicalResult plain(NodeImporter &n) {
  auto r = prepare(n);
  if (!r)
    return success();
  if ((kind == ReduceKind::Max || kind == ReduceKind::Min) && n.isFloat(r->x) &&
      r->axes.size() == 1 && choosesOne(n.node, kind) &&
      n.shape(r->x)[size_t(r->axes.front())] > 0)
    return chosen(n, *r, kind);
  Type element = n.element(r->x);
  Value x = element.isInteger(1) ? n.cast(r->x, n.b.getI8Type()) : r->x;
  n.set(0, n.cast(n.reduce(kind, x, r->axes, r->keepdims), element));
  return success();
}

static Value sumOf(NodeImporter &n, const Reduction &r, Value x) {
  return n.reduce(ReduceKind::Sum, x, r.axes, r.keepdims);
}

static LogicalResult l1(NodeImporter &n) {
  if (auto r = prepare(n))
    n.set(0, sumOf(n, *r, n.make<AbsOp>({r->x})));
  return success();
}

/// Zeros are kept out of the root, so that the gradient of the norm of a zero
/// vector is 0 and not 0 / 0, as in PyTorch.
static LogicalResult l2(NodeImporter &n) {
  auto r = prepare(n);
  if (!r)
    return success();
  Value sum = sumOf(n, *r, n.mul(r->x, r->x));
  if (!sum)
    return failure();
  Value zero = n.scalar(0, sum);
  Value isZero = n.compare(ComparePredicate::EQ, sum, zero);
  Value root = n.make<SqrtOp>({n.select(isZero, n.scalar(1, sum), sum)});
  n.set(0, n.select(isZero, zero, root));
  return success();
}

static LogicalResult sumSquare(NodeImporter &n) {
  if (auto r = prepare(n))
    n.set(0, sumOf(n, *r, n.mul(r->x, r->x)));
  return success();
}

static LogicalResult logSum(NodeImporter &n) {
  if (auto r = prepare(n))
    n.set(0, n.make<LogOp>({sumOf(n, *r, r->x)}));
  return success();
}

/// Computes max + log(sum(e^(x - max))), which is finite wherever x is. A
/// maximum that is not finite is not subtracted, because inf - inf is NaN.
static LogicalResult logSumExp(NodeImporter &n) {
  auto r = prepare(n);
  if (!r)
    return success();
  Value top = n.reduce(ReduceKind::Max, r->x, r->axes, /*keepdims=*/true);
  if (!top)
    return failure();
  Value isFinite =
      n.compare(ComparePredicate::LT, n.make<AbsOp>({top}),
                n.scalar(std::numeric_limits<double>::infinity(), top));
  top = n.select(isFinite, top, n.scalar(0, top));
  Value sum = n.reduce(ReduceKind::Sum, n.make<ExpOp>({n.sub(r->x, top)}),
                       r->axes, /*keepdims=*/true);
  Value result = n.add(top, n.make<LogOp>({sum}));
  if (!r->keepdims && result) {
    Shape shape;
    for (auto [d, size] : llvm::enumerate(n.shape(r->x)))
      if (!llvm::is_contained(r->axes, int64_t(d)))
        shape.push_back(size);
    result = n.reshape(result, shape);
  }
  n.set(0, result);
  return success();
}

// Axes are an attribute up to opset 17 (ReduceSum: 12), and an operand from
// then on; `prepare` handles both.
llvm::ArrayRef<HandlerEntry> onnx_frontend::reductionHandlers() {
  using K = ReduceKind;
  static const HandlerEntry entries[] = {
      {"ReduceL1", 1, l1},
      {"ReduceL1", 18, l1},
      {"ReduceL2", 1, l2},
      {"ReduceL2", 18, l2},
      {"ReduceLogSum", 1, logSum},
      {"ReduceLogSum", 18, logSum},
      {"ReduceLogSumExp", 1, logSumExp},
      {"ReduceLogSumExp", 18, logSumExp},
      {"ReduceMax", 1, plain<K::Max>},
      {"ReduceMax", 18, plain<K::Max>},
      {"ReduceMean", 1, plain<K::Mean>},
      {"ReduceMean", 18, plain<K::Mean>},
      {"ReduceMin", 1, plain<K::Min>},
      {"ReduceMin", 18, plain<K::Min>},
      {"ReduceProd", 1, plain<K::Prod>},
      {"ReduceProd", 18, plain<K::Prod>},
      {"ReduceSum", 1, plain<K::Sum>},
      {"ReduceSum", 13, plain<K::Sum>},
      {"ReduceSumSquare", 1, sumSquare},
      {"ReduceSumSquare", 18, sumSquare},
  };
  return entries;
}
