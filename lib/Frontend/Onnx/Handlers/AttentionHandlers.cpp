//===- AttentionHandlers.cpp - Attention, RotaryEmbedding -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Computes softmax(scale * Q K^T, capped, masked) V. Query heads that share a
// key head lie next to each other, so they count as more rows of one matrix:
// grouped heads need no copies of K and V. Scores of masked keys are replaced
// by a select rather than by adding -inf, and a row without any allowed key is
// computed on zeros and then set to zero, so that neither it nor its gradient
// is NaN.
//
//===----------------------------------------------------------------------===//
#include "NodeImporter.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;
using P = ComparePredicate;

namespace {
struct Attention {
  explicit Attention(NodeImporter &n) : n(n) {}
  bool readOperands();
  bool run();

private:
  Value heads(Value x, int64_t count);
  Value maskByPosition();
  bool someRowIsEmpty(int64_t offset) const;
  bool readMask();
  /// Returns which rows have no allowed key, or null if every row has one.
  Value emptyRows();

  NodeImporter &n;
  bool packed = false; ///< operands of rank 3
  Value q, k, v;
  int64_t batch = 0, queryHeads = 0, keyHeads = 0, queries = 0, keys = 0;
  int64_t past = 0; ///< keys before the ones of this node
  int64_t left = -1, right = -1;
  bool causal = false, mayBeEmpty = false;
  Value lengths;       ///< keys that are not padding, [batch, 1, 1, 1]
  Value allowed, bias; ///< broadcast to [batch, heads, queries, keys]
};
} // namespace

/// [batch, length, heads * size] as [batch, heads, length, size].
Value Attention::heads(Value x, int64_t count) {
  ArrayRef<int64_t> shape = n.shape(x);
  if (count < 1 || shape[2] % count) {
    n.error() << "cannot divide dimension 2 of " << x.getType() << " into "
              << count << " heads";
    return {};
  }
  return n.transpose(
      n.reshape(x, {shape[0], shape[1], count, shape[2] / count}),
      {0, 2, 1, 3});
}

bool Attention::readOperands() {
  q = n.in(0);
  k = n.in(1);
  v = n.in(2);
  if (!q || !k || !v)
    return false;
  packed = n.rank(q) == 3;
  if (n.rank(k) != n.rank(q) || n.rank(v) != n.rank(q) ||
      (!packed && n.rank(q) != 4)) {
    n.error() << "needs Q, K and V of rank 3, or all of rank 4";
    return false;
  }
  if (packed) {
    int64_t key = n.attrInt("kv_num_heads", 0);
    q = heads(q, n.attrInt("q_num_heads", 0));
    k = q ? heads(k, key) : Value();
    v = k ? heads(v, key) : Value();
    if (!v)
      return false;
  }
  for (int i : {0, 1}) {
    Value &present = i ? v : k;
    if (!n.has(size_t(4 + i)))
      continue;
    Value before = n.in(size_t(4 + i));
    if (!before || n.rank(before) != 4) {
      n.error() << "past keys and values must have rank 4";
      return false;
    }
    past = n.shape(before)[2];
    if (past)
      present = n.concat({before, present}, 2);
    if (!present)
      return false;
    if (n.wants(size_t(1 + i)))
      n.set(size_t(1 + i), present);
  }
  for (int i : {0, 1})
    if (n.wants(size_t(1 + i)))
      n.set(size_t(1 + i), i ? v : k);
  batch = n.shape(q)[0];
  queryHeads = n.shape(q)[1];
  queries = n.shape(q)[2];
  keyHeads = n.shape(k)[1];
  keys = n.shape(k)[2];
  if (keyHeads < 1 || queryHeads % keyHeads || n.shape(v)[1] != keyHeads ||
      n.shape(v)[2] != keys || n.shape(k)[3] != n.shape(q)[3] ||
      n.shape(k)[0] != batch || n.shape(v)[0] != batch) {
    n.error() << "shapes do not fit: queries " << q.getType() << ", keys "
              << k.getType() << ", values " << v.getType();
    return false;
  }
  causal = n.attrInt("is_causal", 0) != 0;
  left = n.attrInt("left_window_size", -1);
  right = n.attrInt("right_window_size", -1);
  if (left < -1 || right < -1) {
    n.error() << "a window size must be -1 or more";
    return false;
  }
  return !n.hasFailed();
}

/// Returns whether masks by position alone leave a query without keys.
bool Attention::someRowIsEmpty(int64_t offset) const {
  for (int64_t i = 0; i < queries; ++i) {
    int64_t at = i + offset;
    int64_t last = causal ? at : keys - 1, first = 0;
    if (left >= 0)
      first = std::max(first, at - left);
    if (right >= 0)
      last = std::min(last, at + right);
    if (first > std::min(last, keys - 1))
      return true;
  }
  return false;
}

/// Returns which keys causality, windows and lengths allow; null if all.
Value Attention::maskByPosition() {
  Type index = n.b.getI64Type();
  Value mask;
  auto also = [&](Value more) {
    mask = mask ? n.broadcast<AndOp>({mask, more}) : more;
  };
  Value key = n.iota({keys}, index, 0);
  if (causal || left >= 0 || right >= 0) {
    Value query = n.iota({queries, 1}, index, 0, lengths ? 0 : double(past));
    if (lengths)
      query =
          n.add(query, n.sub(lengths, n.scalarOfType(double(queries), index)));
    if (causal)
      also(n.compare(P::LE, key, query));
    if (left >= 0)
      also(n.compare(P::GE, key,
                     n.sub(query, n.scalarOfType(double(left), index))));
    if (right >= 0)
      also(n.compare(P::LE, key,
                     n.add(query, n.scalarOfType(double(right), index))));
    mayBeEmpty |= lengths || someRowIsEmpty(past);
  }
  if (lengths) {
    also(n.compare(P::LT, key, lengths));
    mayBeEmpty = true;
  }
  return mask;
}

bool Attention::readMask() {
  if (n.has(6)) {
    Value given = n.in(6);
    if (!given || n.has(4) || n.type(given).getNumElements() != batch) {
      n.error() << "nonpad_kv_seqlen needs one entry for each sample, and no "
                   "past keys";
      return false;
    }
    lengths = n.reshape(n.cast(given, n.b.getI64Type()), {batch, 1, 1, 1});
  }
  allowed = maskByPosition();
  if (!n.has(3))
    return !n.hasFailed();
  Value mask = n.in(3);
  if (!mask)
    return false;
  int64_t missing = n.rank(mask) ? keys - n.shape(mask).back() : 0;
  bool isBool = n.element(mask).isInteger(1);
  if (missing > 0 && n.shape(mask).back() != 1) {
    Shape none(size_t(n.rank(mask)), 0), high(none);
    high.back() = missing;
    mask = n.make<PadOp>({mask}, {n.named("low", none), n.named("high", high),
                                  n.named("interior", none),
                                  n.namedF("value", isBool ? 0 : -INFINITY)});
  }
  if (!mask)
    return false;
  if (isBool) {
    allowed = allowed ? n.broadcast<AndOp>({allowed, mask}) : mask;
    mayBeEmpty = true;
    return allowed != nullptr;
  }
  bias = n.cast(mask, n.element(q));
  // An additive mask without infinities masks no key entirely.
  std::optional<double> number = n.scalarOf(bias);
  mayBeEmpty |= !number || std::isinf(*number);
  return bias != nullptr;
}

Value Attention::emptyRows() {
  if (!mayBeEmpty)
    return {};
  Type element = n.element(q);
  Value open = bias ? bias : n.cast(allowed, element);
  if (bias && allowed)
    open = n.select(allowed, bias, n.scalar(-INFINITY, bias));
  if (!open)
    return {};
  if (n.rank(open) == 0)
    open = n.reshape(open, {1});
  // The maximum over the mask only feeds a comparison, so no gradient flows
  // through it.
  Value best = n.reduce(ReduceKind::Max, open, {n.rank(open) - 1}, true);
  return n.compare(P::EQ, best, n.scalar(bias ? -INFINITY : 0, best));
}

bool Attention::run() {
  Type element = n.element(q);
  double size = double(n.shape(q)[3]);
  double scale = n.attrFloat("scale", 1 / std::sqrt(size));
  double cap = n.attrFloat("softcap", 0);
  if (!(cap >= 0)) {
    n.error() << "softcap is " << cap << ", not 0 (none) or above";
    return false;
  }
  int64_t mode = n.attrInt("qk_matmul_output_mode", 0);
  Type precision = element;
  if (n.attrInt("softmax_precision", 0) != 0)
    precision = n.attrType("softmax_precision");
  if (!precision || !readMask())
    return false;
  int64_t group = queryHeads / keyHeads;
  Shape full{batch, queryHeads, queries, keys};
  Value rows = n.reshape(n.mul(q, n.scalar(scale, q)),
                         {batch, keyHeads, group * queries, n.shape(q)[3]});
  Value logits = n.reshape(n.matmul(rows, k, false, /*transposeY=*/true), full);
  Value shown = logits;
  if (cap != 0)
    logits = n.mul(n.make<TanhOp>({n.div(logits, n.scalar(cap, logits))}),
                   n.scalar(cap, logits));
  if (mode == 1)
    shown = logits;
  if (bias)
    logits = n.add(logits, bias);
  if (allowed)
    logits = n.select(allowed, logits, n.scalar(-INFINITY, logits));
  if (mode == 2)
    shown = logits;
  if (logits && n.shape(logits) != ArrayRef<int64_t>(full)) {
    n.error() << "the mask does not broadcast to " << shapeString(full);
    return false;
  }
  Value empty = emptyRows();
  if (empty)
    logits = n.select(empty, n.scalar(0, logits), logits);
  Value weights = n.cast(
      n.make<SoftmaxOp>({n.cast(logits, precision)}, {n.named("axis", 3)}),
      element);
  if (empty)
    weights = n.select(empty, n.scalar(0, weights), weights);
  if (mode == 3)
    shown = weights;
  if (n.wants(3))
    n.set(3, shown);
  int64_t width = n.shape(v)[3];
  Value y =
      n.matmul(n.reshape(weights, {batch, keyHeads, group * queries, keys}), v);
  y = n.reshape(y, {batch, queryHeads, queries, width});
  if (packed)
    y = n.reshape(n.transpose(y, {0, 2, 1, 3}),
                  {batch, queries, queryHeads * width});
  n.set(0, y);
  return true;
}

static LogicalResult attention(NodeImporter &n) {
  Attention node(n);
  return success(node.readOperands() && node.run());
}

//===----------------------------------------------------------------------===//
// Rotary embedding
//===----------------------------------------------------------------------===//

/// Rotates the pairs (x1, x2) of each head by the angle of its position.
static LogicalResult rotaryEmbedding(NodeImporter &n) {
  Value x = n.in(0), cosine = n.in(1), sine = n.in(2);
  if (!x || !cosine || !sine)
    return failure();
  bool packed = n.rank(x) == 3; // [batch, length, heads * size]
  int64_t count = n.attrInt("num_heads", 0);
  if (packed ? count < 1 || n.shape(x)[2] % count : n.rank(x) != 4) {
    n.error() << "needs an input of rank 4, or of rank 3 and num_heads";
    return failure();
  }
  Shape original(n.shape(x));
  if (packed)
    x = n.reshape(x, {original[0], original[1], count, original[2] / count});
  Shape shape(n.shape(x));
  int64_t size = shape[3], rotated = n.attrInt("rotary_embedding_dim", 0);
  rotated = rotated ? rotated : size;
  if (rotated < 2 || rotated > size || rotated % 2) {
    n.error() << "cannot rotate " << rotated << " of " << size << " entries";
    return failure();
  }
  int64_t length = packed ? shape[1] : shape[2], half = rotated / 2;
  // Reshapes [batch, length, half], adding a dimension of size 1 for the heads.
  auto table = [&](Value values) -> Value {
    if (n.has(3)) {
      Value positions = n.in(3);
      if (!positions)
        return {};
      values = n.make<GatherOp>({values, positions}, {n.named("axis", 0)});
    }
    if (!values || n.rank(values) != 3 || n.shape(values)[1] != length ||
        n.shape(values)[2] != half) {
      if (!n.hasFailed())
        n.error() << "the tables of cosines and sines must give " << half
                  << " entries for each of " << length << " positions";
      return {};
    }
    int64_t batch = n.shape(values)[0];
    return n.reshape(values, packed ? Shape{batch, length, 1, half}
                                    : Shape{batch, 1, length, half});
  };
  cosine = table(cosine);
  sine = table(sine);
  bool interleaved = n.attrInt("interleaved", 0) != 0;
  Shape part(shape), steps(4, 1);
  part[3] = half;
  steps[3] = interleaved ? 2 : 1;
  Value x1 = n.slice(x, {0, 0, 0, 0}, part, steps);
  Value x2 = n.slice(x, {0, 0, 0, interleaved ? 1 : half}, part, steps);
  Value y1 = n.sub(n.mul(cosine, x1), n.mul(sine, x2));
  Value y2 = n.add(n.mul(sine, x1), n.mul(cosine, x2));
  Value y;
  if (interleaved) {
    Shape pairs(part), merged(shape);
    pairs.push_back(1);
    merged[3] = rotated;
    y = n.reshape(n.concat({n.reshape(y1, pairs), n.reshape(y2, pairs)}, 4),
                  merged);
  } else {
    y = n.concat({y1, y2}, 3);
  }
  if (rotated < size)
    y = n.concat({y, n.sliceAxis(x, 3, rotated, size - rotated)}, 3);
  n.set(0, packed ? n.reshape(y, original) : y);
  return success();
}

llvm::ArrayRef<HandlerEntry> onnx_frontend::attentionHandlers() {
  static const HandlerEntry entries[] = {
      {"Attention", 23, attention},
      {"RotaryEmbedding", 23, rotaryEmbedding},
  };
  return entries;
}
