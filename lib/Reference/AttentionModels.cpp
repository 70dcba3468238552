//===- AttentionModels.cpp - meaning of attention and its gradient --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Computes attention row by row: the scores of all keys, their softmax, and the
// weighted sum of values. The gradient makes the probabilities from lse, as the
// op says. A dropout's factor of an element is 0 or 1 / (1 - ratio).
//
//===----------------------------------------------------------------------===//
#include "RandomWords.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::reference;

namespace {
/// The sizes of an attention op, and the scores of its rows.
template <typename Op> class ScoreRows {
public:
  ScoreRows(Op op, Operands in)
      : in(in), causal(op.getCausalOffset()), window(op.getWindowSize()),
        fill(op.getFillValue()), scale(op.getScale().convertToDouble()),
        cap(op.getCapValue()) {
    ArrayRef<int64_t> q = in[0]->getShape(), k = in[1]->getShape();
    rank = int64_t(q.size());
    batch = rank == 4 ? q[0] : 1;
    heads = q[size_t(rank - 3)];
    keyHeads = k[size_t(rank - 3)];
    queries = q[size_t(rank - 2)];
    depth = q.back();
    keys = k[size_t(rank - 2)];
    width = in[2]->getShape().back();
    size_t next = 3;
    bias = op.getBias() ? in[next++] : nullptr;
    mask = op.getMask() ? in[next++] : nullptr;
    segments = op.getSegments() ? in[next++] : nullptr;
    seed = op.getSeed() ? next : 0;
    rest = next + (seed ? 2 : 0);
    ratio = seed ? op.getRatio()->convertToDouble() : 0;
  }

  /// Reads the seed of the dropout, if there is one.
  LogicalResult start(Op op, const Environment &environment) {
    if (!seed)
      return success();
    auto made = RandomWords::get(op, *in[seed], *in[seed + 1], environment,
                                 batch * heads * queries * keys);
    if (succeeded(made))
      words = *made;
    return made;
  }

  /// Returns what the dropout multiplies a probability by.
  double factor(int64_t row, int64_t key) const {
    if (!words)
      return 1;
    int64_t i = row * keys + key;
    bool keeps = RandomWords::uniform(words->block(i)[size_t(i) % 4]) >= ratio;
    return keeps ? 1 / (1 - ratio) : 0;
  }

  /// Calls `fn(row, key row)` for each row: its number, and the number of the
  /// first row of its key head.
  template <typename Fn> void forEach(Fn fn) const {
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t i = 0; i < queries; ++i)
          fn((b * heads + h) * queries + i,
             (b * keyHeads + h / (heads / keyHeads)) * keys);
  }

  /// Returns whether mask, causality, window and segments allow the key.
  bool allows(int64_t row, int64_t key) const {
    int64_t query = row % queries;
    if ((causal && key > query + *causal) || (window && key <= query - *window))
      return false;
    if (segments) {
      int64_t sample =
          segments->getDimSize(0) == 1 ? 0 : row / (heads * queries);
      if (segments->get(sample * keys + query) !=
          segments->get(sample * keys + key))
        return false;
    }
    return !mask || mask->get(elementOf(*mask, row, key)) != 0;
  }

  double product(int64_t row, int64_t keyRow, int64_t key) const {
    double sum = 0;
    for (int64_t d = 0; d < depth; ++d)
      sum += in[0]->real(row * depth + d) *
             in[1]->real((keyRow + key) * depth + d);
    return sum * scale;
  }

  /// Returns the derivative of a score that is allowed by its product.
  double slope(int64_t row, int64_t keyRow, int64_t key) const {
    double t = cap ? std::tanh(product(row, keyRow, key) / cap) : 0;
    return 1 - t * t;
  }

  double score(int64_t row, int64_t keyRow, int64_t key) const {
    if (!allows(row, key))
      return fill;
    double sum = product(row, keyRow, key);
    if (cap)
      sum = cap * std::tanh(sum / cap);
    return bias ? sum + bias->real(elementOf(*bias, row, key)) : sum;
  }

  double times(const Tensor &x, int64_t row, int64_t keyRow,
               int64_t key) const {
    double sum = 0;
    for (int64_t d = 0; d < width; ++d)
      sum += x.real(row * width + d) * in[2]->real((keyRow + key) * width + d);
    return sum;
  }

  Operands in;
  std::optional<int64_t> causal, window;
  double fill, scale, cap;
  double ratio;
  const Tensor *bias, *mask, *segments;
  size_t seed, rest; ///< operands: 0 for none, the one after all these
  int64_t rank, batch, heads, keyHeads, queries, keys, depth, width;

private:
  std::optional<RandomWords> words;

  int64_t elementOf(const Tensor &x, int64_t row, int64_t key) const {
    int64_t all[4] = {row / (heads * queries), row / queries % heads,
                      row % queries, key};
    return Broadcast(x.getShape(), rank)(ArrayRef(all).take_back(size_t(rank)));
  }
};
} // namespace

static LogicalResult interpretAttention(AttentionOp op, Operands in,
                                        Results out,
                                        const Environment &environment) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  ScoreRows rows(op, in);
  if (failed(rows.start(op, environment)))
    return failure();
  bool isF32 = getElementTypeOrSelf(op.getLse()).isF32();
  std::vector<double> weights(size_t(rows.keys));
  rows.forEach([&](int64_t row, int64_t keyRow) {
    double greatest = -infinity, sum = 0;
    for (int64_t j = 0; j < rows.keys; ++j) {
      weights[size_t(j)] = rows.score(row, keyRow, j);
      greatest = std::fmax(greatest, weights[size_t(j)]);
    }
    bool empty = greatest == -infinity && op.getZeroEmptyRows();
    for (double &weight : weights)
      sum += weight = empty ? 0 : std::exp(weight - greatest);
    for (int64_t d = 0; d < rows.width; ++d) {
      double value = 0;
      for (int64_t j = 0; j < rows.keys; ++j)
        if (!empty)
          value += weights[size_t(j)] / sum * rows.factor(row, j) *
                   in[2]->real((keyRow + j) * rows.width + d);
      out[0].real(row * rows.width + d) = value;
    }
    double lse = empty ? -infinity : greatest + std::log(sum);
    if (isF32)
      lse = double(float(lse));
    out[1].real(2 * row) = lse;
    out[1].real(2 * row + 1) =
        std::isfinite(lse) ? (greatest - lse) + std::log(sum) : 0;
  });
  return success();
}

static LogicalResult interpretAttentionGrad(AttentionGradOp op, Operands in,
                                            Results out,
                                            const Environment &environment) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  ScoreRows rows(op, in);
  if (failed(rows.start(op, environment)))
    return failure();
  const Tensor &output = *in[rows.rest], &lse = *in[rows.rest + 1],
               &grad = *in[rows.rest + 2];
  double scale = op.getScale().convertToDouble();
  rows.forEach([&](int64_t row, int64_t keyRow) {
    double delta = 0;
    for (int64_t d = 0; d < rows.width; ++d)
      delta +=
          grad.real(row * rows.width + d) * output.real(row * rows.width + d);
    if (lse.real(2 * row) == -infinity)
      return;
    for (int64_t j = 0; j < rows.keys; ++j) {
      double p = std::exp((rows.score(row, keyRow, j) - lse.real(2 * row)) -
                          lse.real(2 * row + 1));
      double factor = rows.factor(row, j);
      for (int64_t d = 0; d < rows.width; ++d)
        out[2].real((keyRow + j) * rows.width + d) +=
            p * factor * grad.real(row * rows.width + d);
      if (!rows.allows(row, j) && !std::isnan(p))
        continue;
      double ds = scale * p *
                  (factor * rows.times(grad, row, keyRow, j) - delta) *
                  rows.slope(row, keyRow, j);
      for (int64_t d = 0; d < rows.depth; ++d) {
        out[0].real(row * rows.depth + d) +=
            ds * in[1]->real((keyRow + j) * rows.depth + d);
        out[1].real((keyRow + j) * rows.depth + d) +=
            ds * in[0]->real(row * rows.depth + d);
      }
    }
  });
  return success();
}

void reference::attachAttentionModels(MLIRContext *context) {
  attachModel<AttentionOp, interpretAttention, /*foldable=*/false>(context);
  attachModel<AttentionGradOp, interpretAttentionGrad, /*foldable=*/false>(
      context);
}
