//===- AttentionRules.cpp - gradient of attention -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Query, key and value get theirs from one op, which makes the probabilities
// again. A bias that is trained, and a loss that reads lse, need the gradient
// of the scores as a tensor; it is built from products. (The pass that makes
// attention ops leaves trained biases decomposed.) What belongs to rows is f32
// where the operands are 16-bit floats, and so is that tensor.
//
//===----------------------------------------------------------------------===//
#include "RuleBuilder.h"

#include <cmath>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::autodiff;

namespace {
/// Attention by products: groups of query heads are more rows of one matrix.
class Decomposed {
public:
  Decomposed(AttentionOp op, RuleBuilder &b)
      : op(op), b(b), query(tensorType(op.getQuery()).getShape()),
        key(tensorType(op.getKey()).getShape()),
        scores(query.begin(), query.end() - 1) {
    scores.push_back(key[key.size() - 2]);
    grouped.assign(key.begin(), key.end());
    grouped[key.size() - 2] =
        query[query.size() - 2] * query[query.size() - 3] / key[key.size() - 3];
  }

  /// x [.., heads, rows, n] times y [.., key heads, ..]: [.., heads, rows, ..].
  Value times(Value x, Value y, bool transposeY, int64_t columns) {
    SmallVector<int64_t> result(scores);
    result.back() = columns;
    return b.reshape(b.make<MatMulOp>(group(x), y, false, transposeY), result);
  }
  /// The transpose of x times y, summed over the heads of a group.
  Value transposedTimes(Value x, Value y) {
    return b.make<MatMulOp>(group(x), group(y), true, false);
  }

  /// The gradient of the scores, as the softmax reads them, by those of output
  /// and lse (or null), in lse's type.
  Value scoreGradient(Value outGrad, Value lseGrad);
  /// The gradient of the products, times the scale, by that of the scores that
  /// were made last.
  Value beforeCap(Value gradient) {
    return tanh ? b.sub(gradient, b.mul(gradient, b.mul(tanh, tanh)))
                : gradient;
  }

private:
  Value group(Value x) {
    SmallVector<int64_t> shape(grouped);
    shape.back() = tensorType(x).getShape().back();
    return b.reshape(x, shape);
  }
  /// The first (lse) or second (what rounding took from it) number of rows, or
  /// of their gradients, beside the keys.
  Value rowNumber(Value pairs, int64_t which) {
    SmallVector<int64_t> sizes(tensorType(pairs).getShape()),
        starts(sizes.size(), 0), steps(sizes.size(), 1);
    starts.back() = which;
    sizes.back() = 1;
    Value number =
        b.make<SliceOp>(pairs, b.ints(starts), b.ints(sizes), b.ints(steps));
    return besideKeys(b.reshape(number, ArrayRef(sizes).drop_back()));
  }
  /// x in the type of lse.
  Value wide(Value x) { return b.cast(x, getElementTypeOrSelf(op.getLse())); }
  Value besideKeys(Value rows) {
    return b.keepDims(rows, {int64_t(scores.size()) - 1}, scores);
  }
  Value allowed();

  AttentionOp op;
  RuleBuilder &b;
  ArrayRef<int64_t> query, key;
  SmallVector<int64_t> scores, grouped;
  Value tanh; ///< of capped scores over the cap
};
} // namespace

/// Returns which keys are allowed, or null for all.
Value Decomposed::allowed() {
  Value open = op.getMask();
  auto also = [&](Value more) {
    open = open ? b.make<AndOp>(open, more) : more;
  };
  Type index = b.builder.getI64Type();
  auto iota = [&](ArrayRef<int64_t> shape) {
    return b.make<IotaOp>(
        RankedTensorType::get(shape, index), b.builder.getI64IntegerAttr(0),
        b.builder.getF64FloatAttr(0), b.builder.getF64FloatAttr(1));
  };
  if (op.getCausal() || op.getWindow()) {
    Value rows = iota({scores[scores.size() - 2], 1}),
          keys = iota(scores.back());
    if (op.getCausal())
      also(b.compare(ComparePredicate::LE, keys,
                     b.add(rows, double(*op.getCausalOffset()))));
    if (op.getWindow())
      also(b.compare(ComparePredicate::GT, keys,
                     b.add(rows, -double(*op.getWindowSize()))));
  }
  if (Value segments = op.getSegments()) {
    int64_t samples = tensorType(segments).getDimSize(0), keys = scores.back();
    SmallVector<int64_t> ofRows{1, keys, 1}, ofKeys{1, 1, keys};
    if (scores.size() == 4) {
      ofRows.insert(ofRows.begin(), samples);
      ofKeys.insert(ofKeys.begin(), samples);
    }
    also(b.compare(ComparePredicate::EQ, b.reshape(segments, ofRows),
                   b.reshape(segments, ofKeys)));
  }
  return open;
}

Value Decomposed::scoreGradient(Value outGrad, Value lseGrad) {
  Value s = b.mul(wide(times(op.getQuery(), op.getKey(), true, scores.back())),
                  op.getScale().convertToDouble());
  if (double cap = op.getCapValue()) {
    tanh = b.make<TanhOp>(b.mul(s, 1 / cap));
    s = b.mul(tanh, cap);
  }
  if (op.getBias())
    s = b.add(s, op.getBias());
  Value open = allowed();
  if (open)
    s = b.select(open, s, b.number(s, op.getFillValue()));
  Value lse = rowNumber(op.getLse(), 0);
  Value p = b.make<ExpOp>(b.sub(b.sub(s, lse), rowNumber(op.getLse(), 1)));
  if (op.getZeroEmptyRows())
    p = b.where(b.compare(ComparePredicate::GT, lse, -INFINITY), p);
  Value gradient;
  if (outGrad) {
    Value delta = b.sum(b.mul(wide(outGrad), wide(op.getOutput())),
                        {int64_t(scores.size()) - 1});
    gradient = wide(times(outGrad, op.getValue(), true, scores.back()));
    if (op.getSeed()) // a dropout is its own gradient
      gradient = b.make<DropoutOp>(gradient, op.getSeed(), op.getStep(),
                                   op.getRatioAttr(), op.getSiteAttr());
    gradient = b.sub(gradient, besideKeys(delta));
  }
  if (lseGrad) { // what rounding takes is constant
    Value ofLse = rowNumber(lseGrad, 0);
    gradient = gradient ? b.add(gradient, ofLse) : ofLse;
  }
  gradient = b.mul(p, gradient);
  return open ? b.where(open, gradient) : gradient;
}

static void attentionRule(AttentionOp op, RuleBuilder &b) {
  bool inputs = b.needs(0) || b.needs(1) || b.needs(2);
  if (b.grad(0) && inputs) {
    Type types[] = {op.getQuery().getType(), op.getKey().getType(),
                    op.getValue().getType()};
    auto grads = AttentionGradOp::create(
        b.builder, b.loc, types, op.getQuery(), op.getKey(), op.getValue(),
        op.getBias(), op.getMask(), op.getSegments(), op.getSeed(),
        op.getStep(), op.getOutput(), op.getLse(), b.grad(0), op.getScaleAttr(),
        op.getSoftcapAttr(), op.getFillAttr(), op.getCausalAttr(),
        op.getWindowAttr(), op.getZeroEmptyRowsAttr(), op.getRatioAttr(),
        op.getSiteAttr());
    for (unsigned i = 0; i < 3; ++i)
      if (b.needs(i))
        b.set(i, grads.getResult(i));
  }
  bool trained = op.getBias() && b.needs(3);
  if (!trained && !(b.grad(1) && inputs))
    return;
  Decomposed scores(op, b);
  if (trained)
    b.set(3, scores.scoreGradient(b.grad(0), b.grad(1)));
  if (!b.grad(1) || !inputs)
    return;
  // Only what lse adds: the op above has the rest.
  Value g = b.cast(scores.beforeCap(scores.scoreGradient(nullptr, b.grad(1))),
                   getElementTypeOrSelf(op.getQuery()));
  double scale = op.getScale().convertToDouble();
  int64_t depth = tensorType(op.getQuery()).getShape().back();
  if (b.needs(0))
    b.set(0, b.mul(scores.times(g, op.getKey(), false, depth), scale));
  if (b.needs(1))
    b.set(1, b.mul(scores.transposedTimes(g, op.getQuery()), scale));
}

void autodiff::addAttentionRules(MLIRContext *context) {
  addRule<AttentionOp>(
      context, [](AttentionOp op, RuleBuilder &b) { attentionRule(op, b); });
}
