//===- PreviewHandlers.cpp - operators beside ONNX's own domain -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators of preview domains. ai.onnx.preview.training has optimizers as
// operators on lists of tensors: their operands are a learning rate, a count of
// updates, then all tensors of each kind (X, gradients, state). Of ai.onnx.ml,
// only operators on numbers are supported. ai.onnx.preview has attention with
// subgraphs.
//
//===----------------------------------------------------------------------===//
#include "NodeImporter.h"

#include <cmath>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;

namespace {
/// A tensor that an optimizer updates, with its gradient and states.
struct Variable {
  Value x, gradient;
  SmallVector<Value, 2> state;
};
} // namespace

/// Returns the tensors, each with `states` states; empty after an error. The
/// gradients include the regularization.
static SmallVector<Variable> variablesOf(NodeImporter &n, size_t states) {
  size_t kinds = 2 + states;
  if (n.numInputs() < 2 + kinds || (n.numInputs() - 2) % kinds) {
    n.error() << "needs " << int64_t(kinds)
              << " operands for each tensor, after the learning rate and the "
                 "count of updates";
    return {};
  }
  size_t count = (n.numInputs() - 2) / kinds;
  double decay = n.attrFloat("norm_coefficient", 0);
  SmallVector<Variable> all;
  for (size_t i = 0; i < count; ++i) {
    Variable one{n.in(2 + i), n.in(2 + count + i), {}};
    if (!one.x || !one.gradient)
      return {};
    if (decay != 0)
      one.gradient = n.add(n.mul(one.x, n.scalar(decay, one.x)), one.gradient);
    for (size_t k = 0; k < states; ++k)
      one.state.push_back(n.in(2 + (2 + k) * count + i));
    all.push_back(std::move(one));
  }
  return all;
}

/// Returns operand `i`, a number, in the element type of `like`.
static Value numberLike(NodeImporter &n, size_t i, Value like) {
  Value number = n.in(i);
  return number && like ? n.cast(number, n.element(like)) : Value();
}

/// Computes a * x + b * y.
static Value mix(NodeImporter &n, double a, Value x, double b, Value y) {
  if (!x || !y)
    return {};
  return n.add(n.mul(x, n.scalar(a, x)), n.mul(y, n.scalar(b, y)));
}

static Value square(NodeImporter &n, Value x) { return n.mul(x, x); }

static LogicalResult adagrad(NodeImporter &n) {
  SmallVector<Variable> all = variablesOf(n, 1);
  for (auto [i, v] : llvm::enumerate(all)) {
    Value steps = numberLike(n, 1, v.x), one = n.scalar(1, v.x);
    Value decay = n.scalar(n.attrFloat("decay_factor", 0), v.x);
    Value rate = n.div(numberLike(n, 0, v.x), n.add(one, n.mul(steps, decay)));
    Value sum = n.add(v.state[0], square(n, v.gradient));
    Value root = n.add(n.make<SqrtOp>({sum}),
                       n.scalar(n.attrFloat("epsilon", 1e-6f), v.x));
    n.set(i, n.sub(v.x, n.div(n.mul(rate, v.gradient), root)));
    n.set(all.size() + i, sum);
  }
  return success(!all.empty());
}

/// Computes 1 - b^t.
static Value warmth(NodeImporter &n, double b, Value steps) {
  if (!steps)
    return {};
  Value power = n.broadcast<PowOp>({n.scalar(b, steps), steps});
  return n.sub(n.scalar(1, steps), power);
}

static LogicalResult adam(NodeImporter &n) {
  SmallVector<Variable> all = variablesOf(n, 2);
  double alpha = n.attrFloat("alpha", 0.9f), beta = n.attrFloat("beta", 0.999f);
  double after = n.attrFloat("norm_coefficient_post", 0);
  for (auto [i, v] : llvm::enumerate(all)) {
    Value rate = numberLike(n, 0, v.x), steps = numberLike(n, 1, v.x);
    if (!steps)
      return failure();
    Value warm = n.div(n.mul(rate, n.make<SqrtOp>({warmth(n, beta, steps)})),
                       warmth(n, alpha, steps));
    Value begun = n.compare(ComparePredicate::GT, steps, n.scalar(0, steps));
    rate = n.select(begun, warm, rate);
    Value first = mix(n, alpha, v.state[0], 1 - alpha, v.gradient);
    Value second = mix(n, beta, v.state[1], 1 - beta, square(n, v.gradient));
    Value root = n.add(n.make<SqrtOp>({second}),
                       n.scalar(n.attrFloat("epsilon", 1e-6f), v.x));
    Value x = n.sub(v.x, n.div(n.mul(rate, first), root));
    if (after != 0)
      x = n.mul(x, n.scalar(1 - after, v.x));
    n.set(i, x);
    n.set(all.size() + i, first);
    n.set(2 * all.size() + i, second);
  }
  return success(!all.empty());
}

static LogicalResult momentum(NodeImporter &n) {
  SmallVector<Variable> all = variablesOf(n, 1);
  double alpha = n.attrFloat("alpha", 0), beta = n.attrFloat("beta", 1);
  std::string mode = n.attrString("mode", "standard");
  if (mode != "standard" && mode != "nesterov") {
    n.error() << "mode '" << mode << "' is neither standard nor nesterov";
    return failure();
  }
  for (auto [i, v] : llvm::enumerate(all)) {
    Value steps = numberLike(n, 1, v.x);
    if (!steps)
      return failure();
    Value begun = n.compare(ComparePredicate::GT, steps, n.scalar(0, steps));
    Value share = n.select(begun, n.scalar(beta, v.x), n.scalar(1, v.x));
    Value velocity = n.add(n.mul(v.state[0], n.scalar(alpha, v.x)),
                           n.mul(share, v.gradient));
    Value move = mode == "standard"
                     ? velocity
                     : n.add(v.gradient, n.mul(velocity, n.scalar(alpha, v.x)));
    n.set(i, n.sub(v.x, n.mul(numberLike(n, 0, v.x), move)));
    n.set(all.size() + i, velocity);
  }
  return success(!all.empty());
}

/// Returns 1 above the threshold, else 0.
static LogicalResult binarizer(NodeImporter &n) {
  Value x = n.in(0);
  if (!x)
    return failure();
  Value limit = n.scalar(n.attrFloat("threshold", 0), x);
  n.set(0, n.cast(n.compare(ComparePredicate::GT, x, limit), n.element(x)));
  return success();
}

//===----------------------------------------------------------------------===//
// FlexAttention
//===----------------------------------------------------------------------===//

/// Applies the subgraph in attribute `name` to `value`, keeping shape and type;
/// without a subgraph, returns `value`.
static Value modified(NodeImporter &n, StringRef name, Value value) {
  const onnx_frontend::NodeAttribute *found = n.find(name);
  if (!found || !value)
    return value;
  if (!found->graph || found->graph->inputs.size() != 1 ||
      found->graph->outputs.size() != 1) {
    n.error() << "attribute '" << name
              << "' must be a graph of one input and one output";
    return {};
  }
  std::string prefix = n.node.outputs[0] + "#" + name.str() + "/";
  std::string argument = prefix + "argument";
  n.graph.bind(argument, value);
  auto results = n.graph.importBody(n, *found->graph, {argument}, prefix);
  if (failed(results) || results->size() != 1)
    return {};
  Value result = n.graph.lookup(results->front());
  if (result && result.getType() != value.getType()) {
    n.error() << "the graph '" << name << "' gives " << result.getType()
              << " where " << value.getType() << " is needed";
    return {};
  }
  return result;
}

/// Computes prob_mod(softmax(score_mod(scale * Q K^T))) V. Query heads that
/// share a key head lie next to each other, and count as more rows of one
/// matrix.
static LogicalResult flexAttention(NodeImporter &n) {
  Value q = n.in(0), k = n.in(1), v = n.in(2);
  if (!q || !k || !v)
    return failure();
  if (n.rank(q) != 4 || n.rank(k) != 4 || n.rank(v) != 4) {
    n.error() << "needs Q, K and V of rank 4";
    return failure();
  }
  ArrayRef<int64_t> qs = n.shape(q), ks = n.shape(k), vs = n.shape(v);
  int64_t groups = ks[1] ? qs[1] / ks[1] : 0;
  if (groups < 1 || groups * ks[1] != qs[1] || vs[1] != ks[1] ||
      ks[3] != qs[3] || vs[2] != ks[2] || ks[0] != qs[0] || vs[0] != qs[0]) {
    n.error() << "shapes do not fit: queries " << q.getType() << ", keys "
              << k.getType() << ", values " << v.getType();
    return failure();
  }
  Type element = n.element(q);
  Type precise = n.hasAttr("softmax_precision")
                     ? n.attrType("softmax_precision")
                 : element.isF64() ? element
                                   : Type(n.b.getF32Type());
  if (!precise)
    return failure();
  Shape scores{qs[0], qs[1], qs[2], ks[2]};
  Shape rows{qs[0], ks[1], groups * qs[2], ks[2]};
  Value query = n.reshape(q, {qs[0], ks[1], groups * qs[2], qs[3]});
  Value s = n.cast(n.matmul(query, k, false, /*transposeY=*/true), precise);
  if (!s)
    return failure();
  double scale = n.attrFloat("scale", 1 / std::sqrt(double(qs[3])));
  s = n.reshape(n.mul(s, n.scalar(scale, s)), scores);
  s = modified(n, "score_mod", s);
  Value p = n.make<SoftmaxOp>({s}, {n.named("axis", int64_t(3))});
  p = modified(n, "prob_mod", p);
  if (!p)
    return failure();
  Value y = n.matmul(n.reshape(n.cast(p, element), rows), v);
  n.set(0, n.reshape(y, {qs[0], qs[1], qs[2], vs[3]}));
  return success();
}

llvm::ArrayRef<HandlerEntry> onnx_frontend::previewHandlers() {
  static const char training[] = "ai.onnx.preview.training";
  static const HandlerEntry entries[] = {
      {"Adagrad", 1, adagrad, training},
      {"Adam", 1, adam, training},
      {"Binarizer", 1, binarizer, "ai.onnx.ml"},
      {"FlexAttention", 1, flexAttention, "ai.onnx.preview"},
      {"Momentum", 1, momentum, training},
  };
  return entries;
}
