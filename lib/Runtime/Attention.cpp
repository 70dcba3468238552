//===- Attention.cpp - attention by blocks of rows ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: the matrix of scores [queries, keys] of all heads is the largest
// tensor of a transformer's step, and passing it through memory costs more than
// its products. Method: a thread takes one key head of one sample after
// another, and goes through the query rows of its heads in blocks. The scores
// of a block are whole rows, small enough for the L2 cache, so softmax needs no
// rescaling between blocks of keys: one product makes them, a pass makes
// probabilities of them, a second product the result. What stays is the result
// and each row's log of the sum of exponentials (lse). The gradient makes the
// block's probabilities again from lse, and five products of it; the gradients
// of keys and values are sums over the blocks in order, head by head. With
// causality only keys up to the block's last row take part.
//
// Products are oneDNN's gemm for f32, called from inside of the team, where it
// runs on one thread; plain loops for f64. Heads whose rows lie a multiple of
// 4 KiB apart (between 48 others of 64, as a vision transformer has them) cost
// a third of gemm's rate, since their rows fall into the same sets of the L1
// cache: those are copied next to each other first.
//
// Guarantee: which rows make a block depends on the descriptor alone, and a
// block's bits on nothing else, so they are the same for any number of threads
// and any place in memory. Workspace a thread: one block of scores (two for the
// gradient) and the copies of one head. Complexity: two (five) products over
// the keys that causality allows, rounded up to blocks.
//
//===----------------------------------------------------------------------===//
#include "AttentionRows.h"
#include "OpenMP.h"
#include "PrimitiveImpl.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <dnnl.h>
#include <limits>

using namespace ckopt::runtime;

namespace {

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// A matrix with unit stride along its rows; `transposed` swaps it.
template <typename T> struct Matrix {
  const T *data;
  int64_t pitch;
  bool transposed = false;
};

/// c[m, n] = alpha * a[m, k] * b[k, n] + (add ? c : 0).
bool multiply(int64_t m, int64_t n, int64_t k, float alpha, Matrix<float> a,
              Matrix<float> b, bool add, float *c, int64_t pitch) {
  return dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k,
                    alpha, a.data, a.pitch, b.data, b.pitch, add ? 1.0f : 0.0f,
                    c, pitch) == dnnl_success;
}

bool multiply(int64_t m, int64_t n, int64_t k, double alpha, Matrix<double> a,
              Matrix<double> b, bool add, double *c, int64_t pitch) {
  for (int64_t i = 0; i < m; ++i) {
    double *row = c + i * pitch;
    if (!add)
      std::fill(row, row + n, 0.0);
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < k; ++l)
        sum += a.data[a.transposed ? l * a.pitch + i : i * a.pitch + l] *
               b.data[b.transposed ? j * b.pitch + l : l * b.pitch + j];
      row[j] += alpha * sum;
    }
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// The most rows of a block; with causality smaller blocks skip more keys.
constexpr int64_t kMostRows = 128, kMostCausalRows = 64, kLeastRows = 32;
/// Scores of a block that lie well in an L2 cache beside what is multiplied.
constexpr int64_t kBlockBytes = int64_t(256) << 10;
constexpr int64_t kAliasBytes = 4096;

int64_t roundUp(int64_t value, int64_t step) {
  return (value + step - 1) / step * step;
}

double fromBits(uint64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

template <typename T> class AttentionPrimitive final : public Primitive {
public:
  AttentionPrimitive(const PrimitiveDesc &desc, int32_t threads)
      : a(desc.attention), gradient(desc.kind == PrimitiveKind::AttentionGrad),
        threads(threads), scale(static_cast<T>(fromBits(a.scale))),
        fill(static_cast<T>(fromBits(a.fill))), passes(rowPasses<T>()) {
    pitch = roundUp(a.keys, kRowPad);
    int64_t most = a.causal ? kMostCausalRows : kMostRows;
    most = std::clamp(kBlockBytes / (pitch * int64_t(sizeof(T))), kLeastRows,
                      most);
    int64_t count = (a.queries + most - 1) / most;
    blockRows = roundUp((a.queries + count - 1) / count, 8);
    auto place = [&](int64_t &at, int64_t rows, int64_t columns) {
      at = slotBytes / int64_t(sizeof(T));
      slotBytes += alignUp(rows * columns * int64_t(sizeof(T)));
    };
    place(slot.scores, blockRows, pitch);
    place(slot.output, blockRows, a.width);
    if (copies(a.q[2]))
      place(slot.queries, blockRows, a.depth);
    if (copies(a.k[2]))
      place(slot.keys, pitch, a.depth);
    if (copies(a.v[2]))
      place(slot.values, pitch, a.width);
    if (!gradient)
      return;
    place(slot.grads, blockRows, pitch);
    if (copies(a.kGrad[2]))
      place(slot.keyGrads, a.keys, a.depth);
    if (copies(a.vGrad[2]))
      place(slot.valueGrads, a.keys, a.width);
  }

  int64_t workspaceBytes() const override { return slotBytes * threads; }
  std::string implementation() const override {
    return std::string("blocks of ") + std::to_string(blockRows) +
           " rows, products by " +
           (sizeof(T) == sizeof(float) ? "oneDNN gemm" : "plain loops");
  }

  bool execute(void *const *args, void *workspace,
               std::string &error) override {
    Run run{this, bind(args), static_cast<char *>(workspace), 0};
    if (threads == 1)
      work(run, 0);
    else
      GOMP_parallel(
          [](void *data) {
            auto *run = static_cast<Run *>(data);
            run->self->work(*run, omp_get_thread_num());
          },
          &run, static_cast<unsigned>(threads), 0);
    if (run.failed)
      error = "a product of attention failed";
    return !run.failed;
  }

private:
  struct Tensors {
    const T *q, *k, *v, *bias = nullptr;
    const unsigned char *mask = nullptr;
    T *o, *lse;
    const T *grad = nullptr;
    T *qGrad = nullptr, *kGrad = nullptr, *vGrad = nullptr;
  };
  struct Run {
    AttentionPrimitive *self;
    Tensors t;
    char *workspace;
    int failed; ///< written by whoever fails, read after the team
  };
  /// One query head of one sample.
  struct Head {
    int64_t batch, head;
    const T *q;
    T *o, *lse;
  };

  /// What the query heads of a group share.
  struct Shared {
    Matrix<T> keys, values;
    T *keyGrads = nullptr, *valueGrads = nullptr;
    int64_t keyGradPitch = 0, valueGradPitch = 0;
  };

  Tensors bind(void *const *args) const {
    Tensors t;
    int i = 0;
    t.q = static_cast<const T *>(args[i++]);
    t.k = static_cast<const T *>(args[i++]);
    t.v = static_cast<const T *>(args[i++]);
    if (a.hasBias)
      t.bias = static_cast<const T *>(args[i++]);
    if (a.hasMask)
      t.mask = static_cast<const unsigned char *>(args[i++]);
    t.o = static_cast<T *>(args[i++]);
    t.lse = static_cast<T *>(args[i++]);
    if (gradient) {
      t.grad = static_cast<const T *>(args[i++]);
      t.qGrad = static_cast<T *>(args[i++]);
      t.kGrad = static_cast<T *>(args[i++]);
      t.vGrad = static_cast<T *>(args[i++]);
    }
    return t;
  }

  /// The key heads of all samples, divided evenly.
  void work(Run &run, int64_t thread) const {
    int64_t units = a.batch * a.keyHeads;
    T *space = reinterpret_cast<T *>(run.workspace + thread * slotBytes);
    for (int64_t unit = units * thread / threads,
                 end = units * (thread + 1) / threads;
         unit < end; ++unit)
      if (!keyHead(run.t, unit / a.keyHeads, unit % a.keyHeads, space))
        __atomic_store_n(&run.failed, 1, __ATOMIC_RELAXED);
  }

  bool keyHead(const Tensors &t, int64_t batch, int64_t keyHead,
               T *space) const {
    Shared s{{t.k + at(a.k, batch, keyHead), a.k[2]},
             {t.v + at(a.v, batch, keyHead), a.v[2]}};
    if (copies(a.k[2]))
      s.keys = copyRows(s.keys, a.keys, a.depth, space + slot.keys, pitch);
    if (copies(a.v[2]))
      s.values =
          copyRows(s.values, a.keys, a.width, space + slot.values, pitch);
    T *keyGrads = nullptr, *valueGrads = nullptr;
    if (gradient) {
      keyGrads = t.kGrad + at(a.kGrad, batch, keyHead);
      valueGrads = t.vGrad + at(a.vGrad, batch, keyHead);
      s.keyGrads = startSum(keyGrads, a.kGrad[2], a.depth,
                            space + slot.keyGrads, s.keyGradPitch);
      s.valueGrads = startSum(valueGrads, a.vGrad[2], a.width,
                              space + slot.valueGrads, s.valueGradPitch);
    }
    for (int64_t i = 0; i < a.heads / a.keyHeads; ++i) {
      Head h = headOf(t, batch, keyHead, i);
      if (!(gradient ? backward(t, h, s, space) : forward(t, h, s, space)))
        return false;
    }
    if (gradient && s.keyGrads != keyGrads)
      copyOut(s.keyGrads, a.keys, a.depth, keyGrads, a.kGrad[2]);
    if (gradient && s.valueGrads != valueGrads)
      copyOut(s.valueGrads, a.keys, a.width, valueGrads, a.vGrad[2]);
    return true;
  }

  /// Returns where a sum over a group's rows is made, filled with zeros: in its
  /// place, or in the workspace.
  T *startSum(T *inPlace, int64_t stride, int64_t columns, T *scratch,
              int64_t &sumPitch) const {
    bool copied = copies(stride);
    T *sum = copied ? scratch : inPlace;
    sumPitch = copied ? columns : stride;
    for (int64_t j = 0; j < a.keys; ++j)
      std::fill_n(sum + j * sumPitch, columns, T(0));
    return sum;
  }

  /// Returns whether rows this far apart are copied next to each other.
  static bool copies(int64_t stride) {
    return stride * int64_t(sizeof(T)) % kAliasBytes == 0;
  }

  /// Copies rows next to each other, and zeros for those up to `padded`.
  static Matrix<T> copyRows(Matrix<T> from, int64_t rows, int64_t columns,
                            T *to, int64_t padded) {
    for (int64_t i = 0; i < rows; ++i)
      std::copy_n(from.data + i * from.pitch, columns, to + i * columns);
    std::fill_n(to + rows * columns, (padded - rows) * columns, T(0));
    return {to, columns};
  }
  static void copyOut(const T *from, int64_t rows, int64_t columns, T *to,
                      int64_t stride) {
    for (int64_t i = 0; i < rows; ++i)
      std::copy_n(from + i * columns, columns, to + i * stride);
  }

  static int64_t at(const int64_t *strides, int64_t batch, int64_t head) {
    return batch * strides[0] + head * strides[1];
  }

  Head headOf(const Tensors &t, int64_t batch, int64_t keyHead,
              int64_t member) const {
    int64_t head = keyHead * (a.heads / a.keyHeads) + member;
    return {batch, head, t.q + at(a.q, batch, head), t.o + at(a.o, batch, head),
            t.lse + (batch * a.heads + head) * a.queries};
  }

  /// Returns how many keys, from the first, causality allows in a row.
  int64_t keysOf(int64_t row) const {
    return a.causal ? std::clamp<int64_t>(row + a.offset + 1, 0, a.keys)
                    : a.keys;
  }

  /// Returns the keys that rows [first, last) look at. A row without any has
  /// NaN for all keys, unless it has zeros.
  int64_t keysOfBlock(int64_t first, int64_t last) const {
    bool poisoned = keysOf(first) == 0 && !a.zeroEmptyRows;
    return poisoned ? a.keys : keysOf(last - 1);
  }

  /// Adds bias and applies the mask to the scores of a row.
  void combine(const Tensors &t, const Head &h, int64_t row, T *scores,
               int64_t keys) const {
    if (t.bias)
      passes.addBias(scores, keys,
                     t.bias + at(a.bias, h.batch, h.head) + row * a.bias[2],
                     a.bias[3]);
    if (t.mask)
      passes.applyMask(scores, keys, maskRow(t, h, row), a.mask[3], fill);
  }

  const unsigned char *maskRow(const Tensors &t, const Head &h,
                               int64_t row) const {
    return t.mask + at(a.mask, h.batch, h.head) + row * a.mask[2];
  }

  /// Multiplies a block's rows by those of all keys. Where these were copied,
  /// gemm's columns go up to whole vectors.
  bool byKeys(int64_t rows, int64_t keys, int64_t columns, T factor,
              Matrix<T> x, Matrix<T> y, bool copied, T *result) const {
    y.transposed = true;
    return multiply(rows, copied ? roundUp(keys, kRowPad) : keys, columns,
                    factor, x, y, false, result, pitch);
  }

  Matrix<T> queriesOf(const Head &h, int64_t first, int64_t rows,
                      T *space) const {
    Matrix<T> q{h.q + first * a.q[2], a.q[2]};
    return copies(a.q[2])
               ? copyRows(q, rows, a.depth, space + slot.queries, rows)
               : q;
  }

  bool forward(const Tensors &t, const Head &h, const Shared &s,
               T *space) const {
    T *scores = space + slot.scores, *output = space + slot.output;
    for (int64_t first = 0; first < a.queries; first += blockRows) {
      int64_t rows = std::min(blockRows, a.queries - first);
      int64_t keys = keysOfBlock(first, first + rows);
      if (keys > 0 &&
          !byKeys(rows, keys, a.depth, scale, queriesOf(h, first, rows, space),
                  s.keys, copies(a.k[2]), scores))
        return false;
      T factors[kMostRows];
      for (int64_t i = 0; i < rows; ++i)
        factors[i] = softmaxRow(t, h, first + i, scores + i * pitch, keys);
      if (keys > 0 && !multiply(rows, a.width, keys, 1, {scores, pitch},
                                s.values, false, output, a.width))
        return false;
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t d = 0; d < a.width; ++d)
          h.o[(first + i) * a.o[2] + d] =
              keys > 0 ? output[i * a.width + d] * factors[i] : T(0);
    }
    return true;
  }

  /// Makes exponentials of a block's row, sets its lse, and returns the factor
  /// that makes probabilities of them.
  T softmaxRow(const Tensors &t, const Head &h, int64_t row, T *scores,
               int64_t keys) const {
    constexpr T infinity = std::numeric_limits<T>::infinity();
    int64_t own = keysOf(row);
    combine(t, h, row, scores, own);
    RowSum<T> sum = passes.exponentials(scores, own);
    if (sum.greatest == -infinity && sum.sum == 0)
      sum.sum = std::numeric_limits<T>::quiet_NaN(); // no key at all
    bool empty = sum.greatest == -infinity && a.zeroEmptyRows;
    std::fill(scores + (empty ? 0 : own), scores + keys,
              own || a.zeroEmptyRows ? T(0) : sum.sum);
    h.lse[row] = empty ? -infinity : sum.greatest + std::log(sum.sum);
    return empty ? T(0) : 1 / sum.sum;
  }

  bool backward(const Tensors &t, const Head &h, const Shared &s,
                T *space) const {
    T *scores = space + slot.scores, *grads = space + slot.grads;
    const T *grad = t.grad + at(a.grad, h.batch, h.head);
    T *qGrad = t.qGrad + at(a.qGrad, h.batch, h.head);
    for (int64_t first = 0; first < a.queries; first += blockRows) {
      int64_t rows = std::min(blockRows, a.queries - first);
      int64_t keys = keysOfBlock(first, first + rows);
      T *dq = qGrad + first * a.qGrad[2];
      if (keys == 0) {
        for (int64_t i = 0; i < rows; ++i)
          std::fill_n(dq + i * a.qGrad[2], a.depth, T(0));
        continue;
      }
      Matrix<T> dO{grad + first * a.grad[2], a.grad[2]};
      if (copies(a.grad[2]))
        dO = copyRows(dO, rows, a.width, space + slot.output, rows);
      Matrix<T> q = queriesOf(h, first, rows, space);
      if (!byKeys(rows, keys, a.depth, scale, q, s.keys, copies(a.k[2]),
                  scores) ||
          !byKeys(rows, keys, a.width, 1, dO, s.values, copies(a.v[2]), grads))
        return false;
      for (int64_t i = 0; i < rows; ++i)
        gradientRow(t, h, first + i, scores + i * pitch, grads + i * pitch,
                    dO.data + i * dO.pitch, keys);
      if (!multiply(keys, a.width, rows, 1, {scores, pitch, true}, dO, true,
                    s.valueGrads, s.valueGradPitch) ||
          !multiply(rows, a.depth, keys, scale, {grads, pitch}, s.keys, false,
                    dq, a.qGrad[2]) ||
          !multiply(keys, a.depth, rows, scale, {grads, pitch, true}, q, true,
                    s.keyGrads, s.keyGradPitch))
        return false;
    }
    return true;
  }

  /// Makes probabilities and gradients of scores in a block's row.
  void gradientRow(const Tensors &t, const Head &h, int64_t row, T *scores,
                   T *grads, const T *outGrad, int64_t keys) const {
    int64_t own = keysOf(row);
    T lse = h.lse[row];
    bool empty = std::isinf(lse) && lse < 0;
    if (empty)
      own = 0;
    combine(t, h, row, scores, own);
    T delta = passes.dot(outGrad, h.o + row * a.o[2], a.width);
    passes.gradients(scores, grads, own, lse, delta);
    // A fill that is finite may have a probability; it has no gradient.
    if (t.mask)
      passes.applyMask(grads, own, maskRow(t, h, row), a.mask[3], T(0));
    T rest = own || empty ? T(0) : lse; // lse: NaN, of a row without keys
    std::fill(scores + own, scores + keys, rest);
    std::fill(grads + own, grads + keys, rest);
  }

  AttentionDesc a;
  bool gradient;
  int64_t threads;
  T scale, fill;
  const RowPasses<T> &passes;
  int64_t pitch, blockRows, slotBytes = 0;
  /// Where a thread's copies and blocks lie in its part of the workspace, in
  /// elements.
  struct {
    int64_t scores = 0, output = 0, queries = 0, keys = 0, values = 0,
            grads = 0, keyGrads = 0, valueGrads = 0;
  } slot;
};

} // namespace

std::unique_ptr<Primitive>
ckopt::runtime::createAttention(const PrimitiveDesc &desc, int32_t threads) {
  if (desc.dtype == DType::F64)
    return std::make_unique<AttentionPrimitive<double>>(desc, threads);
  return std::make_unique<AttentionPrimitive<float>>(desc, threads);
}
