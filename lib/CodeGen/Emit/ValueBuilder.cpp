//===- ValueBuilder.cpp - arithmetic on scalars and lanes -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ValueBuilder.h"
#include "ckopt/Dialect/Block/IR/BlockDialect.h"

using namespace mlir;
using namespace ckopt::codegen;

Value ValueBuilder::splat(Value v) {
  if (isVector(v) || lanes == 1)
    return v;
  return vector::BroadcastOp::create(b, vectorType(v.getType()), v);
}

void ValueBuilder::match(Value &x, Value &y) {
  if (isVector(x) != isVector(y)) {
    x = splat(x);
    y = splat(y);
  }
}

Value ValueBuilder::constant(Type element, double value) {
  if (auto type = dyn_cast<FloatType>(element))
    return arith::ConstantOp::create(b, b.getFloatAttr(type, value));
  return constant(element, int64_t(value));
}

Value ValueBuilder::constant(Type element, int64_t value) {
  if (isa<FloatType>(element))
    return constant(element, double(value));
  unsigned width = element.getIntOrFloatBitWidth();
  return arith::ConstantOp::create(
      b, IntegerAttr::get(element, llvm::APInt(width, uint64_t(value),
                                               /*isSigned=*/true,
                                               /*implicitTrunc=*/true)));
}

Value ValueBuilder::like(Value v, double value) {
  Value scalar = constant(elementType(v), value);
  return isVector(v) ? splat(scalar) : scalar;
}

Value ValueBuilder::iota(Type element, int64_t step) {
  SmallVector<Attribute> values;
  for (unsigned i = 0; i < lanes; ++i) {
    if (auto type = dyn_cast<FloatType>(element))
      values.push_back(b.getFloatAttr(type, double(i) * double(step)));
    else
      values.push_back(b.getIntegerAttr(element, int64_t(i) * step));
  }
  return arith::ConstantOp::create(
      b, DenseElementsAttr::get(vectorType(element), values));
}

#define CKOPT_BINARY(NAME, FLOAT, INT)                                         \
  Value ValueBuilder::NAME(Value x, Value y) {                                 \
    match(x, y);                                                               \
    if (isFloat(x))                                                            \
      return arith::FLOAT::create(b, x, y);                                    \
    return arith::INT::create(b, x, y);                                        \
  }
CKOPT_BINARY(add, AddFOp, AddIOp)
CKOPT_BINARY(sub, SubFOp, SubIOp)
CKOPT_BINARY(mul, MulFOp, MulIOp)
#undef CKOPT_BINARY

Value ValueBuilder::div(Value x, Value y) {
  match(x, y);
  return arith::DivFOp::create(b, x, y);
}

Value ValueBuilder::quotient(Value x, Value y) {
  if (!approximatesOf(y))
    return div(x, y);
  return mul(x, block::ApproxReciprocalOp::create(b, y.getType(), y));
}

Value ValueBuilder::fma(Value x, Value y, Value z) {
  match(x, y);
  match(x, z);
  match(y, z);
  return math::FmaOp::create(b, x, y, z);
}

Value ValueBuilder::neg(Value x) {
  if (isFloat(x))
    return arith::NegFOp::create(b, x);
  return sub(like(x, 0), x);
}

Value ValueBuilder::abs(Value x) {
  if (isFloat(x))
    return math::AbsFOp::create(b, x);
  return math::AbsIOp::create(b, x);
}

Value ValueBuilder::sqrt(Value x) { return math::SqrtOp::create(b, x); }

Value ValueBuilder::select(Value c, Value x, Value y) {
  match(x, y);
  if (isVector(c)) {
    x = splat(x);
    y = splat(y);
  }
  return arith::SelectOp::create(b, c, x, y);
}

Value ValueBuilder::cmpf(arith::CmpFPredicate p, Value x, Value y) {
  match(x, y);
  return arith::CmpFOp::create(b, p, x, y);
}

Value ValueBuilder::cmpi(arith::CmpIPredicate p, Value x, Value y) {
  match(x, y);
  return arith::CmpIOp::create(b, p, x, y);
}

Value ValueBuilder::maximum(Value x, Value y, bool isSigned) {
  if (!isFloat(x)) {
    match(x, y);
    if (elementType(x).isInteger(1))
      return ori(x, y);
    return isSigned ? Value(arith::MaxSIOp::create(b, x, y))
                    : Value(arith::MaxUIOp::create(b, x, y));
  }
  if (approximatesOf(x)) { // the same, but +0 > -0, by one instruction
    match(x, y);
    return arith::MaximumFOp::create(b, x, y);
  }
  // Select x if x > y or x is NaN; a NaN in y fails both tests.
  Value larger = select(cmpf(arith::CmpFPredicate::OGT, x, y), x, y);
  return select(cmpf(arith::CmpFPredicate::UNO, x, x), x, larger);
}

Value ValueBuilder::minimum(Value x, Value y, bool isSigned) {
  if (!isFloat(x)) {
    match(x, y);
    if (elementType(x).isInteger(1))
      return andi(x, y);
    return isSigned ? Value(arith::MinSIOp::create(b, x, y))
                    : Value(arith::MinUIOp::create(b, x, y));
  }
  Value smaller = select(cmpf(arith::CmpFPredicate::OLT, x, y), x, y);
  return select(cmpf(arith::CmpFPredicate::UNO, x, x), x, smaller);
}

Value ValueBuilder::andi(Value x, Value y) {
  match(x, y);
  return arith::AndIOp::create(b, x, y);
}
Value ValueBuilder::ori(Value x, Value y) {
  match(x, y);
  return arith::OrIOp::create(b, x, y);
}
Value ValueBuilder::xori(Value x, Value y) {
  match(x, y);
  return arith::XOrIOp::create(b, x, y);
}
Value ValueBuilder::shl(Value x, int64_t bits) {
  return arith::ShLIOp::create(b, x, like(x, double(bits)));
}
Value ValueBuilder::shr(Value x, int64_t bits) {
  return arith::ShRUIOp::create(b, x, like(x, double(bits)));
}
Value ValueBuilder::bitcast(Type element, Value x) {
  return arith::BitcastOp::create(b, typeLike(element, x), x);
}

Value ValueBuilder::perLane(ArrayRef<Value> operands,
                            function_ref<Value(ArrayRef<Value>)> fn) {
  if (llvm::none_of(operands, isVector))
    return fn(operands);
  Value result;
  for (unsigned lane = 0; lane < lanes; ++lane) {
    SmallVector<Value> scalars;
    for (Value v : operands)
      scalars.push_back(
          isVector(v) ? Value(vector::ExtractOp::create(b, v, lane)) : v);
    Value one = fn(scalars);
    if (!result)
      result = splat(one);
    else
      result = vector::InsertOp::create(b, one, result, int64_t(lane));
  }
  return result;
}
