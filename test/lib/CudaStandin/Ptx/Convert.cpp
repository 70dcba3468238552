//===- Convert.cpp - PTX ISA, "Data Movement and Conversion": cvt ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any number except a 64-bit integer is exact in a double. So a conversion to a
// float rounds a double once, with integer arithmetic, in any of the modes; a
// conversion from a float rounds to an integer and clamps. Conversions of
// integers, and conversions to f32 and f64 that the host rounds in the same
// way, have code of their own.
//
//===----------------------------------------------------------------------===//
#include "Formats.h"

#include <cmath>

namespace standin::ptx::CKOPT_LANES {

/// Rounds x to an integer in the given mode.
static double integral(double x, Mode mode) {
  switch (mode) {
  case Mode::Nearest:
    return std::nearbyint(x);
  case Mode::Down:
    return std::floor(x);
  case Mode::Up:
    return std::ceil(x);
  default:
    return std::trunc(x);
  }
}

//===----------------------------------------------------------------------===//
// General conversions
//===----------------------------------------------------------------------===//

namespace {
/// The types and modes of a conversion, packed into the instruction's detail.
struct Conversion {
  Type to, from;
  Mode mode;    ///< of rounding to `to`
  Mode toWhole; ///< .rni and so on
  bool flush, saturate;
  uint32_t pack() const {
    return uint32_t(to) | uint32_t(from) << 8 | uint32_t(mode) << 16 |
           uint32_t(toWhole) << 20 | uint32_t(flush) << 24 |
           uint32_t(saturate) << 25;
  }
  static Conversion unpack(uint32_t bits) {
    return {Type(bits & 0xFF),      Type(bits >> 8 & 0xFF),
            Mode(bits >> 16 & 0xF), Mode(bits >> 20 & 0xF),
            bool(bits >> 24 & 1),   bool(bits >> 25 & 1)};
  }
};
} // namespace

static double floatFrom(uint64_t bits, const Conversion &c) {
  switch (c.from) {
  case Type::F64:
    return __builtin_bit_cast(double, bits);
  case Type::F16:
  case Type::BF16:
    return widen(uint16_t(bits), formatOf(c.from));
  default: {
    float x = floatOf(uint32_t(bits));
    return c.flush ? flushed(x) : x;
  }
  }
}

static uint64_t floatTo(double x, const Conversion &c) {
  if (c.toWhole != Mode::None)
    x = integral(x, c.toWhole);
  if (c.saturate) // "to [0.0, 1.0]; NaN becomes positive 0.0"
    x = x > 1 ? 1 : x > 0 ? x : 0;
  if (c.to == Type::F64)
    return __builtin_bit_cast(uint64_t, x);
  uint32_t bits = narrow(x, formatOf(c.to), c.mode);
  if (c.to == Type::TF32)
    return bits << 13;
  if (c.to == Type::F32 && c.flush)
    return bitsOfFloat(flushed(floatOf(bits)));
  return bits;
}

/// Clamps to the integer's range. "NaN becomes 0 where the source is not f64
/// and the destination has not 64 bits, else the sign's bit alone."
static uint64_t wholeFrom(double x, const Conversion &c) {
  unsigned bits = bitsOf(c.to);
  uint64_t mask = bits == 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1;
  uint64_t top = uint64_t(1) << (bits - 1);
  if (x != x)
    return c.from != Type::F64 && bits < 64 ? 0 : top;
  x = integral(x, c.toWhole);
  if (isSigned(c.to)) {
    double limit = std::ldexp(1.0, int(bits) - 1);
    if (x >= limit)
      return top - 1;
    return x < -limit ? top : uint64_t(int64_t(x)) & mask;
  }
  if (x >= std::ldexp(1.0, int(bits)))
    return mask;
  return x < 0 ? 0 : uint64_t(x);
}

static void convertFloat(const Instruction &in, Lanes &lanes) {
  Conversion c = Conversion::unpack(in.detail);
  bool wideFrom = bitsOf(c.from) == 64, wideTo = bitsOf(c.to) == 64;
  uint32_t *to = lanes.slot(in.slots[0]), *from = lanes.slot(in.slots[1]);
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!(lanes.active >> l & 1))
      continue;
    uint64_t bits = wideFrom ? reinterpret_cast<uint64_t *>(from)[l] : from[l];
    double x = floatFrom(bits, c);
    bits = isFloat(c.to) ? floatTo(x, c) : wholeFrom(x, c);
    if (wideTo)
      reinterpret_cast<uint64_t *>(to)[l] = bits;
    else
      to[l] = uint32_t(bits);
  }
}

/// cvt.rn.f16x2.f32 d, a, b: a becomes the upper half.
static void convertPair(const Instruction &in, Lanes &lanes) {
  Conversion c = Conversion::unpack(in.detail);
  uint32_t *to = lanes.slot(in.slots[0]);
  const uint32_t *high = lanes.slot(in.slots[1]),
                 *low = lanes.slot(in.slots[2]);
  for (unsigned l = 0; l < kLanes; ++l)
    if (lanes.active >> l & 1)
      to[l] = uint32_t(floatTo(floatFrom(high[l], c), c)) << 16 |
              uint32_t(floatTo(floatFrom(low[l], c), c));
}

/// The type's low bits, "sign-extended to the register's width" where signed.
static uint64_t extended(uint64_t bits, Type type) {
  unsigned above = 64 - bitsOf(type);
  return isSigned(type) ? uint64_t(int64_t(bits << above) >> above)
                        : bits << above >> above;
}

/// Returns a double that rounds to 24 bits or fewer as the integer does: all
/// bits below its upper 52 become one sticky bit.
static double forRounding(uint64_t bits, Type type) {
  bool negative = isSigned(type) && int64_t(bits) < 0;
  uint64_t magnitude = negative ? -bits : bits;
  if (magnitude >> 53)
    magnitude = (magnitude >> 12 | ((magnitude & 0xFFF) != 0)) << 12;
  return negative ? -double(magnitude) : double(magnitude);
}

static uint64_t saturated(uint64_t bits, const Conversion &c) {
  __int128 x = isSigned(c.from) ? __int128(int64_t(bits)) : __int128(bits);
  unsigned size = bitsOf(c.to) - isSigned(c.to);
  __int128 high = (__int128(1) << size) - 1;
  __int128 low = isSigned(c.to) ? -high - 1 : 0;
  return uint64_t(x < low ? low : x > high ? high : x);
}

/// Converts integers where the register is wider than its type, and integers to
/// halves. `bytes` is the size of the result's register, `count` that of the
/// source's.
static void convertWhole(const Instruction &in, Lanes &lanes) {
  Conversion c = Conversion::unpack(in.detail);
  uint32_t *to = lanes.slot(in.slots[0]), *from = lanes.slot(in.slots[1]);
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!(lanes.active >> l & 1))
      continue;
    uint64_t bits =
        in.count == 8 ? reinterpret_cast<uint64_t *>(from)[l] : from[l];
    if (isFloat(c.from))
      bits = wholeFrom(floatFrom(bits, c), c);
    else if (bits = extended(bits, c.from); isFloat(c.to))
      bits = floatTo(forRounding(bits, c.from), c);
    else if (c.saturate)
      bits = saturated(bits, c);
    if (!isFloat(c.to))
      bits = extended(bits, c.to);
    if (in.bytes == 8)
      reinterpret_cast<uint64_t *>(to)[l] = bits;
    else
      to[l] = in.bytes == 2 ? uint16_t(bits) : uint32_t(bits);
  }
}

//===----------------------------------------------------------------------===//
// Common conversions, in all lanes at once
//===----------------------------------------------------------------------===//

/// Sign- or zero-extension, or the low bits. A register that is wider than the
/// type gets the extended value ("cvt", destination).
template <typename D, typename S> static D whole(S x) { return D(x); }
template <typename D, typename S> static D clamped(S x) {
  __int128 wide = x, low = std::numeric_limits<D>::min(),
           high = std::numeric_limits<D>::max();
  return D(wide < low ? low : wide > high ? high : wide);
}
template <typename D, typename S> static D rounded(S x) {
  return result<false>(D(x));
}
template <bool Ftz> static double wider(float x) { return input<Ftz>(x); }
template <bool Ftz> static float narrower(double x) {
  return result<Ftz>(float(x));
}

template <typename F> static Execute byAnyInteger(Type type, F pick) {
  if (type == Type::U8)
    return pick(uint8_t());
  if (type == Type::S8)
    return pick(int8_t());
  return byInteger(type, pick);
}

static Execute integers(Type to, Type from, bool saturate) {
  return byAnyInteger(to, [&]<typename D>(D) {
    return byAnyInteger(from, [&]<typename S>(S) {
      return saturate ? lanewise<&clamped<D, S>> : lanewise<&whole<D, S>>;
    });
  });
}

static Mode modeNamed(std::string_view name) {
  return name == "rn" || name == "rni"   ? Mode::Nearest
         : name == "rna"                 ? Mode::Away
         : name == "rz" || name == "rzi" ? Mode::Zero
         : name == "rm" || name == "rmi" ? Mode::Down
         : name == "rp" || name == "rpi" ? Mode::Up
                                         : Mode::None;
}

static bool cvtPair(Decoder &d, Conversion c) {
  if (d.operands() != 3 || c.from != Type::F32 ||
      (c.mode != Mode::Nearest && c.mode != Mode::Zero))
    return d.fail("cvt.{rn,rz}.f16x2.f32 d, a, b is needed");
  c.to = c.to == Type::F16x2 ? Type::F16 : Type::BF16;
  d.in.detail = c.pack();
  d.in.run = &convertPair;
  return d.defUse(Type::B32, {Type::F32, Type::F32});
}

/// Returns the special code for this conversion, or null.
static Execute quick(const Conversion &c) {
  if (c.saturate || c.toWhole != Mode::None)
    return nullptr;
  if (c.to == Type::F64 && c.from == Type::F32)
    return c.flush ? lanewise<&wider<true>> : lanewise<&wider<false>>;
  if (c.to == Type::F32 && c.from == Type::F64 && c.mode == Mode::Nearest)
    return c.flush ? lanewise<&narrower<true>> : lanewise<&narrower<false>>;
  if (isFloat(c.from) || c.mode != Mode::Nearest)
    return nullptr;
  if (c.to == Type::F32)
    return byAnyInteger(
        c.from, []<typename S>(S) { return lanewise<&rounded<float, S>>; });
  if (c.to == Type::F64)
    return byAnyInteger(
        c.from, []<typename S>(S) { return lanewise<&rounded<double, S>>; });
  return nullptr;
}

/// Returns whether the types allow these modes.
static bool modesFit(const Conversion &c) {
  bool floats = isFloat(c.to) && isFloat(c.from);
  if (!isFloat(c.to))
    return c.mode == Mode::None && (c.toWhole != Mode::None) == isFloat(c.from);
  if (!floats)
    return c.mode != Mode::None && c.toWhole == Mode::None;
  if (c.to == c.from)
    return c.mode == Mode::None;
  return (bitsOf(c.to) < bitsOf(c.from) || c.to == Type::TF32) ==
             (c.mode != Mode::None) &&
         c.toWhole == Mode::None;
}

static bool cvt(Decoder &d) {
  if (d.types.size() != 2)
    return d.fail("2 types are needed");
  Conversion c{};
  c.to = d.types[0], c.from = d.types[1];
  c.toWhole = modeNamed(d.takeOf({"rni", "rzi", "rmi", "rpi"}));
  c.mode = modeNamed(d.takeOf({"rna", "rn", "rz", "rm", "rp"}));
  c.saturate = d.take("sat");
  if (c.to == Type::F32 || c.from == Type::F32)
    c.flush = d.take("ftz");
  if (c.to == Type::F16x2 || c.to == Type::BF16x2)
    return cvtPair(d, c);
  if (!modesFit(c))
    return d.fail("the rounding is missing, or one that these types have not");
  if (bitsOf(c.from) < 8 || bitsOf(c.to) < 8)
    return d.unknownType();
  if (d.operands() != 2)
    return d.fail("2 operands are needed");
  // "Operand Size Exceeding Instruction-Type Size"
  unsigned toBits = std::max(d.statement.operands[0].bits, bitsOf(c.to)),
           fromBits = std::max(d.statement.operands[1].bits, bitsOf(c.from));
  bool whole = !isFloat(c.to) && !isFloat(c.from);
  bool wider = (!isFloat(c.to) && toBits > bitsOf(c.to) &&
                (isSigned(c.to) || toBits == 64)) ||
               (!isFloat(c.from) && fromBits > 32 && bitsOf(c.from) < 64);
  d.in.detail = c.pack();
  d.in.bytes = uint8_t(toBits / 8), d.in.count = uint8_t(fromBits / 8);
  d.in.moves = whole && !c.saturate;
  if (!wider)
    d.in.run = whole ? integers(c.to, c.from, c.saturate) : quick(c);
  if (!d.in.run)
    d.in.run = !wider && isFloat(c.from) ? &convertFloat : &convertWhole;
  return d.def(0, c.to, isFloat(c.to) ? 32 : 64) &&
         d.use(1, c.from, isFloat(c.from) ? 32 : 64);
}

bool decodeConvert(Decoder &d) {
  if (d.op != "cvt")
    return false;
  (void)cvt(d);
  return true;
}

} // namespace standin::ptx::CKOPT_LANES
