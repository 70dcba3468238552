//===- Halves.cpp - conversions that compilers call -----------------------===//
//
// LLVM has no instruction for one f32 as bf16 on CPUs without AVX512-BF16 and
// calls a function of its own runtime library, which GCC's got in version 13:
// artifacts bring it along. A bf16 is returned in the low bits of a vector
// register; so is this float.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Runtime/Export.h"

#include <bit>
#include <cstdint>

/// Rounds to nearest, ties to even; a NaN stays one.
static uint16_t roundToBf16(float value) {
  auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u)
    return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1)) >> 16);
}

extern "C" CKRT_EXPORT float __truncsfbf2(float value);
extern "C" float __truncsfbf2(float value) {
  return std::bit_cast<float>(uint32_t(roundToBf16(value)));
}
