//===- ElementwiseModels.cpp - arithmetic, comparisons, casts -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ElementModel.h"
#include "Emit/DynamicCodes.h"
#include "Emit/MathFunctions.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/IR/Splat.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;
using FloatCompare = arith::CmpFPredicate;
using IntCompare = arith::CmpIPredicate;

/// Returns whether elements of `v` (a tensor) compare and divide as signed
/// numbers.
static bool isSigned(Value v) {
  auto type = dyn_cast<IntegerType>(getElementTypeOrSelf(v));
  return !type || !type.isUnsigned();
}

namespace {

template <Value (*Fn)(Operation *, Value, Emitter &)>
struct Unary : ElementModel {
  Value emit(Operation *op, unsigned, codegen::Index index,
             Emitter &e) const override {
    return Fn(op, operand(op, 0, index, e), e);
  }
};

template <Value (*Fn)(Operation *, Value, Value, Emitter &)>
struct Binary : ElementModel {
  Value emit(Operation *op, unsigned, codegen::Index index,
             Emitter &e) const override {
    Value x = operand(op, 0, index, e), y = operand(op, 1, index, e);
    e.match(x, y);
    return Fn(op, x, y, e);
  }
};

struct SelectModel : ElementModel {
  Value emit(Operation *op, unsigned, codegen::Index index,
             Emitter &e) const override {
    Value c = operand(op, 0, index, e);
    return e.select(c, operand(op, 1, index, e), operand(op, 2, index, e));
  }
};

} // namespace

//===----------------------------------------------------------------------===//
// One operand
//===----------------------------------------------------------------------===//

static Value sign(Operation *, Value x, Emitter &e) {
  Value zero = e.like(x, 0);
  if (Emitter::isFloat(x)) // zero and NaN stay
    return e.select(
        e.cmpf(FloatCompare::OGT, x, zero), e.like(x, 1),
        e.select(e.cmpf(FloatCompare::OLT, x, zero), e.like(x, -1), x));
  return e.select(
      e.cmpi(IntCompare::sgt, x, zero), e.like(x, 1),
      e.select(e.cmpi(IntCompare::slt, x, zero), e.like(x, -1), zero));
}

static Value signOf(Operation *op, Value x, Emitter &e) {
  if (isSigned(op->getOperand(0)))
    return sign(op, x, e);
  return e.select(e.cmpi(IntCompare::ne, x, e.like(x, 0)), e.like(x, 1),
                  e.like(x, 0));
}

static Value absolute(Operation *op, Value x, Emitter &e) {
  return isSigned(op->getOperand(0)) ? e.abs(x) : x;
}

static Value relu(Operation *op, Value x, Emitter &e) {
  Value zero = e.like(x, 0);
  if (Emitter::isFloat(x)) // NaN is not below zero
    return e.select(e.cmpf(FloatCompare::OLT, x, zero), zero, x);
  return e.maximum(x, zero, isSigned(op->getOperand(0)));
}

static Value clip(Operation *op, Value x, Emitter &e) {
  auto clip = cast<ClipOp>(op);
  double low = clip.getMin().convertToDouble();
  double high = clip.getMax().convertToDouble();
  bool isSigned = ::isSigned(op->getOperand(0));
  if (auto type = dyn_cast<IntegerType>(Emitter::elementType(x))) {
    // Bounds beyond the type's range have no effect.
    double smallest = isSigned ? -std::ldexp(1.0, type.getWidth() - 1) : 0;
    double largest = std::ldexp(1.0, type.getWidth() - isSigned);
    if (low > smallest)
      x = e.maximum(x, e.like(x, std::ceil(low)), isSigned);
    if (high < largest)
      x = e.minimum(x, e.like(x, std::floor(high)), isSigned);
    return x;
  }
  x = e.select(e.cmpf(FloatCompare::OLT, x, e.like(x, low)), e.like(x, low), x);
  return e.select(e.cmpf(FloatCompare::OGT, x, e.like(x, high)),
                  e.like(x, high), x);
}

/// Converts between compute types, then rounds to `target`.
static Value castOf(Operation *op, Value x, Emitter &e) {
  Type source = getElementTypeOrSelf(op->getOperand(0));
  Type target = getElementTypeOrSelf(op->getResult(0));
  Type to = computeType(target), from = Emitter::elementType(x);
  Type type = e.typeLike(to, x);
  bool fromSigned = isSigned(op->getOperand(0)) && !source.isInteger(1);
  if (target.isInteger(1))
    return Emitter::isFloat(x) ? e.cmpf(FloatCompare::UNE, x, e.like(x, 0))
                               : e.cmpi(IntCompare::ne, x, e.like(x, 0));
  if (isa<FloatType>(to)) {
    if (!Emitter::isFloat(x))
      x = fromSigned ? Value(arith::SIToFPOp::create(e.b, type, x))
                     : Value(arith::UIToFPOp::create(e.b, type, x));
    else if (from.isF32() && to.isF64())
      x = arith::ExtFOp::create(e.b, type, x);
    else if (from.isF64() && to.isF32())
      x = arith::TruncFOp::create(e.b, type, x);
    if (target == to)
      return x;
    return e.rounded(target, x);
  }
  if (Emitter::isFloat(x)) {
    if (isSigned(op->getResult(0)))
      return arith::FPToSIOp::create(e.b, type, x);
    return arith::FPToUIOp::create(e.b, type, x);
  }
  unsigned before = from.getIntOrFloatBitWidth(),
           after = to.getIntOrFloatBitWidth();
  if (before > after)
    return arith::TruncIOp::create(e.b, type, x);
  if (before < after)
    return fromSigned ? Value(arith::ExtSIOp::create(e.b, type, x))
                      : Value(arith::ExtUIOp::create(e.b, type, x));
  return x;
}

#define CKOPT_UNARY(NAME, EXPR)                                                \
  static Value NAME([[maybe_unused]] Operation *op, Value x, Emitter &e) {     \
    return EXPR;                                                               \
  }
CKOPT_UNARY(negate, e.neg(x))
CKOPT_UNARY(exponential, emitExp(e, x))
CKOPT_UNARY(logarithm, emitLog(e, x))
CKOPT_UNARY(squareRoot, e.sqrt(x))
CKOPT_UNARY(rsqrt, emitRsqrt(e, x))
CKOPT_UNARY(reciprocal, e.div(e.like(x, 1), x))
CKOPT_UNARY(hyperbolicTangent, emitTanh(e, x))
CKOPT_UNARY(sigmoid, emitSigmoid(e, x))
CKOPT_UNARY(errorFunction, emitErf(e, x))
CKOPT_UNARY(floorOf, math::FloorOp::create(e.b, x))
CKOPT_UNARY(ceilOf, math::CeilOp::create(e.b, x))
CKOPT_UNARY(roundOf, math::RoundEvenOp::create(e.b, x))
CKOPT_UNARY(softplus, emitSoftplus(e, x))
CKOPT_UNARY(gelu, emitGelu(e, x, cast<GeluOp>(op).getTanh()))
CKOPT_UNARY(same, x)
#undef CKOPT_UNARY

static Value notOf(Operation *, Value x, Emitter &e) {
  bool flag = Emitter::elementType(x).isInteger(1);
  return e.xori(x, e.like(x, flag ? 1 : -1));
}

/// Counts a function of f64, which libm computes lane by lane.
static void countLibm(Value x, Emitter &e) {
  e.report.libmCalls += Emitter::elementType(x).isF64();
}
static Value sine(Operation *, Value x, Emitter &e) {
  countLibm(x, e);
  return emitSin(e, x);
}
static Value cosine(Operation *, Value x, Emitter &e) {
  countLibm(x, e);
  return emitCos(e, x);
}

static Value arcTangent(Operation *, Value x, Emitter &e) {
  countLibm(x, e);
  return emitAtan(e, x);
}

//===----------------------------------------------------------------------===//
// Two operands
//===----------------------------------------------------------------------===//

/// Divides integers toward zero; returns quotient and remainder, both 0 for a
/// zero divisor. Never traps: neither for zero nor for the smallest number over
/// -1.
static std::pair<Value, Value> divideIntegers(Value x, Value y, bool isSigned,
                                              Emitter &e) {
  Value zero = e.like(x, 0), one = e.like(x, 1);
  Value byZero = e.cmpi(IntCompare::eq, y, zero);
  Value safe = e.select(byZero, one, y);
  Value quotient, rest;
  if (isSigned) {
    Value byMinusOne = e.cmpi(IntCompare::eq, y, e.like(y, -1));
    safe = e.select(byMinusOne, one, safe);
    quotient = arith::DivSIOp::create(e.b, x, safe);
    rest = arith::RemSIOp::create(e.b, x, safe);
    quotient = e.select(byMinusOne, e.neg(x), quotient);
  } else {
    quotient = arith::DivUIOp::create(e.b, x, safe);
    rest = arith::RemUIOp::create(e.b, x, safe);
  }
  return {e.select(byZero, zero, quotient), rest};
}

static Value divide(Operation *op, Value x, Value y, Emitter &e) {
  if (Emitter::isFloat(x))
    return e.div(x, y);
  return divideIntegers(x, y, isSigned(op->getOperand(0)), e).first;
}

static Value modulo(Operation *op, Value x, Value y, Emitter &e) {
  bool isSigned = ::isSigned(op->getOperand(0));
  Value rest, zero = e.like(x, 0), differs;
  if (Emitter::isFloat(x)) {
    countLibm(x, e);
    rest = emitFmod(e, x, y);
    if (cast<ModOp>(op).getFmod())
      return rest;
    Value opposite = e.xori(e.cmpf(FloatCompare::OLT, rest, zero),
                            e.cmpf(FloatCompare::OLT, y, zero));
    differs = e.andi(opposite, e.cmpf(FloatCompare::UNE, rest, zero));
  } else {
    rest = divideIntegers(x, y, isSigned, e).second;
    if (!isSigned || cast<ModOp>(op).getFmod())
      return rest;
    Value opposite = e.xori(e.cmpi(IntCompare::slt, rest, zero),
                            e.cmpi(IntCompare::slt, y, zero));
    differs = e.andi(opposite, e.cmpi(IntCompare::ne, rest, zero));
  }
  return e.select(differs, e.add(rest, y), rest);
}

/// Computes x^n by multiplications, for common exponents.
static Value constantPower(Value x, double exponent, Emitter &e) {
  if (exponent == 1)
    return x;
  if (exponent == 2)
    return e.mul(x, x);
  if (exponent == 3)
    return e.mul(e.mul(x, x), x);
  if (exponent == 4) {
    Value square = e.mul(x, x);
    return e.mul(square, square);
  }
  if (exponent == -1)
    return e.div(e.like(x, 1), x);
  if (exponent == 0.5)
    return e.sqrt(x);
  if (exponent == -0.5)
    return emitRsqrt(e, x);
  return {};
}

/// Computes the power of a decay by a number of steps: a constant from 0 to 1,
/// and an exponent that is an integer after a cast. It uses multiplications,
/// which a GPU has in f64, too, and only scalars, so that an element's bits do
/// not depend on lanes.
static Value decayedBySteps(Operation *op, Value x, Emitter &e) {
  std::optional<double> base = splatNumber(op->getOperand(0));
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  auto whole = op->getOperand(1).getDefiningOp<CastOp>();
  if (type.getRank() != 0 || !whole ||
      !isa<IntegerType>(getElementTypeOrSelf(whole.getInput())) || !base)
    return {};
  Value steps = e.emit(whole.getInput(), {});
  if (!(*base >= 0 && *base <= 1) || !steps.getType().isInteger(64) ||
      !isSigned(whole.getInput()))
    return {};
  Value backward = e.cmpi(IntCompare::slt, steps, e.like(steps, 0));
  Value result = emitPowerByInteger(e, x, e.abs(steps));
  return e.select(backward, e.div(e.like(result, 1), result), result);
}

static Value power(Operation *op, Value x, Value y, Emitter &e) {
  std::optional<double> exponent = splatNumber(op->getOperand(1));
  if (Emitter::isFloat(x) && exponent)
    if (Value product = constantPower(x, *exponent, e))
      return product;
  if (!Emitter::isFloat(x))
    return emitIntegerPower(e, x, y, isSigned(op->getOperand(0)));
  if (Emitter::elementType(x).isF64())
    if (Value product = decayedBySteps(op, x, e))
      return product;
  countLibm(x, e);
  return emitPow(e, x, y);
}

static Value larger(Operation *op, Value x, Value y, Emitter &e) {
  return e.maximum(x, y, isSigned(op->getOperand(0)));
}
static Value smaller(Operation *op, Value x, Value y, Emitter &e) {
  return e.minimum(x, y, isSigned(op->getOperand(0)));
}

static Value compare(Operation *op, Value x, Value y, Emitter &e) {
  ComparePredicate predicate = cast<CompareOp>(op).getPredicate();
  if (Emitter::isFloat(x)) {
    static constexpr FloatCompare table[] = {
        FloatCompare::OEQ, FloatCompare::UNE, FloatCompare::OLT,
        FloatCompare::OLE, FloatCompare::OGT, FloatCompare::OGE};
    return e.cmpf(table[unsigned(predicate)], x, y);
  }
  static constexpr IntCompare signedTable[] = {
      IntCompare::eq,  IntCompare::ne,  IntCompare::slt,
      IntCompare::sle, IntCompare::sgt, IntCompare::sge};
  static constexpr IntCompare unsignedTable[] = {
      IntCompare::eq,  IntCompare::ne,  IntCompare::ult,
      IntCompare::ule, IntCompare::ugt, IntCompare::uge};
  Type element = getElementTypeOrSelf(op->getOperand(0));
  bool asSigned = isSigned(op->getOperand(0)) && !element.isInteger(1);
  return e.cmpi((asSigned ? signedTable : unsignedTable)[unsigned(predicate)],
                x, y);
}

/// A shift by the width or more is undefined for the machine, so it is
/// replaced.
static std::pair<Value, Value> shiftWithin(Value y, double beyond, Emitter &e) {
  double width = Emitter::elementType(y).getIntOrFloatBitWidth();
  Value inside = e.cmpi(IntCompare::ult, y, e.like(y, width));
  return {inside, e.select(inside, y, e.like(y, beyond))};
}
static Value shiftLeft(Operation *, Value x, Value y, Emitter &e) {
  auto [inside, bits] = shiftWithin(y, 0, e);
  Value shifted = arith::ShLIOp::create(e.b, x, bits);
  return e.select(inside, shifted, e.like(x, 0));
}
static Value shiftRight(Operation *op, Value x, Value y, Emitter &e) {
  if (isSigned(op->getOperand(0))) { // only the sign remains
    double most = Emitter::elementType(y).getIntOrFloatBitWidth() - 1;
    return arith::ShRSIOp::create(e.b, x, shiftWithin(y, most, e).second);
  }
  auto [inside, bits] = shiftWithin(y, 0, e);
  Value shifted = arith::ShRUIOp::create(e.b, x, bits);
  return e.select(inside, shifted, e.like(x, 0));
}

#define CKOPT_BINARY(NAME, EXPR)                                               \
  static Value NAME(Operation *, Value x, Value y, Emitter &e) { return EXPR; }
CKOPT_BINARY(plus, e.add(x, y))
CKOPT_BINARY(minus, e.sub(x, y))
CKOPT_BINARY(times, e.mul(x, y))
CKOPT_BINARY(both, e.andi(x, y))
CKOPT_BINARY(either, e.ori(x, y))
CKOPT_BINARY(exclusive, e.xori(x, y))
#undef CKOPT_BINARY

//===----------------------------------------------------------------------===//
// Few bits
//===----------------------------------------------------------------------===//

/// The bits of f32 grow with its magnitude, so that what is added to the lower
/// half carries into the upper one, bf16's, as often as x is beyond it.
static Value roundRandom(Operation *, Value x, Value u, Emitter &e) {
  Value bits = e.bitcast(e.b.getI32Type(), x);
  Value added = arith::FPToSIOp::create(e.b, e.typeLike(e.b.getI32Type(), x),
                                        e.mul(u, e.like(u, 0x1p16)));
  Value rounded = e.shl(e.shr(e.add(bits, added), 16), 16);
  Value size = e.abs(x);
  Value isFinite =
      e.cmpf(FloatCompare::OLT, size,
             e.like(size, std::numeric_limits<double>::infinity()));
  return e.select(isFinite, e.bitcast(e.b.getF32Type(), rounded), x);
}

static Value decodeDynamic(Operation *op, Value code, Emitter &e) {
  return emitDecodeDynamic(e, code, cast<DecodeDynamicOp>(op).getHasSign());
}

void codegen::addElementwiseModels(ElementModels &models) {
  models.add<NegOp, Unary<negate>>();
  models.add<AbsOp, Unary<absolute>>();
  models.add<SignOp, Unary<signOf>>();
  models.add<ExpOp, Unary<exponential>>();
  models.add<LogOp, Unary<logarithm>>();
  models.add<SqrtOp, Unary<squareRoot>>();
  models.add<RsqrtOp, Unary<rsqrt>>();
  models.add<ReciprocalOp, Unary<reciprocal>>();
  models.add<TanhOp, Unary<hyperbolicTangent>>();
  models.add<SigmoidOp, Unary<sigmoid>>();
  models.add<ErfOp, Unary<errorFunction>>();
  models.add<SinOp, Unary<sine>>();
  models.add<CosOp, Unary<cosine>>();
  models.add<AtanOp, Unary<arcTangent>>();
  models.add<FloorOp, Unary<floorOf>>();
  models.add<CeilOp, Unary<ceilOf>>();
  models.add<RoundOp, Unary<roundOf>>();
  models.add<ReluOp, Unary<relu>>();
  models.add<SoftplusOp, Unary<softplus>>();
  models.add<NotOp, Unary<notOf>>();
  models.add<GeluOp, Unary<gelu>>();
  models.add<ClipOp, Unary<clip>>();
  models.add<CastOp, Unary<castOf>>();
  models.add<BarrierOp, Unary<same>>();
  models.add<AddOp, Binary<plus>>();
  models.add<SubOp, Binary<minus>>();
  models.add<MulOp, Binary<times>>();
  models.add<DivOp, Binary<divide>>();
  models.add<ModOp, Binary<modulo>>();
  models.add<PowOp, Binary<power>>();
  models.add<MaximumOp, Binary<larger>>();
  models.add<MinimumOp, Binary<smaller>>();
  models.add<AndOp, Binary<both>>();
  models.add<OrOp, Binary<either>>();
  models.add<XorOp, Binary<exclusive>>();
  models.add<ShiftLeftOp, Binary<shiftLeft>>();
  models.add<ShiftRightOp, Binary<shiftRight>>();
  models.add<RoundRandomOp, Binary<roundRandom>>();
  models.add<DecodeDynamicOp, Unary<decodeDynamic>>();
  models.add<CompareOp, Binary<compare>>();
  models.add<SelectOp, SelectModel>();
}
