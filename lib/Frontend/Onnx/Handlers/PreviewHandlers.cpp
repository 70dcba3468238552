//===- PreviewHandlers.cpp - operators beside ONNX's own domain -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators of other domains: of ai.onnx.ml those on numbers, of
// ai.onnx.preview attention with subgraphs.
//
//===----------------------------------------------------------------------===//
#include "NodeImporter.h"

#include <cmath>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;

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
  static const HandlerEntry entries[] = {
      {"Binarizer", 1, binarizer, "ai.onnx.ml"},
      {"FlexAttention", 1, flexAttention, "ai.onnx.preview"},
  };
  return entries;
}
