//===- ChunkedLoss.cpp - linear_cross_entropy, chunk by chunk -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// After autodiff, a linear_cross_entropy and its gradient become the gradient
// alone where that makes the loss, too: one product for the logits of a chunk
// of rows, its loss, the logits' gradient in their place, and two products for
// the gradients of input and weight. The weight's gradient grows by matmul_add,
// in one order, whatever the budget.
//
// All of it is plain ops: the planner counts the logits of each chunk as a
// value of its own, and may order and repeat what it likes. Where the weight's
// gradient is larger than the logits, it may keep their gradients, chunk by
// chunk, and make the weight's later.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/Utils/TensorBuilder.h"
#include "ckopt/Normalize/Normalize.h"

#include <vector>

using namespace mlir;
using namespace ckopt;

/// Returns the op whose gradient this is; null: it is gone.
static LinearCrossEntropyOp lossOf(LinearCrossEntropyGradOp gradient) {
  for (Operation *user : gradient.getTargets().getUsers())
    if (auto loss = dyn_cast<LinearCrossEntropyOp>(user))
      if (ValueRange(loss.getOperands()) ==
              ValueRange(gradient.getOperands().drop_front()) &&
          loss->getAttrDictionary() == gradient->getAttrDictionary())
        return loss;
  return nullptr;
}

/// Replaces the loss by the one that its gradient makes, and moves what reads
/// it below that, unless the gradient needs it.
static void joinLoss(LinearCrossEntropyGradOp gradient) {
  LinearCrossEntropyOp loss = lossOf(gradient);
  if (!loss || loss->getBlock() != gradient->getBlock() ||
      !loss->isBeforeInBlock(gradient))
    return;
  DenseSet<Operation *> late{loss};
  SmallVector<Operation *> moved;
  auto isLate = [&](Operation *op) {
    return llvm::any_of(op->getOperands(), [&](Value operand) {
      return late.contains(operand.getDefiningOp());
    });
  };
  for (Operation *op = loss->getNextNode(); op != gradient;
       op = op->getNextNode())
    if (isLate(op)) {
      late.insert(op);
      moved.push_back(op);
    }
  if (isLate(gradient))
    return;
  for (Operation *op : llvm::reverse(moved))
    op->moveAfter(gradient);
  loss.getLoss().replaceAllUsesWith(gradient.getLoss());
  loss.erase();
}

namespace {
/// The ops of one chunk.
struct Chunk {
  TensorBuilder &b;
  int64_t begin, size;

  /// Returns the chunk's rows of a tensor.
  Value rows(Value whole) const {
    RankedTensorType type = tensorType(whole);
    SmallVector<int64_t> starts(type.getRank(), 0), steps(type.getRank(), 1);
    SmallVector<int64_t> sizes(type.getShape());
    starts[0] = begin;
    sizes[0] = size;
    return b.make<SliceOp>(whole, b.ints(starts), b.ints(sizes), b.ints(steps));
  }
  /// The product (and bias) of these rows of the op's input.
  template <typename Op> Value logits(Op op, Value input) const {
    Value product =
        b.make<MatMulOp>(input, op.getWeight(), false, op.getTransposeWeight());
    return op.getBias() ? b.add(product, op.getBias()) : product;
  }
};
} // namespace

template <typename Op>
static std::vector<Chunk> chunksOf(Op op, TensorBuilder &b) {
  std::vector<Chunk> chunks;
  int64_t count = tensorType(op.getInput()).getDimSize(0);
  int64_t rows = int64_t(op.getRows());
  for (int64_t begin = 0; begin < count; begin += rows)
    chunks.push_back({b, begin, std::min(rows, count - begin)});
  return chunks;
}

static Value join(TensorBuilder &b, ArrayRef<Value> parts) {
  return b.make<ConcatOp>(parts, b.builder.getI64IntegerAttr(0));
}

template <typename Op>
static CrossEntropyOp lossOfRows(Op op, TensorBuilder &b, Value logits,
                                 Value targets) {
  return CrossEntropyOp::create(b.builder, b.loc, logits, targets, /*axis=*/1,
                                op.getIgnoreIndex());
}

static void unroll(LinearCrossEntropyOp op) {
  OpBuilder builder(op);
  TensorBuilder b(builder, op.getLoc());
  SmallVector<Value> losses;
  for (const Chunk &chunk : chunksOf(op, b)) {
    Value logits = chunk.logits(op, chunk.rows(op.getInput()));
    losses.push_back(
        lossOfRows(op, b, logits, chunk.rows(op.getTargets())).getLoss());
  }
  op.getLoss().replaceAllUsesWith(join(b, losses));
  op.erase();
}

/// Adds the chunk's part of the weight's gradient to `sum` (null: none yet).
static Value addProduct(LinearCrossEntropyGradOp op, TensorBuilder &b,
                        Value sum, Value input, Value gradient) {
  bool transposed = op.getTransposeWeight();
  Value lhs = transposed ? gradient : input;
  Value rhs = transposed ? input : gradient;
  return sum ? b.make<MatMulAddOp>(lhs, rhs, sum, true, false)
             : b.make<MatMulOp>(lhs, rhs, true, false);
}

static void unroll(LinearCrossEntropyGradOp op) {
  OpBuilder builder(op);
  TensorBuilder b(builder, op.getLoc());
  SmallVector<Value> losses, inputs;
  Value weight, bias;
  bool makesBias = op.getBiasGrad() && !op.getBiasGrad().use_empty();
  for (const Chunk &chunk : chunksOf(op, b)) {
    Value input = chunk.rows(op.getInput());
    Value targets = chunk.rows(op.getTargets());
    Value logits = chunk.logits(op, input);
    CrossEntropyOp loss = lossOfRows(op, b, logits, targets);
    losses.push_back(loss.getLoss());
    Value gradient = CrossEntropyGradOp::create(
        builder, b.loc, chunk.rows(op.getGrad()), logits, targets,
        loss.getLse(), loss.getLost(), /*axis=*/1, op.getIgnoreIndex());
    if (!op.getInputGrad().use_empty())
      inputs.push_back(b.make<MatMulOp>(gradient, op.getWeight(), false,
                                        !op.getTransposeWeight()));
    if (!op.getWeightGrad().use_empty())
      weight = addProduct(op, b, weight, input, gradient);
    if (makesBias) {
      Value part = b.sum(gradient, {0});
      bias = bias ? b.add(bias, part) : part;
    }
  }
  op.getLoss().replaceAllUsesWith(join(b, losses));
  if (!inputs.empty())
    op.getInputGrad().replaceAllUsesWith(join(b, inputs));
  if (weight)
    op.getWeightGrad().replaceAllUsesWith(weight);
  if (bias)
    op.getBiasGrad().replaceAllUsesWith(bias);
  op.erase();
}

void ckopt::unrollChunks(func::FuncOp function) {
  for (auto op :
       llvm::to_vector(function.getBody().getOps<LinearCrossEntropyGradOp>())) {
    joinLoss(op);
    unroll(op);
  }
  for (auto op :
       llvm::to_vector(function.getBody().getOps<LinearCrossEntropyOp>()))
    unroll(op);
}
