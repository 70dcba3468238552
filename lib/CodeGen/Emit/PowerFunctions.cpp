//===- PowerFunctions.cpp - powers and remainders, inline -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Computes x^y of floats as e^(y log x), with log x and the product as sums of
// two floats, after Juffa's powf; at most 1.6 ulp off. Remainders use long
// division of the significands, which is exact. Integer powers use squarings
// and multiplications.
//
//===----------------------------------------------------------------------===//
#include "MathDetail.h"
#include "MathFunctions.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;
using namespace ckopt::codegen::math_detail;
using FloatCompare = arith::CmpFPredicate;
using IntCompare = arith::CmpIPredicate;

static constexpr double kInf = std::numeric_limits<double>::infinity();
static constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

//===----------------------------------------------------------------------===//
// Floats by floats
//===----------------------------------------------------------------------===//

/// Returns log(a) as high + low, for finite a > 0; error below 2^-30 of it.
static std::pair<Value, Value> emitLogInTwoParts(ValueBuilder &v, Value a) {
  Type i32 = v.b.getI32Type(), f32 = v.b.getF32Type();
  Value denormal = v.cmpf(FloatCompare::OLT, a, v.like(a, 0x1p-126));
  Value bits =
      v.bitcast(i32, v.select(denormal, v.mul(a, v.like(a, 0x1p23)), a));
  // a = m * 2^e, m in [sqrt(1/2), sqrt(2)).
  Value offset = v.sub(bits, v.like(bits, double(0x3f3504f3)));
  Value e = arith::ShRSIOp::create(v.b, offset, v.like(bits, 23));
  Value m = v.bitcast(f32, v.sub(bits, v.shl(e, 23)));
  e = v.sub(e, v.select(denormal, v.like(bits, 23), v.like(bits, 0)));
  Value i = arith::SIToFPOp::create(v.b, m.getType(), e);
  // q = (m - 1) / (m + 1) in two parts; log m = 2 atanh q.
  Value one = v.like(a, 1), d = v.sub(m, one);
  Value r = v.div(one, v.add(m, one));
  Value q = v.mul(d, r);
  Value qLow = v.fma(q, v.neg(d), v.fma(q, v.like(a, -2), d));
  qLow = v.mul(r, qLow);
  Value square = v.mul(q, q);
  Value p = polynomial(
      v, square, {0x1.08c000p-3, 0x1.22cd9cp-3, 0x1.99a162p-3, 0x1.555550p-2});
  Value squareLow = v.fma(q, v.add(qLow, qLow), v.fma(q, q, v.neg(square)));
  Value cube = v.mul(square, q);
  Value cubeLow = v.fma(square, q, v.neg(cube));
  cubeLow = v.fma(square, qLow, v.fma(squareLow, q, cubeLow));
  Value low = v.fma(p, cube, v.fma(p, cubeLow, qLow));
  Value twice = v.add(q, q);
  // Add e * log 2, in two parts as well.
  Value high = v.fma(v.like(a, 0x1.62e430p-1), i, twice);
  Value back = v.fma(v.like(a, -0x1.62e430p-1), i, high);
  low = v.fma(v.like(a, 2), low, v.sub(twice, back));
  low = v.fma(v.like(a, -0x1.05c610p-29), i, low);
  Value sum = v.add(high, low);
  return {sum, v.add(v.sub(high, sum), low)};
}

/// Returns a^y for finite a > 0 and finite y.
static Value emitPositivePower(ValueBuilder &v, Value a, Value y) {
  auto [high, low] = emitLogInTwoParts(v, a);
  Value t = v.mul(high, y);
  Value tLow = v.fma(low, y, v.fma(high, y, v.neg(t)));
  Value sum = v.add(t, tLow);
  Value rest = v.add(v.sub(t, sum), tLow);
  // Outside this range the result is zero or infinity, and the remainder term
  // may be NaN.
  Value inside = v.cmpf(FloatCompare::OLT, v.abs(t), v.like(a, 104));
  return emitExp(v, v.select(inside, sum, t),
                 v.select(inside, rest, v.like(a, 0)));
}

Value codegen::emitPow(ValueBuilder &v, Value x, Value y) {
  v.match(x, y);
  if (isDouble(x))
    return math::PowFOp::create(v.b, x, y);
  Value zero = v.like(x, 0), one = v.like(x, 1), inf = v.like(x, kInf);
  Value a = v.abs(x), magnitude = v.abs(y);
  auto is = [&](FloatCompare predicate, Value p, Value q) {
    return v.cmpf(predicate, p, q);
  };
  Value result = emitPositivePower(v, a, y);
  Value falling = is(FloatCompare::OLT, y, zero);
  result = v.select(is(FloatCompare::OEQ, a, zero),
                    v.select(falling, inf, zero), result);
  result = v.select(is(FloatCompare::OEQ, a, inf), v.select(falling, zero, inf),
                    result);
  // For infinite y the result is 0, 1 or infinity.
  Value grows = v.xori(is(FloatCompare::OGT, a, one), falling);
  Value limit =
      v.select(is(FloatCompare::OEQ, a, one), one, v.select(grows, inf, zero));
  result = v.select(is(FloatCompare::OEQ, magnitude, inf), limit, result);
  // For negative x, odd powers are negative, and fractional ones NaN.
  Value half = v.mul(y, v.like(y, 0.5));
  Value whole = is(FloatCompare::OEQ, math::FloorOp::create(v.b, y), y);
  Value even = is(FloatCompare::OEQ, math::FloorOp::create(v.b, half), half);
  Value bits = v.bitcast(v.b.getI32Type(), x);
  Value negative = v.cmpi(IntCompare::slt, bits, v.like(bits, 0));
  Value odd = v.andi(whole, v.xori(even, v.like(even, 1)));
  result = v.select(v.andi(negative, odd), v.neg(result), result);
  Value broken =
      v.andi(is(FloatCompare::OLT, x, zero), v.xori(whole, v.like(whole, 1)));
  broken = v.andi(broken, is(FloatCompare::OLT, a, inf));
  Value unordered = is(FloatCompare::UNO, x, y);
  result = v.select(v.ori(broken, unordered), v.like(x, kNaN), result);
  Value trivial =
      v.ori(is(FloatCompare::OEQ, x, one), is(FloatCompare::OEQ, y, zero));
  return v.select(trivial, one, result);
}

//===----------------------------------------------------------------------===//
// Remainders
//===----------------------------------------------------------------------===//

/// Computes the remainder of one lane, f32.
static Value emitScalarFmod(ValueBuilder &v, Value x, Value y) {
  Type i32 = v.b.getI32Type();
  Value a = v.abs(x), divisor = v.abs(y);
  // significand * 2^(e - 150)
  auto split = [&](Value magnitude) {
    Value bits = v.bitcast(i32, magnitude), e = v.shr(bits, 23);
    Value significand = v.andi(bits, v.like(bits, 0x7fffff));
    Value normal = v.cmpi(IntCompare::ne, e, v.like(e, 0));
    Value hidden = v.select(normal, v.like(bits, 0x800000), v.like(bits, 0));
    return std::pair(v.ori(significand, hidden), v.maximum(e, v.like(e, 1)));
  };
  auto [mx, ex] = split(a);
  auto [my, ey] = split(divisor);
  my = v.maximum(my, v.like(my, 1)); // the result for y = 0 is set at the end
  Value zero = v.like(ex, 0), one = v.like(ex, 1);
  Value steps = v.maximum(v.sub(ex, ey), zero);
  Value start = arith::RemUIOp::create(v.b, mx, my);
  auto loop = scf::ForOp::create(
      v.b, zero, steps, one, start,
      [&](OpBuilder &, Location, Value, ValueRange carried) {
        Value twice = v.shl(carried[0], 1), less = v.sub(twice, my);
        Value next = v.select(v.cmpi(IntCompare::ult, twice, my), twice, less);
        scf::YieldOp::create(v.b, next);
      });
  Value rest = arith::UIToFPOp::create(v.b, x.getType(), loop.getResult(0));
  Value e = v.sub(ey, v.like(ey, 150));
  Value half = arith::ShRSIOp::create(v.b, e, one);
  rest = v.mul(rest, powerOfTwo(v, half));
  rest = v.mul(rest, powerOfTwo(v, v.sub(e, half)));
  rest = math::CopySignOp::create(v.b, rest, x);
  rest = v.select(v.cmpf(FloatCompare::OLT, a, divisor), x, rest);
  Value fits = v.andi(v.cmpf(FloatCompare::OLT, a, v.like(x, kInf)),
                      v.cmpf(FloatCompare::OGT, divisor, v.like(x, 0)));
  return v.select(fits, rest, v.like(x, kNaN));
}

Value codegen::emitFmod(ValueBuilder &v, Value x, Value y) {
  v.match(x, y);
  if (isDouble(x))
    return arith::RemFOp::create(v.b, x, y);
  return v.perLane({x, y}, [&](ArrayRef<Value> lane) {
    return emitScalarFmod(v, lane[0], lane[1]);
  });
}

//===----------------------------------------------------------------------===//
// By integers
//===----------------------------------------------------------------------===//

/// Returns base^exponent of scalars; the exponent is an unsigned integer.
static Value emitPowerLoop(ValueBuilder &v, Value base, Value exponent) {
  Type type = exponent.getType();
  Value zero = v.constant(type, int64_t(0)), one = v.constant(type, int64_t(1));
  Value width = v.constant(type, int64_t(type.getIntOrFloatBitWidth()));
  Value bits = v.sub(
      width, math::CountLeadingZerosOp::create(v.b, exponent).getResult());
  Value start[] = {v.like(base, 1), base, exponent};
  auto loop = scf::ForOp::create(
      v.b, zero, bits, one, start,
      [&](OpBuilder &, Location, Value, ValueRange carried) {
        Value odd = v.cmpi(IntCompare::ne, v.andi(carried[2], one), zero);
        Value product = v.mul(carried[0], carried[1]);
        Value next[] = {v.select(odd, product, carried[0]),
                        v.mul(carried[1], carried[1]), v.shr(carried[2], 1)};
        scf::YieldOp::create(v.b, next);
      });
  return loop.getResult(0);
}

static Value emitScalarIntegerPower(ValueBuilder &v, Value base, Value exponent,
                                    bool isSigned) {
  if (!isSigned)
    return emitPowerLoop(v, base, exponent);
  Value zero = v.like(base, 0), one = v.like(base, 1);
  Value below = v.cmpi(IntCompare::slt, exponent, zero);
  Value power =
      emitPowerLoop(v, base, v.select(below, v.like(exponent, 0), exponent));
  // 1 / base^|exponent| is zero except for bases 1 and -1.
  Value minusOne = v.like(base, -1);
  Value odd = v.cmpi(IntCompare::ne, v.andi(exponent, one), zero);
  Value ofMinusOne = v.select(odd, minusOne, one);
  Value inverse = v.select(v.cmpi(IntCompare::eq, base, one), one, zero);
  inverse =
      v.select(v.cmpi(IntCompare::eq, base, minusOne), ofMinusOne, inverse);
  return v.select(below, inverse, power);
}

Value codegen::emitIntegerPower(ValueBuilder &v, Value base, Value exponent,
                                bool isSigned) {
  v.match(base, exponent);
  return v.perLane({base, exponent}, [&](ArrayRef<Value> lane) {
    return emitScalarIntegerPower(v, lane[0], lane[1], isSigned);
  });
}

Value codegen::emitPowerByInteger(ValueBuilder &v, Value base, Value exponent) {
  return emitPowerLoop(v, base, exponent);
}
