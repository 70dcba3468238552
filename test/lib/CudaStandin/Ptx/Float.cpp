//===- Float.cpp - PTX ISA, "Floating Point Instructions" -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// f32 and f64, rounded to nearest even (.rn, or no mode). Other rounding modes
// and approximations (.approx, .full) are errors, because the compiler's
// results must be the same on every device.
//
// Except two approximations, of which the manual states the error and results
// for zero, infinity and NaN. Elsewhere the exact result is moved by what the
// error leaves beside rounding, up or down as bits of the operand have it: no
// device may be worse. A CPU's code for the same kernel has the same model
// (lib/Target/Cuda/BlockToPTX/Approximations.cpp), and must have the same bits.
//
//===----------------------------------------------------------------------===//
#include "FloatBits.h"

#include <cmath>

namespace standin::ptx::CKOPT_LANES {

static float clearSign(float x) { return floatOf(bitsOfFloat(x) & 0x7FFFFFFF); }
static double clearSign(double x) {
  return __builtin_bit_cast(double, __builtin_bit_cast(uint64_t, x) << 1 >> 1);
}
static bool isNegative(float x) { return bitsOfFloat(x) >> 31; }
static bool isNegative(double x) {
  return __builtin_bit_cast(uint64_t, x) >> 63;
}

/// Returns a * b + c, rounded once.
static double fused(double a, double b, double c) { return std::fma(a, b, c); }
static float fused(float a, float b, float c) {
#ifdef __FMA__
  return __builtin_fmaf(a, b, c);
#else
  // The product is exact in double. The sum is rounded to odd (Boldo and
  // Melquiond, "Emulation of a FMA and correctly rounded sums", 2008), so that
  // rounding to float gives what one rounding of the exact sum does.
  double p = double(a) * double(b), z = c;
  double s = p + z;
  double back = s - p;
  double rest = (p - (s - back)) + (z - back);
  auto bits = __builtin_bit_cast(uint64_t, s);
  if (rest != 0 && (bits & 1) == 0 && s - s == 0)
    bits += (rest > 0) == (s > 0) ? 1 : uint64_t(-1);
  return float(__builtin_bit_cast(double, bits));
#endif
}

template <typename T, bool Ftz> struct FloatOp {
  static T in(T x) { return input<Ftz>(x); }
  static T out(T x) { return result<Ftz>(x); }
  static T add(T a, T b) { return out(in(a) + in(b)); }
  static T sub(T a, T b) { return out(in(a)-in(b)); }
  static T mul(T a, T b) { return out(in(a)*in(b)); }
  static T div(T a, T b) { return out(in(a) / in(b)); }
  static T fma(T a, T b, T c) { return out(fused(in(a), in(b), in(c))); }
  static T rcp(T a) { return out(T(1) / in(a)); }
  static T sqrt(T a) { return out(std::sqrt(in(a))); }
  // The sign of every number changes, NaN included.
  static T neg(T a) { return -in(a); }
  static T abs(T a) { return clearSign(in(a)); }
  /// "If one of the inputs is NaN, the result is the other; +0.0 > -0.0".
  static T min(T a, T b) {
    a = in(a), b = in(b);
    if (a != a || b != b)
      return a != a ? out(b) : a;
    return a < b || (a == b && isNegative(a)) ? a : b;
  }
  static T max(T a, T b) {
    a = in(a), b = in(b);
    if (a != a || b != b)
      return a != a ? out(b) : a;
    return a > b || (a == b && !isNegative(a)) ? a : b;
  }
  /// .NaN: "the result is NaN if any input is".
  static T minNan(T a, T b) {
    return a != a || b != b ? out(a + b) : min(a, b);
  }
  static T maxNan(T a, T b) {
    return a != a || b != b ? out(a + b) : max(a, b);
  }
  static T copysign(T a, T b) {
    return isNegative(a) ? -clearSign(b) : clearSign(b);
  }
};

/// Returns `exact`, of x, off by about `share`, as f32.
static float moved(float x, double exact, double share) {
  uint32_t bits = bitsOfFloat(x);
  bool up = (bits ^ bits >> 16) & 1; // of bf16 the upper half alone has bits
  bool isStated = x + x == x;
  return float(exact * (isStated ? 1.0 : up ? 1.0 + share : 1.0 - share));
}
/// Relative error 2^-22; subnormal operands and results are zero.
static float ex2Approx(float x) {
  x = flushed(x);
  return result<true>(moved(x, std::exp2(double(x)), 0x1p-22 - 0x1.1p-24));
}
/// One unit in the last place, likewise.
static float rcpApprox(float x) {
  x = flushed(x);
  return result<true>(moved(x, 1.0 / double(x), 0x1p-25));
}

/// Decodes them: only as .ftz.f32.
static void decodeApproximate(Decoder &d, Type type, bool ftz) {
  if (type != Type::F32 || !ftz)
    return (void)d.fail("only '.approx.ftz.f32' is known");
  d.in.run = d.op == "ex2" ? lanewise<&ex2Approx> : lanewise<&rcpApprox>;
  (void)d.defUse(type, {type});
}

template <typename T, bool Ftz>
static Execute pick(std::string_view op, bool nan) {
  using F = FloatOp<T, Ftz>;
  return op == "add"        ? lanewise<&F::add>
         : op == "sub"      ? lanewise<&F::sub>
         : op == "mul"      ? lanewise<&F::mul>
         : op == "div"      ? lanewise<&F::div>
         : op == "fma"      ? lanewise<&F::fma>
         : op == "mad"      ? lanewise<&F::fma>
         : op == "rcp"      ? lanewise<&F::rcp>
         : op == "sqrt"     ? lanewise<&F::sqrt>
         : op == "neg"      ? lanewise<&F::neg>
         : op == "abs"      ? lanewise<&F::abs>
         : op == "copysign" ? lanewise<&F::copysign>
         : op == "min"      ? (nan ? lanewise<&F::minNan> : lanewise<&F::min>)
         : op == "max"      ? (nan ? lanewise<&F::maxNan> : lanewise<&F::max>)
                            : nullptr;
}

static bool isArithmetic(std::string_view op) {
  for (std::string_view known :
       {"add", "sub", "mul", "div", "fma", "mad", "rcp", "sqrt", "neg", "abs",
        "copysign", "min", "max", "ex2"})
    if (op == known)
      return true;
  return false;
}

bool decodeFloat(Decoder &d) {
  if (!isArithmetic(d.op) || d.types.size() != 1 ||
      (d.types[0] != Type::F32 && d.types[0] != Type::F64))
    return false;
  Type type = d.types[0];
  bool single = type == Type::F32;
  bool ftz = d.take("ftz");
  if (ftz && (!single || d.op == "copysign")) {
    (void)d.fail("'.ftz' is for f32");
    return true;
  }
  bool approximate = (d.op == "ex2" || d.op == "rcp") && d.take("approx");
  if (approximate || d.op == "ex2") {
    if (!approximate)
      (void)d.fail("'.approx' is needed");
    else
      decodeApproximate(d, type, ftz);
    return true;
  }
  bool rounded = d.take("rn");
  bool nan = single && (d.op == "min" || d.op == "max") && d.take("NaN");
  d.in.run = !single ? pick<double, false>(d.op, false)
             : ftz   ? pick<float, true>(d.op, nan)
                     : pick<float, false>(d.op, nan);
  // `one`: a single source; `plain`: without a rounding mode
  bool one = false, plain = false;
  for (std::string_view op : {"rcp", "sqrt", "neg", "abs"})
    one = one || op == d.op;
  for (std::string_view op : {"neg", "abs", "min", "max", "copysign"})
    plain = plain || op == d.op;
  bool needed = d.op == "div" || d.op == "fma" || d.op == "rcp" ||
                d.op == "sqrt" || d.op == "mad";
  if ((plain && rounded) || (needed && !rounded))
    (void)d.fail(rounded ? "'.rn' cannot be here" : "'.rn' is needed");
  else if (d.op == "fma" || d.op == "mad")
    (void)d.defUse(type, {type, type, type});
  else if (one)
    (void)d.defUse(type, {type});
  else
    (void)d.defUse(type, {type, type});
  return true;
}

} // namespace standin::ptx::CKOPT_LANES
