//===- BlockProduct.cpp - products of matrices in cache -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: products of a few hundred rows are over before a library has packed
// its operands, and it packs into memory of its own. Method: the textbook
// kernel. A tile of c (6 rows of 4 vectors with AVX-512) stays in registers
// while k runs over a chunk; each step loads a row of b and broadcasts an
// element of a for each row. One body over vectors of 64 bytes is compiled
// three times (AVX-512, AVX2, baseline, where the compiler splits the vectors),
// chosen once. Guarantee: sums run in the order of k, chunk by chunk; the
// chunks depend on k alone. Complexity: 2 m n k, less what bounds leave out,
// rounded up to tiles.
//
//===----------------------------------------------------------------------===//
#include "BlockProduct.h"
#include "TileProduct.h"

#include <algorithm>
#include <cstring>

using namespace ckopt;
using namespace ckopt::runtime;

#define CKOPT_INLINE inline __attribute__((always_inline))

namespace {

template <typename T> struct VectorOf {
  using Type __attribute__((vector_size(64))) = T;
};
template <typename T> using Vector = typename VectorOf<T>::Type;

/// Steps of k that a tile takes at once: what it reads of b then stays in the
/// L1 cache for the next tile.
constexpr int64_t kChunk = 96;

CKOPT_INLINE void load(Vector<float> &to, const float *from) {
  std::memcpy(&to, from, sizeof(to));
}
CKOPT_INLINE void load(Vector<double> &to, const double *from) {
  std::memcpy(&to, from, sizeof(to));
}
CKOPT_INLINE void store(float *to, const Vector<float> &from) {
  std::memcpy(to, &from, sizeof(from));
}
CKOPT_INLINE void store(double *to, const Vector<double> &from) {
  std::memcpy(to, &from, sizeof(from));
}

using Words = uint32_t __attribute__((vector_size(64)));
using ShortWords = uint16_t __attribute__((vector_size(32)));

CKOPT_INLINE void load(Vector<float> &to, const BFloat16 *from) {
  ShortWords bits;
  std::memcpy(&bits, from, sizeof(bits));
  const Words words = __builtin_convertvector(bits, Words) << 16;
  std::memcpy(&to, &words, sizeof(to));
}
/// Rounds to nearest, ties to even; NaN stays a NaN.
CKOPT_INLINE void store(BFloat16 *to, const Vector<float> &from) {
  Words words;
  std::memcpy(&words, &from, sizeof(words));
  const Words rounded = (words + 0x7fffu + ((words >> 16) & 1u)) >> 16;
  const Words quiet = (words >> 16) | 0x40u;
  const ShortWords bits = __builtin_convertvector(
      (words & 0x7fffffffu) > 0x7f800000u ? quiet : rounded, ShortWords);
  std::memcpy(static_cast<void *>(to), &bits, sizeof(bits));
}

/// Numbers of f16 have no vectors in baseline code.
CKOPT_INLINE void load(Vector<float> &to, const Half *from) {
  for (int64_t i = 0; i < kLanes<float>; ++i)
    to[i] = float(from[i]);
}
CKOPT_INLINE void store(Half *to, const Vector<float> &from) {
  for (int64_t i = 0; i < kLanes<float>; ++i)
    to[i] = Half(double(from[i]));
}

/// Loads the first `count` elements; the rest is zero.
template <typename S>
CKOPT_INLINE void loadSome(Vector<Compute<S>> &to, const S *from,
                           int64_t count) {
  S some[kLanes<Compute<S>>] = {};
  for (int64_t i = 0; i < count; ++i)
    some[i] = from[i];
  load(to, some);
}
template <typename S>
CKOPT_INLINE void storeSome(S *to, const Vector<Compute<S>> &from,
                            int64_t count) {
  S some[kLanes<Compute<S>>];
  store(some, from);
  for (int64_t i = 0; i < count; ++i)
    to[i] = some[i];
}

/// Where a tile lies.
template <typename T> struct Tile {
  const T *a;
  int64_t aPitch; ///< the stride that is not 1
  const T *b;
  int64_t bRow, steps;
  T *c;
  int64_t cRow;
  bool add;
  int64_t last; ///< columns of its last vector
};

template <typename T, int R, int L, bool Across>
CKOPT_INLINE void runTile(const Tile<T> &t) {
  Vector<T> sum[R][L];
  for (int i = 0; i < R; ++i)
    for (int j = 0; j < L; ++j) {
      sum[i][j] = Vector<T>{};
      const T *from = t.c + i * t.cRow + j * kLanes<T>;
      if (!t.add)
        continue;
      if (j + 1 < L || t.last == kLanes<T>)
        load(sum[i][j], from);
      else
        loadSome(sum[i][j], from, t.last);
    }
  const T *b = t.b;
  for (int64_t l = 0; l < t.steps; ++l, b += t.bRow) {
    Vector<T> right[L];
    for (int j = 0; j < L; ++j)
      load(right[j], b + j * kLanes<T>);
    for (int i = 0; i < R; ++i) {
      const T x = Across ? t.a[l * t.aPitch + i] : t.a[i * t.aPitch + l];
      const Vector<T> left = x - Vector<T>{};
      for (int j = 0; j < L; ++j)
        sum[i][j] += left * right[j];
    }
  }
  for (int i = 0; i < R; ++i)
    for (int j = 0; j < L; ++j) {
      T *to = t.c + i * t.cRow + j * kLanes<T>;
      if (j + 1 < L || t.last == kLanes<T>)
        store(to, sum[i][j]);
      else
        storeSome(to, sum[i][j], t.last);
    }
}

template <typename T, int R, int L>
CKOPT_INLINE void tileOf(const Tile<T> &t, bool across) {
  if (across)
    runTile<T, R, L, true>(t);
  else
    runTile<T, R, L, false>(t);
}

/// Chooses the tile of `rows` rows, at most R.
template <typename T, int R, int L>
CKOPT_INLINE void tileOfRows(const Tile<T> &t, int64_t rows, bool across) {
  if constexpr (R > 1)
    if (rows < R)
      return tileOfRows<T, R - 1, L>(t, rows, across);
  tileOf<T, R, L>(t, across);
}

/// Chooses the tile of `vectors` vectors, at most L.
template <typename T, int R, int L>
CKOPT_INLINE void chooseTile(const Tile<T> &t, int64_t rows, int64_t vectors,
                             bool across) {
  if constexpr (L > 1)
    if (vectors < L)
      return chooseTile<T, R, L - 1>(t, rows, vectors, across);
  tileOfRows<T, R, L>(t, rows, across);
}

/// Multiplies by tiles of at most R rows of L vectors.
template <typename T, int R, int L>
CKOPT_INLINE void multiplyBody(const BlockProduct<T> &p) {
  constexpr int64_t lanes = kLanes<T>;
  int64_t chunks = std::max<int64_t>((p.k + kChunk - 1) / kChunk, 1);
  int64_t chunk = roundUp((p.k + chunks - 1) / chunks, 8);
  bool across = p.aStep != 1;
  for (int64_t column = 0; column < p.n; column += L * lanes)
    for (int64_t chunkBegin = 0; chunkBegin == 0 || chunkBegin < p.k;
         chunkBegin += chunk) {
      int64_t from = 0, to = 0; // rows i that allow a tile's keys
      for (int64_t row = 0; row < p.m; row += R) {
        int64_t rows = std::min<int64_t>(R, p.m - row);
        int64_t start = column, columns = std::min(L * lanes, p.n - column);
        int64_t begin = chunkBegin, end = std::min(chunkBegin + chunk, p.k);
        if (p.bounded == Bounded::Columns) {
          start += std::max<int64_t>(p.first[row] - column, 0) / lanes * lanes;
          columns = std::min(column + columns, int64_t(p.end[row + rows - 1])) -
                    start;
        } else if (p.bounded == Bounded::Depth) {
          begin = std::max<int64_t>(begin, p.first[row]);
          end = std::min<int64_t>(end, p.end[row + rows - 1]);
        } else if (p.bounded == Bounded::Rows) {
          while (from < p.k && p.end[from] <= row)
            ++from;
          while (to < p.k && p.first[to] < row + rows)
            ++to;
          begin = std::max(begin, from);
          end = std::min(end, to);
        }
        if (columns <= 0 || (begin >= end && (chunkBegin > 0 || p.add)))
          continue;
        Tile<T> t;
        t.a = p.a + row * p.aRow + begin * p.aStep;
        t.aPitch = across ? p.aStep : p.aRow;
        t.b = p.b + start / kPanel<T> * p.bPanel + start % kPanel<T> +
              begin * p.bRow;
        t.bRow = p.bRow;
        t.steps = end - begin;
        t.c = p.c + row * p.cRow + start;
        t.cRow = p.cRow;
        t.add = p.add || chunkBegin > 0;
        int64_t vectors = (columns + lanes - 1) / lanes;
        t.last = p.wide ? lanes : columns - (vectors - 1) * lanes;
        chooseTile<T, R, L>(t, rows, vectors, across);
      }
    }
}

template <typename S, typename T>
CKOPT_INLINE void copyBody(const S *from, int64_t fromRow, int64_t rows,
                           int64_t columns, T factor, T *to, int64_t toRow) {
  constexpr int64_t lanes = kLanes<T>;
  Vector<T> value;
  for (int64_t i = 0; i < rows; ++i, from += fromRow, to += toRow) {
    int64_t j = 0;
    for (; j + lanes <= columns; j += lanes) {
      load(value, from + j);
      value *= factor;
      store(to + j, value);
    }
    if (j < columns) {
      loadSome(value, from + j, columns - j);
      value *= factor;
      store(to + j, value);
    }
  }
}

/// The lower or upper halves of both, interleaved.
template <bool Upper>
CKOPT_INLINE void zip(Vector<float> &to, const Vector<float> &a,
                      const Vector<float> &b) {
  if constexpr (Upper)
    to = __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13,
                                 29, 14, 30, 15, 31);
  else
    to = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21,
                                 6, 22, 7, 23);
}
template <bool Upper>
CKOPT_INLINE void zip(Vector<double> &to, const Vector<double> &a,
                      const Vector<double> &b) {
  if constexpr (Upper)
    to = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
  else
    to = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
}

template <typename S, typename T>
CKOPT_INLINE void transposeBody(const S *from, int64_t fromRow, int64_t rows,
                                int64_t columns, T factor, T *to) {
  constexpr int64_t lanes = kLanes<T>;
  for (int64_t row = 0; row < rows; row += lanes) {
    T *panel = to + row / kPanel<T> * (kPanel<T> * columns) + row % kPanel<T>;
    for (int64_t column = 0; column < columns; column += lanes) {
      int64_t some = std::min(lanes, columns - column);
      Vector<T> x[lanes], y[lanes];
      for (int64_t i = 0; i < lanes; ++i) {
        const S *at = from + (row + i) * fromRow + column;
        x[i] = Vector<T>{};
        if (row + i < rows && some == lanes)
          load(x[i], at);
        else if (row + i < rows)
          loadSome(x[i], at, some);
        x[i] *= factor;
      }
      // Each step interleaves the two halves, as cards are shuffled.
      for (int64_t step = 1; step < lanes; step *= 2) {
        for (int64_t i = 0; i < lanes / 2; ++i) {
          zip<false>(y[2 * i], x[i], x[i + lanes / 2]);
          zip<true>(y[2 * i + 1], x[i], x[i + lanes / 2]);
        }
        for (int64_t i = 0; i < lanes; ++i)
          x[i] = y[i];
      }
      for (int64_t i = 0; i < some; ++i)
        store(panel + (column + i) * kPanel<T>, x[i]);
    }
  }
}

template <typename S, typename T>
CKOPT_INLINE void putBody(const T *from, int64_t count, T factor, S *to) {
  constexpr int64_t lanes = kLanes<T>;
  Vector<T> value;
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    load(value, from + i);
    value *= factor;
    store(to + i, value);
  }
  if (i < count) {
    loadSome(value, from + i, count - i);
    value *= factor;
    storeSome(to + i, value, count - i);
  }
}

template <typename S>
CKOPT_INLINE Compute<S> dotBody(const S *a, const S *b, int64_t count) {
  using T = Compute<S>;
  constexpr int64_t lanes = kLanes<T>;
  Vector<T> sum = {}, left, right;
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    load(left, a + i);
    load(right, b + i);
    sum += left * right;
  }
  if (i < count) {
    loadSome(left, a + i, count - i);
    loadSome(right, b + i, count - i);
    sum += left * right;
  }
  T sums[lanes];
  store(sums, sum);
  for (int64_t width = lanes / 2; width > 0; width /= 2)
    for (int64_t j = 0; j < width; ++j)
      sums[j] += sums[j + width];
  return sums[0];
}

#define CKOPT_BLOCK_MULTIPLY(T, SUFFIX, ROWS, VECTORS, TARGET)                 \
  TARGET void multiply##SUFFIX(const BlockProduct<T> &product) {               \
    multiplyBody<T, ROWS, VECTORS>(product);                                   \
  }
#define CKOPT_BLOCK_COPIES(S, T, SUFFIX, TARGET)                               \
  TARGET void copy##SUFFIX(const S *from, int64_t fromRow, int64_t rows,       \
                           int64_t columns, T factor, T *to, int64_t toRow) {  \
    copyBody(from, fromRow, rows, columns, factor, to, toRow);                 \
  }                                                                            \
  TARGET void transpose##SUFFIX(const S *from, int64_t fromRow, int64_t rows,  \
                                int64_t columns, T factor, T *to) {            \
    transposeBody(from, fromRow, rows, columns, factor, to);                   \
  }                                                                            \
  TARGET void put##SUFFIX(const T *from, int64_t count, T factor, S *to) {     \
    putBody(from, count, factor, to);                                          \
  }                                                                            \
  TARGET T dot##SUFFIX(const S *a, const S *b, int64_t count) {                \
    return dotBody(a, b, count);                                               \
  }                                                                            \
  constexpr BlockCopies<S> kCopies##SUFFIX = {copy##SUFFIX, transpose##SUFFIX, \
                                              put##SUFFIX, dot##SUFFIX};
#define CKOPT_BLOCKS(SUFFIX, ROWS, VECTORS, TARGET)                            \
  CKOPT_BLOCK_MULTIPLY(float, F32##SUFFIX, ROWS, VECTORS, TARGET)              \
  CKOPT_BLOCK_MULTIPLY(double, F64##SUFFIX, ROWS, VECTORS, TARGET)             \
  CKOPT_BLOCK_COPIES(float, float, F32##SUFFIX, TARGET)                        \
  CKOPT_BLOCK_COPIES(double, double, F64##SUFFIX, TARGET)                      \
  CKOPT_BLOCK_COPIES(BFloat16, float, BF16##SUFFIX, TARGET)                    \
  CKOPT_BLOCK_COPIES(Half, float, F16##SUFFIX, TARGET)

// A tile and what it reads fit the registers: 32 of 64 bytes, 16 of 32 or 16.
CKOPT_BLOCKS(Plain, 2, 1, )
#if defined(__x86_64__)
CKOPT_BLOCKS(Avx2, 6, 1, __attribute__((target("avx2,fma"))))
CKOPT_BLOCKS(Avx512, 6, 4, __attribute__((target("avx512f,avx512dq,avx2,fma"))))

#define CKOPT_CHOOSE(NAME)                                                     \
  (with >= Instructions::Avx512 ? NAME##Avx512                                 \
   : with == Instructions::Avx2 ? NAME##Avx2                                   \
                                : NAME##Plain)
#else
#define CKOPT_CHOOSE(NAME) (static_cast<void>(with), NAME##Plain)
#endif

using MultiplyF32 = void (*)(const BlockProduct<float> &);
using MultiplyF64 = void (*)(const BlockProduct<double> &);

} // namespace

Instructions ckopt::runtime::widestInstructions() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) {
    static const bool tiles = mayUseTiles();
    return tiles ? Instructions::Amx : Instructions::Avx512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return Instructions::Avx2;
#endif
  return Instructions::Plain;
}

template <>
MultiplyF32 ckopt::runtime::blockMultiply<float>(Instructions with) {
  return CKOPT_CHOOSE(multiplyF32);
}
template <>
MultiplyF64 ckopt::runtime::blockMultiply<double>(Instructions with) {
  return CKOPT_CHOOSE(multiplyF64);
}
template <>
const BlockCopies<float> &
ckopt::runtime::blockCopies<float>(Instructions with) {
  return CKOPT_CHOOSE(kCopiesF32);
}
template <>
const BlockCopies<double> &
ckopt::runtime::blockCopies<double>(Instructions with) {
  return CKOPT_CHOOSE(kCopiesF64);
}
template <>
const BlockCopies<BFloat16> &
ckopt::runtime::blockCopies<BFloat16>(Instructions with) {
  return CKOPT_CHOOSE(kCopiesBF16);
}
template <>
const BlockCopies<Half> &ckopt::runtime::blockCopies<Half>(Instructions with) {
  return CKOPT_CHOOSE(kCopiesF16);
}
