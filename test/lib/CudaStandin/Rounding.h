//===- Rounding.h - operands of the stand-in's libraries --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Roundings that a library may apply to operands of f32 before it multiplies
// them, so that tests see a different precision as different bits. Also
// converts halves, as matrices store them.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TEST_LIB_CUDASTANDIN_ROUNDING_H
#define CKOPT_TEST_LIB_CUDASTANDIN_ROUNDING_H

#include <bit>
#include <cmath>
#include <cstdint>

namespace standin {

enum class Rounding { None, TF32, BF16, F16 };

/// Returns the nearest number with `bits` bits of fraction, ties to even;
/// infinities stay, numbers that round beyond the largest become infinite.
inline float keepBits(float value, int bits) {
  if (!std::isfinite(value))
    return value;
  auto raw = std::bit_cast<uint32_t>(value);
  uint32_t unit = uint32_t(1) << (23 - bits);
  raw += unit / 2 - 1 + (raw / unit & 1);
  return std::bit_cast<float>(raw & ~(unit - 1));
}

inline float rounded(float value, Rounding rounding) {
  switch (rounding) {
  case Rounding::None:
    break;
  case Rounding::TF32:
    return keepBits(value, 10);
  case Rounding::BF16:
    return keepBits(value, 7);
  case Rounding::F16: {
    // Below 2^-14 the step between two halves is 2^-24.
    if (std::abs(value) < 0x1p-14f)
      return std::nearbyint(value * 0x1p24f) * 0x1p-24f;
    float near = keepBits(value, 10);
    return std::abs(near) > 65504 ? std::copysign(INFINITY, near) : near;
  }
  }
  return value;
}

struct BF16 {
  BF16() = default;
  explicit BF16(float value)
      : bits(static_cast<uint16_t>(
            std::bit_cast<uint32_t>(rounded(value, Rounding::BF16)) >> 16)) {}
  float toFloat() const { return std::bit_cast<float>(uint32_t(bits) << 16); }
  uint16_t bits = 0;
};

struct F16 {
  F16() = default;
  explicit F16(float value) : half(static_cast<_Float16>(value)) {}
  float toFloat() const { return static_cast<float>(half); }
  _Float16 half = 0;
};

} // namespace standin

#endif // CKOPT_TEST_LIB_CUDASTANDIN_ROUNDING_H
