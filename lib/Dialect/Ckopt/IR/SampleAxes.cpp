//===- SampleAxes.cpp - which axes of operands a result's runs along ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rules of SampleAxisOpInterface: for each op, what the elements at one place
// along an axis of its result read. O(rank) for a question.
//
//===----------------------------------------------------------------------===//
#include "InferTypes.h"

using namespace mlir;
using namespace ckopt;

static int64_t rankOf(Value value) { return tensorType(value).getRank(); }

static AxisRelation follows(int64_t axis) {
  return AxisRelation::follows(axis);
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

AxisRelation TransposeOp::relateAxis(unsigned, int64_t axis) {
  return follows(getPermutation()[size_t(axis)]);
}

AxisRelation TriluOp::relateAxis(unsigned, int64_t axis) {
  return AxisRelation::apartBefore(rankOf(getOutput()) - 2, axis);
}

AxisRelation SliceOp::relateAxis(unsigned, int64_t axis) {
  size_t d = size_t(axis);
  bool isWhole = getStarts()[d] == 0 && getSteps()[d] == 1 &&
                 getSizes()[d] == tensorType(getInput()).getDimSize(d);
  return isWhole ? follows(axis) : AxisRelation::other();
}

AxisRelation PadOp::relateAxis(unsigned, int64_t axis) {
  size_t d = size_t(axis);
  return getLow()[d] || getHigh()[d] || getInterior()[d] ? AxisRelation::other()
                                                         : follows(axis);
}

/// `axis` is one of the numbers', which stand where the data's axis does.
AxisRelation GatherOp::relateAxis(unsigned operand, int64_t axis) {
  int64_t along = int64_t(getAxis()), numbers = rankOf(getIndices());
  bool isNumbers = operand == 1;
  if (isNumbers != (axis >= along && axis < along + numbers))
    return AxisRelation::whole();
  return follows(isNumbers ? axis - along
                           : axis - (axis < along ? 0 : numbers - 1));
}

AxisRelation ScatterAddOp::relateAxis(unsigned operand, int64_t axis) {
  int64_t along = int64_t(getAxis());
  if (axis == along)
    return AxisRelation::other();
  if (operand == 1)
    return AxisRelation::whole();
  return follows(
      operand == 0 || axis < along ? axis : axis + rankOf(getIndices()) - 1);
}

//===----------------------------------------------------------------------===//
// Reductions and rows
//===----------------------------------------------------------------------===//

static AxisRelation reduced(ArrayRef<int64_t> axes, bool keepsDims,
                            int64_t rank, int64_t axis) {
  if (keepsDims)
    return llvm::is_contained(axes, axis) ? AxisRelation::other()
                                          : follows(axis);
  for (int64_t own = 0; own < rank; ++own)
    if (!llvm::is_contained(axes, own) && axis-- == 0)
      return follows(own);
  return AxisRelation::other();
}

AxisRelation ReduceOp::relateAxis(unsigned, int64_t axis) {
  return reduced(getAxes(), getKeepdims(), rankOf(getInput()), axis);
}

AxisRelation MomentsOp::relateAxis(unsigned, int64_t axis) {
  return reduced(getAxes(), /*keepsDims=*/false, rankOf(getInput()), axis);
}

/// Of a norm of rows, whose dimensions begin at `first`.
static AxisRelation ofRows(int64_t first, unsigned operand, int64_t axis) {
  return operand == 0 || axis >= first ? AxisRelation::apartBefore(first, axis)
                                       : AxisRelation::whole();
}

AxisRelation LayerNormOp::relateAxis(unsigned operand, int64_t axis) {
  return ofRows(int64_t(getAxis()), operand, axis);
}

AxisRelation RmsNormOp::relateAxis(unsigned operand, int64_t axis) {
  return ofRows(int64_t(getAxis()), operand, axis);
}

/// Scale, bias and statistics belong to the channels.
static AxisRelation ofBatchNorm(unsigned operand, int64_t axis) {
  if (operand == 0)
    return follows(axis);
  return axis == 1 ? follows(0) : AxisRelation::whole();
}

AxisRelation BatchNormOp::relateAxis(unsigned operand, int64_t axis) {
  return ofBatchNorm(operand, axis);
}

AxisRelation BatchNormInferenceOp::relateAxis(unsigned operand, int64_t axis) {
  return ofBatchNorm(operand, axis);
}

AxisRelation CrossEntropyOp::relateAxis(unsigned operand, int64_t axis) {
  bool isBehind = operand == 0 && axis >= int64_t(getAxis());
  return follows(axis + isBehind);
}

AxisRelation LinearCrossEntropyOp::relateAxis(unsigned operand, int64_t) {
  return operand == 0 || operand == 2 ? follows(0) : AxisRelation::whole();
}

//===----------------------------------------------------------------------===//
// Contractions and windows
//===----------------------------------------------------------------------===//

AxisRelation MatMulOp::relateAxis(unsigned operand, int64_t axis) {
  const int64_t fromEnd = rankOf(getOutput()) - axis;
  if (fromEnd > 2)
    return ckopt::detail::relateBroadcast(*this, operand, axis);
  // Rows are those of the left operand, columns those of the right one.
  bool isRow = fromEnd == 2;
  if (isRow != (operand == 0))
    return AxisRelation::whole();
  bool transposed = operand == 0 ? getTransposeLhs() : getTransposeRhs();
  int64_t last = rankOf(getOperand(operand)) - 1;
  return follows(isRow != transposed ? last - 1 : last);
}

AxisRelation AttentionOp::relateAxis(unsigned operand, int64_t axis) {
  const int64_t fromEnd = rankOf(getOutput()) - axis;
  auto broadcast = [&] {
    return ckopt::detail::relateBroadcast(*this, operand, axis);
  };
  if (rankOf(getOperand(operand)) == 0) // seed and step
    return AxisRelation::whole();
  if (getOperand(operand) == getSegments()) {
    bool ofSamples = tensorType(getSegments()).getDimSize(0) != 1;
    if (fromEnd == 4)
      return ofSamples ? follows(0) : AxisRelation::whole();
    return fromEnd == 2 ? AxisRelation::other() : AxisRelation::whole();
  }
  if (fromEnd == 3 && tensorType(getQuery()).getDimSize(unsigned(axis)) !=
                          tensorType(getKey()).getDimSize(unsigned(axis)))
    return AxisRelation::other();
  if (fromEnd > 2)
    return broadcast();
  if (fromEnd == 1) // the width of values
    return operand == 2 ? follows(axis) : AxisRelation::whole();
  if (getCausal() || getWindow() || getSegments())
    return AxisRelation::other();
  return operand == 1 || operand == 2 ? AxisRelation::whole() : broadcast();
}

bool AttentionOp::hasAxisOfFirst(unsigned result, int64_t axis) {
  return result == 0 || (axis + 1 != rankOf(getResult(result)) &&
                         ckopt::detail::haveEqualAxis(*this, result, axis));
}

/// Windows of one point leave the places along a spatial axis as they are.
template <typename OpT>
static bool isPointwiseAlong(OpT op, int64_t kernel, int64_t axis) {
  size_t d = size_t(axis) - 2;
  return kernel == 1 && op.getStrides()[d] == 1 && op.getPadsLow()[d] == 0 &&
         op.getPadsHigh()[d] == 0;
}

AxisRelation ConvOp::relateAxis(unsigned operand, int64_t axis) {
  if (axis == 1 && getGroups() != 1)
    return AxisRelation::other();
  if (axis == 1)
    return operand == 0 ? AxisRelation::whole() : follows(0);
  int64_t kernel = tensorType(getWeight()).getDimSize(unsigned(axis));
  if (axis != 0 && !isPointwiseAlong(*this, kernel, axis))
    return AxisRelation::other();
  return operand == 0 ? follows(axis) : AxisRelation::whole();
}

AxisRelation ConvInputGradOp::relateAxis(unsigned operand, int64_t axis) {
  if (operand == 0)
    return AxisRelation::apartBefore(1, axis);
  return axis == 0 ? AxisRelation::whole() : AxisRelation::other();
}

template <typename OpT> static AxisRelation ofPool(OpT op, int64_t axis) {
  return axis < 2 ||
                 isPointwiseAlong(op, op.getKernel()[size_t(axis) - 2], axis)
             ? follows(axis)
             : AxisRelation::other();
}

AxisRelation MaxPoolOp::relateAxis(unsigned, int64_t axis) {
  return ofPool(*this, axis);
}

AxisRelation AvgPoolOp::relateAxis(unsigned, int64_t axis) {
  return ofPool(*this, axis);
}

AxisRelation MaxPoolGradOp::relateAxis(unsigned, int64_t axis) {
  return AxisRelation::apartBefore(2, axis);
}

AxisRelation AvgPoolGradOp::relateAxis(unsigned, int64_t axis) {
  return AxisRelation::apartBefore(2, axis);
}
