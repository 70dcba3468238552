//===- ElementwiseOps.cpp - types, folds and verifiers of elementwise ops -===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Type inference and folding of elementwise ops. Result types follow numpy
// broadcasting; the result takes the layout of the first operand that has the
// result's shape and a layout.
//
//===----------------------------------------------------------------------===//
#include "InferTypes.h"
#include "ckopt/Dialect/Ckopt/IR/Splat.h"

using namespace mlir;
using namespace ckopt;

/// Returns the layout of the first operand of this shape that has one.
static Attribute commonLayout(ValueRange operands, ArrayRef<int64_t> shape) {
  for (Value operand : operands) {
    auto type = cast<RankedTensorType>(operand.getType());
    if (type.getShape() == shape && type.getEncoding())
      return type.getEncoding();
  }
  return {};
}

LogicalResult ckopt::inferBroadcast(std::optional<Location> loc,
                                    ValueRange operands, Type element,
                                    SmallVectorImpl<Type> &results) {
  SmallVector<int64_t> shape;
  for (Value operand : operands) {
    auto type = dyn_cast<RankedTensorType>(operand.getType());
    if (!type)
      return emitOptionalError(loc, "operands must be ranked tensors");
    auto merged = broadcastShapes(shape, type.getShape());
    if (!merged)
      return emitOptionalError(loc, "shapes do not broadcast: ",
                               operands.front().getType(), " and ", type);
    shape = *merged;
  }
  results.push_back(
      RankedTensorType::get(shape, element, commonLayout(operands, shape)));
  return success();
}

CKOPT_INFER(TriluOp) {
  auto type = cast<RankedTensorType>(operands.front().getType());
  if (type.getRank() < 2)
    return emitOptionalError(loc, "trilu needs a tensor of rank 2 or more");
  results.push_back(type);
  return success();
}

CKOPT_INFER(CompareOp) {
  return inferBroadcast(loc, operands, IntegerType::get(context, 1), results);
}

CKOPT_INFER(SelectOp) {
  return inferBroadcast(loc, operands, getElementTypeOrSelf(operands[1]),
                        results);
}

CKOPT_INFER(DropoutOp) {
  results.push_back(operands.front().getType());
  return success();
}

LogicalResult DropoutOp::verify() {
  double ratio = getRatio().convertToDouble();
  if (!(ratio >= 0 && ratio < 1))
    return emitOpError("ratio must lie in [0, 1), got ") << ratio;
  return success();
}

// Folds only identities that keep every bit. For floats these are x - 0, x * 1
// and x / 1; x + 0 is not one, because -0 + 0 is +0.
OpFoldResult AddOp::fold(FoldAdaptor) {
  if (!isa<IntegerType>(getElementTypeOrSelf(getType())))
    return {};
  if (getLhs().getType() == getType() && splatNumber(getRhs()) == 0)
    return getLhs();
  return {};
}

OpFoldResult SubOp::fold(FoldAdaptor) {
  if (getLhs().getType() == getType() && splatNumber(getRhs()) == 0)
    return getLhs();
  return {};
}

OpFoldResult MulOp::fold(FoldAdaptor) {
  if (getLhs().getType() == getType() && splatNumber(getRhs()) == 1)
    return getLhs();
  if (getRhs().getType() == getType() && splatNumber(getLhs()) == 1)
    return getRhs();
  return {};
}

OpFoldResult DivOp::fold(FoldAdaptor) {
  if (getLhs().getType() == getType() && splatNumber(getRhs()) == 1)
    return getLhs();
  return {};
}

OpFoldResult NegOp::fold(FoldAdaptor) {
  if (auto inner = getInput().getDefiningOp<NegOp>())
    return inner.getInput();
  return {};
}

/// Returns whether every value of type `from` is a value of type `to`.
static bool holdsAll(Type from, Type to) {
  auto isBool = [](Type type) { return type.isInteger(1); };
  if (isBool(from))
    return true;
  if (isBool(to))
    return false;
  auto fromFloat = dyn_cast<FloatType>(from), toFloat = dyn_cast<FloatType>(to);
  if (fromFloat && toFloat)
    return llvm::APFloat::isRepresentableBy(fromFloat.getFloatSemantics(),
                                            toFloat.getFloatSemantics());
  if (fromFloat)
    return false;
  unsigned bits = from.getIntOrFloatBitWidth();
  if (toFloat)
    return bits <= toFloat.getFPMantissaWidth();
  if (from.isUnsignedInteger() == to.isUnsignedInteger())
    return bits <= to.getIntOrFloatBitWidth();
  return from.isUnsignedInteger() && bits < to.getIntOrFloatBitWidth();
}

OpFoldResult CastOp::fold(FoldAdaptor) {
  if (getInput().getType() == getType())
    return getInput();
  // A cast to another type and back is dropped if every value survives it; of
  // two casts within one kind of types, a wider type in the middle is dropped.
  auto inner = getInput().getDefiningOp<CastOp>();
  if (!inner)
    return {};
  Type from = getElementTypeOrSelf(inner.getInput());
  Type over = getElementTypeOrSelf(getInput());
  Type to = getElementTypeOrSelf(getType());
  if (!holdsAll(from, over))
    return {};
  if (inner.getInput().getType() == getType())
    return inner.getInput();
  bool oneKind = isa<FloatType>(from) == isa<FloatType>(over) &&
                 isa<FloatType>(over) == isa<FloatType>(to) && !to.isInteger(1);
  if (!oneKind)
    return {};
  getInputMutable().assign(inner.getInput());
  return getResult();
}

OpFoldResult SelectOp::fold(FoldAdaptor adaptor) {
  auto condition = dyn_cast_or_null<DenseElementsAttr>(adaptor.getCondition());
  if (!condition || !condition.isSplat())
    return {};
  Value chosen = condition.getSplatValue<bool>() ? getOnTrue() : getOnFalse();
  return chosen.getType() == getType() ? OpFoldResult(chosen) : OpFoldResult();
}

namespace {
/// pow(x, 2) becomes x * x (exporters write squares as powers), pow(x, 1)
/// becomes x, pow(x, 0.5) becomes sqrt(x): cheaper, and no less exact.
struct SimplifyPow : OpRewritePattern<PowOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(PowOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getLhs().getType() != op.getType())
      return failure();
    if (splatNumber(op.getRhs()) == 2) {
      rewriter.replaceOpWithNewOp<MulOp>(op, op.getLhs(), op.getLhs());
      return success();
    }
    if (splatNumber(op.getRhs()) == 1) {
      rewriter.replaceOp(op, op.getLhs());
      return success();
    }
    if (isa<FloatType>(getElementTypeOrSelf(op.getType())) &&
        splatNumber(op.getRhs()) == 0.5) {
      rewriter.replaceOpWithNewOp<SqrtOp>(op, op.getLhs());
      return success();
    }
    return failure();
  }
};
} // namespace

void PowOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                        MLIRContext *context) {
  patterns.add<SimplifyPow>(context);
}
