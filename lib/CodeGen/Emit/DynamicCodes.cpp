//===- DynamicCodes.cpp - the code book of 8-bit states -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ranks count the numbers of the book from 0's on, which has rank 0 with signs
// and 1 without, so that a decade with `first` numbers begins at rank `first`;
// behind the last decade comes 1. Along ranks the book is convex: each decade
// is a line, and steeper than those below. So the number of a rank is the
// largest value of all lines, and the rank of a number the smallest value of
// the inverse ones, one operation and a comparison each, without a search.
//
// The inverse lines meet where a decade ends, at an integer. Halfway between
// the last number of a decade and the first of the next one, five times as far
// apart, they have gone a fifth beyond it: ranks that are powers of two begin
// there. Within 1e-5 of a distance of where two codes meet, f32 decides.
//
//===----------------------------------------------------------------------===//
#include "DynamicCodes.h"

#include <array>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;

namespace {
struct Decade {
  double first; ///< rank of the first number, and how many there are
  double top;   ///< where it ends; it begins at a tenth of that
};
} // namespace

/// How far beyond the end of a decade the next one begins, in ranks.
static constexpr double kFifth = 0.2;

/// Returns the decades, smallest first.
static std::array<Decade, 7> decadesOf(bool hasSign) {
  std::array<Decade, 7> decades;
  double first = hasSign ? 1 : 2, top = 1e-6;
  for (Decade &decade : decades) {
    decade = {first, top};
    first *= 2;
    top *= 10;
  }
  return decades;
}

/// Returns what codes are above ranks.
static double codeOfRank0(bool hasSign) { return hasSign ? 127 : -1; }

static Value smaller(ValueBuilder &v, Value x, Value y) {
  return v.select(v.cmpf(arith::CmpFPredicate::OLT, x, y), x, y);
}
static Value larger(ValueBuilder &v, Value x, Value y) {
  return v.select(v.cmpf(arith::CmpFPredicate::OGT, x, y), x, y);
}

/// Returns where x >= 0 lies among ranks.
static Value rankLine(ValueBuilder &v, Value x, bool hasSign) {
  Value result;
  for (auto [first, top] : decadesOf(hasSign)) {
    double slope = first / (0.9 * top), offset = first * 8 / 9;
    if (first == 1) { // Its only number begins halfway to 0.
      slope = (1 - kFifth) / (top - 0.275 * top);
      offset = 2 - slope * top;
    }
    Value line = v.fma(x, v.like(x, slope), v.like(x, offset));
    result = result ? smaller(v, line, result) : line;
  }
  return result;
}

Value codegen::emitEncodeDynamic(ValueBuilder &v, Value x, bool hasSign) {
  auto number = [&](double value) { return v.like(x, value); };
  Type i32 = v.typeLike(v.b.getI32Type(), x),
       i8 = v.typeLike(v.b.getI8Type(), x);
  auto whole = [&](Value f) -> Value {
    return arith::FPToSIOp::create(v.b, i32, f);
  };
  double most = 2 * decadesOf(hasSign).back().first; // rank of 1
  Value at = rankLine(v, hasSign ? v.abs(x) : x, hasSign);
  if (!hasSign) // What is above 0 keeps a number to divide by.
    at = v.select(v.cmpf(arith::CmpFPredicate::OGT, x, number(0)),
                  larger(v, at, number(2.5)), number(1.5));
  // 1 begins a quarter of a distance below it.
  at = v.select(v.cmpf(arith::CmpFPredicate::OLT, at, number(most - 0.25)), at,
                number(most + 0.5));
  Value rank = whole(at), below = whole(v.sub(at, number(kFifth)));
  Value one = v.like(rank, 1), zero = v.like(rank, 0);
  Value isFirst =
      v.cmpi(arith::CmpIPredicate::eq, v.andi(rank, v.sub(rank, one)), zero);
  rank = v.select(isFirst, below, rank);
  Value code = v.add(rank, v.like(rank, codeOfRank0(hasSign)));
  if (hasSign) { // There is no -1.
    Value low = v.sub(v.like(rank, 127), rank);
    low = v.maximum(low, zero);
    code = v.select(v.cmpf(arith::CmpFPredicate::OLT, x, number(0)), low, code);
  }
  return arith::TruncIOp::create(v.b, i8, code);
}

Value codegen::emitDecodeDynamic(ValueBuilder &v, Value code, bool hasSign) {
  Value rank =
      arith::UIToFPOp::create(v.b, v.typeLike(v.b.getF32Type(), code), code);
  auto number = [&](double value) { return v.like(rank, value); };
  rank = v.sub(rank, number(codeOfRank0(hasSign)));
  Value size = hasSign ? v.abs(rank) : rank;
  // A line is (18 rank + 9 - 16 first) * top / (20 first), where all but the
  // last factor is exact.
  Value at = v.fma(size, number(18), number(9)), result = number(0);
  for (auto [first, top] : decadesOf(hasSign)) {
    double unit = float(top / (20 * first));
    Value line = v.fma(at, number(unit), number(-16 * first * unit));
    result = larger(v, line, result);
  }
  result = smaller(v, result, number(1));
  return hasSign ? Value(math::CopySignOp::create(v.b, result, rank)) : result;
}
