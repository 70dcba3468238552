//===- Formats.h - floats of 16, 19 and 32 bits, by integers ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TEST_LIB_CUDASTANDIN_PTX_FORMATS_H
#define CKOPT_TEST_LIB_CUDASTANDIN_PTX_FORMATS_H

#include "FloatBits.h"

#include <algorithm>
#include <cmath>

namespace standin::ptx::CKOPT_LANES {

enum class Mode : uint8_t { None, Nearest, Away, Zero, Down, Up };

/// A binary format: bits of the significand with the hidden one, exponents.
struct Format {
  int precision, least, most;
  uint32_t nan; ///< bits of the NaN that arithmetic makes
};

inline Format formatOf(Type type) {
  switch (type) {
  case Type::F16:
    return {11, -14, 15, 0x7FFF};
  case Type::BF16:
    return {8, -126, 127, 0x7FFF};
  case Type::TF32:
    return {11, -126, 127, 0x7FFFFFFF >> 13};
  default:
    return {24, -126, 127, 0x7FFFFFFF};
  }
}

inline bool roundsUp(Mode mode, bool negative, uint64_t kept, uint64_t rest,
                     uint64_t half) {
  switch (mode) {
  case Mode::Nearest:
    return rest > half || (rest == half && (kept & 1));
  case Mode::Away:
    return rest >= half;
  case Mode::Down:
    return negative && rest != 0;
  case Mode::Up:
    return !negative && rest != 0;
  default:
    return false;
  }
}

/// Rounds x to the format and returns its bits.
inline uint32_t narrow(double x, Format format, Mode mode) {
  auto bits = __builtin_bit_cast(uint64_t, x);
  bool negative = bits >> 63;
  int fraction = format.precision - 1;
  uint32_t infinity = uint32_t(format.most - format.least + 2) << fraction;
  // The exponent of infinity is ones; the sign lies above it.
  uint32_t sign = negative ? infinity + (1u << fraction) : 0;
  if (x != x)
    return format.nan;
  if (std::isinf(x))
    return sign | infinity;
  if (x == 0)
    return sign;
  int exponent = std::ilogb(x);
  uint64_t significand = uint64_t(std::ldexp(std::fabs(x), 52 - exponent));
  int top = std::max(exponent, format.least);
  int drop = top - fraction - (exponent - 52); // bits to drop, at least 29
  uint64_t kept = drop > 62 ? 0 : significand >> drop;
  uint64_t rest = drop > 62 ? 1 : significand - (kept << drop);
  uint64_t half = drop > 62 ? 2 : uint64_t(1) << (drop - 1);
  kept += roundsUp(mode, negative, kept, rest, half);
  auto made = uint32_t(kept);
  if (exponent >= format.least) // a carry into the exponent is correct
    made = uint32_t((uint64_t(top - format.least + 1) << fraction) + kept -
                    (uint64_t(1) << fraction));
  if (made >= infinity) {
    bool toInfinity = mode == Mode::Nearest || mode == Mode::Away ||
                      (mode == Mode::Up && !negative) ||
                      (mode == Mode::Down && negative);
    made = toInfinity ? infinity : infinity - 1;
  }
  return sign | made;
}

/// Returns the value of a number in a 16-bit format.
inline double widen(uint16_t bits, Format format) {
  int fraction = format.precision - 1;
  bool negative = bits >> 15;
  uint32_t magnitude = bits & 0x7FFF;
  uint32_t infinity = uint32_t(format.most - format.least + 2) << fraction;
  double value;
  if (magnitude > infinity)
    return std::nan("");
  if (magnitude == infinity) {
    value = INFINITY;
  } else {
    uint32_t field = magnitude >> fraction;
    uint32_t low = magnitude & ((1u << fraction) - 1);
    uint32_t significand = field ? low | 1u << fraction : low;
    int exponent = (field ? int(field) - 1 : 0) + format.least - fraction;
    value = std::ldexp(double(significand), exponent);
  }
  return negative ? -value : value;
}

} // namespace standin::ptx::CKOPT_LANES

#endif // CKOPT_TEST_LIB_CUDASTANDIN_PTX_FORMATS_H
