//===- TileRows.cpp - passes over rows between products by tiles ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: where products take a tenth of the time, passes over scores take
// half of it. Method: those of AttentionRows.cpp, with the scale of the scores
// and the rounding for the next product in the same pass. The exponential is
// 2^n times a polynomial of degree 5, whose error is a unit in the last place;
// where multiplications are fused ln 2 needs no second part. Two rows are taken
// at once where pairs of rows are written. Guarantee: that of
// AttentionRows.cpp; keys that are not a row's own become zeros, whatever lay
// there. Complexity: linear.
//
//===----------------------------------------------------------------------===//
#include "TileProduct.h"

#if !defined(__x86_64__)

const ckopt::runtime::TilePasses *ckopt::runtime::tilePasses(Instructions) {
  return nullptr;
}
const ckopt::runtime::RowPasses<float> &ckopt::runtime::tileRowPasses() {
  return rowPasses<float>(Instructions::Plain);
}

#else

#include <algorithm>
#include <immintrin.h>
#include <limits>

using namespace ckopt;
using namespace ckopt::runtime;

#define CKOPT_TILE_ROWS                                                        \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,"       \
                        "avx2,fma")))
#define CKOPT_TILE_ROWS_INLINE CKOPT_TILE_ROWS static inline

namespace {

constexpr float kRowLeast = -std::numeric_limits<float>::infinity();

/// Returns the lanes from `first` to before `end`, which may lie outside.
CKOPT_TILE_ROWS_INLINE __mmask16 lanesOf(int64_t first, int64_t end) {
  if (first <= 0 && end >= 16)
    return 0xffff;
  const int64_t from = std::clamp<int64_t>(first, 0, 16);
  const int64_t to = std::clamp<int64_t>(end, 0, 16);
  return __mmask16(((1u << to) - 1) & ~((1u << from) - 1));
}

/// x become exp(x), of no more than 88.3; below exp(-87) they may be 0. Each
/// step is taken for all of them: one alone would wait for its last step.
template <int N> CKOPT_TILE_ROWS_INLINE void expOf(__m512 (&x)[N]) {
  const __m512 magic = _mm512_set1_ps(12582912.0f); // adding it rounds
  __m512 n[N], p[N];
  for (int i = 0; i < N; ++i) // the second operand is taken where one is NaN
    x[i] = _mm512_max_ps(_mm512_set1_ps(-104.0f), x[i]);
  for (int i = 0; i < N; ++i)
    n[i] = _mm512_fmadd_ps(x[i], _mm512_set1_ps(1.44269504088896341f), magic);
  for (int i = 0; i < N; ++i)
    n[i] = _mm512_sub_ps(n[i], magic);
  for (int i = 0; i < N; ++i)
    x[i] = _mm512_fnmadd_ps(n[i], _mm512_set1_ps(0.693147182f), x[i]);
  for (int i = 0; i < N; ++i)
    p[i] = _mm512_fmadd_ps(_mm512_set1_ps(8.312501013e-3f), x[i],
                           _mm512_set1_ps(4.189033061e-2f));
  for (float factor : {0.1666711569f, 0.4999923110f, 1.0f, 1.0f})
    for (int i = 0; i < N; ++i)
      p[i] = _mm512_fmadd_ps(p[i], x[i], _mm512_set1_ps(factor));
  for (int i = 0; i < N; ++i)
    x[i] = _mm512_scalef_ps(p[i], n[i]);
}

CKOPT_TILE_ROWS void scaleRow(float *row, int64_t count, float factor) {
  for (int64_t i = 0; i < count; ++i)
    row[i] *= factor;
}

CKOPT_TILE_ROWS void narrowRow(const float *from, int64_t count, BFloat16 *to) {
  for (int64_t i = 0; i < count; i += 16) {
    const __mmask16 some = lanesOf(0, count - i);
    const __m512 value = _mm512_maskz_loadu_ps(some, from + i);
    _mm256_mask_storeu_epi16(to + i, some, (__m256i)_mm512_cvtneps_pbh(value));
  }
}

/// Returns the greatest of `count` scores, or -inf.
CKOPT_TILE_ROWS float greatestOf(const float *scores, int64_t count) {
  const __m512 none = _mm512_set1_ps(kRowLeast);
  __m512 best[4] = {none, none, none, none};
  int64_t i = 0;
  for (; i + 64 <= count; i += 64)
    for (int64_t j = 0; j < 4; ++j)
      best[j] = _mm512_max_ps(_mm512_loadu_ps(scores + i + 16 * j), best[j]);
  for (; i < count; i += 16)
    best[0] = _mm512_max_ps(
        _mm512_mask_loadu_ps(none, lanesOf(0, count - i), scores + i), best[0]);
  return _mm512_reduce_max_ps(_mm512_max_ps(_mm512_max_ps(best[0], best[1]),
                                            _mm512_max_ps(best[2], best[3])));
}

CKOPT_TILE_ROWS_INLINE void storeVectors(BFloat16 *to, const __m512 (&x)[4]) {
  for (int64_t i = 0; i < 4; i += 2)
    _mm512_storeu_si512(to + 16 * i,
                        (__m512i)_mm512_cvtne2ps_pbh(x[i + 1], x[i]));
}
CKOPT_TILE_ROWS_INLINE void storeVectors(float *to, const __m512 (&x)[4]) {
  for (int64_t i = 0; i < 4; ++i)
    _mm512_storeu_ps(to + 16 * i, x[i]);
}
CKOPT_TILE_ROWS_INLINE void storeLanesOf(BFloat16 *to, __mmask16 some,
                                         __m512 x) {
  _mm256_mask_storeu_epi16(to, some, (__m256i)_mm512_cvtneps_pbh(x));
}
CKOPT_TILE_ROWS_INLINE void storeLanesOf(float *to, __mmask16 some, __m512 x) {
  _mm512_mask_storeu_ps(to, some, x);
}

/// What is written lies no further than what has been read.
template <typename To>
CKOPT_TILE_ROWS_INLINE RowSum<float>
exponentialsInto(const float *scores, int64_t count, float scale, float least,
                 To *to) {
  const float greatest = std::max(least, greatestOf(scores, count) * scale);
  const __m512 base = _mm512_set1_ps(greatest == kRowLeast ? 0 : greatest);
  const __m512 factor = _mm512_set1_ps(scale);
  __m512 sum = _mm512_setzero_ps();
  int64_t i = 0;
  for (; i + 64 <= count; i += 64) {
    __m512 x[4];
    for (int64_t j = 0; j < 4; ++j)
      x[j] = _mm512_mul_ps(_mm512_loadu_ps(scores + i + 16 * j), factor);
    for (int64_t j = 0; j < 4; ++j)
      x[j] = _mm512_sub_ps(x[j], base);
    expOf(x);
    for (int64_t j = 0; j < 4; ++j)
      sum = _mm512_add_ps(sum, x[j]);
    storeVectors(to + i, x);
  }
  for (; i < count; i += 16) {
    const __mmask16 some = lanesOf(0, count - i);
    __m512 x[1] = {
        _mm512_mask_loadu_ps(_mm512_set1_ps(kRowLeast), some, scores + i)};
    x[0] = _mm512_sub_ps(_mm512_mul_ps(x[0], factor), base);
    expOf(x);
    sum = _mm512_add_ps(sum, x[0]);
    storeLanesOf(to + i, some, x[0]);
  }
  return {greatest, _mm512_reduce_add_ps(sum)};
}

CKOPT_TILE_ROWS RowSum<float> exponentialsRow(const float *scores,
                                              int64_t count, float scale,
                                              float least, BFloat16 *to) {
  return exponentialsInto(scores, count, scale, least, to);
}
CKOPT_TILE_ROWS RowSum<float> exponentialsTiles(float *scores, int64_t count,
                                                float least) {
  return exponentialsInto(scores, count, 1, least, scores);
}

/// Stores two rows' 16 numbers as pairs in place of 16 of f32; returns them one
/// row after the other.
CKOPT_TILE_ROWS_INLINE __m512i storePairs(float *to, __m512 even, __m512 odd) {
  alignas(64) static constexpr uint16_t kZip[32] = {
      0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
      8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  const __m512i both = (__m512i)_mm512_cvtne2ps_pbh(odd, even);
  _mm512_storeu_si512(to,
                      _mm512_permutexvar_epi16(_mm512_load_si512(kZip), both));
  return both;
}

CKOPT_TILE_ROWS_INLINE void storeRows(BFloat16 *to, int64_t apart,
                                      __m512i both) {
  _mm256_storeu_si256(reinterpret_cast<__m256i *>(to),
                      _mm512_castsi512_si256(both));
  _mm256_storeu_si256(reinterpret_cast<__m256i *>(to + apart),
                      _mm512_extracti64x4_epi64(both, 1));
}

CKOPT_TILE_ROWS void pairRows(float *even, const float *odd, int64_t count,
                              BFloat16 *rows, int64_t apart) {
  for (int64_t i = 0; i < count; i += 16) {
    const __m512i both = storePairs(even + i, _mm512_loadu_ps(even + i),
                                    _mm512_loadu_ps(odd + i));
    if (rows)
      storeRows(rows + i, apart, both);
  }
}

/// Takes a strip of keys of two rows, which may be their `own` but for some.
/// What is written lies no further than what has been read.
template <bool AllOwn>
CKOPT_TILE_ROWS_INLINE void gradientsFrom(const TileRowPair &x, int64_t from) {
  auto *rows = reinterpret_cast<BFloat16 *>(x.scores + x.pitch);
  const int64_t apart = reinterpret_cast<BFloat16 *>(x.grads + x.pitch) - rows;
  __m512 p[4], grads[4]; // of 16 keys: the even row's, the odd one's
  for (int64_t i = 0; i < 4; ++i) {
    const int64_t row = i % 2, at = row * x.pitch + from + i / 2 * 16;
    p[i] =
        _mm512_fmsub_ps(_mm512_loadu_ps(x.scores + at), _mm512_set1_ps(x.scale),
                        _mm512_set1_ps(x.lse[row].lse));
    p[i] = _mm512_sub_ps(p[i], _mm512_set1_ps(x.lse[row].lost));
  }
  expOf(p);
  for (int64_t i = 0; i < 4; ++i) {
    const int64_t row = i % 2, key = from + i / 2 * 16;
    grads[i] = _mm512_sub_ps(_mm512_loadu_ps(x.grads + row * x.pitch + key),
                             _mm512_set1_ps(x.delta[row]));
    grads[i] = _mm512_mul_ps(p[i], grads[i]);
    if (AllOwn)
      continue;
    const __mmask16 own = lanesOf(x.first[row] - key, x.end[row] - key);
    grads[i] = _mm512_maskz_mov_ps(own, grads[i]);
    p[i] = _mm512_maskz_mov_ps(own, p[i]);
  }
  for (int64_t i = 0; i < 4; i += 2) {
    const int64_t key = from + i / 2 * 16;
    storePairs(x.scores + key, p[i], p[i + 1]);
    storeRows(rows + key, apart,
              storePairs(x.grads + key, grads[i], grads[i + 1]));
  }
}

CKOPT_TILE_ROWS void gradientsRows(const TileRowPair &x, int64_t from,
                                   int64_t to) {
  const int64_t first = std::max(x.first[0], x.first[1]);
  const int64_t end = std::min(x.end[0], x.end[1]);
  for (int64_t key = from; key < to; key += kStrip)
    if (first <= key && key + kStrip <= end)
      gradientsFrom<true>(x, key);
    else
      gradientsFrom<false>(x, key);
}

CKOPT_TILE_ROWS void gradientsTiles(float *scores, float *grads, int64_t count,
                                    const RowLse<float> &row, float delta) {
  for (int64_t i = 0; i < count; i += 16) {
    const __mmask16 some = lanesOf(0, count - i);
    __m512 p[1] = {_mm512_sub_ps(_mm512_maskz_loadu_ps(some, scores + i),
                                 _mm512_set1_ps(row.lse))};
    p[0] = _mm512_sub_ps(p[0], _mm512_set1_ps(row.lost));
    expOf(p);
    const __m512 grad = _mm512_sub_ps(_mm512_maskz_loadu_ps(some, grads + i),
                                      _mm512_set1_ps(delta));
    _mm512_mask_storeu_ps(scores + i, some, p[0]);
    _mm512_mask_storeu_ps(grads + i, some, _mm512_mul_ps(p[0], grad));
  }
}

CKOPT_TILE_ROWS bool allFiniteRows(const BFloat16 *from, int64_t fromRow,
                                   int64_t rows, int64_t columns) {
  const __m512i exponent = _mm512_set1_epi16(0x7f80);
  __mmask32 found = 0;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; j += 32) {
      const int64_t count = std::min<int64_t>(columns - j, 32);
      const __m512i value = _mm512_maskz_loadu_epi16(
          ~__mmask32(0) >> (32 - count), from + i * fromRow + j);
      found |=
          _mm512_cmpeq_epi16_mask(_mm512_and_si512(value, exponent), exponent);
    }
  return !found;
}

constexpr TilePasses kTilePasses = {scaleRow, narrowRow,     exponentialsRow,
                                    pairRows, gradientsRows, allFiniteRows};

} // namespace

const TilePasses *ckopt::runtime::tilePasses(Instructions with) {
  return with == Instructions::Amx ? &kTilePasses : nullptr;
}

const RowPasses<float> &ckopt::runtime::tileRowPasses() {
  static const RowPasses<float> all = [] {
    RowPasses<float> passes = rowPasses<float>(Instructions::Avx512);
    passes.exponentials = exponentialsTiles;
    passes.gradients = gradientsTiles;
    return passes;
  }();
  return all;
}

#endif
