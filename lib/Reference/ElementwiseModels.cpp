//===- ElementwiseModels.cpp - meaning of the elementwise ops -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "RandomWords.h"
#include <array>
#include <limits>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::reference;

//===----------------------------------------------------------------------===//
// One operand
//===----------------------------------------------------------------------===//

template <typename Op, auto fn>
static LogicalResult interpretUnary(Op, Operands in, Results out,
                                    const Environment &) {
  for (int64_t i = 0; i < out[0].size(); ++i)
    out[0].real(i) = fn(in[0]->real(i));
  return success();
}
template <typename Op, auto fn> static void attachUnary(MLIRContext *context) {
  attachModel<Op, interpretUnary<Op, fn>>(context);
}

/// For ops on floats and integers; results are wrapped to the type afterwards.
template <typename Op, auto fn, int64_t (*intFn)(int64_t)>
static LogicalResult interpretNumUnary(Op, Operands in, Results out,
                                       const Environment &) {
  for (int64_t i = 0; i < out[0].size(); ++i) {
    if (out[0].isFloat())
      out[0].real(i) = fn(in[0]->real(i));
    else
      out[0].integer(i) = intFn(in[0]->integer(i));
  }
  return success();
}

static int64_t wrapNeg(int64_t x) { return int64_t(0 - uint64_t(x)); }

/// Unsigned operands are never below 0, but ui64 values above 2^63 would look
/// negative.
static LogicalResult interpretAbs(AbsOp, Operands in, Results out,
                                  const Environment &) {
  for (int64_t i = 0; i < out[0].size(); ++i) {
    if (out[0].isFloat())
      out[0].real(i) = std::abs(in[0]->real(i));
    else {
      int64_t x = in[0]->integer(i);
      out[0].integer(i) = x < 0 && !in[0]->isUnsigned() ? wrapNeg(x) : x;
    }
  }
  return success();
}
static LogicalResult interpretSign(SignOp, Operands in, Results out,
                                   const Environment &) {
  for (int64_t i = 0; i < out[0].size(); ++i) {
    double x = in[0]->get(i);
    out[0].set(i, double(x > 0) - double(x < 0));
  }
  return success();
}
static LogicalResult interpretRelu(ReluOp, Operands in, Results out,
                                   const Environment &) {
  for (int64_t i = 0; i < out[0].size(); ++i) {
    if (in[0]->get(i) > 0 || std::isnan(in[0]->get(i)))
      out[0].copy(i, *in[0], i);
  }
  return success();
}

static LogicalResult interpretClip(ClipOp op, Operands in, Results out,
                                   const Environment &) {
  double low = op.getMin().convertToDouble();
  double high = op.getMax().convertToDouble();
  for (int64_t i = 0; i < out[0].size(); ++i) {
    // Clips as min(max(x, low), high): the result is high if low > high, and
    // NaN stays NaN.
    double x = in[0]->get(i);
    out[0].copy(i, *in[0], i);
    if (x < low)
      out[0].set(i, low);
    if (out[0].get(i) > high)
      out[0].set(i, high);
  }
  return success();
}

static double gelu(double x) { return 0.5 * x * std::erfc(-x * M_SQRT1_2); }
static double geluTanh(double x) {
  double inner = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1 + std::tanh(inner));
}
static LogicalResult interpretGelu(GeluOp op, Operands in, Results out,
                                   const Environment &) {
  for (int64_t i = 0; i < out[0].size(); ++i)
    out[0].real(i) =
        op.getTanh() ? geluTanh(in[0]->real(i)) : gelu(in[0]->real(i));
  return success();
}

static LogicalResult interpretNot(NotOp, Operands in, Results out,
                                  const Environment &) {
  for (int64_t i = 0; i < out[0].size(); ++i)
    out[0].integer(i) = out[0].getElementType().isInteger(1)
                            ? !in[0]->integer(i)
                            : ~in[0]->integer(i);
  return success();
}

/// Elements stay what they are where these are integers, but for bools of them
/// and types that wrap the values of a wider one.
static LogicalResult traceCast(CastOp op, Operands in, ElementMove move) {
  Type from = getElementTypeOrSelf(op.getInput().getType()),
       to = getElementTypeOrSelf(op.getOutput().getType());
  bool kept = to == from || to.getIntOrFloatBitWidth() >= 32 ||
              (isa<IntegerType>(from) && !to.isInteger(1) &&
               to.getIntOrFloatBitWidth() > from.getIntOrFloatBitWidth());
  return kept ? traceAll(op, in, move) : failure();
}

static LogicalResult interpretCast(CastOp, Operands in, Results out,
                                   const Environment &environment) {
  bool oneRounding = environment.options.roundToType && !in[0]->isFloat() &&
                     out[0].getElementType().isF32();
  bool toBool = out[0].getElementType().isInteger(1);
  for (int64_t i = 0; i < out[0].size(); ++i) {
    if (toBool)
      out[0].integer(i) = in[0]->get(i) != 0;
    else if (oneRounding) // a detour by way of double would round twice
      out[0].real(i) = in[0]->isUnsigned()
                           ? double(float(uint64_t(in[0]->integer(i))))
                           : double(float(in[0]->integer(i)));
    else if (!in[0]->isFloat() && !out[0].isFloat())
      out[0].integer(i) = in[0]->integer(i);
    else
      out[0].set(i, in[0]->get(i));
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Two and three operands
//===----------------------------------------------------------------------===//

using RealFn = double (*)(double, double);
/// An integer function takes two operands, and whether they are unsigned.
using IntFn = int64_t (*)(int64_t, int64_t, bool);

static void zip(Operands in, Tensor &out, RealFn real, IntFn integer) {
  Broadcast left(in[0]->getShape(), out.getRank());
  Broadcast right(in[1]->getShape(), out.getRank());
  bool isUnsigned = in[0]->isUnsigned();
  forEachIndex(out.getShape(), [&](ArrayRef<int64_t> index, int64_t i) {
    if (out.isFloat())
      out.real(i) = real(in[0]->real(left(index)), in[1]->real(right(index)));
    else
      out.integer(i) = integer(in[0]->integer(left(index)),
                               in[1]->integer(right(index)), isUnsigned);
  });
}

template <typename Op, auto real, auto integer>
static LogicalResult interpretBinary(Op, Operands in, Results out,
                                     const Environment &) {
  zip(in, out[0], RealFn(real), IntFn(integer));
  return success();
}
template <typename Op, auto real, auto integer>
static void attachBinary(MLIRContext *context) {
  attachModel<Op, interpretBinary<Op, real, integer>>(context);
}

static int64_t divide(int64_t a, int64_t b, bool isUnsigned) {
  if (b == 0)
    return 0;
  if (isUnsigned)
    return int64_t(uint64_t(a) / uint64_t(b));
  return b == -1 ? wrapNeg(a) : a / b; // the least integer / -1 overflows
}
static int64_t remainder(int64_t a, int64_t b, bool isUnsigned) {
  if (b == 0 || (b == -1 && !isUnsigned))
    return 0;
  return isUnsigned ? int64_t(uint64_t(a) % uint64_t(b)) : a % b;
}
static int64_t floorMod(int64_t a, int64_t b, bool isUnsigned) {
  int64_t rest = remainder(a, b, isUnsigned);
  return !isUnsigned && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
static double floorModReal(double a, double b) {
  double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
static LogicalResult interpretMod(ModOp op, Operands in, Results out,
                                  const Environment &) {
  if (op.getFmod())
    zip(
        in, out[0], [](double a, double b) { return std::fmod(a, b); },
        remainder);
  else
    zip(in, out[0], floorModReal, floorMod);
  return success();
}

/// Integer power modulo 2^64; a negative exponent truncates the fraction.
static int64_t power(int64_t base, int64_t exponent, bool isUnsigned) {
  if (exponent < 0 && !isUnsigned)
    return base == 1 ? 1 : base == -1 ? (exponent & 1 ? -1 : 1) : 0;
  uint64_t result = 1, square = uint64_t(base);
  for (uint64_t rest = uint64_t(exponent); rest; rest >>= 1, square *= square)
    if (rest & 1)
      result *= square;
  return int64_t(result);
}

/// Shifts by `b` bits; as an unsigned number, `b` may be any size. The results
/// are wrapped to the type afterwards.
static LogicalResult interpretShiftLeft(ShiftLeftOp op, Operands in,
                                        Results out, const Environment &) {
  unsigned width = out[0].getElementType().getIntOrFloatBitWidth();
  Broadcast left(in[0]->getShape(), out[0].getRank());
  Broadcast right(in[1]->getShape(), out[0].getRank());
  forEachIndex(out[0].getShape(), [&](ArrayRef<int64_t> index, int64_t i) {
    uint64_t bits = uint64_t(in[1]->integer(right(index)));
    uint64_t x = uint64_t(in[0]->integer(left(index)));
    out[0].integer(i) = bits < width ? int64_t(x << bits) : 0;
  });
  return success();
}
static LogicalResult interpretShiftRight(ShiftRightOp op, Operands in,
                                         Results out, const Environment &) {
  unsigned width = out[0].getElementType().getIntOrFloatBitWidth();
  Broadcast left(in[0]->getShape(), out[0].getRank());
  Broadcast right(in[1]->getShape(), out[0].getRank());
  bool isUnsigned = in[0]->isUnsigned();
  forEachIndex(out[0].getShape(), [&](ArrayRef<int64_t> index, int64_t i) {
    uint64_t bits = uint64_t(in[1]->integer(right(index)));
    int64_t x = in[0]->integer(left(index));
    if (isUnsigned)
      out[0].integer(i) = bits < width ? int64_t(uint64_t(x) >> bits) : 0;
    else
      out[0].integer(i) = x >> std::min<uint64_t>(bits, 63);
  });
  return success();
}

static bool less(int64_t a, int64_t b, bool isUnsigned) {
  return isUnsigned ? uint64_t(a) < uint64_t(b) : a < b;
}
static double maximum(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? a + b : a < b ? b : a;
}
static double minimum(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? a + b : b < a ? b : a;
}
static double noReal(double, double) { return 0; } // for ops on integers alone

template <typename T> static bool holds(ComparePredicate predicate, T a, T b) {
  switch (predicate) {
  case ComparePredicate::EQ:
    return a == b;
  case ComparePredicate::NE:
    return a != b;
  case ComparePredicate::LT:
    return a < b;
  case ComparePredicate::LE:
    return a <= b;
  case ComparePredicate::GT:
    return a > b;
  case ComparePredicate::GE:
    return a >= b;
  }
  return false;
}

/// Compares what `valueOf` reads of both tensors.
template <typename Fn>
static void compareAll(CompareOp op, Operands in, Tensor &out, Fn valueOf) {
  Broadcast left(in[0]->getShape(), out.getRank());
  Broadcast right(in[1]->getShape(), out.getRank());
  ComparePredicate predicate = op.getPredicate();
  forEachIndex(out.getShape(), [&](ArrayRef<int64_t> index, int64_t i) {
    out.integer(i) = holds(predicate, valueOf(*in[0], left(index)),
                           valueOf(*in[1], right(index)));
  });
}

static LogicalResult interpretCompare(CompareOp op, Operands in, Results out,
                                      const Environment &) {
  if (in[0]->isFloat())
    compareAll(op, in, out[0],
               [](const Tensor &x, int64_t i) { return x.real(i); });
  else if (in[0]->isUnsigned())
    compareAll(op, in, out[0], [](const Tensor &x, int64_t i) {
      return uint64_t(x.integer(i));
    });
  else
    compareAll(op, in, out[0],
               [](const Tensor &x, int64_t i) { return x.integer(i); });
  return success();
}

static LogicalResult interpretSelect(SelectOp, Operands in, Results out,
                                     const Environment &) {
  int64_t rank = out[0].getRank();
  Broadcast condition(in[0]->getShape(), rank);
  Broadcast onTrue(in[1]->getShape(), rank), onFalse(in[2]->getShape(), rank);
  forEachIndex(out[0].getShape(), [&](ArrayRef<int64_t> index, int64_t i) {
    if (in[0]->integer(condition(index)))
      out[0].copy(i, *in[1], onTrue(index));
    else
      out[0].copy(i, *in[2], onFalse(index));
  });
  return success();
}

//===----------------------------------------------------------------------===//
// Random numbers
//===----------------------------------------------------------------------===//

static LogicalResult interpretDropout(DropoutOp op, Operands in, Results out,
                                      const Environment &environment) {
  auto words = RandomWords::get(op, *in[1], *in[2], environment, out[0].size());
  if (failed(words))
    return failure();
  double ratio = op.getRatio().convertToDouble();
  for (int64_t i = 0; i < out[0].size(); ++i)
    if (RandomWords::uniform(words->block(i)[size_t(i) % 4]) >= ratio)
      out[0].real(i) = in[0]->real(i) * (1 / (1 - ratio));
  return success();
}

static LogicalResult interpretRandom(RandomOp op, Operands in, Results out,
                                     const Environment &environment) {
  auto words = RandomWords::get(op, *in[0], *in[1], environment, out[0].size());
  if (failed(words))
    return failure();
  for (int64_t i = 0; i < out[0].size(); ++i) {
    PhiloxCounter block = words->block(i);
    if (op.getKind() == RandomKind::Uniform) {
      out[0].real(i) = RandomWords::uniform(block[size_t(i) % 4]);
      continue;
    }
    size_t pair = size_t(i) % 4 & ~size_t(1);
    double radius =
        std::sqrt(-2 * std::log(1 - RandomWords::uniform(block[pair])));
    double angle = 2 * M_PI * RandomWords::uniform(block[pair + 1]);
    out[0].real(i) = radius * (i % 2 ? std::sin(angle) : std::cos(angle));
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Few bits
//===----------------------------------------------------------------------===//

static LogicalResult interpretRoundRandom(RoundRandomOp, Operands in,
                                          Results out, const Environment &) {
  for (int64_t i = 0; i < out[0].size(); ++i) {
    auto x = float(in[0]->real(i));
    auto bits = llvm::bit_cast<uint32_t>(x);
    auto added = uint32_t(in[1]->real(i) * 0x1p16);
    bool finite = std::isfinite(x);
    out[0].real(i) =
        finite ? double(llvm::bit_cast<float>((bits + added) & 0xffff0000u))
               : double(x);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

static void attachUnaryModels(MLIRContext *context) {
  attachModel<NegOp,
              interpretNumUnary<NegOp, [](double x) { return -x; }, wrapNeg>>(
      context);
  attachModel<AbsOp, interpretAbs>(context);
  attachModel<SignOp, interpretSign>(context);
  attachModel<ReluOp, interpretRelu>(context);
  attachModel<ClipOp, interpretClip>(context);
  attachModel<GeluOp, interpretGelu>(context);
  attachModel<NotOp, interpretNot>(context);
  attachMover<CastOp, traceCast, interpretCast>(context);
  attachUnary<ExpOp, [](double x) { return std::exp(x); }>(context);
  attachUnary<LogOp, [](double x) { return std::log(x); }>(context);
  attachUnary<SqrtOp, [](double x) { return std::sqrt(x); }>(context);
  attachUnary<RsqrtOp, [](double x) { return 1 / std::sqrt(x); }>(context);
  attachUnary<ReciprocalOp, [](double x) { return 1 / x; }>(context);
  attachUnary<TanhOp, [](double x) { return std::tanh(x); }>(context);
  attachUnary<SigmoidOp, [](double x) { return 1 / (1 + std::exp(-x)); }>(
      context);
  attachUnary<ErfOp, [](double x) { return std::erf(x); }>(context);
  attachUnary<SinOp, [](double x) { return std::sin(x); }>(context);
  attachUnary<CosOp, [](double x) { return std::cos(x); }>(context);
  attachUnary<AtanOp, [](double x) { return std::atan(x); }>(context);
  attachUnary<FloorOp, [](double x) { return std::floor(x); }>(context);
  attachUnary<CeilOp, [](double x) { return std::ceil(x); }>(context);
  attachUnary<RoundOp, [](double x) { return std::nearbyint(x); }>(context);
  attachUnary<SoftplusOp, [](double x) {
    return (x < 0 ? 0 : x) + std::log1p(std::exp(-std::abs(x)));
  }>(context);
}

static void attachBinaryModels(MLIRContext *context) {
  attachBinary<AddOp, [](double a, double b) { return a + b; },
               [](int64_t a, int64_t b, bool) {
                 return int64_t(uint64_t(a) + uint64_t(b));
               }>(context);
  attachBinary<SubOp, [](double a, double b) { return a - b; },
               [](int64_t a, int64_t b, bool) {
                 return int64_t(uint64_t(a) - uint64_t(b));
               }>(context);
  attachBinary<MulOp, [](double a, double b) { return a * b; },
               [](int64_t a, int64_t b, bool) {
                 return int64_t(uint64_t(a) * uint64_t(b));
               }>(context);
  attachBinary<DivOp, [](double a, double b) { return a / b; }, divide>(
      context);
  attachBinary<PowOp, [](double a, double b) { return std::pow(a, b); }, power>(
      context);
  attachBinary<MaximumOp, maximum, [](int64_t a, int64_t b, bool isUnsigned) {
    return less(a, b, isUnsigned) ? b : a;
  }>(context);
  attachBinary<MinimumOp, minimum, [](int64_t a, int64_t b, bool isUnsigned) {
    return less(b, a, isUnsigned) ? b : a;
  }>(context);
  attachBinary<AndOp, noReal, [](int64_t a, int64_t b, bool) { return a & b; }>(
      context);
  attachBinary<OrOp, noReal, [](int64_t a, int64_t b, bool) { return a | b; }>(
      context);
  attachBinary<XorOp, noReal, [](int64_t a, int64_t b, bool) { return a ^ b; }>(
      context);
  attachModel<ModOp, interpretMod>(context);
  attachModel<ShiftLeftOp, interpretShiftLeft>(context);
  attachModel<ShiftRightOp, interpretShiftRight>(context);
}

void reference::attachElementwiseModels(MLIRContext *context) {
  attachUnaryModels(context);
  attachBinaryModels(context);
  attachModel<RoundRandomOp, interpretRoundRandom>(context);
  attachModel<CompareOp, interpretCompare>(context);
  attachModel<SelectOp, interpretSelect>(context);
  attachModel<DropoutOp, interpretDropout, /*foldable=*/false>(context);
  attachModel<RandomOp, interpretRandom, /*foldable=*/false>(context);
}
