//===- Halves.cpp - conversions that compilers call -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Artifacts bring their own functions for rounding f32 to bf16 and f16, and for
// widening f16. LLVM has no instruction for them on CPUs without AVX512-BF16 or
// F16C and calls functions of its runtime library, which GCC's library has from
// version 13 or 12 only. A half is passed in the low bits of a vector register,
// and so is this float.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Base/DType.h"
#include "ckopt/Runtime/Export.h"

extern "C" CKRT_EXPORT float __truncsfbf2(float value);
extern "C" float __truncsfbf2(float value) {
  return std::bit_cast<float>(uint32_t(ckopt::floatToBFloat16(value)));
}

extern "C" CKRT_EXPORT float __truncsfhf2(float value);
extern "C" float __truncsfhf2(float value) {
  return std::bit_cast<float>(uint32_t(ckopt::floatToHalf(value)));
}

extern "C" CKRT_EXPORT float __extendhfsf2(float value);
extern "C" float __extendhfsf2(float value) {
  return ckopt::halfToFloat(uint16_t(std::bit_cast<uint32_t>(value)));
}
