//===- StateSpaceHandlers.cpp - causal convolutions, linear attention -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Layers that carry a state from one position of a sequence to the next.
// Linear attention without decay and correction is two matrix products over
// all positions at once; its other update rules are unrolled.
//
//===----------------------------------------------------------------------===//
#include "NodeImporter.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;

/// Convolves each channel over the positions up to the current one; the `kernel
/// - 1` positions before the first come from the state.
static LogicalResult causalConv(NodeImporter &n) {
  Value x = n.in(0), weight = n.in(1);
  if (!x || !weight)
    return failure();
  if (n.rank(x) != 3 || n.rank(weight) != 3 || n.shape(weight)[1] != 1 ||
      n.shape(weight)[0] != n.shape(x)[1] || n.shape(weight)[2] < 1) {
    n.error() << "needs an input [batch, channels, length] and a weight "
                 "[channels, 1, kernel], got "
              << x.getType() << " and " << weight.getType();
    return failure();
  }
  std::string activation = n.attrString("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish") {
    n.error() << "unknown activation '" << activation << "'";
    return failure();
  }
  int64_t before = n.shape(weight)[2] - 1, length = n.shape(x)[2];
  Value wide = x;
  Value state = n.optional(3);
  if (before && state)
    wide = n.concat({state, x}, 2);
  else if (before)
    wide = n.make<PadOp>({x}, {n.named("low", {0, 0, before}),
                               n.named("high", {0, 0, 0}),
                               n.named("interior", {0, 0, 0})});
  if (!wide || n.shape(wide)[2] != length + before) {
    if (!n.hasFailed())
      n.error() << "the state must hold " << before << " positions";
    return failure();
  }
  Value y = n.make<ConvOp>({wide, weight}, {n.named("strides", Shape{1}),
                                            n.named("pads_low", Shape{0}),
                                            n.named("pads_high", Shape{0}),
                                            n.named("dilations", Shape{1}),
                                            n.named("groups", n.shape(x)[1])});
  y = n.addChannelBias(y, n.optional(2));
  if (activation != "none")
    y = n.mul(y, n.make<SigmoidOp>({y}));
  n.set(0, y);
  if (n.wants(1))
    n.set(1, n.sliceAxis(wide, 2, length, before));
  return success();
}

namespace {
/// Heads are dimension 1, positions dimension 2.
struct LinearAttention {
  explicit LinearAttention(NodeImporter &n) : n(n) {}
  bool read();
  void run();

private:
  Value heads(Value x, int64_t count);
  Value at(Value x, int64_t position) { return n.sliceAxis(x, 2, position, 1); }
  /// Reads [batch, query heads, rows, width] from states of the key heads.
  Value readState(Value query, Value state);
  Value step(Value state, int64_t position);
  Value allAtOnce();

  NodeImporter &n;
  Value q, k, v, decay, beta, state;
  int64_t queryHeads = 0, keyHeads = 0, batch = 0, length = 0, width = 0;
  bool gated = false, corrected = false;
};
} // namespace

Value LinearAttention::heads(Value x, int64_t count) {
  if (!x || n.rank(x) != 3 || n.shape(x)[0] != batch ||
      n.shape(x)[1] != length || n.shape(x)[2] % count) {
    n.error() << "needs operands [batch, length, heads * size]";
    return {};
  }
  return n.transpose(
      n.reshape(x, {batch, length, count, n.shape(x)[2] / count}),
      {0, 2, 1, 3});
}

bool LinearAttention::read() {
  std::string rule = n.attrString("update_rule", "gated_delta");
  gated = rule == "gated" || rule == "gated_delta";
  corrected = rule == "delta" || rule == "gated_delta";
  if (rule != "linear" && !gated && !corrected) {
    n.error() << "unknown update_rule '" << rule << "'";
    return false;
  }
  queryHeads = n.attrInt("q_num_heads", 0);
  keyHeads = n.attrInt("kv_num_heads", 0);
  q = n.in(0);
  if (!q || n.rank(q) != 3 || keyHeads < 1 || queryHeads < 1 ||
      queryHeads % keyHeads || gated != n.has(4) || corrected != n.has(5)) {
    n.error() << "needs a query of rank 3, numbers of heads that divide each "
                 "other, decay and beta as update_rule has them";
    return false;
  }
  batch = n.shape(q)[0];
  length = n.shape(q)[1];
  constexpr int64_t maxSteps = 4096;
  if (rule != "linear" && length > maxSteps) {
    n.unsupported() << "update_rule '" << rule << "' over " << length
                    << " positions; ckopt unrolls up to " << maxSteps;
    return false;
  }
  q = heads(q, queryHeads);
  k = q ? heads(n.in(1), keyHeads) : Value();
  v = k ? heads(n.in(2), keyHeads) : Value();
  if (v && gated)
    decay = heads(n.in(4), keyHeads);
  if (v && corrected) {
    Value given = n.in(5);
    beta = heads(given, given && n.rank(given) == 3 && n.shape(given)[2] == 1
                            ? 1
                            : keyHeads);
  }
  if (!v || (gated && !decay) || (corrected && !beta))
    return false;
  int64_t size = n.shape(k)[3];
  width = n.shape(v)[3];
  double scale = n.attrFloat("scale", 0);
  q = n.mul(q, n.scalar(scale != 0 ? scale : 1 / std::sqrt(double(size)), q));
  state =
      n.has(3)
          ? n.cast(n.in(3), n.element(k))
          : n.splat(0, n.tensor({batch, keyHeads, size, width}, n.element(k)));
  if (!state ||
      n.shape(state) != ArrayRef<int64_t>({batch, keyHeads, size, width})) {
    n.error() << "the state must have shape "
              << shapeString(Shape{batch, keyHeads, size, width});
    return false;
  }
  return q != nullptr;
}

Value LinearAttention::readState(Value query, Value from) {
  if (!query)
    return {};
  Shape shape(n.shape(query));
  Value rows = n.reshape(
      query, {batch, keyHeads, queryHeads / keyHeads * shape[2], shape[3]});
  shape[3] = width;
  return n.reshape(n.matmul(rows, from), shape);
}

/// Returns the state after one more position.
Value LinearAttention::step(Value before, int64_t position) {
  Value key = at(k, position), value = at(v, position);
  if (gated) // a factor for each row of the state, or one for all
    before = n.mul(before, n.transpose(n.make<ExpOp>({at(decay, position)}),
                                       {0, 1, 3, 2}));
  if (corrected)
    value = n.mul(at(beta, position), n.sub(value, n.matmul(key, before)));
  return n.add(before, n.mul(n.transpose(key, {0, 1, 3, 2}), value));
}

/// Without decay and correction, position i reads the values that all j <= i
/// wrote, which is a masked product.
Value LinearAttention::allAtOnce() {
  int64_t group = queryHeads / keyHeads, size = n.shape(k)[3];
  Value rows = n.reshape(q, {batch, keyHeads, group * length, size});
  Value scores = n.reshape(n.matmul(rows, k, false, /*transposeY=*/true),
                           {batch, queryHeads, length, length});
  scores = n.make<TriluOp>({scores}, {n.named("upper", n.b.getBoolAttr(false)),
                                      n.named("k", int64_t(0))});
  Value y =
      n.matmul(n.reshape(scores, {batch, keyHeads, group * length, length}), v);
  y = n.reshape(y, {batch, queryHeads, length, width});
  if (n.has(3))
    y = n.add(y, readState(q, state));
  if (n.wants(1))
    state = n.add(state, n.matmul(k, v, /*transposeX=*/true));
  return y;
}

void LinearAttention::run() {
  Value y;
  if (!gated && !corrected) {
    y = allAtOnce();
  } else {
    SmallVector<Value> reads;
    for (int64_t i = 0; i < length && !n.hasFailed(); ++i) {
      state = step(state, i);
      reads.push_back(readState(at(q, i), state));
    }
    y = n.concat(reads, 2);
  }
  n.set(0, n.reshape(n.transpose(y, {0, 2, 1, 3}),
                     {batch, length, queryHeads * width}));
  if (n.wants(1))
    n.set(1, state);
}

static LogicalResult linearAttention(NodeImporter &n) {
  LinearAttention node(n);
  if (!node.read())
    return failure();
  node.run();
  return success();
}

llvm::ArrayRef<HandlerEntry> onnx_frontend::stateSpaceHandlers() {
  static const HandlerEntry entries[] = {
      {"CausalConvWithState", 27, causalConv},
      {"LinearAttention", 27, linearAttention},
  };
  return entries;
}
