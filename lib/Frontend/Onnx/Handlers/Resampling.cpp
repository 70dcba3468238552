//===- Resampling.cpp - a linear map along one axis -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Resizing and padding are maps along single axes whose indices and weights are
// known when importing. Of the ways to compute one, the first that fits is
// taken, so that the gradient, too, reads its operands in place:
//   - entries repeated a whole number of times: a broadcast;
//   - runs of entries of constant step (flips, crops, edges): slices;
//   - a period of few entries (any rational scale): for each entry of the
//     period a weighted sum of strided slices of the operand, its edges
//     repeated; the results are interleaved by a concatenation;
//   - single entries otherwise: a gather;
//   - everything else: a product with the matrix of weights, or gathers where
//     that matrix would be large.
//
//===----------------------------------------------------------------------===//
#include "Resampling.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;

/// The most slices that one period may need.
static constexpr int64_t maxSlices = 32;
/// The most weights in a matrix; beyond, gathers are used.
static constexpr int64_t maxMatrix = int64_t(1) << 22;

Resampling Resampling::picks(int64_t size,
                             llvm::function_ref<int64_t(int64_t)> source) {
  Resampling map;
  for (int64_t i = 0; i < size; ++i)
    map.rows.push_back({{source(i), 1.0}});
  return map;
}

/// Returns `entries` of `x` from `start` on with step `step` along `axis`.
static Value strided(NodeImporter &n, Value x, int64_t axis, int64_t start,
                     int64_t entries, int64_t step) {
  if (!x)
    return {};
  auto rank = size_t(n.rank(x));
  Shape starts(rank, 0), sizes(n.shape(x)), steps(rank, 1);
  starts[size_t(axis)] = start;
  sizes[size_t(axis)] = entries;
  steps[size_t(axis)] = step;
  return n.slice(x, starts, sizes, steps);
}

/// Returns entry `at` of `x` along `axis`, repeated `count` times.
static Value repeated(NodeImporter &n, Value x, int64_t axis, int64_t at,
                      int64_t count) {
  Value one = n.sliceAxis(x, axis, at, 1);
  if (!one)
    return {};
  Shape shape(n.shape(one));
  shape[size_t(axis)] = count;
  return n.expand(one, shape);
}

//===----------------------------------------------------------------------===//
// Picking entries
//===----------------------------------------------------------------------===//

Value onnx_frontend::pickEntries(NodeImporter &n, Value x, int64_t axis,
                                 ArrayRef<int64_t> indices) {
  struct Run {
    int64_t start, step, count;
  };
  SmallVector<Run> runs;
  for (int64_t index : indices) {
    Run *last = runs.empty() ? nullptr : &runs.back();
    if (last && last->count == 1)
      last->step = index - last->start;
    if (last && index == last->start + last->step * last->count)
      ++last->count;
    else
      runs.push_back({index, 1, 1});
  }
  if (int64_t(runs.size()) > maxSlices)
    return n.make<GatherOp>({x, n.intConstant(indices)},
                            {n.named("axis", axis)});
  SmallVector<Value> parts;
  for (const Run &run : runs)
    parts.push_back(run.step == 0 && run.count > 1
                        ? repeated(n, x, axis, run.start, run.count)
                        : strided(n, x, axis, run.start, run.count, run.step));
  return parts.size() == 1 ? parts[0] : n.concat(parts, axis);
}

/// Repeats each entry `factor` times.
static Value repeatEntries(NodeImporter &n, Value x, int64_t axis,
                           int64_t factor) {
  Shape inserted(n.shape(x)), merged(n.shape(x));
  inserted.insert(inserted.begin() + axis + 1, 1);
  Shape wide(inserted);
  wide[size_t(axis) + 1] = factor;
  merged[size_t(axis)] *= factor;
  return n.reshape(n.expand(n.reshape(x, inserted), wide), merged);
}

//===----------------------------------------------------------------------===//
// Weighted sums
//===----------------------------------------------------------------------===//

/// Computes one result entry for each of the period, from strided slices of the
/// operand.
static Value byPhases(NodeImporter &n, Value x, int64_t axis,
                      const Resampling &map) {
  int64_t size = n.shape(x)[axis], out = int64_t(map.rows.size());
  int64_t each = (out + map.period - 1) / map.period;
  int64_t low = 0, high = 0; // entries needed beyond the operand
  for (int64_t k = 0; k < map.period; ++k)
    for (Tap tap : map.rows[size_t(k)]) {
      low = std::max(low, -tap.index);
      high = std::max(high, tap.index + (each - 1) * map.advance - (size - 1));
    }
  SmallVector<Value> parts;
  if (low)
    parts.push_back(repeated(n, x, axis, 0, low));
  parts.push_back(x);
  if (high)
    parts.push_back(repeated(n, x, axis, size - 1, high));
  Value wide = parts.size() == 1 ? x : n.concat(parts, axis);
  SmallVector<Value> phases;
  for (int64_t k = 0; k < map.period; ++k) {
    Value sum;
    for (Tap tap : map.rows[size_t(k)]) {
      Value term = strided(n, wide, axis, tap.index + low, each, map.advance);
      if (tap.weight != 1)
        term = n.mul(term, n.scalar(tap.weight, x));
      sum = sum ? n.add(sum, term) : term;
    }
    if (!sum)
      return {};
    Shape shape(n.shape(sum));
    shape.insert(shape.begin() + axis + 1, 1);
    phases.push_back(map.period == 1 ? sum : n.reshape(sum, shape));
  }
  if (map.period == 1)
    return phases[0];
  Shape merged(n.shape(x));
  merged[size_t(axis)] = each * map.period;
  Value y = n.reshape(n.concat(phases, axis + 1), merged);
  return merged[size_t(axis)] == out ? y : n.sliceAxis(y, axis, 0, out);
}

static Value byMatrix(NodeImporter &n, Value x, int64_t axis,
                      const Resampling &map) {
  int64_t size = n.shape(x)[axis], out = int64_t(map.rows.size());
  std::vector<double> weights(size_t(size * out), 0);
  for (int64_t i = 0; i < out; ++i)
    for (Tap tap : map.rows[size_t(i)])
      weights[size_t(i * size + std::clamp<int64_t>(tap.index, 0, size - 1))] +=
          tap.weight;
  Value matrix = n.constant(weights, {out, size}, n.element(x));
  int64_t before = 1, after = 1;
  for (auto [d, extent] : llvm::enumerate(n.shape(x)))
    (int64_t(d) < axis   ? before
     : int64_t(d) > axis ? after
                         : size) *= int64_t(d) == axis ? 1 : extent;
  Shape shape(n.shape(x));
  shape[size_t(axis)] = out;
  Value y = after == 1 ? n.matmul(n.reshape(x, {before, size}), matrix, false,
                                  /*transposeY=*/true)
                       : n.matmul(matrix, n.reshape(x, {before, size, after}));
  return n.reshape(y, shape);
}

static Value byGathers(NodeImporter &n, Value x, int64_t axis,
                       const Resampling &map) {
  size_t taps = 0;
  for (const auto &row : map.rows)
    taps = std::max(taps, row.size());
  Shape along(size_t(n.rank(x) - axis), 1);
  along[0] = int64_t(map.rows.size());
  Value sum;
  for (size_t t = 0; t < taps; ++t) {
    Shape indices;
    std::vector<double> weights;
    for (const auto &row : map.rows) {
      Tap tap = t < row.size() ? row[t] : Tap{0, 0};
      indices.push_back(
          std::clamp<int64_t>(tap.index, 0, n.shape(x)[axis] - 1));
      weights.push_back(tap.weight);
    }
    Value term = n.mul(
        n.make<GatherOp>({x, n.intConstant(indices)}, {n.named("axis", axis)}),
        n.constant(weights, along, n.element(x)));
    sum = sum ? n.add(sum, term) : term;
  }
  return sum;
}

Value onnx_frontend::resample(NodeImporter &n, Value x, int64_t axis,
                              const Resampling &map) {
  if (!x)
    return {};
  int64_t size = n.shape(x)[axis], out = int64_t(map.rows.size());
  Shape indices;
  int64_t slices = 0;
  for (auto [i, row] : llvm::enumerate(map.rows)) {
    if (row.size() == 1 && row[0].weight == 1)
      indices.push_back(std::clamp<int64_t>(row[0].index, 0, size - 1));
    slices += int64_t(i) < map.period ? int64_t(row.size()) : 0;
  }
  bool picks = int64_t(indices.size()) == out;
  if (picks && size && out % size == 0 && out > size) {
    bool repeats = true;
    for (int64_t i = 0; i < out; ++i)
      repeats &= indices[size_t(i)] == i / (out / size);
    if (repeats)
      return repeatEntries(n, x, axis, out / size);
  }
  if (picks) {
    bool identity = size == out;
    for (int64_t i = 0; i < out; ++i)
      identity &= indices[size_t(i)] == i;
    if (identity)
      return x;
  }
  if (map.period > 0 && map.period < out && slices <= maxSlices)
    return byPhases(n, x, axis, map);
  if (picks)
    return pickEntries(n, x, axis, indices);
  return size * out <= maxMatrix ? byMatrix(n, x, axis, map)
                                 : byGathers(n, x, axis, map);
}
