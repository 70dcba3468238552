//===- AttentionFixture.h - attentions and what they are --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Descriptors of attentions, their tensors, and plain loops in double.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_UNITTESTS_RUNTIME_ATTENTIONFIXTURE_H
#define CKOPT_UNITTESTS_RUNTIME_ATTENTIONFIXTURE_H

#include "PrimitiveFixture.h"

#include <bit>
#include <limits>

namespace ckopt::runtime::test {

inline constexpr double kNone = -std::numeric_limits<double>::infinity();

inline uint64_t bitsOf(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

/// Heads of `rows` x `columns`, dense, or where a [batch, rows, heads, columns]
/// tensor has them.
inline void place(int64_t (&strides)[3], int64_t heads, int64_t rows,
                  int64_t columns, bool between) {
  strides[0] = heads * rows * columns;
  strides[1] = between ? columns : rows * columns;
  strides[2] = between ? heads * columns : columns;
}

inline AttentionDesc sized(int64_t batch, int64_t heads, int64_t keyHeads,
                           int64_t queries, int64_t keys, int64_t depth,
                           int64_t width, bool between = false) {
  AttentionDesc a;
  a.batch = batch, a.heads = heads, a.keyHeads = keyHeads;
  a.queries = queries, a.keys = keys, a.depth = depth, a.width = width;
  for (auto *strides : {&a.q, &a.qGrad})
    place(*strides, heads, queries, depth, between);
  for (auto *strides : {&a.k, &a.kGrad})
    place(*strides, keyHeads, keys, depth, between);
  for (auto *strides : {&a.v, &a.vGrad})
    place(*strides, keyHeads, keys, width, between);
  for (auto *strides : {&a.o, &a.grad})
    place(*strides, heads, queries, width, between);
  a.scale = bitsOf(0.3);
  a.fill = bitsOf(kNone);
  return a;
}

inline constexpr uint64_t kSeed = uint64_t(5) << 32 | 6, kStep = 11;
inline constexpr int64_t kSite = 3;

/// With a mask of all samples, heads, rows, and keys.
inline AttentionDesc masked(AttentionDesc a, double fill) {
  a.hasMask = true;
  a.mask[3] = 1, a.mask[2] = a.keys;
  a.mask[1] = a.mask[2] * a.queries, a.mask[0] = a.mask[1] * a.heads;
  a.fill = bitsOf(fill);
  return a;
}

inline AttentionDesc dropped(AttentionDesc a, double ratio) {
  a.hasDropout = true;
  a.ratio = bitsOf(ratio);
  return a;
}

inline AttentionDesc capped(AttentionDesc a, double cap) {
  a.cap = bitsOf(cap);
  return a;
}

inline AttentionDesc causal(AttentionDesc a, int64_t offset,
                            bool zeros = false) {
  a.causal = true;
  a.offset = offset;
  a.zeroEmptyRows = zeros;
  return a;
}

inline AttentionDesc windowed(AttentionDesc a, int64_t window,
                              bool zeros = false) {
  a.hasWindow = true;
  a.window = window;
  a.zeroEmptyRows = zeros;
  return a;
}

/// Samples have segments of their own, or all the same.
inline AttentionDesc packed(AttentionDesc a, bool own = true) {
  a.hasSegments = true;
  a.segments = own ? a.keys : 0;
  return a;
}

/// The tensors of an attention and its gradient, in the order of the
/// gradient's arguments.
template <typename T> struct Tensors {
  std::vector<T> q, k, v, bias;
  std::vector<unsigned char> mask;
  std::vector<int64_t> segments;
  std::vector<T> o, lse, grad, dq, dk, dv;
  uint64_t seed = kSeed, step = kStep;
  int64_t site = kSite;

  explicit Tensors(const AttentionDesc &a) {
    int64_t rows = a.batch * a.heads * a.queries;
    int64_t keyRows = a.batch * a.keyHeads * a.keys;
    q = values<T>(rows * a.depth, 1);
    k = values<T>(keyRows * a.depth, 2);
    v = values<T>(keyRows * a.width, 3);
    grad = values<T>(rows * a.width, 4);
    bias = values<T>(rows * a.keys, 5);
    uint32_t state = 1;
    for (int64_t i = 0; i < rows * a.keys; ++i) {
      state = state * 1664525u + 1013904223u;
      mask.push_back(state >> 24 & 1);
    }
    // Segments of 1 to 40 keys, the last one long, as if it were padding.
    for (int64_t i = 0, number = 5, left = 0; i < a.batch * a.keys; ++i) {
      if (left-- <= 0) {
        state = state * 1664525u + 1013904223u;
        left = state >> 24 & 1 ? state >> 26 & 31 : state >> 30;
        ++number;
      }
      segments.push_back(i % a.keys < a.keys - a.keys / 8 ? number : -1);
    }
    o.assign(grad.size(), T(7));
    lse.assign(size_t(2 * rows), T(7));
    dq.assign(q.size(), T(7));
    dk.assign(k.size(), T(7));
    dv.assign(v.size(), T(7));
  }

  /// The first of each row's two numbers.
  std::vector<T> rounded() const {
    std::vector<T> numbers;
    for (size_t i = 0; i < lse.size(); i += 2)
      numbers.push_back(lse[i]);
    return numbers;
  }

  std::vector<void *> args(const AttentionDesc &a, bool gradient) {
    std::vector<void *> list{q.data(), k.data(), v.data()};
    if (a.hasBias)
      list.push_back(bias.data());
    if (a.hasMask)
      list.push_back(mask.data());
    if (a.hasSegments)
      list.push_back(segments.data());
    if (a.hasDropout)
      list.insert(list.end(), {&seed, &step});
    list.insert(list.end(), {o.data(), lse.data()});
    if (gradient)
      list.insert(list.end(), {grad.data(), dq.data(), dk.data(), dv.data()});
    if (a.hasDropout)
      list.push_back(&site);
    return list;
  }
};

/// The same in double, key by key.
template <typename T> struct Expected {
  std::vector<double> o, lse, dq, dk, dv;
  /// How far each may be off where probabilities, gradients of scores and
  /// results are rounded to bf16, and all else to f32.
  std::vector<double> oOff, dqOff, dkOff, dvOff;

  Expected(const AttentionDesc &a, const Tensors<T> &t)
      : o(t.o.size()), lse(t.lse.size() / 2), dq(t.q.size()), dk(t.k.size()),
        dv(t.v.size()), oOff(o.size()), dqOff(dq.size()), dkOff(dk.size()),
        dvOff(dv.size()) {
    for (int64_t b = 0; b < a.batch; ++b)
      for (int64_t h = 0; h < a.heads; ++h)
        for (int64_t i = 0; i < a.queries; ++i)
          row(a, t, b, h, i);
    for (auto [off, all] :
         {std::pair{&dqOff, &dq}, {&dkOff, &dk}, {&dvOff, &dv}})
      for (size_t i = 0; i < off->size(); ++i)
        (*off)[i] += kHalf * (std::abs((*all)[i]) + (*off)[i]);
  }

private:
  static constexpr double kHalf = 0x1p-8, kSingle = 0x1p-16;

  static int64_t at(const int64_t *s, int64_t b, int64_t h, int64_t i) {
    return b * s[0] + h * s[1] + i * s[2];
  }

  void row(const AttentionDesc &a, const Tensors<T> &t, int64_t b, int64_t h,
           int64_t i) {
    int64_t g = h / (a.heads / a.keyHeads);
    double scale = std::bit_cast<double>(a.scale), fill, greatest = kNone,
           sum = 0, delta = 0;
    std::memcpy(&fill, &a.fill, sizeof(fill));
    double deltaOff = 0, deltaSize = 0;
    std::vector<double> p(size_t(a.keys)), kept(size_t(a.keys), 1.0),
        slopes(size_t(a.keys), 1.0);
    double cap;
    std::memcpy(&cap, &a.cap, sizeof(cap));
    int64_t element = ((b * a.heads + h) * a.queries + i) * a.keys;
    double ratio;
    std::memcpy(&ratio, &a.ratio, sizeof(ratio));
    for (int64_t j = 0; a.hasDropout && j < a.keys; ++j)
      kept[j] = ckrt_dropout_uniform(kSeed, kStep, kSite, element + j) >= ratio
                    ? 1 / (1 - ratio)
                    : 0;
    std::vector<bool> open(size_t(a.keys), true);
    for (int64_t j = 0; j < a.keys; ++j) {
      double s = 0;
      for (int64_t d = 0; d < a.depth; ++d)
        s += double(t.q[at(a.q, b, h, i) + d]) * t.k[at(a.k, b, g, j) + d];
      s *= scale;
      if (cap != 0) {
        slopes[j] = 1 - std::pow(std::tanh(s / cap), 2);
        s = cap * std::tanh(s / cap);
      }
      if (a.hasBias)
        s += t.bias[at(a.bias, b, h, i) + j * a.bias[3]];
      const int64_t *segments = t.segments.data() + b * a.segments;
      bool isBeside = (a.causal && j > i + a.offset) ||
                      (a.hasWindow && j <= i - a.window) ||
                      (a.hasSegments && segments[i] != segments[j]);
      open[j] = !isBeside &&
                !(a.hasMask && !t.mask[at(a.mask, b, h, i) + j * a.mask[3]]);
      p[j] = isBeside ? kNone : open[j] ? s : fill;
      greatest = std::max(greatest, p[j]);
    }
    bool empty = greatest == kNone;
    for (double &x : p)
      sum += x = empty ? (a.zeroEmptyRows ? 0 : NAN) : std::exp(x - greatest);
    lse[(b * a.heads + h) * a.queries + i] =
        empty ? (a.zeroEmptyRows ? kNone : NAN) : greatest + std::log(sum);
    for (int64_t d = 0; d < a.width; ++d) {
      double &out = o[at(a.o, b, h, i) + d], &off = oOff[at(a.o, b, h, i) + d];
      double grad = t.grad[at(a.grad, b, h, i) + d];
      for (int64_t j = 0; j < a.keys; ++j) {
        double x =
            sum == 0 ? 0 : kept[j] * p[j] / sum * t.v[at(a.v, b, g, j) + d];
        out += x;
        off += (kHalf + kSingle) * std::abs(x);
      }
      off += kHalf * (std::abs(out) + off);
      delta += out * grad;
      deltaOff += off * std::abs(grad);
      deltaSize += std::abs(out * grad);
    }
    for (int64_t j = 0; j < a.keys && sum != 0; ++j) {
      double dp = 0, dpSize = 0;
      for (int64_t d = 0; d < a.width; ++d) {
        double grad = t.grad[at(a.grad, b, h, i) + d];
        double weight = kept[j] * p[j] / sum;
        dp += grad * t.v[at(a.v, b, g, j) + d];
        dpSize += std::abs(grad * t.v[at(a.v, b, g, j) + d]);
        dv[at(a.vGrad, b, g, j) + d] += weight * grad;
        dvOff[at(a.vGrad, b, g, j) + d] +=
            (kHalf + kSingle) * std::abs(weight * grad);
      }
      double ds =
          open[j] ? scale * slopes[j] * p[j] / sum * (kept[j] * dp - delta) : 0;
      double size = std::abs(scale) * p[j] / sum;
      double dsOff = open[j]
                         ? kHalf * std::abs(ds) + size * slopes[j] * deltaOff +
                               kSingle * size * (kept[j] * dpSize + deltaSize)
                         : 0;
      for (int64_t d = 0; d < a.depth; ++d) {
        dq[at(a.qGrad, b, h, i) + d] += ds * t.k[at(a.k, b, g, j) + d];
        dk[at(a.kGrad, b, g, j) + d] += ds * t.q[at(a.q, b, h, i) + d];
        dqOff[at(a.qGrad, b, h, i) + d] +=
            dsOff * std::abs(t.k[at(a.k, b, g, j) + d]);
        dkOff[at(a.kGrad, b, g, j) + d] +=
            dsOff * std::abs(t.q[at(a.q, b, h, i) + d]);
      }
    }
  }
};

} // namespace ckopt::runtime::test

#endif // CKOPT_UNITTESTS_RUNTIME_ATTENTIONFIXTURE_H
