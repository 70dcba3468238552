//===- AttentionRows.cpp - passes over one row of scores ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: the runtime is built for any x86-64, and these passes need the
// vectors of the machine at hand to stay small beside the products. Method: one
// body over vectors of 64 bytes, compiled three times (AVX-512, AVX2, baseline,
// where the compiler splits the vectors), chosen once. Sums are kept in 16
// lanes and added in a fixed order. exp is that of Cephes: two units in the
// last place; below exp(-87) it is 0. Guarantee: NaN stays NaN; the bits of a
// row depend on the row and the machine alone. Complexity: linear.
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

CKOPT_INLINE RowSum<float> exponentialsBody(float *scores, int64_t count) {
  int64_t padded = padRow(scores, count, -kRowInfinity);
  Lanes best = Lanes{} - kRowInfinity, value;
  for (int64_t i = 0; i < padded; i += kRowPad) {
    loadLanes(value, scores + i);
    best = value > best ? value : best;
  }
  float greatest = -kRowInfinity;
  for (int64_t i = 0; i < kRowPad; ++i)
    greatest = best[i] > greatest ? best[i] : greatest;
  Lanes sum = {};
  for (int64_t i = 0; i < padded; i += kRowPad) {
    loadLanes(value, scores + i);
    value = value - greatest;
    expLanes(value);
    storeLanes(scores + i, value);
    sum = sum + value;
  }
  return {greatest, addLanes(sum)};
}

CKOPT_INLINE void gradientsBody(float *scores, float *grads, int64_t count,
                                float lse, float delta) {
  int64_t padded = padRow(scores, count, -kRowInfinity);
  padRow(grads, count, 0);
  Lanes value, grad;
  for (int64_t i = 0; i < padded; i += kRowPad) {
    loadLanes(value, scores + i);
    loadLanes(grad, grads + i);
    value = value - lse;
    expLanes(value);
    storeLanes(scores + i, value);
    grad = value * (grad - delta);
    storeLanes(grads + i, grad);
  }
}

CKOPT_INLINE float dotBody(const float *a, const float *b, int64_t count) {
  Lanes sum = {}, left, right;
  int64_t i = 0;
  for (; i + kRowPad <= count; i += kRowPad) {
    loadLanes(left, a + i);
    loadLanes(right, b + i);
    sum = sum + left * right;
  }
  float rest = 0;
  for (; i < count; ++i)
    rest += a[i] * b[i];
  return addLanes(sum) + rest;
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

#define CKOPT_ROW_PASSES(SUFFIX, TARGET)                                       \
  TARGET RowSum<float> exponentials##SUFFIX(float *scores, int64_t count) {    \
    return exponentialsBody(scores, count);                                    \
  }                                                                            \
  TARGET void gradients##SUFFIX(float *scores, float *grads, int64_t count,    \
                                float lse, float delta) {                      \
    gradientsBody(scores, grads, count, lse, delta);                           \
  }                                                                            \
  TARGET float dot##SUFFIX(const float *a, const float *b, int64_t count) {    \
    return dotBody(a, b, count);                                               \
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
      exponentials##SUFFIX, gradients##SUFFIX, dot##SUFFIX, addBias##SUFFIX,   \
      applyMask##SUFFIX};

CKOPT_ROW_PASSES(Plain, )
#if defined(__x86_64__)
CKOPT_ROW_PASSES(Avx2, __attribute__((target("avx2,fma"))))
CKOPT_ROW_PASSES(Avx512, __attribute__((target("avx512f,avx512dq,avx2,fma"))))
#endif

//===----------------------------------------------------------------------===//
// f64: a correctness path
//===----------------------------------------------------------------------===//

RowSum<double> exponentialsF64(double *scores, int64_t count) {
  double greatest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t i = 0; i < count; ++i)
    greatest = scores[i] > greatest ? scores[i] : greatest;
  for (int64_t i = 0; i < count; ++i)
    sum += scores[i] = std::exp(scores[i] - greatest);
  return {greatest, sum};
}

void gradientsF64(double *scores, double *grads, int64_t count, double lse,
                  double delta) {
  for (int64_t i = 0; i < count; ++i) {
    scores[i] = std::exp(scores[i] - lse);
    grads[i] = scores[i] * (grads[i] - delta);
  }
}

double dotF64(const double *a, const double *b, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i)
    sum += a[i] * b[i];
  return sum;
}

void addBiasF64(double *row, int64_t count, const double *bias, int64_t step) {
  addBiasBody(row, count, bias, step);
}

void applyMaskF64(double *row, int64_t count, const unsigned char *mask,
                  int64_t step, double fill) {
  applyMaskBody(row, count, mask, step, fill);
}

constexpr RowPasses<double> kPassesF64 = {exponentialsF64, gradientsF64, dotF64,
                                          addBiasF64, applyMaskF64};

} // namespace

template <> const RowPasses<float> &ckopt::runtime::rowPasses<float>() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"))
    return kPassesAvx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return kPassesAvx2;
#endif
  return kPassesPlain;
}

template <> const RowPasses<double> &ckopt::runtime::rowPasses<double>() {
  return kPassesF64;
}
