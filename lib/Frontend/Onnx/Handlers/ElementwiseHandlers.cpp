//===- ElementwiseHandlers.cpp - arithmetic, comparison, logic ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Export/TorchCalls.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;

template <typename Op> static LogicalResult binary(NodeImporter &n) {
  n.set(0, n.broadcast<Op>({n.in(0), n.in(1)}));
  return success();
}

template <ComparePredicate predicate>
static LogicalResult comparison(NodeImporter &n) {
  n.set(0, n.compare(predicate, n.in(0), n.in(1)));
  return success();
}

/// Handles Sum, Min and Max of any number of operands.
template <typename Op> static LogicalResult variadic(NodeImporter &n) {
  Value result = n.in(0);
  for (size_t i = 1; i < n.numInputs(); ++i)
    result = n.broadcast<Op>({result, n.in(i)});
  n.set(0, result);
  return success();
}

/// Handles Max or Min. Some exports write clamp() with them, in which case
/// equal operands count as bounds.
template <typename Op> static LogicalResult extremum(NodeImporter &n) {
  bool isClamp = isCallOf(n.node, "clamp") || isCallOf(n.node, "clamp_min") ||
                 isCallOf(n.node, "clamp_max");
  auto bound = isClamp && n.numInputs() == 2 ? n.scalarOf(n.in(1))
                                             : std::optional<double>();
  if (!bound)
    return variadic<Op>(n);
  bool isLow = std::is_same_v<Op, MaximumOp>;
  n.set(0, clipOpenRange(n, n.in(0), isLow ? *bound : -INFINITY,
                         isLow ? INFINITY : *bound));
  return success();
}

static LogicalResult mean(NodeImporter &n) {
  Value result = n.in(0);
  for (size_t i = 1; i < n.numInputs(); ++i)
    result = n.add(result, n.in(i));
  n.set(0, n.div(result, n.scalar(double(n.numInputs()), result)));
  return success();
}

static LogicalResult power(NodeImporter &n) {
  Value base = n.in(0), exponent = n.in(1);
  if (!base || !exponent)
    return failure();
  // The exponent may have a type of its own; the result has the base's.
  if (n.element(exponent) != n.element(base)) {
    if (n.isFloat(exponent) && !n.isFloat(base)) {
      // Integers to fractional powers are computed in f64 and truncated.
      Type f64 = n.b.getF64Type();
      Value wide =
          n.broadcast<PowOp>({n.cast(base, f64), n.cast(exponent, f64)});
      n.set(0, n.cast(wide, n.element(base)));
      return success();
    }
    exponent = n.cast(exponent, n.element(base));
  }
  n.set(0, n.broadcast<PowOp>({base, exponent}));
  return success();
}

static LogicalResult mod(NodeImporter &n) {
  SmallVector<NamedAttribute> attributes;
  if (n.attrInt("fmod", 0))
    attributes.push_back(n.flag("fmod"));
  Value x = n.in(0);
  if (x && n.isFloat(x) && attributes.empty())
    n.error() << "needs fmod = 1 for floats";
  n.set(0, n.broadcast<ModOp>({x, n.in(1)}, attributes));
  return success();
}

static LogicalResult bitShift(NodeImporter &n) {
  std::string direction = n.attrString("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    n.error() << "direction must be LEFT or RIGHT, not '" << direction << "'";
  n.set(0, direction == "LEFT" ? n.broadcast<ShiftLeftOp>({n.in(0), n.in(1)})
                               : n.broadcast<ShiftRightOp>({n.in(0), n.in(1)}));
  return success();
}

/// Returns x + bias below -lambd, x - bias above lambd, and 0 between.
static LogicalResult shrink(NodeImporter &n) {
  using P = ComparePredicate;
  Value x = n.in(0);
  double bias = n.attrFloat("bias", 0), lambd = n.attrFloat("lambd", 0.5);
  Value above = n.select(n.compare(P::GT, x, n.scalar(lambd, x)),
                         n.sub(x, n.scalar(bias, x)), n.scalar(0, x));
  n.set(0, n.select(n.compare(P::LT, x, n.scalar(-lambd, x)),
                    n.add(x, n.scalar(bias, x)), above));
  return success();
}

static LogicalResult where(NodeImporter &n) {
  n.set(0, n.select(n.in(0), n.in(1), n.in(2)));
  return success();
}

//===----------------------------------------------------------------------===//
// Clip
//===----------------------------------------------------------------------===//

/// Returns a bound that excludes no number of the type.
static double unbounded(Type element, bool upper) {
  auto integer = dyn_cast<IntegerType>(element);
  if (!integer)
    return upper ? INFINITY : -INFINITY;
  unsigned bits = integer.getWidth();
  if (integer.isUnsigned())
    return upper ? std::ldexp(1.0, int(bits)) - 1 : 0;
  double top = std::ldexp(1.0, int(bits) - 1);
  return upper ? top - 1 : -top;
}

static LogicalResult clipByAttribute(NodeImporter &n) {
  n.set(0, clipOpenRange(n, n.in(0), n.attrFloat("min", -INFINITY),
                         n.attrFloat("max", INFINITY)));
  return success();
}

static LogicalResult clipByOperand(NodeImporter &n) {
  Value x = n.in(0), lo = n.optional(1), hi = n.optional(2);
  if (!x)
    return failure();
  auto low = lo ? n.scalarOf(lo) : unbounded(n.element(x), false);
  auto high = hi ? n.scalarOf(hi) : unbounded(n.element(x), true);
  if (low && high) {
    n.set(0, clipOpenRange(n, x, *low, *high));
    return success();
  }
  if (lo)
    x = n.broadcast<MaximumOp>({x, lo});
  if (hi)
    x = n.broadcast<MinimumOp>({x, hi});
  n.set(0, x);
  return success();
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// Only NaN differs from itself.
static LogicalResult isNaN(NodeImporter &n) {
  Value x = n.in(0);
  n.set(0, n.compare(ComparePredicate::NE, x, x));
  return success();
}

static LogicalResult isInf(NodeImporter &n) {
  Value x = n.in(0);
  if (x && !n.isFloat(x)) {
    n.error() << "asks for infinities among " << n.element(x);
    return failure();
  }
  bool negative = n.attrInt("detect_negative", 1) != 0;
  bool positive = n.attrInt("detect_positive", 1) != 0;
  if (negative && positive)
    x = n.make<AbsOp>({x});
  double wanted = positive ? INFINITY : negative ? -INFINITY : NAN;
  n.set(0, n.compare(ComparePredicate::EQ, x, n.scalar(wanted, x)));
  return success();
}

static LogicalResult castTo(NodeImporter &n) {
  Type type = n.attrType("to");
  if (!type)
    return failure();
  n.set(0, n.cast(n.in(0), type));
  return success();
}

/// A cast between integers of one width keeps their bits.
static LogicalResult bitCast(NodeImporter &n) {
  Value x = n.in(0);
  Type to = n.attrType("to");
  if (!x || !to)
    return failure();
  Type from = n.element(x);
  auto bits = [](Type type) {
    return std::max(8u, type.getIntOrFloatBitWidth()); // bools are bytes
  };
  if (bits(from) != bits(to)) {
    n.error() << "from " << from << " to " << to << " of another width";
    return failure();
  }
  bool fits = from == to || (isa<IntegerType>(from) && !to.isInteger(1) &&
                             isa<IntegerType>(to));
  if (!fits) {
    n.unsupported() << "the bits of " << from << " as " << to;
    return failure();
  }
  n.set(0, n.cast(x, to));
  return success();
}

static LogicalResult castLike(NodeImporter &n) {
  Value like = n.in(1);
  if (!like)
    return failure();
  n.set(0, n.cast(n.in(0), n.element(like)));
  return success();
}

static LogicalResult identity(NodeImporter &n) {
  if (n.isSequence(0)) {
    n.setSequence(0, *n.sequence(0));
    return success();
  }
  Value x = n.in(0);
  bool stops =
      x && n.isFloat(x) && n.graph.trainMode() && isCallOf(n.node, "detach");
  n.set(0, stops ? stopGradient(n, x) : x);
  return success();
}

llvm::ArrayRef<HandlerEntry> onnx_frontend::elementwiseHandlers() {
  using P = ComparePredicate;
  static const HandlerEntry entries[] = {
      {"Abs", 6, unary<AbsOp>},
      {"Add", 7, binary<AddOp>},
      {"And", 7, binary<AndOp>},
      {"BitCast", 26, bitCast},
      {"BitShift", 11, bitShift},
      {"BitwiseAnd", 18, binary<AndOp>},
      {"BitwiseNot", 18, unary<NotOp>},
      {"BitwiseOr", 18, binary<OrOp>},
      {"BitwiseXor", 18, binary<XorOp>},
      {"Cast", 6, castTo},
      {"CastLike", 15, castLike},
      {"Ceil", 6, unary<CeilOp>},
      {"Clip", 6, clipByAttribute},
      {"Clip", 11, clipByOperand},
      {"Cos", 7, unary<CosOp>},
      {"Div", 7, binary<DivOp>},
      {"Equal", 7, comparison<P::EQ>},
      {"Erf", 9, unary<ErfOp>},
      {"Exp", 6, unary<ExpOp>},
      {"Floor", 6, unary<FloorOp>},
      {"Greater", 7, comparison<P::GT>},
      {"GreaterOrEqual", 12, comparison<P::GE>},
      {"Identity", 1, identity},
      {"IsInf", 10, isInf},
      {"IsNaN", 9, isNaN},
      {"Less", 7, comparison<P::LT>},
      {"LessOrEqual", 12, comparison<P::LE>},
      {"Log", 6, unary<LogOp>},
      {"Max", 6, extremum<MaximumOp>},
      {"Mean", 6, mean},
      {"Min", 6, extremum<MinimumOp>},
      {"Mod", 10, mod},
      {"Mul", 7, binary<MulOp>},
      {"Neg", 6, unary<NegOp>},
      {"Not", 1, unary<NotOp>},
      {"Or", 7, binary<OrOp>},
      {"Pow", 7, power},
      {"Reciprocal", 6, unary<ReciprocalOp>},
      {"Round", 11, unary<RoundOp>},
      {"Shrink", 9, shrink},
      {"Sign", 9, unary<SignOp>},
      {"Sin", 7, unary<SinOp>},
      {"Sqrt", 6, unary<SqrtOp>},
      {"Sub", 7, binary<SubOp>},
      {"Sum", 6, variadic<AddOp>},
      {"Where", 9, where},
      {"Xor", 7, binary<XorOp>},
  };
  return entries;
}
