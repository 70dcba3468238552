//===- ValueBuilder.h - arithmetic on scalars and lanes ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The emitter computes one element as a scalar or W elements as vector<WxT>;
// with W = 1 all values are scalars. ValueBuilder does arithmetic on either. If
// an operand is a vector, scalar operands are broadcast, so op models are
// written once.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_CODEGEN_EMIT_VALUEBUILDER_H
#define CKOPT_LIB_CODEGEN_EMIT_VALUEBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"

namespace ckopt::codegen {

using mlir::Type;
using mlir::Value;

class ValueBuilder {
public:
  ValueBuilder(mlir::Location loc, mlir::OpBuilder &builder, unsigned lanes)
      : b(loc, builder), lanes(lanes) {}

  mlir::ImplicitLocOpBuilder b;
  const unsigned lanes;
  /// Set while functions of f32 are to be a GPU's own approximations: in
  /// launches of a module with kApproximatesAttr (but for row ops and attention
  /// only if a tensor has 16 bits), and in attention by TF32.
  bool approximates = false;

  static bool isVector(Value v) {
    return mlir::isa<mlir::VectorType>(v.getType());
  }
  static Type elementType(Value v) { return mlir::getElementTypeOrSelf(v); }
  static bool isFloat(Value v) {
    return mlir::isa<mlir::FloatType>(elementType(v));
  }
  mlir::VectorType vectorType(Type element) {
    return mlir::VectorType::get({int64_t(lanes)}, element);
  }
  /// Returns `element`, or a vector of it if `like` is one.
  Type typeLike(Type element, Value like) {
    return isVector(like) ? Type(vectorType(element)) : element;
  }

  /// Returns a vector of v, unless it is one already or there is only one lane.
  Value splat(Value v);
  void match(Value &x, Value &y); ///< broadcasts one if the other is a vector
  Value constant(Type element, double value);
  Value constant(Type element, int64_t value);
  Value index(int64_t value) { return constant(b.getI64Type(), value); }
  /// Returns a number of v's element type.
  Value like(Value v, double value);
  /// Returns [0, step, 2 * step, ...].
  Value iota(Type element, int64_t step);

  // These take floats and integers.
  Value add(Value x, Value y);
  Value sub(Value x, Value y);
  Value mul(Value x, Value y);
  /// These take floats; ElementwiseModels.cpp has integer versions.
  Value div(Value x, Value y);
  /// Returns x / y, where approximations are allowed by the reciprocal, which
  /// is zero for y beyond 2^126.
  Value quotient(Value x, Value y);
  Value fma(Value x, Value y, Value z); ///< x * y + z, one rounding; floats
  Value neg(Value x);
  Value abs(Value x);
  Value sqrt(Value x);
  Value select(Value c, Value x, Value y);
  Value cmpf(mlir::arith::CmpFPredicate p, Value x, Value y);
  Value cmpi(mlir::arith::CmpIPredicate p, Value x, Value y);
  /// Returns the larger one, NaN if either is. `isSigned` is for integers.
  Value maximum(Value x, Value y, bool isSigned = true);
  Value minimum(Value x, Value y, bool isSigned = true);
  Value andi(Value x, Value y);
  Value ori(Value x, Value y);
  Value xori(Value x, Value y);
  Value shl(Value x, int64_t bits);
  Value shr(Value x, int64_t bits); ///< logical
  Value bitcast(Type element, Value x);

  /// Returns whether functions of x may be approximations.
  bool approximatesOf(Value x) const {
    return approximates && elementType(x).isF32();
  }
  /// Applies `fn` to each lane of v (libm functions).
  Value perLane(mlir::ArrayRef<Value> operands,
                llvm::function_ref<Value(mlir::ArrayRef<Value>)> fn);
};

} // namespace ckopt::codegen

#endif // CKOPT_LIB_CODEGEN_EMIT_VALUEBUILDER_H
