//===- Halves.cpp - conversions that compilers call -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Artifacts bring their own function for rounding f32 to bf16. LLVM has no
// instruction for it on CPUs without AVX512-BF16 and calls a function of its
// runtime library, which GCC's library has from version 13 only. A bf16 is
// returned in the low bits of a vector register, and so is this float.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Base/DType.h"
#include "ckopt/Runtime/Export.h"

extern "C" CKRT_EXPORT float __truncsfbf2(float value);
extern "C" float __truncsfbf2(float value) {
  return std::bit_cast<float>(uint32_t(ckopt::floatToBFloat16(value)));
}
