//===- Normalize.cpp - one form of forward graphs, before autodiff --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Exporters write a linear layer on [B, T, K] as a batch of products with one
// weight. Rewritten as one product of [B * T, K], it is the shape that
// libraries compute fastest, and its weight gradient is one product instead of
// B products and a sum. The value of each element is the same sum of products.
//
// Attention transposes its keys so that the product can read them plainly;
// libraries read transposed operands just as fast, and a transpose that leaves
// the innermost dimension in place is many times cheaper.
//
// Some linear layers (Gemm, PyTorch's addmm) add their bias to [B * T, N] and
// then split the rows. The rows are split first, as other layers do, so that
// the sum becomes one kernel with its readers.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Normalize/Normalize.h"
#include "GatherStored.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/Utils/TensorBuilder.h"
#include "ckopt/Normalize/Passes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace ckopt {
#define GEN_PASS_DEF_NORMALIZEPASS
#include "ckopt/Normalize/Passes.h.inc"
} // namespace ckopt

using namespace mlir;
using namespace ckopt;

namespace {
struct FlattenProduct : OpRewritePattern<MatMulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(MatMulOp op,
                                PatternRewriter &rewriter) const override {
    RankedTensorType left = tensorType(op.getLhs());
    RankedTensorType right = tensorType(op.getRhs());
    bool oneMatrix = llvm::all_of(right.getShape().drop_back(2),
                                  [](int64_t size) { return size == 1; });
    if (op.getType().getRank() < 3 || !oneMatrix || op.getTransposeLhs() ||
        left.getEncoding() || right.getEncoding() || op.getType().getEncoding())
      return failure();
    TensorBuilder b(rewriter, op.getLoc());
    int64_t rows = 1, depth = left.getShape().back();
    for (int64_t size : left.getShape().drop_back())
      rows *= size;
    Value lhs = b.reshape(op.getLhs(), {rows, depth});
    Value rhs = b.reshape(op.getRhs(), right.getShape().take_back(2));
    Value product = b.make<MatMulOp>(lhs, rhs, false, op.getTransposeRhs());
    rewriter.replaceOp(op, b.reshape(product, op.getType().getShape()));
    return success();
  }
};

/// Rewrites matmul(x, transpose k to [.., D, T]) with k = [B, T, H, D], so that
/// the transpose keeps D innermost and the product reads it transposed. The
/// transpose then moves whole rows, both here and in the gradient.
struct KeepRowsWhole : OpRewritePattern<MatMulOp> {
  using OpRewritePattern::OpRewritePattern;

  /// Returns the value with its last two dimensions swapped, if that transpose
  /// is the cheaper one.
  static Value wholeRows(PatternRewriter &rewriter, Value value) {
    auto transpose = value.getDefiningOp<TransposeOp>();
    if (!transpose || tensorType(value).getEncoding() ||
        tensorType(transpose.getInput()).getEncoding())
      return {};
    SmallVector<int64_t> permutation(transpose.getPermutation());
    size_t rank = permutation.size();
    if (rank < 3 || permutation[rank - 2] != int64_t(rank) - 1)
      return {};
    std::swap(permutation[rank - 2], permutation[rank - 1]);
    return TransposeOp::create(rewriter, transpose.getLoc(),
                               transpose.getInput(), permutation);
  }

  LogicalResult matchAndRewrite(MatMulOp op,
                                PatternRewriter &rewriter) const override {
    Value lhs = wholeRows(rewriter, op.getLhs());
    Value rhs = wholeRows(rewriter, op.getRhs());
    if (!lhs && !rhs)
      return failure();
    rewriter.replaceOpWithNewOp<MatMulOp>(
        op, op.getType(), lhs ? lhs : op.getLhs(), rhs ? rhs : op.getRhs(),
        op.getTransposeLhs() != bool(lhs), op.getTransposeRhs() != bool(rhs));
    return success();
  }
};

/// Rewrites reshape(product + bias) to reshape(product) + bias, where the bias
/// runs along the last dimension and that stays.
struct SplitRowsBeforeBias : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;

  static bool isProduct(Value value) {
    return value.getDefiningOp<MatMulOp>() && value.hasOneUse();
  }

  static bool splitsRows(ReshapeOp op) {
    RankedTensorType from = tensorType(op.getInput()), to = op.getType();
    return from.getRank() == 2 && to.getRank() > 2 && isRowMajor(from) &&
           isRowMajor(to) && from.getShape().back() == to.getShape().back();
  }

  LogicalResult matchAndRewrite(ReshapeOp op,
                                PatternRewriter &rewriter) const override {
    auto sum = op.getInput().getDefiningOp<AddOp>();
    if (!sum || !sum->hasOneUse() || !splitsRows(op))
      return failure();
    bool isLeft = isProduct(sum.getLhs());
    Value product = isLeft ? sum.getLhs() : sum.getRhs();
    Value bias = isLeft ? sum.getRhs() : sum.getLhs();
    if (!isProduct(product) || product.getType() != sum.getType() ||
        tensorType(bias).getRank() > 1)
      return failure();
    Value rows =
        ReshapeOp::create(rewriter, op.getLoc(), op.getType(), product);
    rewriter.replaceOpWithNewOp<AddOp>(op, isLeft ? rows : bias,
                                       isLeft ? bias : rows);
    return success();
  }
};
} // namespace

LogicalResult ckopt::normalize(func::FuncOp function) {
  MLIRContext *context = function.getContext();
  RewritePatternSet patterns(context);
  patterns.add<FlattenProduct, KeepRowsWhole, SplitRowsBeforeBias>(context);
  addGatherStored(patterns);
  for (RegisteredOperationName op : context->getRegisteredOperations())
    op.getCanonicalizationPatterns(patterns, context);
  return applyPatternsGreedily(function, std::move(patterns));
}

namespace {
struct Normalize : ckopt::impl::NormalizePassBase<Normalize> {
  using NormalizePassBase::NormalizePassBase;
  void runOnOperation() override {
    if (failed(normalize(getOperation())))
      signalPassFailure();
  }
};
} // namespace
