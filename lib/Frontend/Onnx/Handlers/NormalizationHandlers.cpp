//===- NormalizationHandlers.cpp - batch, layer, instance, group norms ----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Export/TorchCalls.h"
#include "Reader/TorchMetadata.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;

//===----------------------------------------------------------------------===//
// Batch normalization
//===----------------------------------------------------------------------===//

/// Computes the channels' statistics over the batch and updates the running
/// ones as states; if the file itself is in training mode, they are plain
/// results.
static void trainBatchNorm(NodeImporter &n, double epsilon, double momentum) {
  Value mean = n.in(3), variance = n.in(4);
  auto all = n.makeAll<BatchNormOp>({n.in(0), n.in(1), n.in(2)},
                                    {n.namedF("epsilon", epsilon)});
  if (all.size() != 3 || !mean || !variance)
    return;
  n.set(0, all[0]);
  Value running[] = {mean, variance};
  for (int i = 0; i < 2; ++i) {
    if (!n.graph.trainMode()) {
      Value kept = n.mul(running[i], n.scalar(momentum, running[i]));
      Value fresh = n.mul(all[i + 1], n.scalar(1 - momentum, all[i + 1]));
      n.set(size_t(i) + 1, n.add(kept, fresh));
      continue;
    }
    // A layer that runs twice in a step updates its state twice.
    Value old = n.graph.currentState(running[i]);
    Value updated = n.make<MovingAverageOp>({old, all[i + 1]},
                                            {n.namedF("momentum", momentum)});
    n.set(size_t(i) + 1, updated);
    if (updated && !n.graph.argumentName(running[i]).empty())
      n.graph.updateState(running[i], updated);
  }
}

/// Returns whether the node itself asks for the batch's statistics: by the
/// model's call, which PyTorch's exporter notes but writes in evaluation form;
/// by an attribute from opset 14 on and before 7, by its outputs in between.
static bool asksForTraining(NodeImporter &n) {
  if (n.graph.trainMode())
    if (auto noted = normTrains(readFxCall(n.node, {})))
      return *noted;
  if (n.opset >= 14)
    return n.attrInt("training_mode", 0) != 0;
  return n.opset >= 7 ? n.numOutputs() > 1 : n.attrInt("is_test", 0) == 0;
}

static LogicalResult batchNorm(NodeImporter &n) {
  double epsilon = n.attrFloat("epsilon", 1e-5f);
  double momentum = n.attrFloat("momentum", 0.9f);
  if (n.opset < 9 && n.attrInt("spatial", 1) == 0) {
    n.unsupported() << "spatial = 0 (statistics for each element)";
    return failure();
  }
  // Exporters write norms in inference form; in training, they use the batch's
  // own statistics, as the framework would. In a file in training form, such a
  // norm was in evaluation mode on purpose.
  bool evaluates = !asksForTraining(n);
  // Instance norms are written as batch norms if they evaluate.
  bool trains = n.graph.trainMode() && !n.graph.isTrainingForm() &&
                !isCallOf(n.node, "instance_norm");
  if (evaluates && trains && n.opset >= 14)
    n.graph.remarkOnce(
        "batch norms are in evaluation form in the file; they train with the "
        "batch's statistics, as after model.train() (" +
        Setting("freeze-norms") + " keeps those of frozen modules)");
  if (!evaluates || trains) {
    trainBatchNorm(n, epsilon, momentum);
    return success();
  }
  n.set(0, n.make<BatchNormInferenceOp>(
               {n.in(0), n.in(1), n.in(2), n.in(3), n.in(4)},
               {n.namedF("epsilon", epsilon)}));
  return success();
}

//===----------------------------------------------------------------------===//
// Norms of each sample
//===----------------------------------------------------------------------===//

/// Returns layer_norm's three results; empty after an error.
static SmallVector<Value> layerNormOf(NodeImporter &n, Value x, Value scale,
                                      Value bias, int64_t axis,
                                      double epsilon) {
  SmallVector<Value> operands{x};
  for (Value operand : {scale, bias})
    if (operand)
      operands.push_back(operand);
  int32_t segments[] = {1, scale ? 1 : 0, bias ? 1 : 0};
  return n.makeAll<LayerNormOp>(
      operands,
      {n.named("axis", axis), n.namedF("epsilon", epsilon),
       n.named("operandSegmentSizes", n.b.getDenseI32ArrayAttr(segments))});
}

static LogicalResult layerNorm(NodeImporter &n) {
  Value x = n.in(0), scale = n.in(1), bias = n.optional(2);
  if (!x || !scale)
    return failure();
  auto axis = n.normalAxis(n.attrInt("axis", -1), n.rank(x));
  if (!axis)
    return failure();
  auto all =
      layerNormOf(n, x, scale, bias, *axis, n.attrFloat("epsilon", 1e-5f));
  if (all.size() != 3)
    return failure();
  n.set(0, all[0]);
  Shape kept(n.shape(x));
  std::fill(kept.begin() + *axis, kept.end(), 1);
  for (size_t i = 1; i < 3; ++i)
    if (n.wants(i))
      n.set(i, n.reshape(all[i], kept));
  return success();
}

/// Computes y * scale + bias along dimension 1, where both have shape [C].
static Value scaleChannels(NodeImporter &n, Value y, Value scale, Value bias) {
  if (!y || !scale || !bias)
    return {};
  int64_t channels = n.shape(y)[1];
  if (n.type(scale).getNumElements() != channels ||
      n.type(bias).getNumElements() != channels) {
    n.error() << "scale and bias must have shape [" << channels << "], got "
              << scale.getType() << " and " << bias.getType();
    return {};
  }
  Shape wide(size_t(n.rank(y) - 1), 1);
  wide[0] = channels;
  return n.add(n.mul(y, n.reshape(scale, wide)), n.reshape(bias, wide));
}

/// Normalizes groups of channels by reshaping [N, C, ...] to [N, groups, rest].
static Value normalizeGroups(NodeImporter &n, Value x, int64_t groups,
                             double epsilon) {
  int64_t rest = n.shape(x)[1] / groups;
  for (int64_t size : n.shape(x).drop_front(2))
    rest *= size;
  Value flat = n.reshape(x, {n.shape(x)[0], groups, rest});
  auto all = layerNormOf(n, flat, {}, {}, 2, epsilon);
  return all.empty() ? Value() : n.reshape(all[0], n.shape(x));
}

static LogicalResult instanceNorm(NodeImporter &n) {
  Value x = n.in(0), scale = n.in(1), bias = n.in(2);
  if (!x || !scale || !bias)
    return failure();
  if (n.rank(x) < 3 || n.shape(x)[1] < 1) {
    n.error() << "needs an input of rank 3 or more with channels, got "
              << x.getType();
    return failure();
  }
  Value y = normalizeGroups(n, x, n.shape(x)[1], n.attrFloat("epsilon", 1e-5f));
  n.set(0, scaleChannels(n, y, scale, bias));
  return success();
}

/// Opset 18 has one scale for each group, 21 one for each channel.
static LogicalResult groupNorm(NodeImporter &n) {
  Value x = n.in(0), scale = n.in(1), bias = n.in(2);
  if (!x || !scale || !bias)
    return failure();
  int64_t groups = n.attrInt("num_groups", 0);
  if (n.rank(x) < 3 || groups < 1 || n.shape(x)[1] % groups) {
    n.error() << "cannot divide the channels of " << x.getType() << " into "
              << groups << " groups";
    return failure();
  }
  int64_t each = n.shape(x)[1] / groups;
  auto perChannel = [&](Value v) -> Value {
    if (n.opset >= 21 || n.type(v).getNumElements() != groups)
      return v;
    return n.reshape(n.expand(n.reshape(v, {groups, 1}), {groups, each}),
                     {groups * each});
  };
  Value y = normalizeGroups(n, x, groups, n.attrFloat("epsilon", 1e-5f));
  n.set(0, scaleChannels(n, y, perChannel(scale), perChannel(bias)));
  return success();
}

/// Computes x / sqrt(mean(x^2) + epsilon) * scale; of halves, the quotient in
/// f32, and rounded before it is scaled. The result has scale's type.
static LogicalResult rmsNorm(NodeImporter &n) {
  Value x = n.in(0), scale = n.in(1);
  if (!x || !scale)
    return failure();
  auto axis = n.normalAxis(n.attrInt("axis", -1), n.rank(x));
  if (!axis)
    return failure();
  Type element = n.element(scale);
  if (n.element(x).getIntOrFloatBitWidth() < element.getIntOrFloatBitWidth())
    x = n.cast(x, element);
  auto all = n.makeAll<RmsNormOp>(
      {x, scale}, {n.named("axis", *axis),
                   n.namedF("epsilon", n.attrFloat("epsilon", 1e-5f)),
                   n.named("rounds", n.b.getUnitAttr())});
  if (!all.empty())
    n.set(0, n.cast(all[0], element));
  return success();
}

/// Computes x / (bias + alpha / size * s)^beta, where s sums x^2 over the
/// `size` nearest channels.
static LogicalResult localResponseNorm(NodeImporter &n) {
  Value x = n.in(0);
  if (!x)
    return failure();
  int64_t size = n.attrInt("size", 0);
  if (n.rank(x) < 3 || size < 1 || size > 1024) {
    n.error() << "needs an input of rank 3 or more and a size of 1 to 1024";
    return failure();
  }
  double alpha = n.attrFloat("alpha", 1e-4f), beta = n.attrFloat("beta", 0.75);
  double bias = n.attrFloat("bias", 1);
  auto rank = size_t(n.rank(x));
  Shape low(rank, 0), high(rank, 0), none(rank, 0);
  low[1] = (size - 1) / 2;
  high[1] = size - 1 - low[1];
  Value squares =
      n.make<PadOp>({n.mul(x, x)}, {n.named("low", low), n.named("high", high),
                                    n.named("interior", none)});
  Value sum;
  for (int64_t k = 0; k < size; ++k) {
    Value part = n.sliceAxis(squares, 1, k, n.shape(x)[1]);
    sum = sum ? n.add(sum, part) : part;
  }
  Value base =
      n.add(n.mul(sum, n.scalar(alpha / double(size), x)), n.scalar(bias, x));
  n.set(0, n.div(x, n.broadcast<PowOp>({base, n.scalar(beta, x)})));
  return success();
}

/// Computes (x - mean) / (standard deviation + 1e-9) over some axes.
static LogicalResult meanVarianceNorm(NodeImporter &n) {
  Value x = n.in(0);
  if (!x)
    return failure();
  Shape axes = n.attrInts("axes", {0, 2, 3});
  for (int64_t &axis : axes) {
    auto normal = n.normalAxis(axis, n.rank(x));
    if (!normal)
      return failure();
    axis = *normal;
  }
  llvm::sort(axes);
  Value centered = n.sub(x, n.reduce(ReduceKind::Mean, x, axes, true));
  Value variance =
      n.reduce(ReduceKind::Mean, n.mul(centered, centered), axes, true);
  // The root has no derivative at 0, so a select keeps zeros out of it.
  Value isZero =
      n.compare(ComparePredicate::EQ, variance, n.scalar(0, variance));
  Value root =
      n.make<SqrtOp>({n.select(isZero, n.scalar(1, variance), variance)});
  root = n.select(isZero, n.scalar(0, root), root);
  n.set(0, n.div(centered, n.add(root, n.scalar(1e-9, root))));
  return success();
}

llvm::ArrayRef<HandlerEntry> onnx_frontend::normalizationHandlers() {
  static const HandlerEntry entries[] = {
      {"BatchNormalization", 1, batchNorm},
      {"BatchNormalization", 9, batchNorm},
      {"BatchNormalization", 14, batchNorm},
      {"GroupNormalization", 18, groupNorm},
      {"GroupNormalization", 21, groupNorm},
      {"InstanceNormalization", 6, instanceNorm},
      {"LRN", 1, localResponseNorm},
      {"LayerNormalization", 17, layerNorm},
      {"MeanVarianceNormalization", 9, meanVarianceNorm},
      {"RMSNormalization", 23, rmsNorm},
  };
  return entries;
}
