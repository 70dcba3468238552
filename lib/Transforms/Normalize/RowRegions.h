//===- RowRegions.h - ops that work row by row ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRANSFORMS_NORMALIZE_ROWREGIONS_H
#define CKOPT_LIB_TRANSFORMS_NORMALIZE_ROWREGIONS_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace ckopt {

/// Returns how many leading dimensions hold the rows; nullopt: none do.
std::optional<size_t> rowDims(mlir::Value value, int64_t rows);

/// Ops whose wide values nothing else makes or reads.
struct RowRegion {
  int64_t rows = 0;
  int64_t columns = 0; ///< of what enters; values of more are wide
  int64_t widest = 0;  ///< bytes
  /// In order, each with the operands whose rows it reads.
  llvm::MapVector<mlir::Operation *, llvm::SmallVector<bool>> ops;

  bool isWide(mlir::Value value) const;
  /// Adds what makes and reads wide values, from the seed on; false where an op
  /// of these does not work row by row.
  bool grow(mlir::Operation *seed);
  /// Whether anything outside reads the value.
  bool leaves(mlir::Value value) const {
    return llvm::any_of(value.getUsers(), [&](mlir::Operation *user) {
      return !ops.contains(user);
    });
  }
  /// Whether it draws random numbers, and those of blocks of `size` rows can be
  /// counted from their places in the whole.
  bool draws() const;
  bool counts(int64_t size) const;
  /// Whether what leaves is smaller than the largest value inside.
  bool narrows() const;

private:
  bool close(mlir::Block &block);
};

/// Returns the region around a product that makes more columns than it takes.
std::optional<RowRegion> rowRegionOf(mlir::Operation *product);

} // namespace ckopt

#endif // CKOPT_LIB_TRANSFORMS_NORMALIZE_ROWREGIONS_H
