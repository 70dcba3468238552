//===- MathFunctions.h - transcendental functions, inline -------*- C++ -*-===//
//
// f32: polynomials with explicit fused multiply-adds, the same sequence for a
// scalar and for lanes, at most 2 ulp (exp, log) to 4 ulp (tanh, erf) off;
// unittests/Conversion measures them over the whole range. f64: libm.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_CONVERSION_KERNELTOLLVM_MATHFUNCTIONS_H
#define CKOPT_LIB_CONVERSION_KERNELTOLLVM_MATHFUNCTIONS_H

#include "ValueBuilder.h"

namespace ckopt::codegen {

Value emitExp(ValueBuilder &v, Value x);
Value emitLog(ValueBuilder &v, Value x);
Value emitTanh(ValueBuilder &v, Value x);
Value emitErf(ValueBuilder &v, Value x);
Value emitSigmoid(ValueBuilder &v, Value x);
/// log(1 + e^x)
Value emitSoftplus(ValueBuilder &v, Value x);
Value emitGelu(ValueBuilder &v, Value x, bool tanh);
/// 1 / sqrt(x), as a division and a square root
Value emitRsqrt(ValueBuilder &v, Value x);

} // namespace ckopt::codegen

#endif // CKOPT_LIB_CONVERSION_KERNELTOLLVM_MATHFUNCTIONS_H
