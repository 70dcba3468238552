//===- AttentionRows.cpp - passes over one row of scores ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: the runtime is built for any x86-64, and these passes need the
// vectors of the machine at hand to stay small beside the products. Method: one
// body over vectors of 64 bytes, compiled three times (AVX-512, AVX2, baseline,
// where the compiler splits the vectors), chosen once. Sums are kept in 16
// lanes and added in a fixed order. exp is that of Cephes: two units in the
// last place; below exp(-87) it is 0. tanh is made of it, as generated kernels
// do (CodeGen/Emit/MathFunctions.cpp). A dropout's words are those of
// Philox.h, made for 64 elements at once. Guarantee: NaN stays NaN; the bits of
// a row depend on the row and the machine alone. Complexity: linear.
//
//===----------------------------------------------------------------------===//
#include "AttentionRows.h"

#include <cmath>
#include <cstring>
#include <limits>

using namespace ckopt::runtime;

#define CKOPT_INLINE inline __attribute__((always_inline))

namespace {

using Lanes = float __attribute__((vector_size(64)));
using Bits = int32_t __attribute__((vector_size(64)));

constexpr float kRowInfinity = std::numeric_limits<float>::infinity();

CKOPT_INLINE void loadLanes(Lanes &to, const float *from) {
  std::memcpy(&to, from, sizeof(to));
}
CKOPT_INLINE void storeLanes(float *to, const Lanes &from) {
  std::memcpy(to, &from, sizeof(from));
}

/// x becomes exp(x). Vectors go by reference: their calling convention depends
/// on the instructions.
CKOPT_INLINE void expLanes(Lanes &x) {
  constexpr float kMagic = 12582912.0f; // 1.5 * 2^23: adding it rounds
  const Bits small = x < -87.3f;
  x = small ? Lanes{} - 87.3f : x;
  x = x > 88.3f ? Lanes{} + 88.3f : x;
  const Lanes shifted = x * 1.44269504088896341f + kMagic;
  const Lanes n = shifted - kMagic;
  const Lanes r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  Lanes p = Lanes{} + 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  Bits exponent;
  std::memcpy(&exponent, &shifted, sizeof(exponent));
  exponent = (exponent - 0x4B400000 + 127) << 23;
  Lanes power;
  std::memcpy(&power, &exponent, sizeof(power));
  x = small ? Lanes{} : p * power;
}

/// x becomes tanh(x): 1 - 2 t / (1 + t), t = exp(-2 |x|), or near 0 Cephes'
/// polynomial.
CKOPT_INLINE void tanhLanes(Lanes &x) {
  Bits bits;
  std::memcpy(&bits, &x, sizeof(bits));
  const Bits sign = bits & std::numeric_limits<int32_t>::min();
  bits ^= sign;
  Lanes magnitude;
  std::memcpy(&magnitude, &bits, sizeof(magnitude));
  Lanes t = magnitude * -2.0f;
  expLanes(t);
  const Lanes large = 1.0f - 2.0f * (t / (t + 1.0f));
  std::memcpy(&bits, &large, sizeof(bits));
  bits |= sign;
  Lanes far;
  std::memcpy(&far, &bits, sizeof(far));
  const Lanes z = x * x;
  Lanes p = Lanes{} - 5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  x = magnitude > 0.625f ? far : (p * z) * x + x;
}

CKOPT_INLINE float addLanes(const Lanes &lanes) {
  float sums[kRowPad];
  storeLanes(sums, lanes);
  for (int64_t width = kRowPad / 2; width > 0; width /= 2)
    for (int64_t i = 0; i < width; ++i)
      sums[i] += sums[i + width];
  return sums[0];
}

/// Fills a row up to whole vectors; returns its padded length.
CKOPT_INLINE int64_t padRow(float *row, int64_t count, float value) {
  int64_t padded = (count + kRowPad - 1) / kRowPad * kRowPad;
  for (int64_t i = count; i < padded; ++i)
    row[i] = value;
  return padded;
}

CKOPT_INLINE RowSum<float> exponentialsBody(float *scores, int64_t count,
                                            float least) {
  int64_t padded = padRow(scores, count, -kRowInfinity);
  Lanes best = Lanes{} + least, value;
  for (int64_t i = 0; i < padded; i += kRowPad) {
    loadLanes(value, scores + i);
    best = value > best ? value : best;
  }
  float greatest = -kRowInfinity;
  for (int64_t i = 0; i < kRowPad; ++i)
    greatest = best[i] > greatest ? best[i] : greatest;
  const float base = greatest == -kRowInfinity ? 0 : greatest;
  Lanes sum = {};
  for (int64_t i = 0; i < padded; i += kRowPad) {
    loadLanes(value, scores + i);
    value = value - base;
    expLanes(value);
    storeLanes(scores + i, value);
    sum = sum + value;
  }
  return {greatest, addLanes(sum)};
}

CKOPT_INLINE void gradientsBody(float *scores, float *grads, int64_t count,
                                const RowLse<float> &row, float delta) {
  const float lse = row.lse, lost = row.lost;
  int64_t padded = padRow(scores, count, -kRowInfinity);
  padRow(grads, count, 0);
  Lanes value, grad;
  for (int64_t i = 0; i < padded; i += kRowPad) {
    loadLanes(value, scores + i);
    loadLanes(grad, grads + i);
    value = (value - lse) - lost;
    expLanes(value);
    storeLanes(scores + i, value);
    grad = value * (grad - delta);
    storeLanes(grads + i, grad);
  }
}

CKOPT_INLINE void capBody(float *scores, int64_t count, const RowCap<float> &by,
                          float *slopes) {
  const float cap = by.cap, inverse = by.inverse;
  int64_t padded = padRow(scores, count, 0);
  Lanes value;
  for (int64_t i = 0; i < padded; i += kRowPad) {
    loadLanes(value, scores + i);
    value = value * inverse;
    tanhLanes(value);
    storeLanes(scores + i, value * cap);
    if (slopes)
      storeLanes(slopes + i, 1.0f - value * value);
  }
}

template <typename T>
CKOPT_INLINE void multiplyBody(T *row, int64_t count, const T *factors) {
  for (int64_t i = 0; i < count; ++i)
    row[i] *= factors[i];
}

template <typename T>
CKOPT_INLINE void addBiasBody(T *row, int64_t count, const T *bias,
                              int64_t step) {
  if (step == 1) {
    for (int64_t i = 0; i < count; ++i)
      row[i] += bias[i];
    return;
  }
  for (int64_t i = 0; i < count; ++i)
    row[i] += bias[0];
}

template <typename T>
CKOPT_INLINE void applyMaskBody(T *row, int64_t count,
                                const unsigned char *mask, int64_t step,
                                T fill) {
  if (step == 1) {
    for (int64_t i = 0; i < count; ++i)
      row[i] = mask[i] ? row[i] : fill;
    return;
  }
  if (!mask[0])
    for (int64_t i = 0; i < count; ++i)
      row[i] = fill;
}

using Words = uint32_t __attribute__((vector_size(64)));
using WordPairs = uint64_t __attribute__((vector_size(64)));
using Flags = unsigned char __attribute__((vector_size(16)));

/// The high and low words of x * factor, by pairs of lanes: what widening
/// multiplications take.
CKOPT_INLINE void multiplyWords(Words &high, Words &low, const Words &x,
                                uint64_t factor) {
  constexpr uint64_t lower = 0xffffffffu;
  WordPairs pairs;
  std::memcpy(&pairs, &x, sizeof(pairs));
  const WordPairs even = (pairs & lower) * factor, odd = (pairs >> 32) * factor;
  const WordPairs top = (even >> 32) | (odd & ~lower);
  const WordPairs rest = (even & lower) | (odd << 32);
  std::memcpy(&high, &top, sizeof(high));
  std::memcpy(&low, &rest, sizeof(low));
}

/// Makes the words of 16 blocks from `block` on, in order of the elements.
CKOPT_INLINE void drawWords(Words (&to)[4], const DropoutWords &words,
                            uint64_t block) {
  const Words lanes = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  Words counter[4];
  counter[0] = lanes + uint32_t(block);
  counter[1] = Words{} + uint32_t(block >> 32) -
               Words(counter[0] < lanes); // a carry is -1
  counter[2] = Words{} + words.step;
  counter[3] = Words{} + words.site;
  auto key = words.key;
  for (int round = 0; round < 10; ++round) {
    Words high[2], low[2];
    multiplyWords(high[0], low[0], counter[0], 0xD2511F53u);
    multiplyWords(high[1], low[1], counter[2], 0xCD9E8D57u);
    counter[0] = high[1] ^ counter[1] ^ key[0];
    counter[1] = low[1];
    counter[2] = high[0] ^ counter[3] ^ key[1];
    counter[3] = low[0];
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
#define CKOPT_ZIP_LOW(a, b)                                                    \
  __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6,   \
                          22, 7, 23)
#define CKOPT_ZIP_HIGH(a, b)                                                   \
  __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29,  \
                          14, 30, 15, 31)
  const Words even[2] = {CKOPT_ZIP_LOW(counter[0], counter[2]),
                         CKOPT_ZIP_HIGH(counter[0], counter[2])};
  const Words odd[2] = {CKOPT_ZIP_LOW(counter[1], counter[3]),
                        CKOPT_ZIP_HIGH(counter[1], counter[3])};
  for (int half = 0; half < 2; ++half) {
    to[2 * half] = CKOPT_ZIP_LOW(even[half], odd[half]);
    to[2 * half + 1] = CKOPT_ZIP_HIGH(even[half], odd[half]);
  }
#undef CKOPT_ZIP_LOW
#undef CKOPT_ZIP_HIGH
}

CKOPT_INLINE const unsigned char *keepBody(const DropoutWords &words,
                                           int64_t first, int64_t count,
                                           unsigned char *to) {
  int64_t before = first % 4;
  for (int64_t i = 0; i < before + count; i += 4 * kRowPad) {
    Words drawn[4];
    drawWords(drawn, words, uint64_t(first - before + i) / 4);
    for (int part = 0; part < 4; ++part) {
      const Words kept = Words((drawn[part] >> 8) >= words.least) & 1u;
      const Flags flags = __builtin_convertvector(kept, Flags);
      std::memcpy(to + i + part * kRowPad, &flags, sizeof(flags));
    }
  }
  return to + before;
}

#define CKOPT_ROW_PASSES(SUFFIX, TARGET)                                       \
  TARGET RowSum<float> exponentials##SUFFIX(float *scores, int64_t count,      \
                                            float least) {                     \
    return exponentialsBody(scores, count, least);                             \
  }                                                                            \
  TARGET void gradients##SUFFIX(float *scores, float *grads, int64_t count,    \
                                const RowLse<float> &row, float delta) {       \
    gradientsBody(scores, grads, count, row, delta);                           \
  }                                                                            \
  TARGET void cap##SUFFIX(float *scores, int64_t count,                        \
                          const RowCap<float> &by, float *slopes) {            \
    capBody(scores, count, by, slopes);                                        \
  }                                                                            \
  TARGET void multiply##SUFFIX(float *row, int64_t count,                      \
                               const float *factors) {                         \
    multiplyBody(row, count, factors);                                         \
  }                                                                            \
  TARGET const unsigned char *keep##SUFFIX(const DropoutWords &words,          \
                                           int64_t first, int64_t count,       \
                                           unsigned char *to) {                \
    return keepBody(words, first, count, to);                                  \
  }                                                                            \
  TARGET void addBias##SUFFIX(float *row, int64_t count, const float *bias,    \
                              int64_t step) {                                  \
    addBiasBody(row, count, bias, step);                                       \
  }                                                                            \
  TARGET void applyMask##SUFFIX(float *row, int64_t count,                     \
                                const unsigned char *mask, int64_t step,       \
                                float fill) {                                  \
    applyMaskBody(row, count, mask, step, fill);                               \
  }                                                                            \
  constexpr RowPasses<float> kPasses##SUFFIX = {                               \
      exponentials##SUFFIX, gradients##SUFFIX, cap##SUFFIX,                    \
      multiply##SUFFIX,     keep##SUFFIX,      addBias##SUFFIX,                \
      applyMask##SUFFIX};

CKOPT_ROW_PASSES(Plain, )
#if defined(__x86_64__)
CKOPT_ROW_PASSES(Avx2, __attribute__((target("avx2,fma"))))
CKOPT_ROW_PASSES(Avx512, __attribute__((target("avx512f,avx512dq,avx2,fma"))))
#endif

//===----------------------------------------------------------------------===//
// f64: a correctness path
//===----------------------------------------------------------------------===//

RowSum<double> exponentialsF64(double *scores, int64_t count, double least) {
  double greatest = least, sum = 0;
  for (int64_t i = 0; i < count; ++i)
    greatest = scores[i] > greatest ? scores[i] : greatest;
  const double base =
      greatest == -std::numeric_limits<double>::infinity() ? 0 : greatest;
  for (int64_t i = 0; i < count; ++i)
    sum += scores[i] = std::exp(scores[i] - base);
  return {greatest, sum};
}

void gradientsF64(double *scores, double *grads, int64_t count,
                  const RowLse<double> &row, double delta) {
  for (int64_t i = 0; i < count; ++i) {
    scores[i] = std::exp((scores[i] - row.lse) - row.lost);
    grads[i] = scores[i] * (grads[i] - delta);
  }
}

void capF64(double *scores, int64_t count, const RowCap<double> &by,
            double *slopes) {
  for (int64_t i = 0; i < count; ++i) {
    double t = std::tanh(scores[i] / by.cap);
    scores[i] = t * by.cap;
    if (slopes)
      slopes[i] = 1 - t * t;
  }
}

void multiplyF64(double *row, int64_t count, const double *factors) {
  multiplyBody(row, count, factors);
}

void addBiasF64(double *row, int64_t count, const double *bias, int64_t step) {
  addBiasBody(row, count, bias, step);
}

void applyMaskF64(double *row, int64_t count, const unsigned char *mask,
                  int64_t step, double fill) {
  applyMaskBody(row, count, mask, step, fill);
}

constexpr RowPasses<double> kPassesF64 = {
    exponentialsF64, gradientsF64, capF64,      multiplyF64,
    keepPlain,       addBiasF64,   applyMaskF64};

} // namespace

template <>
const RowPasses<float> &ckopt::runtime::rowPasses<float>(Instructions with) {
#if defined(__x86_64__)
  if (with >= Instructions::Avx512)
    return kPassesAvx512;
  if (with == Instructions::Avx2)
    return kPassesAvx2;
#endif
  return kPassesPlain;
}

template <>
const RowPasses<double> &ckopt::runtime::rowPasses<double>(Instructions) {
  return kPassesF64;
}
