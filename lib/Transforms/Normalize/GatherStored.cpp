//===- GatherStored.cpp - lookups in tables as they are stored ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: an embedding whose table is cast, dequantized or unpacked would make
// the whole table wide for the rows that it reads. Method: rows are taken from
// what the table is made of, one op at a time: elementwise ops, lookups in
// lists, reshapes that keep the first dimension, and concatenations along
// others. A cast behind a reshape is moved before it, to the ops that make the
// table. Guarantee: only tables that follow from frozen weights and constants
// change; each number is computed by the same ops. Complexity: O(ops of the
// table).
//
//===----------------------------------------------------------------------===//
#include "GatherStored.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Dialect/Ckopt/Utils/RandomSite.h"
#include "ckopt/Dialect/Ckopt/Utils/TensorBuilder.h"

using namespace mlir;
using namespace ckopt;

namespace {
/// The most ops between a table and what is stored.
constexpr unsigned kMostOps = 32;

bool isStored(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument)
    return value.getDefiningOp()->hasTrait<OpTrait::ConstantLike>();
  return isStoredForGood(argument);
}

/// Returns whether the value follows from stored numbers alone.
bool follows(Value value, unsigned &ops) {
  if (isStored(value))
    return true;
  Operation *op = value.getDefiningOp();
  return op && ++ops <= kMostOps && op->getNumOperands() && !randomSite(op) &&
         llvm::all_of(op->getOperands(),
                      [&](Value operand) { return follows(operand, ops); });
}

/// Returns whether rows of the op's result are the op of rows of its operands.
bool keepsRows(Operation *op) {
  if (op->getNumResults() != 1 || op->getNumRegions() || randomSite(op))
    return false;
  RankedTensorType type = tensorType(op->getResult(0));
  if (type.getRank() < 1 || type.getEncoding())
    return false;
  int64_t rows = type.getDimSize(0);
  auto hasRows = [&](Value operand) {
    RankedTensorType own = tensorType(operand);
    return own.getRank() > 0 && own.getDimSize(0) == rows;
  };
  if (auto reshape = dyn_cast<ReshapeOp>(op))
    return hasRows(reshape.getInput());
  if (auto concat = dyn_cast<ConcatOp>(op))
    return concat.getAxis() > 0;
  if (auto list = dyn_cast<GatherOp>(op)) // of numbers by their codes
    return tensorType(list.getData()).getRank() == 1 && type.getRank() > 1;
  auto kernel = dyn_cast<KernelOpInterface>(op);
  return kernel && kernel.getKernelKind() == KernelKind::Elementwise;
}

struct GatherStored : OpRewritePattern<GatherOp> {
  using OpRewritePattern::OpRewritePattern;

  /// Returns the operand for `rows` rows: those that are asked for, or what all
  /// rows share.
  static Value rowsOf(TensorBuilder &b, Value operand, RankedTensorType whole,
                      GatherOp gather) {
    RankedTensorType own = tensorType(operand);
    if (own.getRank() < whole.getRank())
      return operand;
    if (own.getDimSize(0) == whole.getDimSize(0))
      return b.make<GatherOp>(operand, gather.getIndices(), 0);
    return b.reshape(operand, own.getShape().drop_front());
  }

  LogicalResult matchAndRewrite(GatherOp gather,
                                PatternRewriter &rewriter) const override {
    Operation *op = gather.getData().getDefiningOp();
    if (gather.getAxis() != 0 || !op || isStored(gather.getData()) ||
        !keepsRows(op) || !followsFromStored(gather.getData()))
      return failure();
    TensorBuilder b(rewriter, op->getLoc());
    RankedTensorType whole = tensorType(gather.getData());
    int64_t added = gather.getType().getRank() - whole.getRank();
    if (isa<ReshapeOp>(op)) {
      Value rows = b.make<GatherOp>(op->getOperand(0), gather.getIndices(), 0);
      rewriter.replaceOp(gather, b.reshape(rows, gather.getType().getShape()));
      return success();
    }
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(rowsOf(b, operand, whole, gather));
    Operation *copy = rewriter.clone(*op);
    copy->setOperands(operands);
    copy->getResult(0).setType(gather.getType());
    if (auto concat = dyn_cast<ConcatOp>(copy))
      concat.setAxis(uint64_t(int64_t(concat.getAxis()) + added));
    rewriter.replaceOp(gather, copy->getResults());
    return success();
  }
};

/// Casts beside the ops that make a weight, so that one kernel, and a product's
/// too, makes it of what is stored: blocks of groups are reshaped to rows.
struct CastStored : OpRewritePattern<CastOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(CastOp cast,
                                PatternRewriter &rewriter) const override {
    auto reshape = cast.getInput().getDefiningOp<ReshapeOp>();
    if (!reshape || !reshape->hasOneUse() || isStored(reshape.getInput()) ||
        !followsFromStored(reshape.getInput()))
      return failure();
    TensorBuilder b(rewriter, cast.getLoc());
    Value made =
        b.cast(reshape.getInput(), getElementTypeOrSelf(cast.getType()));
    rewriter.replaceOp(cast, b.reshape(made, cast.getType().getShape()));
    return success();
  }
};
} // namespace

bool ckopt::followsFromStored(Value value) {
  unsigned ops = 0;
  return follows(value, ops);
}

void ckopt::addGatherStored(RewritePatternSet &patterns) {
  patterns.add<GatherStored, CastStored>(patterns.getContext());
}
