//===- ActivationHandlers.cpp - activations, softmax, dropout -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Activations without an op of their own in the dialect are written in its
// elementwise ops; fusion makes one kernel of them. A branch that a select
// drops must not overflow, because its gradient would be 0 * inf. So
// exponentials take min(x, 0).
//
//===----------------------------------------------------------------------===//
#include "Export/TorchCalls.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;
using P = ComparePredicate;

/// x where x > 0, else `negative`.
static Value positiveOr(NodeImporter &n, Value x, Value negative) {
  return n.select(n.compare(P::GT, x, n.scalar(0, x)), x, negative);
}

/// alpha * (e^(min(x, 0) / divisor) - 1)
static Value negativeExp(NodeImporter &n, Value x, double alpha,
                         double divisor = 1) {
  Value y = n.clip(x, -INFINITY, 0);
  if (divisor != 1)
    y = n.div(y, n.scalar(divisor, x));
  y = n.sub(n.make<ExpOp>({y}), n.scalar(1, x));
  return alpha == 1 ? y : n.mul(y, n.scalar(alpha, x));
}

static LogicalResult leakyRelu(NodeImporter &n) {
  Value x = n.in(0);
  double alpha = n.attrFloat("alpha", 0.01f);
  n.set(0, positiveOr(n, x, n.mul(x, n.scalar(alpha, x))));
  return success();
}

static LogicalResult prelu(NodeImporter &n) {
  Value x = n.in(0);
  n.set(0, positiveOr(n, x, n.mul(x, n.in(1))));
  return success();
}

static LogicalResult elu(NodeImporter &n) {
  Value x = n.in(0);
  n.set(0, positiveOr(n, x, negativeExp(n, x, n.attrFloat("alpha", 1))));
  return success();
}

static LogicalResult selu(NodeImporter &n) {
  Value x = n.in(0);
  double alpha = n.attrFloat("alpha", 1.67326319217681884765625);
  double gamma = n.attrFloat("gamma", 1.05070102214813232421875);
  n.set(0,
        n.mul(positiveOr(n, x, negativeExp(n, x, alpha)), n.scalar(gamma, x)));
  return success();
}

static LogicalResult celu(NodeImporter &n) {
  Value x = n.in(0);
  double alpha = n.attrFloat("alpha", 1);
  if (alpha == 0)
    n.error() << "alpha must not be 0";
  n.set(0, positiveOr(n, x, negativeExp(n, x, alpha, alpha)));
  return success();
}

static LogicalResult thresholdedRelu(NodeImporter &n) {
  Value x = n.in(0);
  double alpha = n.attrFloat("alpha", 1);
  n.set(0,
        n.select(n.compare(P::GT, x, n.scalar(alpha, x)), x, n.scalar(0, x)));
  return success();
}

static LogicalResult softsign(NodeImporter &n) {
  Value x = n.in(0);
  n.set(0, n.div(x, n.add(n.make<AbsOp>({x}), n.scalar(1, x))));
  return success();
}

static Value hardSigmoidOf(NodeImporter &n, Value x, double alpha,
                           double beta) {
  return clipOpenRange(
      n, n.add(n.mul(x, n.scalar(alpha, x)), n.scalar(beta, x)), 0, 1);
}

static LogicalResult hardSigmoid(NodeImporter &n) {
  n.set(0, hardSigmoidOf(n, n.in(0), n.attrFloat("alpha", 0.2f),
                         n.attrFloat("beta", 0.5)));
  return success();
}

static LogicalResult hardSwish(NodeImporter &n) {
  Value x = n.in(0);
  n.set(0, n.mul(x, hardSigmoidOf(n, x, 1.0 / 6, 0.5)));
  return success();
}

static LogicalResult gelu(NodeImporter &n) {
  std::string form = n.attrString("approximate", "none");
  if (form != "none" && form != "tanh")
    n.error() << "approximate must be 'none' or 'tanh', not '" << form << "'";
  SmallVector<NamedAttribute> attributes;
  if (form == "tanh")
    attributes.push_back(n.flag("tanh"));
  n.set(0, n.make<GeluOp>({n.in(0)}, attributes));
  return success();
}

static LogicalResult mish(NodeImporter &n) {
  Value x = n.in(0);
  n.set(0, n.mul(x, n.make<TanhOp>({n.make<SoftplusOp>({x})})));
  return success();
}

/// Swish(x) = x * sigmoid(alpha * x).
static LogicalResult swish(NodeImporter &n) {
  Value x = n.in(0), scaled = x;
  double alpha = n.attrFloat("alpha", 1);
  if (alpha != 1)
    scaled = n.mul(x, n.scalar(alpha, x));
  n.set(0, n.mul(x, n.make<SigmoidOp>({scaled})));
  return success();
}

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

template <typename Op> static LogicalResult softmax(NodeImporter &n) {
  Value x = n.in(0);
  if (!x)
    return failure();
  auto axis = n.normalAxis(n.attrInt("axis", -1), n.rank(x));
  if (!axis)
    return failure();
  n.set(0, n.make<Op>({x}, {n.named("axis", *axis)}));
  return success();
}

/// Before opset 13, softmax ran over all dimensions from `axis` on, taken as
/// one.
template <typename Op> static LogicalResult softmaxCoerced(NodeImporter &n) {
  Value x = n.in(0);
  if (!x)
    return failure();
  int64_t rank = n.rank(x);
  auto axis = n.normalAxis(n.attrInt("axis", 1), rank);
  if (!axis)
    return failure();
  if (*axis == rank - 1) {
    n.set(0, n.make<Op>({x}, {n.named("axis", *axis)}));
    return success();
  }
  Shape flat(n.shape(x).take_front(*axis));
  int64_t row = 1;
  for (int64_t size : n.shape(x).drop_front(*axis))
    row *= size;
  flat.push_back(row);
  Value y = n.make<Op>({n.reshape(x, flat)}, {n.named("axis", *axis)});
  n.set(0, n.reshape(y, n.shape(x)));
  return success();
}

//===----------------------------------------------------------------------===//
// Dropout
//===----------------------------------------------------------------------===//

static void setDropout(NodeImporter &n, bool active, double ratio) {
  Value x = n.in(0);
  if (!x)
    return;
  if (!(ratio >= 0 && ratio < 1)) {
    n.error() << "the ratio must lie in [0, 1), not " << ratio;
    return;
  }
  Type maskType = n.opset < 10 ? n.element(x) : Type(n.b.getI1Type());
  Value ones = n.splat(1, n.tensor(n.shape(x), n.element(x)));
  if (!active || ratio == 0) {
    n.set(0, x);
    if (n.wants(1))
      n.set(1, n.cast(ones, maskType));
    return;
  }
  // The mask is computed as the same dropout of a tensor of ones.
  int64_t site = n.graph.nextDropoutSite();
  auto drop = [&](Value v) {
    return n.make<DropoutOp>({v, n.graph.seed(), n.graph.step()},
                             {n.namedF("ratio", ratio), n.named("site", site)});
  };
  n.set(0, drop(x));
  if (n.wants(1))
    n.set(1, n.cast(n.compare(P::NE, drop(ones), n.scalar(0, x)), maskType));
}

/// Up to opset 11 (from 7 on) a file gives the ratio but not whether it trains.
static LogicalResult dropoutByAttribute(NodeImporter &n) {
  bool active = n.opset < 7 ? n.attrInt("is_test", 0) == 0 : false;
  setDropout(n, active || n.graph.trainMode(), n.attrFloat("ratio", 0.5));
  return success();
}

/// Exporters leave `training_mode` out where they mean the mode of the run
/// (dropout of attention); an explicit false turns the dropout off.
static LogicalResult dropoutByOperand(NodeImporter &n) {
  double ratio = 0.5;
  bool active = n.graph.trainMode();
  if (n.has(1)) {
    auto number = n.constScalar(1);
    if (!number)
      return failure();
    ratio = *number;
  }
  if (n.has(2)) {
    auto mode = n.constScalar(2);
    if (!mode)
      return failure();
    active = *mode != 0;
  }
  setDropout(n, active, ratio);
  return success();
}

llvm::ArrayRef<HandlerEntry> onnx_frontend::activationHandlers() {
  static const HandlerEntry entries[] = {
      {"Celu", 12, celu},
      {"Dropout", 1, dropoutByAttribute},
      {"Dropout", 12, dropoutByOperand},
      {"Elu", 6, elu},
      {"Gelu", 20, gelu},
      {"HardSigmoid", 6, hardSigmoid},
      {"HardSwish", 14, hardSwish},
      {"LeakyRelu", 6, leakyRelu},
      {"LogSoftmax", 1, softmaxCoerced<LogSoftmaxOp>},
      {"LogSoftmax", 13, softmax<LogSoftmaxOp>},
      {"Mish", 18, mish},
      {"PRelu", 7, prelu},
      {"Relu", 6, unary<ReluOp>},
      {"Selu", 6, selu},
      {"Sigmoid", 6, unary<SigmoidOp>},
      {"Softmax", 1, softmaxCoerced<SoftmaxOp>},
      {"Softmax", 13, softmax<SoftmaxOp>},
      {"Softplus", 1, unary<SoftplusOp>},
      {"Softsign", 1, softsign},
      {"Swish", 24, swish},
      {"Tanh", 6, unary<TanhOp>},
      {"ThresholdedRelu", 10, thresholdedRelu},
  };
  return entries;
}
