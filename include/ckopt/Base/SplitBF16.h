//===- SplitBF16.h - a float as a sum of numbers of bf16 --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the op split_bf16 computes: tests and the interpreter share it.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_BASE_SPLITBF16_H
#define CKOPT_BASE_SPLITBF16_H

#include "ckopt/Base/DType.h"

#include <cmath>
#include <limits>

namespace ckopt {

/// Splits `value` into `count` (2 or 3) numbers of bf16, each what the ones
/// before it leave, rounded to nearest. Their sum does not round to infinity;
/// what is left below the smallest normal number is dropped. Of a value that is
/// not finite the last piece is the value, the first 1 with its sign, another
/// 0.
inline void splitBFloat16(float value, float *pieces, unsigned count) {
  float largest = bfloat16ToFloat(0x7f7f);
  bool finite = std::isfinite(value);
  float rest = finite ? value : std::copysign(1.0f, value);
  for (unsigned i = 0; i < count; ++i) {
    if (std::fabs(rest) < std::numeric_limits<float>::min())
      rest = 0;
    float piece = bfloat16ToFloat(floatToBFloat16(rest));
    pieces[i] = std::fmin(std::fmax(piece, -largest), largest);
    rest -= pieces[i];
    largest *= 0x1p-8f; // only after a piece that was cut may more be left
  }
  if (!finite)
    pieces[count - 1] = value;
}

} // namespace ckopt

#endif // CKOPT_BASE_SPLITBF16_H
