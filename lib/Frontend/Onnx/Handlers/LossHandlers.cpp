//===- LossHandlers.cpp - losses that a graph ends in ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The reduction is outside of cross_entropy: `mean` divides by the sum of the
// weights of the targets that count, which without weights is their number.
//
// SoftmaxCrossEntropyLoss has no label smoothing, and PyTorch's exporter drops
// it silently; the call that it records still has it, so the import restores
// it.
//
//===----------------------------------------------------------------------===//
#include "Export/TorchCalls.h"
#include "ckopt/Dialect/Ckopt/Utils/LabelRange.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;

namespace {
struct LossOperands {
  Value scores, targets, weight;
  std::optional<int64_t> ignored;
  std::string reduction;
  double smoothing = 0; ///< the probability that is spread over all classes
};
} // namespace

/// Returns whether the targets are probabilities of the classes, which only
/// PyTorch has: its exporter writes them where ONNX has class numbers.
static bool hasSoftTargets(NodeImporter &n, const LossOperands &loss) {
  return n.isFloat(loss.targets) && isCallOf(n.node, "cross_entropy_loss") &&
         n.shape(loss.targets) == n.shape(loss.scores);
}

static bool readLoss(NodeImporter &n, LossOperands &loss) {
  loss.scores = n.in(0);
  loss.targets = n.in(1);
  loss.weight = n.optional(2);
  // Class weights are settings of the loss; training must not change them.
  if (loss.weight)
    n.graph.setArgumentRole(loss.weight, roles::kFrozen);
  loss.reduction = n.attrString("reduction", "mean");
  if (n.hasAttr("ignore_index"))
    loss.ignored = n.attrInt("ignore_index", 0);
  if (!loss.scores || !loss.targets)
    return false;
  if (loss.reduction != "mean" && loss.reduction != "sum" &&
      loss.reduction != "none") {
    n.error() << "unknown reduction '" << loss.reduction << "'";
    return false;
  }
  bool soft = hasSoftTargets(n, loss);
  Shape want(n.shape(loss.scores));
  if (want.size() >= 2 && !soft)
    want.erase(want.begin() + 1);
  if (n.isFloat(loss.targets) && !soft) {
    n.error() << "targets of type " << loss.targets.getType()
              << " are no class numbers; ONNX has no loss of class "
                 "probabilities: write -(t * z.log_softmax(1)).sum(1).mean() "
                 "in the model";
    return false;
  }
  if (n.rank(loss.scores) < 2 ||
      n.shape(loss.targets) != ArrayRef<int64_t>(want)) {
    n.error() << "targets of type " << loss.targets.getType()
              << " do not fit scores of type " << loss.scores.getType();
    return false;
  }
  if (loss.weight &&
      n.shape(loss.weight) != ArrayRef<int64_t>({n.shape(loss.scores)[1]})) {
    n.error() << "the weight must have one number for each class";
    return false;
  }
  n.graph.setArgumentRole(loss.targets, roles::kTarget);
  if (soft)
    return true;
  if (!n.element(loss.targets).isInteger(64))
    loss.targets = n.cast(loss.targets, n.b.getI64Type());
  return loss.targets != nullptr;
}

/// Sums `values` (broadcast along the classes) where the class is the target.
static Value pick(NodeImporter &n, const LossOperands &loss, Value values) {
  Shape wide(n.shape(loss.targets));
  wide.insert(wide.begin() + 1, 1);
  Shape classes(wide.size(), 1);
  classes[1] = n.shape(loss.scores)[1];
  Value hit = n.compare(ComparePredicate::EQ, n.reshape(loss.targets, wide),
                        n.iota(classes, n.b.getI64Type(), 1));
  if (auto op = hit ? hit.getDefiningOp<CompareOp>() : CompareOp()) {
    op->setAttr(kClassesAttr, n.b.getI64IntegerAttr(classes[1]));
    if (loss.ignored)
      op->setAttr(kIgnoreIndexAttr, n.b.getI64IntegerAttr(*loss.ignored));
  }
  return n.reduce(ReduceKind::Sum, n.select(hit, values, n.scalar(0, values)),
                  {1}, /*keepdims=*/false);
}

/// Returns the smoothed part of each target's loss, to which all classes
/// contribute equally.
static Value ofAllClasses(NodeImporter &n, const LossOperands &loss,
                          Value classWeights) {
  Value each =
      n.make<LogSoftmaxOp>({loss.scores}, {n.named("axis", int64_t(1))});
  if (classWeights)
    each = n.mul(each, classWeights);
  double share = loss.smoothing / double(n.shape(loss.scores)[1]);
  Value sum = n.reduce(ReduceKind::Sum, each, {1}, /*keepdims=*/false);
  return sum ? n.mul(sum, n.scalar(-share, sum)) : sum;
}

/// Weighs and reduces the loss of each target.
static void reduceLoss(NodeImporter &n, const LossOperands &loss, Value each) {
  // `counted` weighs each target, or is null; `weights` is by class
  Value counted, weights;
  if (loss.weight) {
    Shape wide(size_t(n.rank(loss.scores)), 1);
    wide[1] = n.shape(loss.scores)[1];
    weights = n.reshape(loss.weight, wide);
    counted = pick(n, loss, weights);
  }
  Value smoothed = loss.smoothing ? ofAllClasses(n, loss, weights) : Value();
  if (loss.ignored) {
    Value valid = n.compare(ComparePredicate::NE, loss.targets,
                            n.scalar(double(*loss.ignored), loss.targets));
    Value ones = n.scalar(1, loss.scores), zeros = n.scalar(0, loss.scores);
    counted = n.select(valid, counted ? counted : ones, zeros);
    each = n.select(valid, each, zeros);
    smoothed = smoothed ? n.select(valid, smoothed, zeros) : smoothed;
  }
  if (loss.weight)
    each = n.mul(each, counted);
  if (smoothed && each)
    each = n.add(n.mul(each, n.scalar(1 - loss.smoothing, each)), smoothed);
  if (!each)
    return;
  auto axes = llvm::to_vector(llvm::seq<int64_t>(0, n.rank(each)));
  Value result = each;
  if (loss.reduction == "sum")
    result = n.reduce(ReduceKind::Sum, each, axes, false);
  else if (loss.reduction == "mean" && !counted)
    result = n.reduce(ReduceKind::Mean, each, axes, false);
  else if (loss.reduction == "mean")
    result = n.div(n.reduce(ReduceKind::Sum, each, axes, false),
                   n.reduce(ReduceKind::Sum, counted, axes, false));
  n.set(0, result);
  if (result && loss.reduction != "none")
    n.graph.markLoss(result);
}

/// Computes -sum(w t log_softmax(z)) over the classes. Unlike for class
/// numbers, the mean counts all targets alike.
static void softCrossEntropy(NodeImporter &n, const LossOperands &loss) {
  Value logs =
      n.make<LogSoftmaxOp>({loss.scores}, {n.named("axis", int64_t(1))});
  if (!logs)
    return;
  Value targets = n.cast(loss.targets, n.element(logs));
  if (loss.smoothing)
    targets = n.add(n.mul(targets, n.scalar(1 - loss.smoothing, logs)),
                    n.scalar(loss.smoothing / double(n.shape(logs)[1]), logs));
  Value each = n.mul(logs, targets);
  if (loss.weight) {
    Shape wide(size_t(n.rank(logs)), 1);
    wide[1] = n.shape(logs)[1];
    each = n.mul(each, n.reshape(loss.weight, wide));
  }
  each = n.make<NegOp>({n.reduce(ReduceKind::Sum, each, {1}, false)});
  n.graph.remark(n.node.describe() +
                 ": targets are class probabilities, as in the model; ONNX's "
                 "operator has none");
  LossOperands plain = loss;
  plain.weight = {};
  plain.ignored.reset();
  plain.smoothing = 0;
  reduceLoss(n, plain, each);
}

static LogicalResult crossEntropy(NodeImporter &n) {
  LossOperands loss;
  if (!readLoss(n, loss))
    return failure();
  SmallVector<NamedAttribute> attributes{n.named("axis", int64_t(1))};
  if (loss.ignored)
    attributes.push_back(n.named("ignore_index", *loss.ignored));
  else
    attributes.push_back(n.b.getNamedAttr(kAllCountAttr, n.b.getUnitAttr()));
  if (n.graph.trainMode())
    loss.smoothing =
        callNumber(n.node, "cross_entropy_loss", 5, "label_smoothing")
            .value_or(0);
  if (loss.smoothing)
    n.graph.remark(n.node.describe() + ": put back the label smoothing of " +
                   std::to_string(loss.smoothing) +
                   " that the model has and its export lost");
  if (hasSoftTargets(n, loss))
    softCrossEntropy(n, loss);
  else
    reduceLoss(n, loss,
               n.make<CrossEntropyOp>({loss.scores, loss.targets}, attributes));
  if (n.wants(1))
    n.set(1,
          n.make<LogSoftmaxOp>({loss.scores}, {n.named("axis", int64_t(1))}));
  return success();
}

static LogicalResult negativeLogLikelihood(NodeImporter &n) {
  LossOperands loss;
  if (!readLoss(n, loss))
    return failure();
  reduceLoss(n, loss, n.make<NegOp>({pick(n, loss, loss.scores)}));
  return success();
}

llvm::ArrayRef<HandlerEntry> onnx_frontend::lossHandlers() {
  static const HandlerEntry entries[] = {
      {"NegativeLogLikelihoodLoss", 12, negativeLogLikelihood},
      {"SoftmaxCrossEntropyLoss", 12, crossEntropy},
  };
  return entries;
}
