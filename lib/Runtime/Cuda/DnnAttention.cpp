//===- DnnAttention.cpp - attention as a graph of cuDNN -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuDNN's engines for attention recognize a graph of products, pointwise
// operations and reductions in a certain form, which is built here for both
// directions. Scores exist only between operations, in f32; the probabilities
// that are multiplied by values are rounded to the tensors' type. The forward
// graph also gives the logarithm of each row's sum, which the gradient reads.
// In the gradient's graph dq is the result of one product. Then an engine keeps
// the gradient of the scores in its workspace, or adds in a fixed order; a sum
// of dq in memory would be added to by atomics.
//
//===----------------------------------------------------------------------===//
#include "DnnAttention.h"

#include "AttentionParts.h"

#include <cstring>

using namespace ckopt::runtime;
using namespace ckopt::runtime::cuda;

namespace {

/// Alignment of the rows of a part: its tensors begin at a head of a sample.
constexpr int64_t kLoad = 16;

class AttentionGraph {
public:
  using Tensor = DnnGraph::Tensor;

  /// `a` describes the part that one execution computes.
  AttentionGraph(DnnGraph &graph, const AttentionDesc &a, int type)
      : graph(graph), a(a), type(type),
        scores{a.batch, a.heads, a.queries, a.keys},
        packed{a.heads * a.queries * a.keys, a.queries * a.keys, a.keys, 1},
        rows{a.batch, a.heads, a.queries, 1},
        rowStrides{a.heads * a.queries, a.queries, 1, 1} {}

  void forward();
  void gradient();

private:
  /// A tensor of all query heads or of all key heads.
  Tensor tensor(size_t place, int64_t heads, int64_t length, int64_t columns,
                const int64_t (&strides)[3]) {
    return graph.argument(place, type, {a.batch, heads, length, columns},
                          {strides[0], strides[1], strides[2], 1}, kLoad);
  }
  /// The same with the last two dimensions exchanged.
  Tensor turned(size_t place, int64_t columns, const int64_t (&strides)[3]) {
    return graph.argument(place, type, {a.batch, a.keyHeads, columns, a.keys},
                          {strides[0], strides[1], 1, strides[2]}, kLoad);
  }
  Tensor lse() {
    return graph.argument(4, kDnnFloat, rows, rowStrides, sizeof(float));
  }
  /// A tensor of the scores' shape.
  Tensor score(int type = kDnnFloat) {
    return graph.between(type, scores, packed);
  }
  Tensor row() { return graph.between(kDnnFloat, rows, rowStrides); }
  /// Of the scores' shape: x and b combined.
  Tensor pointwise(int mode, Tensor x, Tensor b) {
    Tensor y = score();
    graph.pointwise(mode, x, b, DnnGraph::kNone, y);
    return y;
  }
  Tensor scale() {
    double value;
    std::memcpy(&value, &a.scale, sizeof(value));
    return graph.number(static_cast<float>(value), 4);
  }
  Tensor masked(Tensor x);
  Tensor index(Tensor x, int64_t axis);
  Tensor keepWhere(Tensor x, int mode, Tensor left, Tensor right);
  /// dk or dv: the product of turned scores and rows of queries, summed over
  /// the query heads of each key head.
  void keyGradient(Tensor scores, Tensor by, int64_t columns, Tensor result);

  DnnGraph &graph;
  const AttentionDesc &a;
  int type;
  const Extents scores, packed, rows, rowStrides;
};

} // namespace

AttentionGraph::Tensor AttentionGraph::index(Tensor x, int64_t axis) {
  Tensor y = score(kDnnInt32);
  graph.pointwise(kDnnIndex, x, DnnGraph::kNone, DnnGraph::kNone, y, kDnnFloat,
                  axis);
  return y;
}

AttentionGraph::Tensor AttentionGraph::keepWhere(Tensor x, int mode,
                                                 Tensor left, Tensor right) {
  Tensor keeps = score(kDnnBoolean), y = score();
  graph.pointwise(mode, left, right, DnnGraph::kNone, keeps, kDnnBoolean);
  // The library's own attention has this in place of -inf, too.
  Tensor low = graph.number(-1024.0f * 1024.0f * 1024.0f, 4);
  graph.pointwise(kDnnSelect, x, low, keeps, y);
  return y;
}

AttentionGraph::Tensor AttentionGraph::masked(Tensor x) {
  if (a.causal) {
    Tensor row = index(x, 2), column = index(x, 3);
    x = keepWhere(x, kDnnGreaterEqual, row, column);
  }
  if (a.hasWindow) {
    Tensor row = index(x, 2), column = index(x, 3), shifted = score();
    Tensor window = graph.number(static_cast<float>(a.window), 4);
    graph.pointwise(kDnnAdd, column, window, DnnGraph::kNone, shifted,
                    kDnnFloat, 3);
    x = keepWhere(x, kDnnGreater, shifted, row);
  }
  return x;
}

void AttentionGraph::forward() {
  Tensor q = tensor(0, a.heads, a.queries, a.depth, a.q);
  Tensor k = turned(1, a.depth, a.k);
  Tensor v = tensor(2, a.keyHeads, a.keys, a.width, a.v);
  Tensor o = tensor(3, a.heads, a.queries, a.width, a.o);
  Tensor s = score();
  graph.matmul(q, k, s);
  s = masked(pointwise(kDnnMul, s, scale()));
  Tensor most = row(), sum = row(), log = row(), p = score(type);
  graph.reduce(kDnnMax, s, most);
  Tensor e = pointwise(kDnnExp, pointwise(kDnnSub, s, most), DnnGraph::kNone);
  graph.reduce(kDnnSum, e, sum);
  graph.pointwise(kDnnLog, sum, DnnGraph::kNone, DnnGraph::kNone, log);
  graph.pointwise(kDnnAdd, most, log, DnnGraph::kNone, lse());
  graph.pointwise(kDnnDiv, e, sum, DnnGraph::kNone, p);
  graph.matmul(p, v, o);
}

void AttentionGraph::keyGradient(Tensor x, Tensor by, int64_t columns,
                                 Tensor result) {
  Tensor turned = graph.between(
      type, {a.batch, a.heads, a.keys, a.queries},
      {a.heads * a.queries * a.keys, a.queries * a.keys, 1, a.keys});
  graph.reshape(x, turned);
  if (a.heads == a.keyHeads)
    return graph.matmul(turned, by, result);
  Tensor all =
      graph.between(type, {a.batch, a.heads, a.keys, columns},
                    {a.heads * a.keys * columns, a.keys * columns, columns, 1});
  graph.matmul(turned, by, all);
  graph.reduce(kDnnSum, all, result);
}

void AttentionGraph::gradient() {
  Tensor q = tensor(0, a.heads, a.queries, a.depth, a.q);
  Tensor k = turned(1, a.depth, a.k), v = turned(2, a.width, a.v);
  Tensor o = tensor(3, a.heads, a.queries, a.width, a.o);
  Tensor grad = tensor(5, a.heads, a.queries, a.width, a.grad);
  Tensor dq = tensor(6, a.heads, a.queries, a.depth, a.qGrad);
  Tensor dk = tensor(7, a.keyHeads, a.keys, a.depth, a.kGrad);
  Tensor dv = tensor(8, a.keyHeads, a.keys, a.width, a.vGrad);
  // Each row's sum of o times its gradient.
  Tensor product = graph.between(
      kDnnFloat, {a.batch, a.heads, a.queries, a.width},
      {a.heads * a.queries * a.width, a.queries * a.width, a.width, 1});
  graph.pointwise(kDnnMul, grad, o, DnnGraph::kNone, product);
  Tensor sum = row(), dots = graph.inWorkspace(kDnnFloat, rows, rowStrides);
  graph.reduce(kDnnSum, product, sum);
  graph.pointwise(kDnnMul, sum, graph.number(1, 4), DnnGraph::kNone, dots);
  // Probabilities, and the gradient of v.
  Tensor s = score(), by = scale();
  graph.matmul(q, k, s);
  s = pointwise(kDnnSub, pointwise(kDnnMul, s, by), lse());
  Tensor p = pointwise(kDnnExp, masked(s), DnnGraph::kNone);
  keyGradient(p, grad, a.width, dv);
  // The gradient of the scores.
  Tensor dp = score();
  graph.matmul(grad, v, dp);
  Tensor ds = pointwise(kDnnMul, pointwise(kDnnSub, dp, dots), p);
  ds = pointwise(kDnnMul, ds, by);
  keyGradient(ds, q, a.depth, dk);
  Tensor rowsOfK = graph.between(type, {a.batch, a.keyHeads, a.keys, a.depth},
                                 {a.k[0], a.k[1], a.k[2], 1});
  graph.reshape(k, rowsOfK);
  graph.matmul(ds, rowsOfK, dq);
}

void ckopt::runtime::cuda::addAttention(DnnGraph &graph,
                                        const PrimitiveDesc &desc, int type) {
  AttentionDesc part = desc.attention;
  AttentionParts parts = attentionParts(desc);
  part.heads = part.heads / part.keyHeads * parts.keyHeads;
  part.keyHeads = parts.keyHeads;
  part.batch = parts.samples;
  AttentionGraph builder(graph, part, type);
  if (desc.kind == PrimitiveKind::Attention)
    builder.forward();
  else
    builder.gradient();
}
