//===- AxisRelation.cpp - which axes of operands a result's runs along ----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: samples lie along an axis, and ops keep them apart or mix them.
// Method: one rule for each kind of op says what the elements at one place of
// an axis read. Whether samples stay apart and whether slices are equal both
// follow from it. Guarantee: an op without a rule is not known to keep anything
// apart. O(operands) for a question.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Distribute/AxisRelation.h"

#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::autodiff;

static constexpr auto follows = [](int64_t axis) {
  return AxisRelation::follows(axis);
};

/// Operands broadcast to the result: dimensions agree from the last one on.
static AxisRelation broadcast(Operation *op, unsigned i, int64_t axis) {
  Value operand = op->getOperand(i), result = op->getResult(0);
  int64_t own = axis - rankOf(result) + rankOf(operand);
  if (own < 0 || (shapeOf(operand)[size_t(own)] == 1 &&
                  shapeOf(result)[size_t(axis)] != 1))
    return AxisRelation::whole();
  return follows(own);
}

/// Ops that work along the dimensions from `first` on.
static AxisRelation apartBefore(int64_t first, int64_t axis) {
  return axis < first ? follows(axis) : AxisRelation::other();
}

static AxisRelation except(int64_t along, int64_t axis) {
  return axis == along ? AxisRelation::other() : follows(axis);
}

static AxisRelation ofProduct(MatMulOp op, unsigned i, int64_t axis) {
  const int64_t rank = rankOf(op.getOutput()), fromEnd = rank - axis;
  if (fromEnd > 2)
    return broadcast(op, i, axis);
  // Rows are those of the left operand, columns those of the right one.
  bool isRow = fromEnd == 2;
  if (isRow != (i == 0))
    return AxisRelation::whole();
  bool transposed = i == 0 ? op.getTransposeLhs() : op.getTransposeRhs();
  int64_t last = rankOf(op->getOperand(i)) - 1;
  return follows(isRow != transposed ? last - 1 : last);
}

static AxisRelation ofAttention(AttentionOp op, unsigned i, int64_t axis) {
  Value operand = op->getOperand(i), result = op.getOutput();
  const int64_t rank = rankOf(result), fromEnd = rank - axis;
  if (rankOf(operand) == 0) // seed and step
    return AxisRelation::whole();
  if (fromEnd > 2)
    return fromEnd == 3 && shapeOf(op.getQuery())[size_t(axis)] !=
                               shapeOf(op.getKey())[size_t(axis)]
               ? AxisRelation::other()
               : broadcast(op, i, axis);
  if (fromEnd == 1) // the width of values
    return i == 2 ? follows(axis) : AxisRelation::whole();
  if (op.getCausal())
    return AxisRelation::other();
  return i == 1 || i == 2 ? AxisRelation::whole() : broadcast(op, i, axis);
}

/// Windows of one point leave the places along a spatial axis as they are.
template <typename OpT>
static bool isPointwiseAlong(OpT op, int64_t kernel, int64_t axis) {
  size_t d = size_t(axis) - 2;
  return kernel == 1 && op.getStrides()[d] == 1 && op.getPadsLow()[d] == 0 &&
         op.getPadsHigh()[d] == 0;
}

static AxisRelation ofConv(ConvOp op, unsigned i, int64_t axis) {
  if (axis == 1) {
    if (op.getGroups() != 1)
      return AxisRelation::other();
    return i == 0 ? AxisRelation::whole() : follows(0);
  }
  if (axis != 0 &&
      !isPointwiseAlong(op, shapeOf(op.getWeight())[size_t(axis)], axis))
    return AxisRelation::other();
  return i == 0 ? follows(axis) : AxisRelation::whole();
}

template <typename OpT> static AxisRelation ofPool(OpT op, int64_t axis) {
  return axis < 2 ||
                 isPointwiseAlong(op, op.getKernel()[size_t(axis) - 2], axis)
             ? follows(axis)
             : AxisRelation::other();
}

/// Scale, bias and statistics belong to the channels.
static AxisRelation ofBatchNorm(unsigned i, int64_t axis) {
  if (i == 0)
    return follows(axis);
  return axis == 1 ? follows(0) : AxisRelation::whole();
}

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

/// `axis` is one of rows' numbers, which stand where the data's axis does.
static AxisRelation ofIndexed(int64_t along, int64_t numbers, bool isNumbers,
                              int64_t axis) {
  bool isIndexed = axis >= along && axis < along + numbers;
  if (isNumbers != isIndexed)
    return AxisRelation::whole();
  return follows(isNumbers ? axis - along
                           : axis - (axis < along ? 0 : numbers - 1));
}

static AxisRelation ofScatterAdd(ScatterAddOp op, unsigned i, int64_t axis) {
  int64_t along = int64_t(op.getAxis());
  if (axis == along)
    return AxisRelation::other();
  if (i == 1)
    return AxisRelation::whole();
  return follows(i == 0 || axis < along ? axis
                                        : axis + rankOf(op.getIndices()) - 1);
}

static AxisRelation ofSlice(SliceOp op, int64_t axis) {
  size_t d = size_t(axis);
  return op.getStarts()[d] == 0 && op.getSteps()[d] == 1 &&
                 op.getSizes()[d] == shapeOf(op.getInput())[d]
             ? follows(axis)
             : AxisRelation::other();
}

static AxisRelation ofPad(PadOp op, int64_t axis) {
  size_t d = size_t(axis);
  return op.getLow()[d] || op.getHigh()[d] || op.getInterior()[d]
             ? AxisRelation::other()
             : follows(axis);
}

AxisRelation autodiff::relateAxis(Operation *op, unsigned i, int64_t axis) {
  auto along = [&](auto typed) {
    return except(int64_t(typed.getAxis()), axis);
  };
  return llvm::TypeSwitch<Operation *, AxisRelation>(op)
      .Case([&](TransposeOp o) { return follows(o.getPermutation()[axis]); })
      .Case([&](TriluOp o) {
        return apartBefore(rankOf(o.getOutput()) - 2, axis);
      })
      .Case([&](SliceOp o) { return ofSlice(o, axis); })
      .Case([&](PadOp o) { return ofPad(o, axis); })
      .Case<ConcatOp, CumulativeSumOp, TopKOp, SoftmaxOp, LogSoftmaxOp,
            SoftmaxGradOp, LogSoftmaxGradOp, GatherElementsOp,
            ScatterElementsOp>(along)
      .Case([&](GatherOp o) {
        return ofIndexed(int64_t(o.getAxis()), rankOf(o.getIndices()), i == 1,
                         axis);
      })
      .Case([&](ScatterAddOp o) { return ofScatterAdd(o, i, axis); })
      .Case([&](ReduceOp o) {
        return reduced(o.getAxes(), o.getKeepdims(), rankOf(o.getInput()),
                       axis);
      })
      .Case([&](MomentsOp o) {
        return reduced(o.getAxes(), false, rankOf(o.getInput()), axis);
      })
      .Case([&](LayerNormOp o) {
        return i == 0 || axis >= int64_t(o.getAxis())
                   ? apartBefore(int64_t(o.getAxis()), axis)
                   : AxisRelation::whole();
      })
      .Case([&](MatMulOp o) { return ofProduct(o, i, axis); })
      .Case([&](AttentionOp o) { return ofAttention(o, i, axis); })
      .Case([&](ConvOp o) { return ofConv(o, i, axis); })
      .Case([&](ConvInputGradOp) {
        return i == 0      ? apartBefore(1, axis)
               : axis == 0 ? AxisRelation::whole()
                           : AxisRelation::other();
      })
      .Case<MaxPoolOp, AvgPoolOp>([&](auto o) { return ofPool(o, axis); })
      .Case<MaxPoolGradOp, AvgPoolGradOp>(
          [&](auto) { return apartBefore(2, axis); })
      .Case<BatchNormOp, BatchNormInferenceOp>(
          [&](auto) { return ofBatchNorm(i, axis); })
      .Case([&](CrossEntropyOp o) {
        bool isBehind = i == 0 && axis >= int64_t(o.getAxis());
        return follows(axis + isBehind);
      })
      .Case([&](LinearCrossEntropyOp) {
        return i == 0 || i == 2 ? follows(0) : AxisRelation::whole();
      })
      .Case<ExpandOp, PinOp>([&](auto o) { return broadcast(o, i, axis); })
      .Default([&](Operation *o) {
        auto kernel = dyn_cast<KernelOpInterface>(o);
        return kernel && kernel.getKernelKind() == KernelKind::Elementwise
                   ? broadcast(o, i, axis)
                   : AxisRelation::other();
      });
}

bool autodiff::hasAxisOfFirst(OpResult result, int64_t axis) {
  if (result.getResultNumber() == 0)
    return true;
  Operation *op = result.getOwner();
  if (isa<BatchNormOp>(op)) // its statistics have channels alone
    return false;
  if (isa<AttentionOp>(op) && axis + 1 == rankOf(result))
    return false;
  return axis < rankOf(result) && shapeOf(result)[size_t(axis)] ==
                                      shapeOf(op->getResult(0))[size_t(axis)];
}

//===----------------------------------------------------------------------===//
// Equal slices
//===----------------------------------------------------------------------===//

static bool isUniformConstant(ElementsAttr value, int64_t axis) {
  if (value.isSplat())
    return true;
  auto dense = dyn_cast<DenseElementsAttr>(value);
  if (!dense)
    return false;
  ArrayRef<char> bytes = dense.getRawData();
  SmallVector<char> bits; // truth values may be packed
  if (dense.getElementType().isInteger(1)) {
    for (bool bit : dense.getValues<bool>())
      bits.push_back(bit);
    bytes = bits;
  }
  ArrayRef<int64_t> shape = dense.getType().getShape();
  size_t size = size_t(shape[size_t(axis)]), blocks = 1;
  for (int64_t extent : shape.take_front(size_t(axis)))
    blocks *= size_t(extent);
  const size_t slice = bytes.size() / (blocks * size);
  for (; !bytes.empty(); bytes = bytes.drop_front(size * slice))
    for (size_t k = 1; k < size; ++k)
      if (bytes.take_front(slice) != bytes.slice(k * slice, slice))
        return false;
  return true;
}

/// Steps along the result's axis change the places along some axes of the
/// operand alone: slices are equal if they are along all of those.
static bool isUniformReshape(Uniformity &uniformity, ReshapeOp op,
                             int64_t axis) {
  auto strideBehind = [](ArrayRef<int64_t> shape, size_t d) {
    int64_t stride = 1;
    for (int64_t size : shape.drop_front(d + 1))
      stride *= size;
    return stride;
  };
  ArrayRef<int64_t> from = shapeOf(op.getInput()), to = shapeOf(op.getOutput());
  const int64_t step = strideBehind(to, size_t(axis));
  const int64_t end = step * to[size_t(axis)];
  for (size_t d = 0; d < from.size(); ++d) {
    int64_t stride = strideBehind(from, d);
    bool isApart = step % (stride * from[d]) == 0 || stride % end == 0;
    if (!isApart && !uniformity.isUniform(op.getInput(), int64_t(d)))
      return false;
  }
  return true;
}

bool Uniformity::isUniform(Value value, int64_t axis) {
  if (shapeOf(value)[size_t(axis)] == 1 ||
      llvm::is_contained(shapeOf(value), 0))
    return true;
  auto result = dyn_cast<OpResult>(value);
  if (!result)
    return false;
  if (auto found = known.find({value, axis}); found != known.end())
    return found->second;
  bool uniform = compute(result, axis);
  known[{value, axis}] = uniform;
  return uniform;
}

bool Uniformity::compute(OpResult value, int64_t axis) {
  Operation *op = value.getOwner();
  if (auto constant = dyn_cast<ConstantOp>(op))
    return isUniformConstant(cast<ElementsAttr>(constant.getValue()), axis);
  if (auto iota = dyn_cast<IotaOp>(op))
    return int64_t(iota.getAxis()) != axis;
  if (auto reshape = dyn_cast<ReshapeOp>(op))
    return isUniformReshape(*this, reshape, axis);
  if (auto slice = dyn_cast<SliceOp>(op))
    return isUniform(slice.getInput(), axis);
  if (op->getNumOperands() == 0 || isa<RandomOp, DropoutOp>(op) ||
      !hasAxisOfFirst(value, axis))
    return false;
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    AxisRelation relation = relateAxis(op, unsigned(i), axis);
    bool isEqual = relation.kind == AxisRelation::Kind::Whole ||
                   (relation.follows() && isUniform(operand, relation.axis));
    if (!isEqual)
      return false;
  }
  return true;
}
