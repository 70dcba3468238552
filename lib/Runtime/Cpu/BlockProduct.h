//===- BlockProduct.h - products of matrices in cache -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What attention multiplies: blocks that lie in a core's caches, on the calling
// thread, without a byte allocated. The right operand is laid out by one of the
// copies below, in rows of whole vectors, which its owner places in a planned
// workspace. The bits of an element depend on its row of the left and its
// column of the right operand, k and the machine alone.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CPU_BLOCKPRODUCT_H
#define CKOPT_LIB_RUNTIME_CPU_BLOCKPRODUCT_H

#include "ckopt/Base/DType.h"

#include <cstdint>

namespace ckopt::runtime {

/// Elements of a vector of 64 bytes.
template <typename T> inline constexpr int64_t kLanes = 64 / sizeof(T);
/// Columns that transposed copies keep together: four vectors.
template <typename T> inline constexpr int64_t kPanel = 4 * kLanes<T>;

/// Which vectors code is for. Amx: those of 64 bytes, and tiles for products of
/// bf16 (TileProduct.h).
enum class Instructions { Plain, Avx2, Avx512, Amx };
/// Returns the widest that this CPU has and the system allows.
Instructions widestInstructions();

/// Returns the least multiple of `step` that is no less.
constexpr int64_t roundUp(int64_t value, int64_t step) {
  return (value + step - 1) / step * step;
}

/// Returns the distance of rows of `columns` elements: whole vectors, and an
/// odd number of them, so that rows spread over all sets of a cache.
template <typename T> constexpr int64_t oddPitch(int64_t columns) {
  int64_t vectors = (columns + kLanes<T> - 1) / kLanes<T>;
  return (vectors | 1) * kLanes<T>;
}

/// Which elements are left out where row i allows only the keys from first[i]
/// to before end[i]. Neither number falls from one row to the next.
enum class Bounded {
  None,
  Columns, ///< rows of c are rows i, columns keys: others are not made
  Depth,   ///< rows of c are rows i, k is keys: a is zero at others
  Rows,    ///< rows of c are keys, k is rows i: a is zero at others
};

/// c[m, n] = a[m, k] * b[k, n], or added to c. An element of a lies at
/// i * aRow + l * aStep, where one of both is 1. Column j of b is j % kPanel of
/// panel j / kPanel.
template <typename T> struct BlockProduct {
  int64_t m, n, k;
  const T *a;
  int64_t aRow, aStep;
  const T *b;
  int64_t bRow, bPanel; ///< from row to row, from panel to panel
  T *c;
  int64_t cRow;
  bool add = false;
  bool wide = false; ///< c has room for rows of whole vectors
  Bounded bounded = Bounded::None;
  const int32_t *first = nullptr, *end = nullptr;
};

template <typename S> struct ComputeOf {
  using Type = S;
};
template <> struct ComputeOf<BFloat16> {
  using Type = float;
};
template <> struct ComputeOf<Half> {
  using Type = float;
};
/// The number type that elements of S are computed in.
template <typename S> using Compute = typename ComputeOf<S>::Type;

/// What brings elements of S into products and back, with the instructions of
/// one machine.
template <typename S> struct BlockCopies {
  using T = Compute<S>;
  /// Copies rows of `columns` elements times `factor`; what is beside them, up
  /// to whole vectors, becomes zero.
  void (*copy)(const S *from, int64_t fromRow, int64_t rows, int64_t columns,
               T factor, T *to, int64_t toRow);
  /// Copies the transpose, in panels: element (i, j) times `factor` goes to row
  /// j, column i % kPanel of panel i / kPanel. Columns are filled with zeros up
  /// to whole vectors.
  void (*transpose)(const S *from, int64_t fromRow, int64_t rows,
                    int64_t columns, T factor, T *to);
  /// Writes `count` elements times `factor`; may be in place.
  void (*put)(const T *from, int64_t count, T factor, S *to);
  T (*dot)(const S *a, const S *b, int64_t count);
};

/// Return the code; T: float, double; S: also Half and BFloat16.
template <typename T>
void (*blockMultiply(Instructions with))(const BlockProduct<T> &);
template <typename S> const BlockCopies<S> &blockCopies(Instructions with);

} // namespace ckopt::runtime

#endif // CKOPT_LIB_RUNTIME_CPU_BLOCKPRODUCT_H
