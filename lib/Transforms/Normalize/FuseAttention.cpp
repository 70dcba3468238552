//===- FuseAttention.cpp - products around a softmax become attention -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: exporters write attention as a product, a scale, masks, a softmax
// and a second product; the matrices of scores between them are a transformer's
// largest tensors, and autodiff would keep them.
//
// Method: from each softmax over the last dimension down to the product that
// reads it alone, and up through selects (masks), sums (biases), and scalar
// factors to the product that makes the scores. Factors of query and key go
// into the scale. Masks and biases that are constants are evaluated: those that
// allow every key go, a band along the diagonal becomes `causal` and `window`.
// Numbers that are compared for each row and key become `segments`. Key heads
// that were expanded to query heads, or that products broadcast, are read where
// they are; of one sample and one key head, keys are a matrix.
//
// Guarantee: the same real numbers, summed in another order. Bounds of -1e9 and
// below count as -inf where every row keeps a key for sure: there the
// exponentials are 0 in f64, too, if scores and biases stay within 1e8. Beside
// a mask or bias that may take that key they stay a bias or a mask with their
// own number, since a row whose keys are all lowered goes to the keys behind.
// Rows where NaN is replaced by 0 (as exporters treat rows without keys) become
// rows of zeros; where a condition of the program says which rows these are, so
// do rows without keys that it forgets, which were NaN. What is matched depends
// on the program alone, and never on a budget; what is not matched stays as it
// was, and the reasons that a user could change are said: a bias that is
// trained. A dropout between softmax and product keeps its seed, site and
// elements, and so its mask. Complexity: linear, and the evaluation of constant
// masks.
//
//===----------------------------------------------------------------------===//
#include "AttentionMatch.h"
#include "ckopt/Dialect/Ckopt/IR/Splat.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Dialect/Ckopt/Utils/TensorBuilder.h"
#include "ckopt/Normalize/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"

#include <cmath>

namespace ckopt {
#define GEN_PASS_DEF_FUSEATTENTIONPASS
#include "ckopt/Normalize/Passes.h.inc"
} // namespace ckopt

using namespace mlir;
using namespace ckopt;

/// Looks through products with constants; `scale` is multiplied by them.
static Value unscaled(Value value, double &scale) {
  for (;;) {
    Operation *op = value.getDefiningOp();
    if (!isa_and_nonnull<MulOp, DivOp>(op) || isStopped(op))
      return value;
    bool right = isa<MulOp>(op) && splatNumber(op->getOperand(0));
    auto factor = splatNumber(op->getOperand(right ? 0 : 1));
    Value next = op->getOperand(right ? 1 : 0);
    if (!factor || *factor == 0 || next.getType() != value.getType())
      return value;
    scale *= isa<DivOp>(op) ? 1 / *factor : *factor;
    value = next;
  }
}

/// Swaps the last two dimensions; undoes a transpose that did so.
static Value swapped(TensorBuilder &b, Value value) {
  ArrayRef<int64_t> shape = tensorType(value).getShape();
  size_t rank = shape.size();
  Value inner = value;
  while (auto reshape = inner.getDefiningOp<ReshapeOp>()) {
    Value from = reshape.getInput();
    if (tensorType(from).getRank() < 2 || isStopped(reshape) ||
        tensorType(from).getShape().take_back(2) != shape.take_back(2))
      break;
    inner = from;
  }
  SmallVector<int64_t> permutation, result(shape);
  std::swap(result[rank - 1], result[rank - 2]);
  if (auto transpose = inner.getDefiningOp<TransposeOp>();
      transpose && !isStopped(transpose)) {
    permutation.assign(transpose.getPermutation().begin(),
                       transpose.getPermutation().end());
    inner = transpose.getInput();
  } else {
    permutation =
        llvm::to_vector(llvm::seq<int64_t>(0, tensorType(inner).getRank()));
  }
  std::swap(permutation[permutation.size() - 1],
            permutation[permutation.size() - 2]);
  return b.reshape(b.transpose(inner, permutation), result);
}

/// Returns the key heads that `value` repeats for each query head of a group
/// ([batch, key heads, 1, keys, n] expanded and reshaped), or null.
static Value beforeGroups(TensorBuilder &b, Value value) {
  ArrayRef<int64_t> shape = tensorType(value).getShape();
  Value inner = value;
  while (auto reshape = inner.getDefiningOp<ReshapeOp>()) {
    if (isStopped(reshape))
      return {};
    inner = reshape.getInput();
  }
  auto expand = inner.getDefiningOp<ExpandOp>();
  if (!expand || isStopped(expand) || shape.size() != 4)
    return {};
  ArrayRef<int64_t> wide = expand.getType().getShape();
  ArrayRef<int64_t> narrow = tensorType(expand.getInput()).getShape();
  if (wide.size() != 5 || narrow.size() != 5 || wide[0] != shape[0] ||
      wide[1] * wide[2] != shape[1] || wide.take_back(2) != shape.take_back(2))
    return {};
  SmallVector<int64_t> single(wide);
  single[2] = 1;
  if (narrow != ArrayRef<int64_t>(single))
    return {};
  return b.reshape(expand.getInput(), {wide[0], wide[1], wide[3], wide[4]});
}

/// Gives a matrix the dimensions of scores: one key head, of one sample.
static Value withHeads(TensorBuilder &b, Value value, size_t rank) {
  SmallVector<int64_t> shape(tensorType(value).getShape());
  shape.insert(shape.begin(), rank - shape.size(), 1);
  return b.reshape(value, shape);
}

/// Masks and biases are read broadcast.
static Value unexpanded(Value value) {
  while (auto expand = value.getDefiningOp<ExpandOp>()) {
    if (isStopped(expand))
      break;
    value = expand.getInput();
  }
  return value;
}

void AttentionMatch::rewrite() {
  OpBuilder builder(second);
  Location loc =
      FusedLoc::get(builder.getContext(),
                    {first.getLoc(), softmax.getLoc(), second.getLoc()});
  TensorBuilder b(builder, loc);
  Value query = unscaled(first.getLhs(), scale);
  Value key = unscaled(first.getRhs(), scale);
  if (!first.getTransposeRhs())
    key = swapped(b, key);
  Value value = second.getRhs();
  if (second.getTransposeRhs())
    value = swapped(b, value);
  ArrayRef<int64_t> all = scores.getShape();
  SmallVector<int64_t> rows(all);
  rows.back() = tensorType(query).getShape().back();
  query = b.reshape(query, rows);
  key = withHeads(b, key, all.size());
  value = withHeads(b, value, all.size());
  Value keyHeads = beforeGroups(b, key), valueHeads = beforeGroups(b, value);
  if (keyHeads && valueHeads &&
      tensorType(keyHeads).getDimSize(1) ==
          tensorType(valueHeads).getDimSize(1)) {
    key = keyHeads;
    value = valueHeads;
  }
  Value bias, mask;
  for (Value one : biases)
    bias = bias ? b.add(bias, unexpanded(one)) : unexpanded(one);
  if (bias && getElementTypeOrSelf(query).isBF16())
    bias = b.cast(bias, builder.getF32Type());
  if (emptyRows)
    masks.emplace_back(emptyRows, false);
  for (auto [condition, allowedWhere] : masks) {
    Value open = unexpanded(condition);
    if (!allowedWhere)
      open = b.make<NotOp>(open);
    mask = mask ? b.make<AndOp>(mask, open) : open;
  }
  Value numbers;
  if (segments) {
    int64_t keys = all.back();
    numbers =
        b.cast(b.reshape(segments,
                         {tensorType(segments).getNumElements() / keys, keys}),
               builder.getI64Type());
  }
  auto number = [&](double x) { return builder.getF64FloatAttr(x); };
  bool drops = dropout && dropout.getRatio().convertToDouble() > 0;
  auto made = AttentionOp::create(
      builder, loc, query, key, value, bias, mask, numbers,
      drops ? dropout.getSeed() : Value(), drops ? dropout.getStep() : Value(),
      number(scale), cap != 0 ? number(cap) : FloatAttr(),
      mask && std::isfinite(fill) ? number(fill) : FloatAttr(),
      causal ? builder.getI64IntegerAttr(*causal) : IntegerAttr(),
      window ? builder.getI64IntegerAttr(*window) : IntegerAttr(),
      zeroEmptyRows ? builder.getUnitAttr() : UnitAttr(),
      drops ? dropout.getRatioAttr() : FloatAttr(),
      drops ? dropout.getSiteAttr() : IntegerAttr());
  made->setDiscardableAttrs(second->getDiscardableAttrDictionary());
  Value output = b.reshape(made.getOutput(), second.getType().getShape());
  second.getOutput().replaceAllUsesWith(output);
}

namespace {
struct FuseAttention : ckopt::impl::FuseAttentionPassBase<FuseAttention> {
  using FuseAttentionPassBase::FuseAttentionPassBase;

  void runOnOperation() override {
    SmallVector<SoftmaxOp> softmaxes;
    getOperation().walk([&](SoftmaxOp op) { softmaxes.push_back(op); });
    ConstantEvaluator evaluate;
    llvm::MapVector<StringRef, SmallVector<SoftmaxOp>> left;
    std::vector<std::unique_ptr<std::string>> reasons;
    SmallVector<Operation *> negated;
    for (SoftmaxOp op : softmaxes) {
      auto reason = std::make_unique<std::string>();
      AttentionMatch attention(op, evaluate, leastKeys, mostColumns);
      if (attention.match(*reason)) {
        attention.rewrite();
      } else if (!reason->empty()) {
        left[*reason].push_back(op);
        reasons.push_back(std::move(reason));
      }
      llvm::append_range(negated, attention.negated);
    }
    for (Operation *op : negated) // of what was not matched
      if (op->use_empty())
        op->erase();
    for (auto &[reason, ops] : left)
      ops.front().emitRemark()
          << "attention keeps its matrix of scores here"
          << (ops.size() > 1
                  ? " and in " + std::to_string(ops.size() - 1) + " more"
                  : std::string())
          << ": " << reason;
  }
};
} // namespace
