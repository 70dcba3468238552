//===- TileProduct.cpp - products of bf16 blocks by tiles -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: where operands are bf16 a core's matrix unit (Intel AMX) multiplies
// some ten times as fast as vectors of f32, but takes one operand by rows and
// the other by pairs of rows, of whole tiles. Method: four tiles of sums (two
// by two) stay in registers while two tiles of each operand are loaded a step,
// so that a tile is loaded once for two products. Copies bring operands into
// tiles: a transpose is one of words, whether these are two neighbours of a row
// or two of a column. Results of rows that end within a tile pass through a
// buffer. Products leave out tiles of 32 rows and 32 keys outside of bounds.
// Guarantee: an element's sum runs in the order of what is summed over; exact
// zeros beside a row's keys change nothing, since callers take no operands that
// are not finite. Complexity: 2 m n k, rounded up to tiles.
//
//===----------------------------------------------------------------------===//
#include "TileProduct.h"

#if !defined(__x86_64__)

const ckopt::runtime::TileCode *ckopt::runtime::tileCode(Instructions) {
  return nullptr;
}
bool ckopt::runtime::mayUseTiles() { return false; }

#else

#include <algorithm>
#include <cpuid.h>
#include <cstring>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace ckopt;
using namespace ckopt::runtime;

#define CKOPT_TILES                                                            \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,"       \
                        "avx2,fma,amx-tile,amx-bf16")))
#define CKOPT_TILES_INLINE CKOPT_TILES static inline

namespace {

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Two by two tiles of sums, or fewer. Distances are in bytes.
struct TileBlock {
  const char *a;
  int64_t aRow, aTile, aStep;
  const char *b;
  int64_t bRow, bTile, bStep;
  float *c[2][2];
  int64_t cRow, steps;
  bool add;
};

template <int M, int N> CKOPT_TILES_INLINE void runBlock(const TileBlock &of) {
  const TileBlock t = of; // which is not written through sums
  if (t.add) {
    _tile_loadd(0, t.c[0][0], t.cRow);
    if constexpr (N > 1)
      _tile_loadd(1, t.c[0][1], t.cRow);
    if constexpr (M > 1)
      _tile_loadd(2, t.c[1][0], t.cRow);
    if constexpr (M > 1 && N > 1)
      _tile_loadd(3, t.c[1][1], t.cRow);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  const char *a = t.a, *b = t.b;
  for (int64_t l = 0; l < t.steps; ++l, a += t.aStep, b += t.bStep) {
    _tile_loadd(4, a, t.aRow);
    _tile_loadd(6, b, t.bRow);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (N > 1) {
      _tile_loadd(7, b + t.bTile, t.bRow);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (M > 1) {
      _tile_loadd(5, a + t.aTile, t.aRow);
      _tile_dpbf16ps(2, 5, 6);
    }
    if constexpr (M > 1 && N > 1)
      _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, t.c[0][0], t.cRow);
  if constexpr (N > 1)
    _tile_stored(1, t.c[0][1], t.cRow);
  if constexpr (M > 1)
    _tile_stored(2, t.c[1][0], t.cRow);
  if constexpr (M > 1 && N > 1)
    _tile_stored(3, t.c[1][1], t.cRow);
}

/// Not every compiler knows that instructions of tiles read and write memory.
inline void keepOrder() { __asm__ volatile("" ::: "memory"); }

/// Chooses by how many tiles of rows and columns there are: one or two.
CKOPT_TILES void chooseBlock(const TileBlock &t, int64_t rows,
                             int64_t columns) {
  keepOrder();
  if (rows > 1 && columns > 1)
    runBlock<2, 2>(t);
  else if (rows > 1)
    runBlock<2, 1>(t);
  else if (columns > 1)
    runBlock<1, 2>(t);
  else
    runBlock<1, 1>(t);
  keepOrder();
}

constexpr int64_t kTileBytes = 1024, kTileRowBytes = 64;

void byKeysTiles(const TileStrips &of, int64_t depth, const BFloat16 *a,
                 const BFloat16 *b, float *scores, int64_t pitch) {
  int64_t steps = tilesOf(depth, kTileSteps);
  int64_t keyTiles = tilesOf(of.keys, kTileRows);
  int64_t rowTiles = tilesOf(of.rows, kTileRows);
  TileBlock t{};
  t.aRow = t.bRow = kTileRowBytes;
  t.aTile = t.bTile = steps * kTileBytes;
  t.aStep = t.bStep = kTileBytes;
  t.cRow = pitch * int64_t(sizeof(float));
  t.steps = steps;
  for (int64_t key = 0; 2 * key < keyTiles; ++key)
    for (int64_t strip = 0; strip < of.count(); ++strip) {
      if (key < of.from[strip] || key >= of.to[strip])
        continue;
      t.a = reinterpret_cast<const char *>(a) + 2 * strip * t.aTile;
      t.b = reinterpret_cast<const char *>(b) + 2 * key * t.bTile;
      for (int64_t i = 0; i < 2; ++i)
        for (int64_t j = 0; j < 2; ++j)
          t.c[i][j] = scores + (strip * kStrip + i * kTileRows) * pitch +
                      key * kStrip + j * kTileRows;
      chooseBlock(t, rowTiles - 2 * strip, keyTiles - 2 * key);
    }
}

/// Rows of a strip that end within a tile, with whole tiles' room.
struct StripBuffer {
  alignas(64) float data[kStrip][kStrip];
};

void ofKeysTiles(const TileStrips &of, const TilesOfKeys &p) {
  int64_t columnTiles = tilesOf(p.columns, kTileRows);
  int64_t steps = tilesOf(of.keys, kTileSteps);
  TileBlock t{};
  t.aRow = (p.twoByTwo ? 2 : 1) * p.aRow;
  t.aTile = p.twoByTwo ? p.aOdd : kTileRows * p.aRow;
  t.aStep = kTileRowBytes;
  t.bRow = kTileRowBytes, t.bTile = steps * kTileBytes, t.bStep = kTileBytes;
  StripBuffer buffer;
  for (int64_t column = 0; column < columnTiles; column += 2)
    for (int64_t strip = 0; strip < of.count(); ++strip) {
      int64_t from = of.from[strip];
      t.steps = of.to[strip] - from;
      t.add = p.add;
      if (t.add && t.steps <= 0)
        continue;
      int64_t rows = std::min(of.rows - strip * kStrip, kStrip);
      int64_t columns = std::min<int64_t>(columnTiles - column, 2);
      size_t bytes = size_t(columns * kTileRows) * sizeof(float);
      float *own = p.c + strip * kStrip * p.cRow + column * kTileRows, *c = own;
      int64_t pitch = p.cRow;
      if (rows < kStrip) {
        std::memset(buffer.data, 0, sizeof(buffer.data));
        for (int64_t i = 0; i < rows && t.add; ++i)
          std::memcpy(buffer.data[i], own + i * pitch, bytes);
        c = buffer.data[0], pitch = kStrip;
      }
      t.a = static_cast<const char *>(p.a) + strip * kStrip * p.aRow +
            from * t.aStep;
      t.b = reinterpret_cast<const char *>(p.b) + column * t.bTile +
            from * t.bStep;
      for (int64_t i = 0; i < 2; ++i)
        for (int64_t j = 0; j < 2; ++j)
          t.c[i][j] =
              c + i * (p.twoByTwo ? 1 : kTileRows) * pitch + j * kTileRows;
      t.cRow = (p.twoByTwo ? 2 : 1) * pitch * int64_t(sizeof(float));
      chooseBlock(t, p.twoByTwo || rows > kTileRows ? 2 : 1, columns);
      for (int64_t i = 0; i < rows && rows < kStrip; ++i)
        std::memcpy(own + i * p.cRow, buffer.data[i], bytes);
    }
}

void ofRowsTiles(const TileStrips &of, const TilesOfRows &p) {
  int64_t columnTiles = tilesOf(p.columns, kTileRows);
  int64_t keyTiles = tilesOf(of.keys, kTileRows), strips = of.count();
  TileBlock t{};
  t.aRow = t.cRow = kTileRowBytes;
  t.aTile = strips * kTileBytes, t.aStep = kTileBytes;
  t.bRow = p.bPair, t.bTile = kTileRowBytes, t.bStep = kTileRows * p.bPair;
  t.add = true;
  int64_t from = 0, to = 0; // strips that look at a pair of tiles
  for (int64_t key = 0; key < keyTiles; key += 2) {
    while (from < strips && of.to[from] <= key / 2)
      ++from;
    while (to < strips && of.from[to] <= key / 2)
      ++to;
    t.steps = to - from;
    if (t.steps <= 0)
      continue;
    for (int64_t column = 0; column < columnTiles; column += 2) {
      t.a = reinterpret_cast<const char *>(p.a) + column * t.aTile +
            from * t.aStep;
      t.b = static_cast<const char *>(p.b) + key * t.bTile + from * t.bStep;
      for (int64_t i = 0; i < 2; ++i)
        for (int64_t j = 0; j < 2; ++j)
          t.c[i][j] =
              p.c + ((column + i) * keyTiles + key + j) * kTileRows * kTileRows;
      chooseBlock(t, columnTiles - column, keyTiles - key);
    }
  }
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

using Words = uint32_t __attribute__((vector_size(64)));

/// Returns which of the next 16 or 32 elements exist.
CKOPT_TILES_INLINE __mmask32 someOf(int64_t count) {
  return count >= 32 ? ~__mmask32(0)
         : count > 0 ? (__mmask32(1) << count) - 1
                     : 0;
}

/// Transposes 16 by 16 words: each step interleaves the two halves, as cards
/// are shuffled.
CKOPT_TILES_INLINE void transposeWords(__m512i (&x)[16]) {
  for (int step = 0; step < 4; ++step) {
    Words y[16];
    for (int i = 0; i < 8; ++i) {
      const Words a = (Words)x[i], b = (Words)x[i + 8];
      y[2 * i] = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4,
                                         20, 5, 21, 6, 22, 7, 23);
      y[2 * i + 1] = __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27,
                                             12, 28, 13, 29, 14, 30, 15, 31);
    }
    for (int i = 0; i < 16; ++i)
      x[i] = (__m512i)y[i];
  }
}

CKOPT_TILES_INLINE void storeTile(BFloat16 *to, const __m512i (&x)[16]) {
  for (int i = 0; i < 16; ++i)
    _mm512_storeu_si512(to + i * kTileSteps, x[i]);
}

/// Loads up to 16 rows of up to 32 columns.
CKOPT_TILES_INLINE void loadRows(__m512i (&x)[16], const BFloat16 *from,
                                 int64_t fromRow, int64_t rows,
                                 int64_t columns) {
  const __mmask32 some = someOf(columns);
  for (int64_t i = 0; i < 16; ++i)
    x[i] = i < rows ? _mm512_maskz_loadu_epi16(some, from + i * fromRow)
                    : _mm512_setzero_si512();
}

/// Loads up to 16 pairs of rows of up to 16 columns: words of two rows.
CKOPT_TILES_INLINE void loadPairs(__m512i (&x)[16], const BFloat16 *from,
                                  int64_t fromRow, int64_t rows,
                                  int64_t columns) {
  const __mmask16 some = __mmask16(someOf(std::min(columns, kTileRows)));
  for (int64_t i = 0; i < 16; ++i) {
    __m512i even = _mm512_setzero_si512(), odd = even;
    const BFloat16 *at = from + 2 * i * fromRow;
    if (2 * i < rows)
      even = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(some, at));
    if (2 * i + 1 < rows)
      odd = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(some, at + fromRow));
    x[i] = _mm512_or_si512(even, _mm512_slli_epi32(odd, 16));
  }
}

/// Copies by tiles of 16 rows, all steps of one after the other.
template <bool Across>
CKOPT_TILES_INLINE void copyByRows(const BFloat16 *from, int64_t fromRow,
                                   int64_t rows, int64_t columns,
                                   BFloat16 *to) {
  for (int64_t row = 0; row < rows; row += kTileRows)
    for (int64_t column = 0; column < columns;
         column += kTileSteps, to += kTileSize) {
      __m512i x[16];
      loadRows(x, from + row * fromRow + column, fromRow, rows - row,
               columns - column);
      if (Across)
        transposeWords(x);
      storeTile(to, x);
    }
}

/// Copies by tiles of 16 columns, all rows of one after the other.
template <bool Across>
CKOPT_TILES_INLINE void copyByColumns(const BFloat16 *from, int64_t fromRow,
                                      int64_t rows, int64_t columns,
                                      BFloat16 *to) {
  for (int64_t column = 0; column < columns; column += kTileRows)
    for (int64_t row = 0; row < rows; row += kTileSteps, to += kTileSize) {
      __m512i x[16];
      loadPairs(x, from + row * fromRow + column, fromRow, rows - row,
                columns - column);
      if (Across)
        transposeWords(x);
      storeTile(to, x);
    }
}

CKOPT_TILES void leftTiles(const BFloat16 *from, int64_t fromRow, int64_t rows,
                           int64_t columns, BFloat16 *to) {
  copyByRows<false>(from, fromRow, rows, columns, to);
}
CKOPT_TILES void leftAcrossTiles(const BFloat16 *from, int64_t fromRow,
                                 int64_t rows, int64_t columns, BFloat16 *to) {
  copyByColumns<true>(from, fromRow, rows, columns, to);
}
CKOPT_TILES void rightTiles(const BFloat16 *from, int64_t fromRow, int64_t rows,
                            int64_t columns, BFloat16 *to) {
  copyByColumns<false>(from, fromRow, rows, columns, to);
}
CKOPT_TILES void rightAcrossTiles(const BFloat16 *from, int64_t fromRow,
                                  int64_t rows, int64_t columns, BFloat16 *to) {
  copyByRows<true>(from, fromRow, rows, columns, to);
}

CKOPT_TILES void putAcrossTiles(const float *from, int64_t rows,
                                int64_t columns, float factor, BFloat16 *to,
                                int64_t toRow) {
  for (int64_t column = 0; column < columns; column += kTileRows) {
    const __mmask16 some =
        __mmask16(someOf(std::min(columns - column, kTileRows)));
    for (int64_t row = 0; row < rows;
         row += kTileRows, from += kTileRows * kTileRows) {
      __m512i x[16];
      for (int i = 0; i < 16; ++i)
        x[i] = _mm512_loadu_si512(from + i * kTileRows);
      transposeWords(x);
      for (int64_t i = 0; i < std::min(kTileRows, rows - row); ++i) {
        const __m512 value =
            _mm512_mul_ps(_mm512_castsi512_ps(x[i]), _mm512_set1_ps(factor));
        _mm256_mask_storeu_epi16(to + (row + i) * toRow + column, some,
                                 (__m256i)_mm512_cvtneps_pbh(value));
      }
    }
  }
}

//===----------------------------------------------------------------------===//
// The machine
//===----------------------------------------------------------------------===//

CKOPT_TILES void openTiles() {
  struct alignas(64) {
    uint8_t palette = 1, start = 0, reserved[14] = {};
    uint16_t rowBytes[16] = {};
    uint8_t rows[16] = {};
  } config;
  std::fill_n(config.rowBytes, 8, uint16_t(kTileRowBytes));
  std::fill_n(config.rows, 8, uint8_t(kTileRows));
  keepOrder();
  _tile_loadconfig(&config);
}

CKOPT_TILES void closeTiles() { _tile_release(); }

constexpr TileCode kTileCode = {
    openTiles, closeTiles,      byKeysTiles, ofKeysTiles,      ofRowsTiles,
    leftTiles, leftAcrossTiles, rightTiles,  rightAcrossTiles, putAcrossTiles};

} // namespace

const TileCode *ckopt::runtime::tileCode(Instructions with) {
  return with == Instructions::Amx ? &kTileCode : nullptr;
}

bool ckopt::runtime::mayUseTiles() {
  constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24; // of leaf 7's edx
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d & kBf16) || !(d & kTile))
    return false;
  if (!__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq") ||
      !__builtin_cpu_supports("avx512vl") ||
      !__builtin_cpu_supports("avx512bf16"))
    return false;
  // The system keeps tiles only for processes that have asked.
  constexpr long kRequest = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
}

#endif
