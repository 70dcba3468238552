//===- MathFunctions.cpp - transcendental functions, inline ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elementary functions; powers are in PowerFunctions.cpp, sine and cosine in
// TrigFunctions.cpp. exp, log and tanh use the reductions and minimax
// coefficients of Moshier's Cephes library (expf, logf, tanhf); erf is an odd
// rational function on the clamped argument (as in Eigen and XLA). Overflow
// gives infinity, underflow is gradual or gives zero, depending on the thread's
// mode, NaN stays NaN.
//
// Where approximations are allowed (ValueBuilder::approximates), e^x is
// 2^(x log2 e) with one rounding of the product, and divisions are by the
// reciprocal. The relative error of e^x is then 2^-22 + 1.3 |x| 2^-24: at most
// 2^-17 for a finite result, 2^-21.6 for |x| <= 1. Overflow, infinities and NaN
// are as above; subnormal results are zero.
//
//===----------------------------------------------------------------------===//
#include "MathFunctions.h"
#include "MathDetail.h"
#include "ckopt/Dialect/Block/IR/BlockDialect.h"

#include <bit>
#include <limits>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;
using namespace ckopt::codegen::math_detail;

namespace {
/// exp(x) = 2^n (1 + q).
struct ExpParts {
  Value shifted; ///< f32 whose low bits are n
  Value q;
};
} // namespace

/// Reduces x in [-151 ln 2, 129 ln 2] (+ tail).
static ExpParts reduceExp(ValueBuilder &v, Value x, Value tail = {}) {
  // n = round(x / ln 2): adding 1.5 * 2^23 leaves the integer in the low bits.
  Value magic = v.like(x, 12582912.0);
  Value shifted = v.fma(x, v.like(x, 1.44269504088896341), magic);
  Value n = v.sub(shifted, magic);
  // Compute r = x - n ln 2 with ln 2 in two parts, of which n times the first
  // is exact.
  Value r = v.fma(n, v.like(x, -0.693359375), x);
  r = v.fma(n, v.like(x, 2.12194440e-4), r);
  if (tail) { // the rounded sum, and its rounding error
    Value sum = v.add(r, tail);
    tail = v.add(v.sub(r, sum), tail);
    r = sum;
  }
  Value p = polynomial(v, r,
                       {1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3,
                        4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1});
  Value square = v.mul(r, r);
  return {shifted,
          tail ? v.add(v.fma(p, square, tail), r) : v.fma(p, square, r)};
}

/// Returns 2^n as f32 for n in [-126, 127], the low nine bits of `bits`.
static Value powerOfLowBits(ValueBuilder &v, Value bits) {
  return v.bitcast(v.b.getF32Type(),
                   v.add(v.shl(bits, 23), v.like(bits, double(127 << 23))));
}

static Value approximateExp(ValueBuilder &v, Value x) {
  Value exponent = v.mul(x, v.like(x, 1.44269504088896341));
  return block::ApproxExp2Op::create(v.b, x.getType(), exponent);
}

Value codegen::emitExp(ValueBuilder &v, Value x, Value tail) {
  if (isDouble(x))
    return math::ExpOp::create(v.b, x);
  if (v.approximatesOf(x) && !tail)
    return approximateExp(v, x);
  // Beyond these the result is infinity or zero.
  x = v.select(v.cmpf(arith::CmpFPredicate::OGT, x, v.like(x, 89)),
               v.like(x, 89), x);
  x = v.select(v.cmpf(arith::CmpFPredicate::OLT, x, v.like(x, -104)),
               v.like(x, -104), x);
  ExpParts parts = reduceExp(v, x, tail);
  // Multiply by 2^n in two factors, since n goes from -150 to 128. The bits
  // that the shift left above n are a multiple of 512, in either factor.
  Value bits = v.bitcast(v.b.getI32Type(), parts.shifted);
  Value half = v.shr(bits, 1), first = powerOfLowBits(v, half);
  return v.mul(v.fma(parts.q, first, first),
               powerOfLowBits(v, v.sub(bits, half)));
}

Value codegen::emitExpNonPositive(ValueBuilder &v, Value x) {
  if (isDouble(x))
    return math::ExpOp::create(v.b, x);
  if (v.approximatesOf(x))
    return approximateExp(v, x);
  ExpParts parts = reduceExp(v, x);
  Value power = powerOfLowBits(v, v.bitcast(v.b.getI32Type(), parts.shifted));
  // Below, the result would be denormal.
  return v.select(v.cmpf(arith::CmpFPredicate::OLT, x, v.like(x, -87.33654)),
                  v.like(x, 0), v.fma(parts.q, power, power));
}

Value codegen::emitLog(ValueBuilder &v, Value x) {
  if (isDouble(x))
    return math::LogOp::create(v.b, x);
  using P = arith::CmpFPredicate;
  Type i32 = v.b.getI32Type(), f32 = v.b.getF32Type();
  Value denormal = v.cmpf(P::OLT, x, v.like(x, 0x1p-126));
  Value scaled = v.select(denormal, v.mul(x, v.like(x, 0x1p23)), x);
  Value bits = v.bitcast(i32, scaled);
  // Split x = m * 2^e with m in [sqrt(1/2), sqrt(2)).
  Value offset = v.sub(bits, v.like(bits, double(0x3f3504f3)));
  Value e = arith::ShRSIOp::create(v.b, offset, v.like(bits, 23));
  Value m = v.bitcast(f32, v.sub(bits, v.shl(e, 23)));
  e = v.sub(e, v.select(denormal, v.like(bits, 23), v.like(bits, 0)));
  Value ef = arith::SIToFPOp::create(v.b, m.getType(), e);
  Value f = v.sub(m, v.like(m, 1)), z = v.mul(f, f);
  Value p = polynomial(v, f,
                       {7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1,
                        -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
                        2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1});
  Value y = v.mul(v.mul(p, f), z);
  y = v.fma(ef, v.like(x, -2.12194440e-4), y);
  y = v.fma(z, v.like(x, -0.5), y);
  Value result = v.fma(ef, v.like(x, 0.693359375), v.add(f, y));
  double inf = std::numeric_limits<double>::infinity();
  result = v.select(v.cmpf(P::OEQ, x, v.like(x, 0)), v.like(x, -inf), result);
  result = v.select(v.cmpf(P::OEQ, x, v.like(x, inf)), x, result);
  // Negative numbers and NaN.
  Value nan = v.like(x, std::numeric_limits<double>::quiet_NaN());
  return v.select(v.cmpf(P::UGE, x, v.like(x, 0)),
                  v.select(v.cmpf(P::UNO, x, x), nan, result), nan);
}

Value codegen::emitTanh(ValueBuilder &v, Value x) {
  if (isDouble(x))
    return math::TanhOp::create(v.b, x);
  // 1 - 2 t / (1 + t), t = exp(-2 |x|)
  Value magnitude = v.abs(x), z = v.mul(x, x);
  Value t = emitExpNonPositive(v, v.mul(magnitude, v.like(x, -2)));
  Value large =
      v.fma(v.quotient(t, v.add(t, v.like(x, 1))), v.like(x, -2), v.like(x, 1));
  large = math::CopySignOp::create(v.b, large, x);
  Value p = polynomial(v, z,
                       {-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2,
                        1.33314422036e-1, -3.33332819422e-1});
  Value small = v.fma(v.mul(p, z), x, x);
  return v.select(
      v.cmpf(arith::CmpFPredicate::OGT, magnitude, v.like(x, 0.625)), large,
      small);
}

Value codegen::emitErf(ValueBuilder &v, Value x) {
  if (isDouble(x))
    return math::ErfOp::create(v.b, x);
  // Beyond the limit the function is within one unit of 1, and from 3.8325 on
  // it is 1.
  double limit = 3.7439211627767994;
  Value c = v.select(v.cmpf(arith::CmpFPredicate::OGT, x, v.like(x, limit)),
                     v.like(x, limit), x);
  c = v.select(v.cmpf(arith::CmpFPredicate::OLT, x, v.like(x, -limit)),
               v.like(x, -limit), c);
  Value z = v.mul(c, c);
  Value p = polynomial(v, z,
                       {0.00022905065861350646, 0.0034082910107109506,
                        0.050955695062380861, 0.18520832239976145,
                        1.128379143519084});
  Value q = polynomial(v, z,
                       {-1.1791602954361697e-7, 0.000023547966471313185,
                        0.0010179625278914885, 0.014070470171167667,
                        0.11098505178285362, 0.49746925110067538, 1.0});
  Value result = v.quotient(v.mul(c, p), q);
  Value one = math::CopySignOp::create(v.b, v.like(x, 1), x);
  return v.select(
      v.cmpf(arith::CmpFPredicate::OGT, v.abs(x), v.like(x, 3.8325068)), one,
      result);
}

Value codegen::emitSigmoid(ValueBuilder &v, Value x) {
  Value one = v.like(x, 1);
  return v.quotient(one, v.add(one, emitExp(v, v.neg(x))));
}

Value codegen::emitSoftplus(ValueBuilder &v, Value x) {
  Value e = emitExp(v, v.neg(v.abs(x))), one = v.like(x, 1);
  // log1p(e) = e * log(u) / (u - 1), u = 1 + e as rounded (Kahan).
  Value u = v.add(one, e), d = v.sub(u, one);
  Value zero = v.cmpf(arith::CmpFPredicate::OEQ, d, v.like(x, 0));
  Value log1p =
      v.select(zero, e, v.div(v.mul(emitLog(v, u), e), v.select(zero, one, d)));
  return v.add(v.maximum(x, v.like(x, 0)), log1p);
}

Value codegen::emitGelu(ValueBuilder &v, Value x, bool tanh) {
  if (tanh && !isDouble(x)) {
    // x / (1 + exp(-2 u)), by exp(-2 |u|).
    Value cube = v.mul(v.mul(x, x), x);
    Value u = v.add(x, v.mul(v.like(x, 0.044715), cube));
    u = v.mul(v.like(x, -2 * 0.79788456080286535588), v.abs(u));
    Value t = emitExpNonPositive(v, u);
    Value positive = v.cmpf(arith::CmpFPredicate::OGE, x, v.like(x, 0));
    return v.quotient(v.select(positive, x, v.mul(x, t)),
                      v.add(t, v.like(x, 1)));
  }
  Value inner;
  if (tanh) {
    Value cube = v.mul(v.mul(x, x), x);
    inner = v.add(x, v.mul(v.like(x, 0.044715), cube));
    inner = emitTanh(v, v.mul(v.like(x, 0.79788456080286535588), inner));
  } else {
    inner = emitErf(v, v.mul(x, v.like(x, 0.70710678118654752440)));
  }
  return v.mul(v.mul(v.like(x, 0.5), x), v.add(v.like(x, 1), inner));
}

Value codegen::emitRsqrt(ValueBuilder &v, Value x) {
  return v.div(v.like(x, 1), v.sqrt(x));
}

Value codegen::emitToBF16(ValueBuilder &v, Value x) {
  Value bits = v.bitcast(v.b.getI32Type(), x);
  Value high = v.shr(bits, 16);
  Value odd = v.andi(high, v.like(high, 1));
  Value rounded = v.shr(v.add(bits, v.add(odd, v.like(odd, 0x7fff))), 16);
  Value quiet = v.ori(high, v.like(high, 0x40));
  Value isNaN = v.cmpf(arith::CmpFPredicate::UNO, x, x);
  Value half = arith::TruncIOp::create(v.b, v.typeLike(v.b.getI16Type(), x),
                                       v.select(isNaN, quiet, rounded));
  return v.bitcast(v.b.getBF16Type(), half);
}
