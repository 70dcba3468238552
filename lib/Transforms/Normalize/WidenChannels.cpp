//===- WidenChannels.cpp - few input channels, padded to a vector ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: images have three channels. A convolution that takes them as a
// product loads each number on its own, and what finds its address takes longer
// than the products do. Method: one elementwise kernel copies the image with a
// fourth channel of zeros, another the weight, and all that reads them loads
// vectors. Guarantee: only zeros are added to sums; gradients of the channels
// that were added are dropped. The copies are ops like others: they are fused,
// rounded, weighed and planned.
//
//===----------------------------------------------------------------------===//
#include "Padding.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/Utils/TensorBuilder.h"
#include "ckopt/Normalize/Normalize.h"
#include "ckopt/Normalize/Passes.h"

namespace ckopt {
#define GEN_PASS_DEF_WIDENCHANNELSPASS
#include "ckopt/Normalize/Passes.h.inc"
} // namespace ckopt

using namespace mlir;
using namespace ckopt;

/// Returns how many channels the input is padded to; its own number where
/// nothing is gained.
static int64_t widened(Value input, int64_t groups, int64_t group) {
  RankedTensorType type = tensorType(input);
  int64_t channels = type.getDimSize(1);
  bool isInnermost = getElementStrides(type)[1] == 1 && channels > 1;
  return groups == 1 && isInnermost ? paddedExtent(channels, group) : channels;
}

void ckopt::widenChannels(func::FuncOp function, int64_t group) {
  if (!group)
    return;
  function.walk([&](ConvOp op) {
    int64_t channels = widened(op.getInput(), op.getGroups(), group);
    if (channels == tensorType(op.getInput()).getDimSize(1))
      return;
    OpBuilder b(op);
    for (OpOperand &operand : op->getOpOperands())
      operand.set(withZeros(b, op.getLoc(), operand.get(), 1, channels));
  });
  SmallVector<ConvWeightGradOp> gradients;
  function.walk([&](ConvWeightGradOp op) { gradients.push_back(op); });
  for (ConvWeightGradOp op : gradients) {
    int64_t channels = widened(op.getInput(), op.getGroups(), group);
    Value result = op.getOutput();
    RankedTensorType type = tensorType(result);
    if (channels == tensorType(op.getInput()).getDimSize(1))
      continue;
    OpBuilder b(op);
    op.getInputMutable().assign(
        withZeros(b, op.getLoc(), op.getInput(), 1, channels));
    result.setType(withExtent(type, 1, channels));
    b.setInsertionPointAfter(op);
    SmallVector<int64_t> first(type.getRank(), 0), every(type.getRank(), 1);
    auto kept = SliceOp::create(b, op.getLoc(), type, result, first,
                                type.getShape(), every);
    result.replaceAllUsesExcept(kept, kept);
  }
}

namespace {
struct WidenChannels : ckopt::impl::WidenChannelsPassBase<WidenChannels> {
  using WidenChannelsPassBase::WidenChannelsPassBase;
  void runOnOperation() override { widenChannels(getOperation(), group); }
};
} // namespace
