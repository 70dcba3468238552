//===- Half.cpp - PTX ISA, "Half Precision Floating Point Instructions" ---===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// f16 and bf16. Sums and products are computed in double and rounded again. A
// double has more than twice as many bits, so the result is as if rounded once.
// The sum of a fma is rounded to odd first (Boldo and Melquiond, 2008), for the
// same reason.
//
//===----------------------------------------------------------------------===//
#include "Formats.h"

namespace standin::ptx::CKOPT_LANES {

template <Type T> struct HalfType {
  using type = Half;
};
template <> struct HalfType<Type::BF16> {
  using type = BHalf;
};

/// Returns a + b, rounded to odd if it is not exact.
static double sumToOdd(double a, double b) {
  double s = a + b, back = s - a;
  double rest = (a - (s - back)) + (b - back);
  auto bits = __builtin_bit_cast(uint64_t, s);
  if (rest != 0 && (bits & 1) == 0 && s - s == 0)
    bits += (rest > 0) == (s > 0) ? 1 : uint64_t(-1);
  return __builtin_bit_cast(double, bits);
}

template <Type T, bool Ftz> struct HalfOp {
  using H = typename HalfType<T>::type;
  static constexpr uint16_t kExponent = T == Type::F16 ? 0x7C00 : 0x7F80;
  static uint16_t flush(uint16_t x) {
    return Ftz && (x & kExponent) == 0 ? x & 0x8000 : x;
  }
  static double in(H x) { return widen(flush(x.bits), formatOf(T)); }
  static H out(double x) {
    return {flush(uint16_t(narrow(x, formatOf(T), Mode::Nearest)))};
  }
  static H add(H a, H b) { return out(in(a) + in(b)); }
  static H sub(H a, H b) { return out(in(a)-in(b)); }
  static H mul(H a, H b) { return out(in(a)*in(b)); }
  static H fma(H a, H b, H c) { return out(sumToOdd(in(a)*in(b), in(c))); }
  static H neg(H a) { return {uint16_t(flush(a.bits) ^ 0x8000)}; }
  static H abs(H a) { return {uint16_t(flush(a.bits) & 0x7FFF)}; }
  /// "If one of the inputs is NaN, the result is the other; +0.0 > -0.0".
  static H pick(H a, H b, bool greatest) {
    double x = in(a), y = in(b);
    if (x != x || y != y)
      return x != x ? out(y) : out(x);
    bool first = x == y ? bool(a.bits >> 15) != greatest : (x < y) != greatest;
    return {flush(first ? a.bits : b.bits)};
  }
  static H min(H a, H b) { return pick(a, b, false); }
  static H max(H a, H b) { return pick(a, b, true); }
  /// .NaN: "the result is the canonical NaN if either input is one".
  static bool hasNan(H a, H b) { return in(a) != in(a) || in(b) != in(b); }
  static H minNan(H a, H b) { return hasNan(a, b) ? out(NAN) : min(a, b); }
  static H maxNan(H a, H b) { return hasNan(a, b) ? out(NAN) : max(a, b); }
};

/// Applies the function to both halves of a word.
template <typename H, H (*Fn)(H)> static uint32_t both(uint32_t a) {
  return Fn({uint16_t(a)}).bits | uint32_t(Fn({uint16_t(a >> 16)}).bits) << 16;
}
template <typename H, H (*Fn)(H, H)>
static uint32_t both(uint32_t a, uint32_t b) {
  return Fn({uint16_t(a)}, {uint16_t(b)}).bits |
         uint32_t(Fn({uint16_t(a >> 16)}, {uint16_t(b >> 16)}).bits) << 16;
}
template <typename H, H (*Fn)(H, H, H)>
static uint32_t both(uint32_t a, uint32_t b, uint32_t c) {
  return Fn({uint16_t(a)}, {uint16_t(b)}, {uint16_t(c)}).bits |
         uint32_t(
             Fn({uint16_t(a >> 16)}, {uint16_t(b >> 16)}, {uint16_t(c >> 16)})
                 .bits)
             << 16;
}

template <Type T, bool Ftz> static Execute pickPair(std::string_view op) {
  using F = HalfOp<T, Ftz>;
  using H = typename F::H;
  return op == "add"       ? lanewise<&both<H, F::add>>
         : op == "sub"     ? lanewise<&both<H, F::sub>>
         : op == "mul"     ? lanewise<&both<H, F::mul>>
         : op == "fma"     ? lanewise<&both<H, F::fma>>
         : op == "neg"     ? lanewise<&both<H, F::neg>>
         : op == "abs"     ? lanewise<&both<H, F::abs>>
         : op == "min"     ? lanewise<&both<H, F::min>>
         : op == "max"     ? lanewise<&both<H, F::max>>
         : op == "min.NaN" ? lanewise<&both<H, F::minNan>>
         : op == "max.NaN" ? lanewise<&both<H, F::maxNan>>
                           : nullptr;
}

template <Type T, bool Ftz> static Execute pickHalf(std::string_view op) {
  using F = HalfOp<T, Ftz>;
  return op == "add"       ? lanewise<&F::add>
         : op == "sub"     ? lanewise<&F::sub>
         : op == "mul"     ? lanewise<&F::mul>
         : op == "fma"     ? lanewise<&F::fma>
         : op == "neg"     ? lanewise<&F::neg>
         : op == "abs"     ? lanewise<&F::abs>
         : op == "min"     ? lanewise<&F::min>
         : op == "max"     ? lanewise<&F::max>
         : op == "min.NaN" ? lanewise<&F::minNan>
         : op == "max.NaN" ? lanewise<&F::maxNan>
                           : nullptr;
}

bool decodeHalf(Decoder &d) {
  if (d.types.size() != 1 || d.types[0] < Type::F16 ||
      d.types[0] > Type::BF16x2 || !pickHalf<Type::F16, false>(d.op))
    return false;
  Type type = d.types[0];
  bool ftz = (type == Type::F16 || type == Type::F16x2) && d.take("ftz");
  (void)d.take("rn"); // the only mode
  std::string op(d.op);
  if ((op == "min" || op == "max") && d.take("NaN"))
    op += ".NaN";
  d.in.run = type == Type::BF16x2  ? pickPair<Type::BF16, false>(op)
             : type == Type::F16x2 ? ftz ? pickPair<Type::F16, true>(op)
                                         : pickPair<Type::F16, false>(op)
             : type == Type::BF16  ? pickHalf<Type::BF16, false>(op)
             : ftz                 ? pickHalf<Type::F16, true>(op)
                                   : pickHalf<Type::F16, false>(op);
  if (d.op == "fma")
    (void)d.defUse(type, {type, type, type});
  else if (d.op == "neg" || d.op == "abs")
    (void)d.defUse(type, {type});
  else
    (void)d.defUse(type, {type, type});
  return true;
}

} // namespace standin::ptx::CKOPT_LANES
