//===- TrigonometricHandlers.cpp - circular and hyperbolic functions ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Trigonometric functions are written in the dialect's elementwise ops so that
// values and gradients are right to a few units in the last place everywhere:
// where the textbook form cancels (near 0) another form is selected, and the
// form that is not selected gets an operand that keeps it finite, because its
// gradient is multiplied by 0. f16 and bf16 are computed in f32.
//
//===----------------------------------------------------------------------===//
#include "NodeImporter.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;
using P = ComparePredicate;

/// Below this, atanh and functions computed from it are series.
static constexpr double nearZero = 0.25;

static Value plus(NodeImporter &n, Value x, double y) {
  return n.add(x, n.scalar(y, x));
}
static Value times(NodeImporter &n, Value x, double y) {
  return n.mul(x, n.scalar(y, x));
}
static Value sqrtOf(NodeImporter &n, Value x) { return n.make<SqrtOp>({x}); }
static Value logOf(NodeImporter &n, Value x) { return n.make<LogOp>({x}); }
static Value atanOf(NodeImporter &n, Value x) { return n.make<AtanOp>({x}); }

/// Returns `inner` where |x| < bound, else `outer`.
static Value within(NodeImporter &n, Value x, double bound, Value inner,
                    Value outer) {
  return n.select(n.compare(P::LT, n.make<AbsOp>({x}), n.scalar(bound, x)),
                  inner, outer);
}

/// sqrt((1 - x) * (1 + x))
static Value otherLeg(NodeImporter &n, Value x) {
  Value one = n.scalar(1, x);
  return sqrtOf(n, n.mul(n.sub(one, x), n.add(one, x)));
}

static Value tangent(NodeImporter &n, Value x) {
  return n.div(n.make<SinOp>({x}), n.make<CosOp>({x}));
}

/// 2 atan(x / (1 + sqrt(1 - x^2)))
static Value arcSine(NodeImporter &n, Value x) {
  return times(n, atanOf(n, n.div(x, plus(n, otherLeg(n, x), 1))), 2);
}

/// 2 atan(sqrt((1 - x) / (1 + x)))
static Value arcCosine(NodeImporter &n, Value x) {
  Value one = n.scalar(1, x);
  Value ratio = n.div(n.sub(one, x), n.add(one, x));
  return times(n, atanOf(n, sqrtOf(n, ratio)), 2);
}

/// e^x / 2, as a square: it is finite wherever sinh and cosh are.
static Value halfExp(NodeImporter &n, Value x, double sign) {
  Value root = n.make<ExpOp>({times(n, x, sign / 2)});
  return n.mul(times(n, root, 0.5), root);
}

/// Near 0 by t = tanh(x / 2): 2t / (1 - t^2).
static Value hyperbolicSine(NodeImporter &n, Value x) {
  Value t = n.make<TanhOp>({times(n, n.clip(x, -1, 1), 0.5)});
  Value inner = n.div(times(n, t, 2), n.sub(n.scalar(1, x), n.mul(t, t)));
  return within(n, x, 1, inner, n.sub(halfExp(n, x, 1), halfExp(n, x, -1)));
}

static Value hyperbolicCosine(NodeImporter &n, Value x) {
  return n.add(halfExp(n, x, 1), halfExp(n, x, -1));
}

/// x + x^3/3 + x^5/5 + ... for |x| <= nearZero.
static Value atanhSeries(NodeImporter &n, Value x) {
  if (!x)
    return {};
  int64_t terms = n.element(x).isF64() ? 14 : 7;
  Value square = n.mul(x, x), sum = n.scalar(1.0 / double(2 * terms + 1), x);
  for (int64_t i = terms - 1; i >= 0; --i)
    sum = plus(n, n.mul(sum, square), 1.0 / double(2 * i + 1));
  return n.mul(x, sum);
}

static Value areaTangent(NodeImporter &n, Value x) {
  Value one = n.scalar(1, x);
  Value outer =
      times(n, n.sub(logOf(n, n.add(one, x)), logOf(n, n.sub(one, x))), 0.5);
  return within(n, x, nearZero, atanhSeries(n, n.clip(x, -nearZero, nearZero)),
                outer);
}

/// Near 0: atanh(x / sqrt(1 + x^2)), else log(|x|) + log(1 + sqrt(1 + 1/x^2)),
/// which does not overflow.
static Value areaSine(NodeImporter &n, Value x) {
  if (!x)
    return {};
  Value small = n.clip(x, -nearZero, nearZero);
  Value inner =
      atanhSeries(n, n.div(small, sqrtOf(n, plus(n, n.mul(small, small), 1))));
  Value large = n.clip(n.make<AbsOp>({x}), nearZero, INFINITY);
  Value inverse = n.make<ReciprocalOp>({large});
  Value root = sqrtOf(n, plus(n, n.mul(inverse, inverse), 1));
  Value outer = n.add(logOf(n, large), logOf(n, plus(n, root, 1)));
  return within(n, x, nearZero, inner, n.mul(outer, n.make<SignOp>({x})));
}

/// 2 asinh(sqrt((x - 1) / 2))
static Value areaCosine(NodeImporter &n, Value x) {
  return times(n, areaSine(n, sqrtOf(n, times(n, plus(n, x, -1), 0.5))), 2);
}

using Formula = Value (*)(NodeImporter &, Value);

template <Formula formula> static LogicalResult of(NodeImporter &n) {
  Value x = n.in(0);
  if (!x)
    return failure();
  Type type = n.element(x);
  if (!isa<FloatType>(type)) {
    n.error() << "needs floats, got " << x.getType();
    return failure();
  }
  if (type.getIntOrFloatBitWidth() < 32)
    x = n.cast(x, n.b.getF32Type());
  n.set(0, n.cast(formula(n, x), type));
  return success();
}

llvm::ArrayRef<HandlerEntry> onnx_frontend::trigonometricHandlers() {
  static const HandlerEntry entries[] = {
      {"Acos", 7, of<arcCosine>},        {"Acosh", 9, of<areaCosine>},
      {"Asin", 7, of<arcSine>},          {"Asinh", 9, of<areaSine>},
      {"Atan", 7, of<atanOf>},           {"Atanh", 9, of<areaTangent>},
      {"Cosh", 9, of<hyperbolicCosine>}, {"Sinh", 9, of<hyperbolicSine>},
      {"Tan", 7, of<tangent>},
  };
  return entries;
}
