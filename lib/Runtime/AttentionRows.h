//===- AttentionRows.h - passes over one row of scores ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What attention does with a row of scores between its two products: a pass or
// two over a row that lies in cache. Rows are padded: each pass of f32 may
// write up to the next multiple of kRowPad elements.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_ATTENTIONROWS_H
#define CKOPT_LIB_RUNTIME_ATTENTIONROWS_H

#include <cstdint>

namespace ckopt::runtime {

/// Elements that rows are padded to: a vector of 64 bytes of f32.
inline constexpr int64_t kRowPad = 16;

/// The greatest score of a row, and the sum of exp(score - greatest). A row of
/// -inf has NaN for a sum.
template <typename T> struct RowSum {
  T greatest, sum;
};

/// The passes, for one element type and this machine's instructions.
template <typename T> struct RowPasses {
  /// Replaces `count` scores by exp(score - greatest).
  RowSum<T> (*exponentials)(T *scores, int64_t count);
  /// Replaces scores by probabilities p = exp(score - lse) and `grads`, the
  /// gradients of these, by those of the scores, p * (grad - delta).
  void (*gradients)(T *scores, T *grads, int64_t count, T lse, T delta);
  T (*dot)(const T *a, const T *b, int64_t count);
  /// Adds bias[i * step] to row[i]; step is 0 or 1.
  void (*addBias)(T *row, int64_t count, const T *bias, int64_t step);
  /// Replaces row[i] by `fill` where mask[i * step] is 0; step is 0 or 1.
  void (*applyMask)(T *row, int64_t count, const unsigned char *mask,
                    int64_t step, T fill);
};

/// Returns the passes for the widest vectors that this CPU has; T: float or
/// double (loops of scalars).
template <typename T> const RowPasses<T> &rowPasses();

} // namespace ckopt::runtime

#endif // CKOPT_LIB_RUNTIME_ATTENTIONROWS_H
