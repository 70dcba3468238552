//===- FloatBits.h - what PTX says of floats' bits --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PTX ISA, "Floating Point Instructions": .ftz flushes subnormal inputs and
// results of f32 to zeros of their sign; a NaN that f32 arithmetic makes is
// 0x7FFFFFFF. A result is flushed if it is still subnormal after rounding; the
// manual leaves open what happens to results that round up to the least normal
// number.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TEST_LIB_CUDASTANDIN_PTX_FLOATBITS_H
#define CKOPT_TEST_LIB_CUDASTANDIN_PTX_FLOATBITS_H

#include "LaneWise.h"

namespace standin::ptx::CKOPT_LANES {

inline uint32_t bitsOfFloat(float x) { return __builtin_bit_cast(uint32_t, x); }
inline float floatOf(uint32_t bits) { return __builtin_bit_cast(float, bits); }

inline float flushed(float x) {
  uint32_t bits = bitsOfFloat(x);
  return floatOf((bits & 0x7F800000) == 0 ? bits & 0x80000000 : bits);
}
template <bool Ftz> inline float input(float x) { return Ftz ? flushed(x) : x; }
template <bool Ftz> inline float result(float x) {
  x = x != x ? floatOf(0x7FFFFFFF) : x;
  return Ftz ? flushed(x) : x;
}
// f64 has no .ftz, and NaNs keep their bits.
template <bool> inline double input(double x) { return x; }
template <bool> inline double result(double x) { return x; }

} // namespace standin::ptx::CKOPT_LANES

#endif // CKOPT_TEST_LIB_CUDASTANDIN_PTX_FLOATBITS_H
