//===- TrigFunctions.cpp - sine, cosine, arc tangent, inline --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// |x| is reduced to r in [-pi/4, pi/4] and a quadrant by Payne and Hanek's
// method (1983): x * 2/pi in fixed point from the 96 bits of 2/pi that matter
// at x's magnitude, so that the largest argument is as exact as the smallest.
// Integers only, the same for scalars and lanes; the fraction becomes a float
// in two parts. Then minimax polynomials. At most 1.5 ulp off. Infinities and
// NaN give NaN.
//
// atan: if |x| > 1, it is pi/2 - atan(1/|x|); else a polynomial in the square
// of the argument, which lies in [0, 1], that minimizes the relative error
// (2.6e-9). At most 1.5 ulp off; infinities give pi/2 with their sign.
//
//===----------------------------------------------------------------------===//
#include "MathDetail.h"
#include "MathFunctions.h"
#include <numbers>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;
using namespace ckopt::codegen::math_detail;
using IntCompare = arith::CmpIPredicate;

/// The bits of 2/pi, in units of 4, from the word before the point.
static constexpr uint32_t twoOverPi[] = {0,          0x28be60db, 0x9391054a,
                                         0x7f09d5f4, 0x7d4d3770, 0x36d8a566,
                                         0x4f10e410, 0};

static Value shiftLeft(ValueBuilder &v, Value x, Value bits) {
  return arith::ShLIOp::create(v.b, x, bits);
}

namespace {
struct Reduced {
  Value r;        ///< f32
  Value quadrant; ///< i32, its two low bits
};
} // namespace

/// Returns the three words of 2/pi that magnitudes 2^e need, as i64; e >= 0 is
/// an i32.
static SmallVector<Value> wordsOfTwoOverPi(ValueBuilder &v, Value e) {
  Type wide = v.typeLike(v.b.getI64Type(), e);
  Value first = v.shr(e, 5), bits = v.andi(e, v.like(e, 31));
  bits = arith::ExtUIOp::create(v.b, wide, bits);
  SmallVector<Value> isAt;
  for (int64_t i = 1; i <= 4; ++i)
    isAt.push_back(v.cmpi(IntCompare::eq, first, v.like(e, double(i))));
  // words[k] = twoOverPi[first + k]
  SmallVector<Value> words;
  for (unsigned k = 0; k < 4; ++k) {
    Value word = v.like(e, double(twoOverPi[k]));
    for (unsigned i = 1; i <= 4; ++i)
      word = v.select(isAt[i - 1], v.like(e, double(twoOverPi[i + k])), word);
    words.push_back(arith::ExtUIOp::create(v.b, wide, word));
  }
  SmallVector<Value> shifted;
  for (unsigned k = 0; k < 3; ++k) {
    Value pair = v.ori(v.shl(words[k], 32), words[k + 1]);
    pair = shiftLeft(v, pair, bits);
    shifted.push_back(v.shr(pair, 32));
  }
  return shifted;
}

/// Reduces magnitudes a >= 0.
static Reduced reduceQuadrants(ValueBuilder &v, Value a) {
  Type i32 = v.b.getI32Type(), wide = v.typeLike(v.b.getI64Type(), a);
  Value bits = v.bitcast(i32, a);
  Value e = v.sub(v.shr(bits, 23), v.like(bits, 126));
  e = v.maximum(e, v.like(e, 0));
  Value m = v.ori(v.shl(bits, 8), v.like(bits, double(0x80000000u)));
  m = arith::ExtUIOp::create(v.b, wide, m);
  SmallVector<Value> w = wordsOfTwoOverPi(v, e);
  // Compute a * 2/pi with 62 bits after the point, modulo 4.
  Value p = v.shr(v.mul(m, w[2]), 32);
  p = v.add(v.mul(m, w[1]), p);
  p = v.add(v.shl(v.mul(m, w[0]), 32), p);
  Value quadrant = v.shr(v.add(p, v.like(p, 0x1p61)), 62);
  quadrant = arith::TruncIOp::create(v.b, v.typeLike(i32, a), quadrant);
  // Split off the fraction in [-1/2, 1/2), as the sum of two floats.
  Value fraction = arith::ShRSIOp::create(v.b, v.shl(p, 2), v.like(p, 2));
  Value high = arith::SIToFPOp::create(v.b, a.getType(), fraction);
  Value back = arith::FPToSIOp::create(v.b, wide, high);
  Value low = arith::SIToFPOp::create(v.b, a.getType(), v.sub(fraction, back));
  const double factor = std::numbers::pi / 2 * 0x1p-62;
  Value c = v.like(a, double(float(factor))),
        cLow = v.like(a, factor - double(float(factor)));
  Value r = v.mul(high, c);
  Value rest = v.fma(high, c, v.neg(r));
  rest = v.fma(low, c, v.fma(high, cLow, rest));
  r = v.add(r, rest);
  // Small arguments need no reduction.
  Value small = v.cmpf(arith::CmpFPredicate::OLT, a, v.like(a, 0.785398163));
  return {v.select(small, a, r),
          v.select(small, v.like(quadrant, 0), quadrant)};
}

/// Returns the bits of sin(r + quadrant * pi/2), |r| <= pi/4.
static Value sinusBits(ValueBuilder &v, Value r, Value quadrant) {
  Value z = v.mul(r, r);
  Value s = polynomial(
      v, z, {0x1.80a000p-19, -0x1.a0690cp-13, 0x1.111182p-7, -0x1.555556p-3});
  s = v.fma(v.mul(s, z), r, r);
  Value c = polynomial(
      v, z, {0x1.9a8000p-16, -0x1.6c0efap-10, 0x1.555550p-5, -0.5, 1.0});
  Value one = v.like(quadrant, 1), two = v.like(quadrant, 2);
  Value odd =
      v.cmpi(IntCompare::ne, v.andi(quadrant, one), v.like(quadrant, 0));
  Value y = v.bitcast(v.b.getI32Type(), v.select(odd, c, s));
  // Bit 1 of the quadrant is the sign.
  return v.xori(y, v.shl(v.andi(quadrant, two), 30));
}

/// Returns sin(x + shift * pi/2), where shift is 0 or 1.
static Value emitSinus(ValueBuilder &v, Value x, int64_t shift) {
  Value magnitude = v.abs(x);
  auto [r, quadrant] = reduceQuadrants(v, magnitude);
  quadrant = v.add(quadrant, v.like(quadrant, double(shift)));
  Value y = sinusBits(v, r, quadrant);
  if (shift == 0) // a sine has the sign of x
    y = v.xori(y, v.andi(v.bitcast(v.b.getI32Type(), x),
                         v.like(quadrant, double(0x80000000u))));
  double inf = std::numeric_limits<double>::infinity();
  Value finite = v.cmpf(arith::CmpFPredicate::OLT, magnitude, v.like(x, inf));
  return v.select(finite, v.bitcast(v.b.getF32Type(), y),
                  v.like(x, std::numeric_limits<double>::quiet_NaN()));
}

Value codegen::emitSin(ValueBuilder &v, Value x) {
  if (isDouble(x))
    return math::SinOp::create(v.b, x);
  return emitSinus(v, x, 0);
}

Value codegen::emitCos(ValueBuilder &v, Value x) {
  if (isDouble(x))
    return math::CosOp::create(v.b, x);
  return emitSinus(v, x, 1);
}

Value codegen::emitCircle(ValueBuilder &v, Value m, Value sine) {
  // Compute the nearest quadrant and the remainder, exactly.
  Value quadrant = v.shr(v.add(m, v.like(m, 0x1p21)), 22);
  Value rest = v.sub(m, v.shl(quadrant, 22));
  Type type = v.typeLike(v.b.getF32Type(), m);
  Value r = arith::SIToFPOp::create(v.b, type, rest);
  r = v.mul(r, v.like(r, std::numbers::pi / 2 * 0x1p-22));
  quadrant = v.select(sine, quadrant, v.add(quadrant, v.like(m, 1)));
  return v.bitcast(v.b.getF32Type(), sinusBits(v, r, quadrant));
}

Value codegen::emitAtan(ValueBuilder &v, Value x) {
  if (isDouble(x))
    return math::AtanOp::create(v.b, x);
  Value magnitude = v.abs(x), one = v.like(x, 1);
  Value large = v.cmpf(arith::CmpFPredicate::OGT, magnitude, one);
  Value t = v.select(large, v.div(one, magnitude), magnitude);
  Value z = v.mul(t, t);
  Value p = polynomial(
      v, z,
      {-0.00179362323110181, 0.010914612834769275, -0.03117785962094957,
       0.05795760802553644, -0.08403451213696841, 0.10952186093035138,
       -0.14264241743706718, 0.1999854829043114, -0.3333329908932722});
  Value y = v.fma(v.mul(p, z), t, t);
  // pi/2 in two parts.
  const double high = 0x1.921fb6p0, low = std::numbers::pi / 2 - high;
  Value rest = v.add(v.sub(v.like(x, high), y), v.like(x, low));
  return math::CopySignOp::create(v.b, v.select(large, rest, y), x);
}
