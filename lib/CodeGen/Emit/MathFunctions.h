//===- MathFunctions.h - transcendental functions, inline -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elementary functions. f32: polynomials with explicit fused multiply-adds, the
// same sequence for a scalar and for lanes, at most 2 ulp (exp, log, sin, cos,
// atan, pow) to 4 ulp (tanh, erf) off; unittests/CodeGen measures them over the
// whole range. f64: libm, which exists on the CPU only; integer powers are
// computed by multiplications in all types.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_CODEGEN_EMIT_MATHFUNCTIONS_H
#define CKOPT_LIB_CODEGEN_EMIT_MATHFUNCTIONS_H

#include "ValueBuilder.h"

namespace ckopt::codegen {

/// Returns e^x; with `tail`, |tail| <= 2^-16, e^(x + tail) (f32 only).
Value emitExp(ValueBuilder &v, Value x, Value tail = {});
/// Returns e^x for x <= 88, with zero in place of denormal results (f32).
Value emitExpNonPositive(ValueBuilder &v, Value x);
Value emitLog(ValueBuilder &v, Value x);
Value emitTanh(ValueBuilder &v, Value x);
Value emitErf(ValueBuilder &v, Value x);
Value emitSigmoid(ValueBuilder &v, Value x);
/// Returns log(1 + e^x).
Value emitSoftplus(ValueBuilder &v, Value x);
Value emitGelu(ValueBuilder &v, Value x, bool tanh);
Value emitSin(ValueBuilder &v, Value x);
Value emitCos(ValueBuilder &v, Value x);
Value emitAtan(ValueBuilder &v, Value x);
/// Returns cos(2 pi m / 2^24), or sin where `sine` holds; m is an i32 in [0,
/// 2^24). f32.
Value emitCircle(ValueBuilder &v, Value m, Value sine);
/// Returns x^y of floats, like C's pow in all special cases.
Value emitPow(ValueBuilder &v, Value x, Value y);
/// Returns the remainder of x / y with the sign of x, exact, like C's fmod;
/// floats.
Value emitFmod(ValueBuilder &v, Value x, Value y);
/// Returns base^exponent of integers modulo 2^width; a negative exponent
/// truncates the fraction.
Value emitIntegerPower(ValueBuilder &v, Value base, Value exponent,
                       bool isSigned);
/// Returns base^exponent of a float scalar, exponent >= 0 an i64, by
/// multiplications in an order that depends only on the exponent.
Value emitPowerByInteger(ValueBuilder &v, Value base, Value exponent);
/// Returns 1 / sqrt(x), by a division and a square root.
Value emitRsqrt(ValueBuilder &v, Value x);
/// Rounds f32 to bf16, to nearest even. For scalars, even from a vector, LLVM
/// would call a function that older compilers' runtimes lack.
Value emitToBF16(ValueBuilder &v, Value x);

} // namespace ckopt::codegen

#endif // CKOPT_LIB_CODEGEN_EMIT_MATHFUNCTIONS_H
