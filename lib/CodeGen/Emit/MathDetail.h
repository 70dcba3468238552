//===- MathDetail.h - helpers of the inline functions -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_CODEGEN_EMIT_MATHDETAIL_H
#define CKOPT_LIB_CODEGEN_EMIT_MATHDETAIL_H

#include "ValueBuilder.h"

namespace ckopt::codegen::math_detail {

inline bool isDouble(Value x) { return ValueBuilder::elementType(x).isF64(); }

/// Evaluates a polynomial by Horner's rule, highest coefficient first.
inline Value polynomial(ValueBuilder &v, Value x,
                        mlir::ArrayRef<double> coefficients) {
  Value sum = v.like(x, coefficients.front());
  for (double coefficient : coefficients.drop_front())
    sum = v.fma(sum, x, v.like(x, coefficient));
  return sum;
}

/// Returns 2^n as f32 for n in [-126, 127], n an i32.
inline Value powerOfTwo(ValueBuilder &v, Value n) {
  return v.bitcast(v.b.getF32Type(), v.shl(v.add(n, v.like(n, 127)), 23));
}

} // namespace ckopt::codegen::math_detail

#endif // CKOPT_LIB_CODEGEN_EMIT_MATHDETAIL_H
