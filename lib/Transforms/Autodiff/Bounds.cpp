//===- Bounds.cpp - which values stay away from poles ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Bounds.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::autodiff;

namespace {
enum Sign { Unknown, NonNegative, Positive };
/// The most ops above a value that these functions look at.
constexpr unsigned kDepth = 8;
} // namespace

/// Returns whether all elements of a float constant pass `test`; false for
/// other values.
static bool allElements(Value value,
                        llvm::function_ref<bool(const APFloat &)> pass) {
  DenseElementsAttr elements;
  if (!matchPattern(value, m_Constant(&elements)) ||
      !isa<FloatType>(elements.getElementType()))
    return false;
  if (elements.isSplat())
    return pass(elements.getSplatValue<APFloat>());
  return llvm::all_of(elements.getValues<APFloat>(), pass);
}

static Sign signOf(Value value, unsigned depth = 0);

static Sign signOfSum(Value a, Value b, unsigned depth) {
  Sign x = signOf(a, depth), y = signOf(b, depth);
  return x == Unknown || y == Unknown ? Unknown : std::max(x, y);
}

static Sign signOfProduct(Value a, Value b, unsigned depth) {
  return a == b ? NonNegative : std::min(signOf(a, depth), signOf(b, depth));
}

static Sign signOfPower(PowOp op, unsigned depth) {
  bool even = allElements(op.getRhs(), [](const APFloat &x) {
    return std::fmod(x.convertToDouble(), 2) == 0;
  });
  return even ? NonNegative : std::min(signOf(op.getLhs(), depth), NonNegative);
}

static Sign signOf(Value value, unsigned depth) {
  if (allElements(value, [](const APFloat &x) {
        return !x.isNegative() && !x.isZero() && !x.isNaN();
      }))
    return Positive;
  if (allElements(value, [](const APFloat &x) {
        return x.isZero() || !(x.isNegative() || x.isNaN());
      }))
    return NonNegative;
  Operation *op = value.getDefiningOp();
  if (!op || depth == kDepth)
    return Unknown;
  ++depth;
  if (op->hasTrait<traits::KeepsElements>())
    return signOf(op->getOperand(0), depth);
  return llvm::TypeSwitch<Operation *, Sign>(op)
      .Case<AddOp>([&](auto sum) {
        return signOfSum(sum.getLhs(), sum.getRhs(), depth);
      })
      .Case<MulOp>([&](auto product) {
        return signOfProduct(product.getLhs(), product.getRhs(), depth);
      })
      .Case<PowOp>([&](auto power) { return signOfPower(power, depth); })
      .Case<MaximumOp>([&](auto larger) {
        return std::max(signOf(larger.getLhs(), depth),
                        signOf(larger.getRhs(), depth));
      })
      .Case<ClipOp>([&](auto clip) {
        double low = clip.getMin().convertToDouble();
        return low > 0 ? Positive : low == 0 ? NonNegative : Unknown;
      })
      .Case<SqrtOp>([&](auto root) {
        return std::max(signOf(root.getInput(), depth), NonNegative);
      })
      .Case<CastOp>([&](auto cast) {
        bool narrow = getElementTypeOrSelf(cast.getType()).isF16();
        Sign sign = signOf(cast.getInput(), depth);
        return narrow ? std::min(sign, NonNegative) : sign; // may round to 0
      })
      .Case<ReduceOp>([&](auto reduce) {
        bool keeps = reduce.getKind() != ReduceKind::Prod &&
                     cast<RankedTensorType>(reduce.getInput().getType())
                             .getNumElements() > 0;
        return keeps ? signOf(reduce.getInput(), depth) : Unknown;
      })
      .Case<SelectOp>([&](auto select) {
        return std::min(signOf(select.getOnTrue(), depth),
                        signOf(select.getOnFalse(), depth));
      })
      .Case<MomentsOp>([&](auto moments) {
        return value == moments.getVariance() ? NonNegative : Unknown;
      })
      .Default([](Operation *other) {
        return other->hasTrait<traits::NonNegative>() ? NonNegative : Unknown;
      });
}

bool autodiff::isPositive(Value value) { return signOf(value) == Positive; }
bool autodiff::isNonNegative(Value value) { return signOf(value) != Unknown; }
bool autodiff::isNonZero(Value value) {
  return isPositive(value) || allElements(value, [](const APFloat &x) {
           return !x.isZero() && !x.isNaN();
         });
}

static bool mayHavePole(Value value, unsigned depth) {
  Operation *op = value.getDefiningOp();
  if (!op || depth == 6)
    return false;
  DenseElementsAttr constant;
  if (matchPattern(op, m_Constant(&constant)))
    return isa<FloatType>(constant.getElementType()) &&
           !allElements(value, [](const APFloat &x) { return x.isFinite(); });
  bool own =
      llvm::TypeSwitch<Operation *, bool>(op)
          .Case<ExpOp>([](auto) { return true; }) // overflows
          .Case<LogOp, RsqrtOp>(
              [](auto f) { return !isPositive(f.getInput()); })
          .Case<SqrtOp>([](auto f) { return !isNonNegative(f.getInput()); })
          .Case<ReciprocalOp>([](auto f) { return !isNonZero(f.getInput()); })
          .Case<DivOp>([](auto f) { return !isNonZero(f.getRhs()); })
          .Case<PowOp>([](auto f) {
            return !allElements(f.getRhs(), [](const APFloat &x) {
              return x.isInteger() && !x.isNegative();
            });
          })
          .Default([](Operation *) { return false; });
  return own || (op->hasTrait<traits::KeepsPoles>() &&
                 llvm::any_of(op->getOperands(), [&](Value operand) {
                   return mayHavePole(operand, depth + 1);
                 }));
}

bool autodiff::mayHavePole(Value value) { return ::mayHavePole(value, 0); }
