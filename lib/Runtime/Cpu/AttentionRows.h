//===- AttentionRows.h - passes over one row of scores ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What attention does with a row of scores between its two products: a pass or
// two over a row that lies in cache. Rows are padded: each pass of f32 may
// write up to the next multiple of kRowPad elements.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CPU_ATTENTIONROWS_H
#define CKOPT_LIB_RUNTIME_CPU_ATTENTIONROWS_H

#include "BlockProduct.h"
#include "ckopt/Base/Philox.h"

#include <cstdint>

namespace ckopt::runtime {

/// Elements that rows are padded to: a vector of 64 bytes of f32.
inline constexpr int64_t kRowPad = 16;

/// The greatest score of a row, and the sum of exp(score - greatest): 0 where
/// that is -inf.
template <typename T> struct RowSum {
  T greatest, sum;
};

/// The log of a row's sum of exponentials, and what rounding took from it.
/// Where scores are -1e9, lse alone has no digits for the sum.
template <typename T> struct RowLse {
  T lse, lost;
};

/// Which elements a dropout keeps: those whose word >> 8 is no less than
/// `least`. Words are counted from `first` on, that of the rank's first
/// element.
struct DropoutWords {
  PhiloxKey key{};
  uint32_t step = 0, site = 0, least = 0;
  int64_t first = 0;
};
/// What `keep` may write beside the elements of a row.
inline constexpr int64_t kKeepPad = 64;

/// What `cap` takes: scores s become cap * tanh(s / cap).
template <typename T> struct RowCap {
  T cap, inverse;
};

/// The passes, for one element type and this machine's instructions.
template <typename T> struct RowPasses {
  /// Replaces `count` scores by exp(score - greatest), the greatest of them and
  /// `least`; where it is -inf, -inf becomes 0.
  RowSum<T> (*exponentials)(T *scores, int64_t count, T least);
  /// Replaces scores by probabilities p = exp(score - lse - lost) and `grads`,
  /// the gradients of these, by those of the scores, p * (grad - delta).
  void (*gradients)(T *scores, T *grads, int64_t count, const RowLse<T> &row,
                    T delta);
  /// Caps scores; writes the derivatives of the capped ones, if `slopes` is not
  /// null.
  void (*cap)(T *scores, int64_t count, const RowCap<T> &by, T *slopes);
  /// Multiplies row[i] by factors[i].
  void (*multiply)(T *row, int64_t count, const T *factors);
  /// Writes 1 for each of `count` elements, from `first` on, that a dropout
  /// keeps, and 0 for others; returns where the first of them stands.
  const unsigned char *(*keep)(const DropoutWords &words, int64_t first,
                               int64_t count, unsigned char *to);
  /// Adds bias[i * step] to row[i]; step is 0 or 1.
  void (*addBias)(T *row, int64_t count, const T *bias, int64_t step);
  /// Replaces row[i] by `fill` where mask[i * step] is 0; step is 0 or 1.
  void (*applyMask)(T *row, int64_t count, const unsigned char *mask,
                    int64_t step, T fill);
};

/// Returns the passes; T: float, or double (loops of scalars).
template <typename T> const RowPasses<T> &rowPasses(Instructions with);

} // namespace ckopt::runtime

#endif // CKOPT_LIB_RUNTIME_CPU_ATTENTIONROWS_H
