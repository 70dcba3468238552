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
// Problem: an odd number of classes (GPT-2: 50257) begins each row of logits at
// an odd address, and products load and store them element by element. Method:
// where a target asks for it, the weight is copied with rows of zeros up to a
// multiple of what it loads at once, and the losses are told how many numbers
// of a row are classes. Guarantee: what was added has the probability 0 and a
// gradient of zeros, whatever the logits are; gradients of weight and bias lose
// it again, and no label names it. Shapes alone decide.
//
//===----------------------------------------------------------------------===//
#include "Padding.h"
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

//===----------------------------------------------------------------------===//
// The head
//===----------------------------------------------------------------------===//

/// Returns elements [begin, begin + size) of a dimension.
static Value part(TensorBuilder &b, Value whole, int64_t dim, int64_t begin,
                  int64_t size) {
  RankedTensorType type = tensorType(whole);
  SmallVector<int64_t> starts(type.getRank(), 0), steps(type.getRank(), 1);
  SmallVector<int64_t> sizes(type.getShape());
  starts[dim] = begin;
  sizes[dim] = size;
  return b.make<SliceOp>(whole, b.ints(starts), b.ints(sizes), b.ints(steps));
}

namespace {
/// Weight and bias as the products take them.
struct LossHead {
  Value weight, bias; ///< no bias: null
  bool transposed;
  Type element;        ///< of losses
  int64_t classes;     ///< that exist
  IntegerAttr counted; ///< their number, if logits are padded

  template <typename Op> LossHead(Op op, TensorBuilder &b, int64_t group);

  int64_t classDim() const { return !transposed; }
  /// The product (and bias) of rows of the op's input, as the loss reads them.
  Value logits(TensorBuilder &b, Value input) const {
    Value product = b.make<MatMulOp>(input, weight, false, transposed);
    return b.cast(bias ? b.add(product, bias) : product, element);
  }
  void replaceWeightGrad(TensorBuilder &b, Value old, Value gradient) const;
  void replaceBiasGrad(TensorBuilder &b, Value old, Value gradient) const {
    old.replaceAllUsesWith(counted ? part(b, gradient, 0, 0, classes)
                                   : gradient);
  }
};
} // namespace

template <typename Op>
LossHead::LossHead(Op op, TensorBuilder &b, int64_t group)
    : weight(op.getWeight()), bias(op.getBias()),
      transposed(op.getTransposeWeight()),
      element(getElementTypeOrSelf(op.getLoss())),
      classes(tensorType(weight).getDimSize(classDim())) {
  int64_t wide = group ? paddedExtent(classes, group) : classes;
  if (wide == classes)
    return;
  counted = b.builder.getI64IntegerAttr(classes);
  weight = withZeros(b.builder, b.loc, weight, classDim(), wide);
  if (bias)
    bias = withZeros(b.builder, b.loc, bias, 0, wide);
}

/// Returns indices of `rows` rows as a scatter into these reads them: negative
/// ones count from the end, and all of them name a row.
static Value settled(TensorBuilder &b, Value indices, int64_t rows) {
  Value fromEnd = b.add(indices, double(rows));
  Value each =
      b.select(b.compare(ComparePredicate::LT, indices, 0), fromEnd, indices);
  each = b.make<MaximumOp>(each, b.number(each, 0));
  return b.make<MinimumOp>(each, b.number(each, double(rows - 1)));
}

/// Replaces the weight's gradient. Of a tied embedding the rows are added
/// before the padding goes: an update reads what is left where it lies, a sum
/// in place would need a copy.
void LossHead::replaceWeightGrad(TensorBuilder &b, Value old,
                                 Value gradient) const {
  if (!counted)
    return old.replaceAllUsesWith(gradient);
  ScatterAddOp scatter;
  if (old.hasOneUse())
    scatter = dyn_cast<ScatterAddOp>(*old.user_begin());
  if (!scatter || scatter.getInit() != old ||
      int64_t(scatter.getAxis()) != classDim())
    return old.replaceAllUsesWith(part(b, gradient, classDim(), 0, classes));
  OpBuilder builder(scatter);
  TensorBuilder at(builder, scatter.getLoc());
  Value sum = at.make<ScatterAddOp>(gradient,
                                    settled(at, scatter.getIndices(), classes),
                                    scatter.getUpdates(), scatter.getAxis());
  scatter.getOutput().replaceAllUsesWith(part(at, sum, classDim(), 0, classes));
  scatter.erase();
}

//===----------------------------------------------------------------------===//
// Chunks
//===----------------------------------------------------------------------===//

namespace {
/// The rows of one chunk.
struct Chunk {
  TensorBuilder &b;
  int64_t begin, size;

  Value rows(Value whole) const { return part(b, whole, 0, begin, size); }
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
static CrossEntropyOp lossOfRows(Op op, TensorBuilder &b, const LossHead &head,
                                 Value logits, Value targets) {
  return CrossEntropyOp::create(b.builder, b.loc, logits, targets, /*axis=*/1,
                                op.getIgnoreIndex(), head.counted);
}

static void unroll(LinearCrossEntropyOp op, int64_t classGroup) {
  OpBuilder builder(op);
  TensorBuilder b(builder, op.getLoc());
  LossHead head(op, b, classGroup);
  SmallVector<Value> losses;
  for (const Chunk &chunk : chunksOf(op, b)) {
    Value logits = head.logits(b, chunk.rows(op.getInput()));
    losses.push_back(
        lossOfRows(op, b, head, logits, chunk.rows(op.getTargets())).getLoss());
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
  return sum ? b.make<MatMulAddOp>(lhs, rhs, sum, /*bias=*/Value(), true, false)
             : b.make<MatMulOp>(lhs, rhs, true, false);
}

static void unroll(LinearCrossEntropyGradOp op, int64_t classGroup) {
  OpBuilder builder(op);
  TensorBuilder b(builder, op.getLoc());
  LossHead head(op, b, classGroup);
  SmallVector<Value> losses, inputs;
  Value weight, bias;
  bool makesBias = op.getBiasGrad() && !op.getBiasGrad().use_empty();
  for (const Chunk &chunk : chunksOf(op, b)) {
    Value input = chunk.rows(op.getInput());
    Value targets = chunk.rows(op.getTargets());
    Value logits = head.logits(b, input);
    CrossEntropyOp loss = lossOfRows(op, b, head, logits, targets);
    losses.push_back(loss.getLoss());
    Value gradient = CrossEntropyGradOp::create(
        builder, b.loc, chunk.rows(op.getGrad()), logits, targets,
        loss.getLse(), loss.getLost(), /*axis=*/1, op.getIgnoreIndex(),
        head.counted);
    gradient = b.cast(gradient, getElementTypeOrSelf(input));
    if (!op.getInputGrad().use_empty())
      inputs.push_back(
          b.make<MatMulOp>(gradient, head.weight, false, !head.transposed));
    if (!op.getWeightGrad().use_empty())
      weight = addProduct(op, b, weight, input, gradient);
    if (makesBias) {
      Value sum = b.sum(gradient, {0});
      bias = bias ? b.add(bias, sum) : sum;
    }
  }
  op.getLoss().replaceAllUsesWith(join(b, losses));
  if (!inputs.empty())
    op.getInputGrad().replaceAllUsesWith(join(b, inputs));
  if (weight)
    head.replaceWeightGrad(b, op.getWeightGrad(), weight);
  if (bias)
    head.replaceBiasGrad(b, op.getBiasGrad(), bias);
  op.erase();
}

void ckopt::unrollChunks(func::FuncOp function, int64_t classGroup) {
  for (auto op :
       llvm::to_vector(function.getBody().getOps<LinearCrossEntropyGradOp>())) {
    joinLoss(op);
    unroll(op, classGroup);
  }
  for (auto op :
       llvm::to_vector(function.getBody().getOps<LinearCrossEntropyOp>()))
    unroll(op, classGroup);
}
