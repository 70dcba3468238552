//===- RandomHandlers.cpp - random numbers --------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every random node gets a site of its own, and its numbers are a function of
// (seed of the run, step, site, element). The `seed` that a file gives a node
// is not used, and a remark says so. Numbers of f16 and bf16 are made in f32.
//
//===----------------------------------------------------------------------===//
#include "NodeImporter.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;
using P = ComparePredicate;

/// Draws uniform or normal numbers in an element type of at least f32.
static Value draw(NodeImporter &n, RandomKind kind, ArrayRef<int64_t> shape,
                  Type element) {
  if (n.hasAttr("seed"))
    n.graph.remark("the seed of node '" + n.node.name +
                   "' is not used: random numbers follow the seed of the run");
  Type wide = element.isF64() ? element : n.b.getF32Type();
  return n.make<RandomOp>(
      {n.graph.seed(), n.graph.step()},
      {n.named("kind", RandomKindAttr::get(n.b.getContext(), kind)),
       n.named("site", n.graph.nextDropoutSite())},
      {n.tensor(shape, wide)});
}

/// Computes `scale` * numbers + `offset` in the requested element type.
static LogicalResult setNumbers(NodeImporter &n, RandomKind kind,
                                ArrayRef<int64_t> shape, Type element,
                                double scale, double offset) {
  if (!element)
    return failure();
  if (!isa<FloatType>(element)) {
    n.error() << "random numbers of type " << element;
    return failure();
  }
  Value x = draw(n, kind, shape, element);
  if (scale != 1)
    x = n.mul(x, n.scalar(scale, x));
  if (offset != 0)
    x = n.add(x, n.scalar(offset, x));
  n.set(0, n.cast(x, element));
  return success();
}

static LogicalResult setNormal(NodeImporter &n, ArrayRef<int64_t> shape,
                               Type element) {
  return setNumbers(n, RandomKind::Normal, shape, element,
                    n.attrFloat("scale", 1), n.attrFloat("mean", 0));
}

static LogicalResult setUniform(NodeImporter &n, ArrayRef<int64_t> shape,
                                Type element) {
  double low = n.attrFloat("low", 0), high = n.attrFloat("high", 1);
  return setNumbers(n, RandomKind::Uniform, shape, element, high - low, low);
}

using SetNumbers = LogicalResult (*)(NodeImporter &, ArrayRef<int64_t>, Type);

/// Draws numbers in the shape that an attribute gives.
template <SetNumbers setter> static LogicalResult ofShape(NodeImporter &n) {
  Shape shape = n.attrInts("shape");
  if (auto count = checkedNumElements(shape, 8); !count) {
    n.error() << llvm::toString(count.takeError());
    return failure();
  }
  Type element = n.hasAttr("dtype") ? n.attrType("dtype")
                                    : n.graph.elementType(DType::F32);
  return setter(n, shape, element);
}

/// Draws numbers in the shape of the operand.
template <SetNumbers setter> static LogicalResult like(NodeImporter &n) {
  Value x = n.in(0);
  if (!x)
    return failure();
  return setter(n, n.shape(x),
                n.hasAttr("dtype") ? n.attrType("dtype") : n.element(x));
}

/// Returns 1 with the probability that the operand holds, else 0.
static LogicalResult bernoulli(NodeImporter &n) {
  Value p = n.in(0);
  if (!p)
    return failure();
  Type element = n.hasAttr("dtype") ? n.attrType("dtype") : n.element(p);
  Value u = draw(n, RandomKind::Uniform, n.shape(p), n.element(p));
  if (!element || !u)
    return failure();
  n.set(0, n.cast(n.compare(P::LT, u, n.cast(p, n.element(u))), element));
  return success();
}

/// Draws classes with replacement from logarithms of probabilities: counts the
/// classes whose cumulative probability is not above a uniform number.
static LogicalResult multinomial(NodeImporter &n) {
  Value logits = n.in(0);
  if (!logits)
    return failure();
  int64_t samples = n.attrInt("sample_size", 1);
  Type element = n.hasAttr("dtype") ? n.attrType("dtype")
                                    : n.graph.elementType(DType::I32);
  if (!element)
    return failure();
  if (n.rank(logits) != 2 || samples < 1 || samples > 1 << 30 ||
      !n.isFloat(logits) || n.shape(logits)[1] < 1) {
    n.error() << "cannot draw " << samples << " samples from "
              << logits.getType();
    return failure();
  }
  int64_t batch = n.shape(logits)[0], classes = n.shape(logits)[1];
  Value u = draw(n, RandomKind::Uniform, {batch, samples}, n.element(logits));
  if (!u)
    return failure();
  Value p = n.make<SoftmaxOp>({n.cast(logits, n.element(u))},
                              {n.named("axis", int64_t(1))});
  Value upTo = n.make<CumulativeSumOp>({p}, {n.named("axis", int64_t(1))});
  if (!upTo)
    return failure();
  // Scale by the last sum, which rounding may leave below 1.
  u = n.mul(u, n.sliceAxis(upTo, 1, classes - 1, 1));
  Value below = n.compare(P::LE, n.reshape(upTo, {batch, 1, classes}),
                          n.reshape(u, {batch, samples, 1}));
  Value drawn = n.reduce(ReduceKind::Sum, n.cast(below, n.b.getI64Type()), {2},
                         /*keepdims=*/false);
  n.set(0, n.cast(n.clip(drawn, 0, double(classes - 1)), element));
  return success();
}

llvm::ArrayRef<HandlerEntry> onnx_frontend::randomHandlers() {
  static const HandlerEntry entries[] = {
      {"Bernoulli", 15, bernoulli},
      {"Multinomial", 7, multinomial},
      {"RandomNormal", 1, ofShape<setNormal>},
      {"RandomNormalLike", 1, like<setNormal>},
      {"RandomUniform", 1, ofShape<setUniform>},
      {"RandomUniformLike", 1, like<setUniform>},
  };
  return entries;
}
