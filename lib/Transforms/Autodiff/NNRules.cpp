//===- NNRules.cpp - gradients of products, convolutions, pooling ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matrix products and the three convolutions are bilinear and closed under
// differentiation: gradients of gradients need no further op.
//
//===----------------------------------------------------------------------===//
#include "RuleBuilder.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::autodiff;

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

static Value product(RuleBuilder &b, Value lhs, Value rhs, bool transposeLhs,
                     bool transposeRhs) {
  return b.make<MatMulOp>(lhs, rhs, transposeLhs, transposeRhs);
}

/// Reshapes [B, T, K] to [B * T, K].
static Value flattenRows(RuleBuilder &b, Value value) {
  ArrayRef<int64_t> shape = tensorType(value).getShape();
  int64_t rows = 1;
  for (int64_t size : shape.drop_back())
    rows *= size;
  return b.reshape(value, {rows, shape.back()});
}

/// Builds the gradients of one product. Batch dimensions of operands broadcast,
/// so the gradients may have more of them than the operands.
static void productGradients(RuleBuilder &b, Value lhs, Value rhs, Value g,
                             bool ta, bool tb, Value *lhsGrad, Value *rhsGrad) {
  if (lhsGrad)
    *lhsGrad =
        ta ? product(b, rhs, g, tb, true) : product(b, g, rhs, false, !tb);
  if (rhsGrad)
    *rhsGrad =
        tb ? product(b, g, lhs, true, ta) : product(b, lhs, g, !ta, false);
}

static void matmulRule(MatMulOp op, RuleBuilder &b) {
  Value lhs = op.getLhs(), rhs = op.getRhs(), g = b.grad();
  bool ta = op.getTransposeLhs(), tb = op.getTransposeRhs();
  Value lhsGrad, rhsGrad;
  // A batch of rows times one matrix is differentiated as a 2-D product, so
  // that the weight's gradient is one product instead of a batch of products
  // and a sum.
  RankedTensorType right = tensorType(rhs);
  bool oneMatrix = llvm::all_of(right.getShape().drop_back(2),
                                [](int64_t size) { return size == 1; });
  if (tensorType(g).getRank() > 2 && oneMatrix && !ta) {
    rhs = b.reshape(rhs, right.getShape().take_back(2));
    lhs = flattenRows(b, lhs);
    g = flattenRows(b, g);
  }
  productGradients(b, lhs, rhs, g, ta, tb, b.needs(0) ? &lhsGrad : nullptr,
                   b.needs(1) ? &rhsGrad : nullptr);
  if (g != b.grad()) {
    if (lhsGrad)
      lhsGrad = b.reshape(lhsGrad, tensorType(op.getLhs()).getShape());
    if (rhsGrad)
      rhsGrad = b.reshape(rhsGrad, right.getShape());
  }
  if (lhsGrad)
    b.set(0, lhsGrad);
  if (rhsGrad)
    b.set(1, rhsGrad);
}

//===----------------------------------------------------------------------===//
// Convolutions
//===----------------------------------------------------------------------===//

/// Builds a convolution op of `type` with the window of `op`.
template <typename NewOp, typename OpT>
static Value convLike(RuleBuilder &b, OpT op, Type type, Value a, Value c) {
  return b.make<NewOp>(type, a, c, op.getStridesAttr(), op.getPadsLowAttr(),
                       op.getPadsHighAttr(), op.getDilationsAttr(),
                       op.getGroupsAttr());
}

static void addConvRules(MLIRContext *context) {
  addRule<ConvOp>(context, [](ConvOp op, RuleBuilder &b) {
    Value x = op.getInput(), w = op.getWeight();
    if (b.needs(0))
      b.set(0, convLike<ConvInputGradOp>(b, op, x.getType(), b.grad(), w));
    if (b.needs(1))
      b.set(1, convLike<ConvWeightGradOp>(b, op, w.getType(), b.grad(), x));
  });
  addRule<ConvInputGradOp>(context, [](ConvInputGradOp op, RuleBuilder &b) {
    Value d = op.getGrad(), w = op.getWeight();
    if (b.needs(0))
      b.set(0, convLike<ConvOp>(b, op, d.getType(), b.grad(), w));
    if (b.needs(1))
      b.set(1, convLike<ConvWeightGradOp>(b, op, w.getType(), d, b.grad()));
  });
  addRule<ConvWeightGradOp>(context, [](ConvWeightGradOp op, RuleBuilder &b) {
    Value d = op.getGrad(), x = op.getInput();
    if (b.needs(0))
      b.set(0, convLike<ConvOp>(b, op, d.getType(), x, b.grad()));
    if (b.needs(1))
      b.set(1, convLike<ConvInputGradOp>(b, op, x.getType(), d, b.grad()));
  });
}

//===----------------------------------------------------------------------===//
// Pooling
//===----------------------------------------------------------------------===//

static void addPoolRules(MLIRContext *context) {
  addRule<MaxPoolOp>(context, [](MaxPoolOp op, RuleBuilder &b) {
    b.set(0, b.make<MaxPoolGradOp>(
                 op.getInput().getType(), b.grad(), op.getIndex(),
                 op.getKernelAttr(), op.getStridesAttr(), op.getPadsLowAttr(),
                 op.getPadsHighAttr(), op.getDilationsAttr()));
  });
  addRule<AvgPoolOp>(context, [](AvgPoolOp op, RuleBuilder &b) {
    b.set(0, b.make<AvgPoolGradOp>(
                 op.getInput().getType(), b.grad(), op.getKernelAttr(),
                 op.getStridesAttr(), op.getPadsLowAttr(), op.getPadsHighAttr(),
                 op.getDilationsAttr(), op.getCountIncludePadAttr()));
  });
  addRule<AvgPoolGradOp>(context, [](AvgPoolGradOp op, RuleBuilder &b) {
    b.set(0, b.make<AvgPoolOp>(
                 op.getGrad().getType(), b.grad(), op.getKernelAttr(),
                 op.getStridesAttr(), op.getPadsLowAttr(), op.getPadsHighAttr(),
                 op.getDilationsAttr(), op.getCountIncludePadAttr()));
  });
}

void autodiff::addNNRules(MLIRContext *context) {
  addRule<MatMulOp>(context,
                    [](MatMulOp op, RuleBuilder &b) { matmulRule(op, b); });
  addConvRules(context);
  addPoolRules(context);
}
