//===- TileProduct.h - products of bf16 blocks by tiles ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to attention: its products, by Intel AMX, of bf16 with sums of f32. A
// tile is 1 KiB: 16 rows of 32 numbers of bf16 (a left operand), 16 pairs of
// rows of 16 columns, each pair side by side (a right operand), or 16 rows of
// 16 sums. Copies lie tile after tile, zeros where the matrix has ended.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CPU_TILEPRODUCT_H
#define CKOPT_LIB_RUNTIME_CPU_TILEPRODUCT_H

#include "AttentionRows.h"

namespace ckopt::runtime {

/// Rows and columns of a tile of sums; steps of the sum that a tile of an
/// operand holds; its elements.
inline constexpr int64_t kTileRows = 16, kTileSteps = 32,
                         kTileSize = kTileRows * kTileSteps;
/// Rows of a block are taken by strips of two tiles, and so are its keys.
inline constexpr int64_t kStrip = 32, kMostStrips = 4;

constexpr int64_t tilesOf(int64_t count, int64_t each) {
  return (count + each - 1) / each;
}

/// The rows and keys of a block. Strip s looks at keys from from[s] * kStrip to
/// before to[s] * kStrip; neither number falls from one strip to the next.
struct TileStrips {
  int64_t rows, keys;
  int32_t from[kMostStrips], to[kMostStrips];

  int64_t count() const { return tilesOf(rows, kStrip); }
};

/// c[rows, columns] = a * b, or added to it, where the keys are summed over: by
/// strips of rows, for the keys that each looks at.
struct TilesOfKeys {
  /// Rows of bf16, `aRow` bytes apart; if they lie `twoByTwo`, row 2 i lies
  /// 2 i * aRow behind the first one, and row 2 i + 1 aOdd bytes behind that.
  const void *a;
  int64_t aRow, aOdd;
  bool twoByTwo;
  const BFloat16 *b; ///< right tiles: all of a column before the next column's
  float *c;
  int64_t cRow, columns;
  bool add;
};

/// c^T[columns, keys] += a^T * b, where the rows are summed over.
struct TilesOfRows {
  const BFloat16 *a; ///< left tiles of a^T: all of a column before the next's
  /// Pairs of rows, `bPair` bytes apart: key j's two numbers are word j.
  const void *b;
  int64_t bPair;
  float *c; ///< tiles: all keys of 16 columns before the next columns'
  int64_t columns;
};

/// The products and their copies. Sums run in the order of what is summed over,
/// two terms at a time.
struct TileCode {
  /// Threads open tiles before they multiply, and close them afterwards; other
  /// code may change what `open` set.
  void (*open)();
  void (*close)();

  /// scores[rows, keys] = a * b for the keys that strips look at, up to whole
  /// tiles. The tiles of 16 rows of a, or of 16 keys of b, lie together.
  void (*byKeys)(const TileStrips &of, int64_t depth, const BFloat16 *a,
                 const BFloat16 *b, float *scores, int64_t pitch);
  void (*ofKeys)(const TileStrips &of, const TilesOfKeys &p);
  void (*ofRows)(const TileStrips &of, const TilesOfRows &p);

  /// Copies rows into left tiles, and the transpose.
  void (*left)(const BFloat16 *from, int64_t fromRow, int64_t rows,
               int64_t columns, BFloat16 *to);
  void (*leftAcross)(const BFloat16 *from, int64_t fromRow, int64_t rows,
                     int64_t columns, BFloat16 *to);
  /// The same for right tiles.
  void (*right)(const BFloat16 *from, int64_t fromRow, int64_t rows,
                int64_t columns, BFloat16 *to);
  void (*rightAcross)(const BFloat16 *from, int64_t fromRow, int64_t rows,
                      int64_t columns, BFloat16 *to);
  /// Rounds the transpose of tiles of sums, times `factor`.
  void (*putAcross)(const float *from, int64_t rows, int64_t columns,
                    float factor, BFloat16 *to, int64_t toRow);
};

/// Two rows of scores and of the gradients of their probabilities.
struct TileRowPair {
  float *scores, *grads; ///< the even ones; odd ones are `pitch` numbers behind
  int64_t pitch;
  float scale;
  /// Of each: its own keys, to which the others add nothing.
  int64_t first[2], end[2];
  RowLse<float> lse[2];
  float delta[2];
};

/// Passes over rows of scores that write what is multiplied next. They round to
/// nearest, ties to even.
struct TilePasses {
  void (*scale)(float *row, int64_t count, float factor);
  /// Rounds `count` numbers; may be in place.
  void (*narrow)(const float *from, int64_t count, BFloat16 *to);
  /// That of RowPasses, of scores times `scale`, which is positive. `to` may be
  /// in place.
  RowSum<float> (*exponentials)(const float *scores, int64_t count, float scale,
                                float least, BFloat16 *to);
  /// Rounds two rows, of whole vectors, into pairs in place of the even one,
  /// and, unless `rows` is null, into rows of their own, `apart` numbers apart.
  void (*pair)(float *even, const float *odd, int64_t count, BFloat16 *rows,
               int64_t apart);
  /// Makes probabilities and gradients of the scores of two rows, for keys from
  /// `from` to before `to`, whole strips, and rounds them. Pairs are written
  /// in place of the even row of each; gradients as rows, too: the even one in
  /// place of the odd scores, the odd one in its own.
  void (*gradients)(const TileRowPair &rows, int64_t from, int64_t to);
  bool (*allFinite)(const BFloat16 *from, int64_t fromRow, int64_t rows,
                    int64_t columns);
};

/// Return the code, or null where that is not what these instructions have.
const TileCode *tileCode(Instructions with);
const TilePasses *tilePasses(Instructions with);
/// Returns passes of f32 with the bits of TilePasses, for rows of scores that
/// are more than scaled products.
const RowPasses<float> &tileRowPasses();

/// Returns whether this CPU has such tiles and the system lets the process use
/// them.
bool mayUseTiles();

} // namespace ckopt::runtime

#endif // CKOPT_LIB_RUNTIME_CPU_TILEPRODUCT_H
