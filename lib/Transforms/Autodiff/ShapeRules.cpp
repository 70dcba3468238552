//===- ShapeRules.cpp - gradients of shapes and data movement -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ops are linear maps, so each gradient is the adjoint map.
//
//===----------------------------------------------------------------------===//
#include "RuleBuilder.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::autodiff;

/// Pads the gradient to the place from which the slice was read; a dimension
/// that was read backwards is reversed first.
static void sliceRule(SliceOp op, RuleBuilder &b) {
  RankedTensorType type = tensorType(op.getInput());
  int64_t rank = type.getRank();
  SmallVector<int64_t> low(rank), high(rank), interior(rank);
  SmallVector<int64_t> flipStarts(rank, 0), flipSteps(rank, 1);
  bool flip = false;
  for (int64_t d = 0; d < rank; ++d) {
    int64_t first = op.getStarts()[d], size = op.getSizes()[d];
    int64_t step = size > 1 ? op.getSteps()[d] : 1;
    if (size == 0)
      return; // the slice is empty
    int64_t last = first + (size - 1) * step;
    if (step < 0) {
      flip = true;
      flipStarts[d] = size - 1;
      flipSteps[d] = -1;
      std::swap(first, last);
      step = -step;
    }
    low[d] = first;
    high[d] = type.getDimSize(d) - 1 - last;
    interior[d] = step - 1;
  }
  Value gradient = b.grad();
  if (flip)
    gradient = b.make<SliceOp>(gradient, b.ints(flipStarts), op.getSizesAttr(),
                               b.ints(flipSteps));
  b.set(0, b.make<PadOp>(gradient, b.ints(low), b.ints(high), b.ints(interior),
                         b.builder.getF64FloatAttr(0)));
}

static void concatRule(ConcatOp op, RuleBuilder &b) {
  int64_t axis = op.getAxis(), begin = 0;
  for (auto [i, input] : llvm::enumerate(op.getInputs())) {
    ArrayRef<int64_t> shape = tensorType(input).getShape();
    if (b.needs(i)) {
      SmallVector<int64_t> starts(shape.size(), 0), steps(shape.size(), 1);
      starts[axis] = begin;
      b.set(i, b.make<SliceOp>(b.grad(), b.ints(starts), b.ints(shape),
                               b.ints(steps)));
    }
    begin += shape[axis];
  }
}

static void padRule(PadOp op, RuleBuilder &b) {
  SmallVector<int64_t> steps;
  for (int64_t interior : op.getInterior())
    steps.push_back(interior + 1);
  b.set(0, b.make<SliceOp>(b.grad(), op.getLowAttr(),
                           b.ints(tensorType(op.getInput()).getShape()),
                           b.ints(steps)));
}

void autodiff::addShapeRules(MLIRContext *context) {
  addRule<ReshapeOp>(context, [](ReshapeOp op, RuleBuilder &b) {
    b.set(0, b.reshape(b.grad(), tensorType(op.getInput()).getShape()));
  });
  addRule<TransposeOp>(context, [](TransposeOp op, RuleBuilder &b) {
    SmallVector<int64_t> inverse(op.getPermutation().size());
    for (auto [i, dim] : llvm::enumerate(op.getPermutation()))
      inverse[dim] = int64_t(i);
    b.set(0, b.transpose(b.grad(), inverse));
  });
  addRule<SliceOp>(context,
                   [](SliceOp op, RuleBuilder &b) { sliceRule(op, b); });
  addRule<ConcatOp>(context,
                    [](ConcatOp op, RuleBuilder &b) { concatRule(op, b); });
  addRule<PadOp>(context, [](PadOp op, RuleBuilder &b) { padRule(op, b); });
  addRule<ExpandOp>(context, [](ExpandOp, RuleBuilder &b) {
    b.set(0, b.grad()); // `set` sums over broadcast dimensions
  });
  addRule<BarrierOp>(context,
                     [](BarrierOp, RuleBuilder &b) { b.set(0, b.grad()); });
  addRule<PinOp>(context, [](PinOp, RuleBuilder &b) { b.set(0, b.grad()); });
  addRule<RelayoutOp>(context, [](RelayoutOp op, RuleBuilder &b) {
    b.set(0, b.make<RelayoutOp>(op.getInput().getType(), b.grad()));
  });
}
