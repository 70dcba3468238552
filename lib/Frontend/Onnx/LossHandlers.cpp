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
#include "TorchCalls.h"
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
  Shape want(n.shape(loss.scores));
  if (want.size() >= 2)
    want.erase(want.begin() + 1);
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

/// Sets the loss to the reduced one of each target, of which `counted` weighs
/// each, or is null.
static void setReduced(NodeImporter &n, StringRef reduction, Value each,
                       Value counted) {
  if (!each)
    return;
  auto axes = llvm::to_vector(llvm::seq<int64_t>(0, n.rank(each)));
  Value result = each;
  if (reduction == "sum")
    result = n.reduce(ReduceKind::Sum, each, axes, false);
  else if (reduction == "mean" && !counted)
    result = n.reduce(ReduceKind::Mean, each, axes, false);
  else if (reduction == "mean")
    result = n.div(n.reduce(ReduceKind::Sum, each, axes, false),
                   n.reduce(ReduceKind::Sum, counted, axes, false));
  n.set(0, result);
  if (result && reduction != "none")
    n.graph.markLoss(result);
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
  setReduced(n, loss.reduction, each, counted);
}

/// Tells the label smoothing that the exporter dropped; 0 for none.
static double lostSmoothing(NodeImporter &n) {
  double smoothing =
      n.graph.trainMode()
          ? callNumber(n.node, "cross_entropy_loss", 5, "label_smoothing")
                .value_or(0)
          : 0;
  if (smoothing)
    n.graph.remark(n.node.describe() + ": put back the label smoothing of " +
                   std::to_string(smoothing) +
                   " that the model has and its export lost");
  return smoothing;
}

/// PyTorch also takes the probabilities of all classes as targets, which its
/// exporter writes though ONNX has no such loss. The mean is over targets,
/// whatever the class weights.
static LogicalResult softCrossEntropy(NodeImporter &n) {
  Value scores = n.in(0), targets = n.in(1), weight = n.optional(2);
  int64_t classes = n.shape(scores)[1];
  if (double smoothing = lostSmoothing(n))
    targets = n.add(n.mul(targets, n.scalar(1 - smoothing, targets)),
                    n.scalar(smoothing / double(classes), targets));
  Value logs = n.make<LogSoftmaxOp>({scores}, {n.named("axis", int64_t(1))});
  if (n.wants(1))
    n.set(1, logs);
  Value each = n.mul(logs, targets);
  if (weight) {
    if (n.shape(weight) != ArrayRef<int64_t>({classes})) {
      n.error() << "the weight must have one number for each class";
      return failure();
    }
    n.graph.setArgumentRole(weight, roles::kFrozen);
    Shape wide(size_t(n.rank(scores)), 1);
    wide[1] = classes;
    each = n.mul(each, n.reshape(weight, wide));
  }
  if (each)
    each = n.reduce(ReduceKind::Sum, each, {1}, /*keepdims=*/false);
  if (each)
    each = n.make<NegOp>({each});
  setReduced(n, n.attrString("reduction", "mean"), each, /*counted=*/{});
  return success();
}

static LogicalResult crossEntropy(NodeImporter &n) {
  if (n.in(0) && n.in(1) && n.rank(n.in(0)) > 1 &&
      isa<FloatType>(n.element(n.in(1))) &&
      n.shape(n.in(0)) == n.shape(n.in(1)))
    return softCrossEntropy(n);
  LossOperands loss;
  if (!readLoss(n, loss))
    return failure();
  SmallVector<NamedAttribute> attributes{n.named("axis", int64_t(1))};
  if (loss.ignored)
    attributes.push_back(n.named("ignore_index", *loss.ignored));
  else
    attributes.push_back(n.b.getNamedAttr(kAllCountAttr, n.b.getUnitAttr()));
  loss.smoothing = lostSmoothing(n);
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
