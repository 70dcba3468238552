//===- Losses.cpp - the losses that can be attached -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Formulas of the losses. Each computes torch.nn.functional's function of that
// name (hinge and cosine: see below), in a form that neither overflows nor
// cancels, and with PyTorch's gradients at corners: where PyTorch's gradient is
// not that of the formula (binary_cross_entropy bounds both), the loss is
// written as a constant plus (x - x) times the gradient, which has the right
// value and the right derivative.
//
//===----------------------------------------------------------------------===//
#include "LossBuilder.h"
#include "ckopt/Dialect/Ckopt/Utils/SettingDiagnostic.h"

using namespace mlir;
using namespace ckopt;

//===----------------------------------------------------------------------===//
// Losses of classes
//===----------------------------------------------------------------------===//

namespace {
/// Labels, and the weight of each.
struct Labels {
  Value labels;
  Value valid;  ///< i1: not ignored; null: all are
  Value weight; ///< by class, 0 where ignored; null: 1 where valid
  int64_t axis = 1;
};
} // namespace

static Value ifValid(LossBuilder &l, const Labels &labels, Value value) {
  return labels.valid ? l.b.where(labels.valid, value) : value;
}

/// Returns whether each class is the label, in the shape of the predictions.
static Value isLabel(LossBuilder &l, const Labels &labels) {
  SmallVector<int64_t> classes(l.rank(), 1);
  classes[labels.axis] = l.shape()[labels.axis];
  Type i64 = l.b.builder.getI64Type();
  Value numbers = IotaOp::create(
      l.b.builder, l.b.loc, RankedTensorType::get(classes, i64),
      l.b.builder.getI64IntegerAttr(labels.axis),
      l.b.builder.getF64FloatAttr(0), l.b.builder.getF64FloatAttr(1));
  return l.b.compare(ComparePredicate::EQ,
                     l.b.keepDims(labels.labels, {labels.axis}, l.shape()),
                     numbers);
}

/// Returns the predictions at the labels; 0 where the label names no class.
static Value pick(LossBuilder &l, const Labels &labels) {
  return l.b.sum(l.b.where(isLabel(l, labels), l.x), {labels.axis});
}

/// Returns the weight of each label's class.
static FailureOr<Value> weigh(LossBuilder &l, const Labels &labels) {
  FailureOr<Value> weights =
      l.along(l.options.classWeights, labels.axis, Setting("class-weights"));
  if (failed(weights))
    return failure();
  Value table = l.b.reshape(*weights, {l.shape()[labels.axis]});
  Value zero = l.b.number(labels.labels, 0);
  Value safe = labels.valid ? l.b.select(labels.valid, labels.labels, zero)
                            : labels.labels;
  return ifValid(
      l, labels,
      l.b.make<GatherOp>(table, safe, l.b.builder.getI64IntegerAttr(0)));
}

static FailureOr<Labels> takeLabels(LossBuilder &l, bool ignores) {
  Labels result;
  FailureOr<int64_t> axis = l.classAxis();
  if (failed(axis))
    return failure();
  result.axis = *axis;
  result.labels = l.labels(*axis, ignores);
  if (ignores)
    result.valid = l.b.compare(
        ComparePredicate::NE, result.labels,
        l.b.splat(RankedTensorType::get({}, l.b.builder.getI64Type()),
                  double(l.options.ignoreIndex)));
  if (l.options.classWeights.empty())
    return result;
  FailureOr<Value> weight = weigh(l, result);
  if (failed(weight))
    return failure();
  result.weight = *weight;
  return result;
}

/// Returns the sum of `each`; for a mean, divided by the sum of the weights.
static Value reduceLabels(LossBuilder &l, const Labels &labels, Value each) {
  if (l.options.reduction == Reduction::Sum)
    return l.b.sumAll(each);
  Value counted = labels.weight
                      ? labels.weight
                      : l.b.cast(labels.valid, getElementTypeOrSelf(each));
  Value count = l.acrossRanks(l.b.sumAll(counted));
  return l.b.div(l.b.sumAll(each), count);
}

/// cross_entropy with probabilities is a mean over places, whatever their class
/// weights.
static Value softCrossEntropy(LossBuilder &l) {
  FailureOr<int64_t> axis = l.classAxis();
  if (failed(axis))
    return {};
  double classes = double(l.shape()[*axis]);
  Value targets = l.targetsLikeX();
  if (double share = l.options.labelSmoothing; share > 0)
    targets = l.b.add(l.b.mul(targets, 1 - share), share / classes);
  Value each =
      l.b.mul(l.b.make<LogSoftmaxOp>(l.x, l.b.builder.getI64IntegerAttr(*axis)),
              targets);
  if (!l.options.classWeights.empty()) {
    FailureOr<Value> weights =
        l.along(l.options.classWeights, *axis, Setting("class-weights"));
    if (failed(weights))
      return {};
    each = l.b.mul(each, *weights);
  }
  Value sum = l.b.neg(l.b.sumAll(each));
  if (l.options.reduction == Reduction::Sum)
    return sum;
  double places = double(tensorType(l.x).getNumElements()) / classes;
  return l.b.div(sum, l.b.number(sum, places * double(l.options.ranks)));
}

/// The op returns each label's loss, 0 where ignored; the sum is divided by the
/// number of labels that count (if all are ignored the result is NaN, which
/// stops training with a message).
static Value crossEntropy(LossBuilder &l) {
  if (l.options.softTargets)
    return softCrossEntropy(l);
  FailureOr<Labels> labels = takeLabels(l, /*ignores=*/true);
  if (failed(labels))
    return {};
  auto op = CrossEntropyOp::create(l.b.builder, l.b.loc, l.x, labels->labels,
                                   labels->axis, l.options.ignoreIndex,
                                   /*classes=*/nullptr);
  Value each = op.getLoss();
  if (labels->weight)
    each = l.b.mul(each, labels->weight);
  double share = l.options.labelSmoothing;
  if (share == 0)
    return reduceLabels(l, *labels, each);
  // -log p of each class is lse - x.
  auto besideClasses = [&](Value rows) {
    return l.b.keepDims(rows, {labels->axis}, l.shape());
  };
  Value classes = l.b.add(l.b.sub(besideClasses(op.getLse()), l.x),
                          besideClasses(op.getLost()));
  if (labels->weight)
    classes = l.b.mul(classes, *l.along(l.options.classWeights, labels->axis,
                                        Setting("class-weights")));
  Value smooth = ifValid(l, *labels, l.b.sum(classes, {labels->axis}));
  smooth = l.b.mul(smooth, share / double(l.shape()[labels->axis]));
  return reduceLabels(l, *labels, l.b.add(l.b.mul(each, 1 - share), smooth));
}

/// x are log-probabilities.
static Value nll(LossBuilder &l) {
  FailureOr<Labels> labels = takeLabels(l, /*ignores=*/true);
  if (failed(labels))
    return {};
  Value each = ifValid(l, *labels, l.b.neg(pick(l, *labels)));
  if (labels->weight)
    each = l.b.mul(each, labels->weight);
  return reduceLabels(l, *labels, each);
}

static Value multiMargin(LossBuilder &l) {
  if (l.rank() != 2) {
    l.function.emitError("multi_margin needs scores of rank 2 ([N, C]), got ")
        << l.x.getType();
    return {};
  }
  FailureOr<Labels> labels = takeLabels(l, /*ignores=*/false);
  if (failed(labels))
    return {};
  Value right = l.b.keepDims(pick(l, *labels), {labels->axis}, l.shape());
  Value excess =
      l.b.make<ReluOp>(l.b.add(l.b.sub(l.x, right), l.options.margin));
  Value zero = l.b.number(excess, 0);
  Value each =
      l.b.sum(l.b.select(isLabel(l, *labels), zero, excess), {labels->axis});
  each = l.b.mul(each, 1 / double(l.shape()[labels->axis]));
  return l.reduce(labels->weight ? l.b.mul(each, labels->weight) : each);
}

//===----------------------------------------------------------------------===//
// Losses of numbers
//===----------------------------------------------------------------------===//

static Value difference(LossBuilder &l) {
  return l.b.sub(l.x, l.targetsLikeX());
}

static Value mse(LossBuilder &l) {
  Value d = difference(l);
  return l.reduce(l.b.mul(d, d));
}

static Value l1(LossBuilder &l) {
  return l.reduce(l.b.make<AbsOp>(difference(l)));
}

/// |d| is replaced by d^2 / (2 beta) below beta and |d| - beta / 2 above.
static Value smoothL1(LossBuilder &l) {
  double beta = l.options.beta;
  if (beta == 0)
    return l1(l);
  Value d = difference(l), size = l.b.make<AbsOp>(d);
  return l.reduce(l.b.select(l.b.compare(ComparePredicate::LT, size, beta),
                             l.b.mul(l.b.mul(d, d), 0.5 / beta),
                             l.b.add(size, -0.5 * beta)));
}

/// |d| is replaced by d^2 / 2 up to delta and delta (|d| - delta / 2) beyond.
static Value huber(LossBuilder &l) {
  double delta = l.options.delta;
  Value d = difference(l), size = l.b.make<AbsOp>(d);
  return l.reduce(l.b.select(l.b.compare(ComparePredicate::LE, size, delta),
                             l.b.mul(l.b.mul(d, d), 0.5),
                             l.b.mul(l.b.add(size, -0.5 * delta), delta)));
}

/// x are probabilities. As in PyTorch, logarithms are at least -100, and x (1 -
/// x), which the gradient is divided by, is at least 1e-12 (rounded to float).
static Value bce(LossBuilder &l) {
  Value t = l.probabilities("required"), x = l.constant(l.x);
  Value rest = l.b.sub(1, x);
  auto bounded = [&](Value p) {
    Value log = l.b.make<LogOp>(p);
    return l.b.make<MaximumOp>(log, l.b.number(log, -100));
  };
  Value each = l.b.neg(
      l.b.add(l.b.mul(t, bounded(x)), l.b.mul(l.b.sub(1, t), bounded(rest))));
  Value slope = l.b.div(
      l.b.sub(x, t),
      l.b.make<MaximumOp>(l.b.mul(rest, x), l.b.number(x, double(1e-12f))));
  return l.reduce(
      l.b.add(l.constant(each), l.b.mul(l.constant(slope), l.b.sub(l.x, x))));
}

/// x are logits: the loss is (1 - t) x + (1 + (p - 1) t) softplus(-x), with p
/// the weight of positive targets.
static Value bceLogits(LossBuilder &l) {
  Value t = l.probabilities("usual");
  Value below = l.b.make<SoftplusOp>(l.b.neg(l.x));
  if (!l.options.posWeight.empty()) {
    FailureOr<Value> positive =
        l.along(l.options.posWeight,
                l.options.posWeight.size() == 1 ? -1 : l.rank() - 1,
                Setting("pos-weight"));
    if (failed(positive))
      return {};
    below = l.b.mul(below, l.b.add(l.b.mul(l.b.add(*positive, -1), t), 1));
  }
  return l.reduce(l.b.add(l.b.mul(l.b.sub(1, t), l.x), below));
}

/// x are log-probabilities and targets t probabilities: the loss is t (log t -
/// x), where 0 log 0 is 0.
static Value kl(LossBuilder &l) {
  Value t = l.targetsLikeX();
  Value none = l.b.compare(ComparePredicate::EQ, t, 0);
  Value log = l.b.make<LogOp>(l.b.select(none, l.b.number(t, 1), t));
  Value own = l.b.select(none, l.b.number(t, 0), l.b.mul(t, log));
  Value each = l.b.sub(own, l.b.mul(t, l.x));
  if (l.options.reduction != Reduction::BatchMean)
    return l.reduce(each);
  Value sum = l.b.sumAll(each);
  double samples = l.rank() ? double(l.shape()[0]) : 1;
  return l.b.div(sum, l.b.number(sum, samples * double(l.options.ranks)));
}

/// The loss is max(0, margin - t x) for targets t of -1 and 1.
static Value hinge(LossBuilder &l) {
  Value t = l.signs();
  return l.reduce(l.b.make<ReluOp>(l.b.sub(l.options.margin, l.b.mul(t, l.x))));
}

/// The loss is x for targets 1, max(0, margin - x) for targets -1.
static Value hingeEmbedding(LossBuilder &l) {
  Value t = l.signs();
  Value far = l.b.make<ReluOp>(l.b.sub(l.options.margin, l.x));
  Value zero = l.b.number(far, 0);
  return l.reduce(
      l.b.add(l.b.select(l.b.compare(ComparePredicate::EQ, t, 1), zero, far),
              l.b.select(l.b.compare(ComparePredicate::EQ, t, -1), zero, l.x)));
}

/// The loss is 1 - cos of the angle between vectors along the class axis, like
/// PyTorch's cosine_embedding_loss for pairs with target 1.
static Value cosine(LossBuilder &l) {
  int64_t axis = l.options.classAxis.value_or(-1);
  axis += axis < 0 ? l.rank() : 0;
  if (l.rank() < 1 || axis < 0 || axis >= l.rank()) {
    l.function.emitError("cosine: axis ")
        << axis << " is outside of predictions " << l.x.getType();
    return {};
  }
  if (l.rank() > 2 && !l.options.classAxis) {
    l.function.emitError("cosine: vectors could lie along any axis of ")
        << l.x.getType()
        << "; say along which (" + Setting("class-axis", "1") + " as PyTorch's "
        << "cosine_similarity)";
    return {};
  }
  if (failed(l.checkApart(axis)))
    return {};
  constexpr double tiny = 1e-12;
  Value t = l.targetsLikeX();
  auto dot = [&](Value a, Value c) { return l.b.sum(l.b.mul(a, c), {axis}); };
  Value sizes = l.b.mul(l.b.add(dot(l.x, l.x), tiny), l.b.add(dot(t, t), tiny));
  return l.reduce(l.b.sub(1, l.b.div(dot(l.x, t), l.b.make<SqrtOp>(sizes))));
}

//===----------------------------------------------------------------------===//
// The table of losses
//===----------------------------------------------------------------------===//

namespace {
struct Entry {
  LossKind kind;
  Value (*build)(LossBuilder &);
};
} // namespace

static constexpr unsigned kClasses =
    LossKind::ClassAxis | LossKind::ClassWeights;

static constexpr Entry entries[] = {
    {{"cross_entropy",
      kClasses | LossKind::IgnoreIndex | LossKind::LabelSmoothing |
          LossKind::SoftTargets,
      true},
     crossEntropy},
    {{"nll", kClasses | LossKind::IgnoreIndex, true}, nll},
    {{"mse", 0, false}, mse},
    {{"l1", 0, false}, l1},
    {{"smooth_l1", LossKind::Beta, false}, smoothL1},
    {{"huber", LossKind::Delta, false}, huber},
    {{"bce", 0, false}, bce},
    {{"bce_logits", LossKind::PosWeight, false}, bceLogits},
    {{"kl", LossKind::BatchMean, false}, kl},
    {{"hinge", LossKind::Margin, false}, hinge},
    {{"hinge_embedding", LossKind::Margin, false}, hingeEmbedding},
    {{"multi_margin", LossKind::Margin | LossKind::ClassWeights, true},
     multiMargin},
    {{"cosine", LossKind::ClassAxis, false}, cosine},
};

ArrayRef<LossKind> ckopt::lossKinds() {
  static const std::vector<LossKind> kinds = [] {
    std::vector<LossKind> result;
    for (const Entry &entry : entries)
      result.push_back(entry.kind);
    return result;
  }();
  return kinds;
}

const LossKind *ckopt::findLossKind(StringRef name) {
  for (const Entry &entry : entries)
    if (entry.kind.name == name)
      return &entry.kind;
  return nullptr;
}

std::string ckopt::listLossKinds() {
  std::string text;
  for (const Entry &entry : entries)
    text += (text.empty() ? "" : ", ") + entry.kind.name.str();
  return text;
}

Value ckopt::buildLoss(StringRef kind, LossBuilder &builder) {
  for (const Entry &entry : entries)
    if (entry.kind.name == kind)
      return entry.build(builder);
  builder.function.emitError("unknown loss '")
      << kind << "'; expected " << listLossKinds();
  return {};
}
