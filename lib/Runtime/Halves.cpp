//===- Halves.cpp - conversions that compilers call -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LLVM has no instruction for one f32 as bf16 on CPUs without AVX512-BF16 and
// calls a function of its own runtime library, which GCC's got in version 13:
// artifacts bring it along. A bf16 is returned in the low bits of a vector
// register; so is this float.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Base/DType.h"
#include "ckopt/Runtime/Export.h"

extern "C" CKRT_EXPORT float __truncsfbf2(float value);
extern "C" float __truncsfbf2(float value) {
  return std::bit_cast<float>(uint32_t(ckopt::floatToBFloat16(value)));
}
