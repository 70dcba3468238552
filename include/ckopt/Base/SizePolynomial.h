//===- SizePolynomial.h - numbers that follow a size ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A step for a range of sizes of one dimension has numbers that follow the
// size. Where it takes rows in blocks, their number is fixed, and the rows of a
// block are a second size, that follows the first.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_BASE_SIZEPOLYNOMIAL_H
#define CKOPT_BASE_SIZEPOLYNOMIAL_H

#include <cstdint>

namespace ckopt {

/// The two sizes that numbers follow.
struct SizePoint {
  int64_t size = 0;
  int64_t rows = 0; ///< of a block
};

/// constant + linear * size + square * size^2, and the same of a block's rows.
struct SizePolynomial {
  int64_t constant = 0, linear = 0, square = 0;
  int64_t rowsLinear = 0, rowsSquare = 0;

  bool followsRows() const { return rowsLinear || rowsSquare; }
  bool isConstant() const { return !linear && !square && !followsRows(); }
  int64_t at(SizePoint point) const {
    return constant + point.size * (linear + point.size * square) +
           point.rows * (rowsLinear + point.rows * rowsSquare);
  }
};

/// Blocks of rows: as few rows each as hold all, which are
/// constant + linear * size.
struct RowBlocks {
  int64_t count = 0; ///< 0: there are none
  int64_t constant = 0, linear = 0;

  SizePoint at(int64_t size) const {
    int64_t rows = constant + linear * size;
    return {size, count ? (rows + count - 1) / count : 0};
  }
};

} // namespace ckopt

#endif // CKOPT_BASE_SIZEPOLYNOMIAL_H
