//===- MaskBands.h - masks that bound keys by their distance ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRANSFORMS_NORMALIZE_MASKBANDS_H
#define CKOPT_LIB_TRANSFORMS_NORMALIZE_MASKBANDS_H

#include "ckopt/Reference/Tensor.h"
#include "mlir/IR/Value.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

namespace ckopt {

/// Allows key j in row i where least <= j - i <= most.
struct MaskBand {
  int64_t least = std::numeric_limits<int64_t>::min();
  int64_t most = std::numeric_limits<int64_t>::max();

  MaskBand operator&(const MaskBand &other) const {
    return {std::max(least, other.least), std::min(most, other.most)};
  }
};

/// What a mask or bias is, as far as it is known.
struct MaskForm {
  std::optional<MaskBand> band; ///< keys that it allows, by their distance
  mlir::Value segments;  ///< keys that it allows: those with the row's number
  bool isExact = false;  ///< forbids by -inf
  bool isMild = false;   ///< lowers no key by much
  bool isFailed = false; ///< adds +inf or NaN: no probabilities
  bool isKnown() const { return band || segments; }
};

/// One of the conditions of a mask that must all hold.
struct MaskPart {
  mlir::Value condition;
  bool allowedWhere;
  /// Its shape beside the scores. Reshapes inside of a mask change it.
  mlir::SmallVector<int64_t> shape;
  MaskForm form = {};
};

/// Returns whether the sizes of a condition before the last two are those of
/// the samples alone. `rank` is that of the scores: 4, or 3 without samples.
bool isOfSamples(const MaskPart &part, int64_t rank);

/// Returns the band of a condition [.., queries, keys] that holds where
/// `allowedWhere` is true, and fails elsewhere; nullopt where the ops do not
/// show one. `evaluate` gives the elements of constants, or null. `positions`
/// (or null) rise by one from place to place, as if they were a constant: the
/// band is right for rows and keys between which that is so.
std::optional<MaskBand> findMaskBand(
    mlir::Value condition, bool allowedWhere,
    llvm::function_ref<const reference::Tensor *(mlir::Value)> evaluate,
    mlir::Value positions = {});

/// Returns the numbers, [(samples,) keys] with sizes of 1 between, of which a
/// condition says that those of row and key are equal; or null.
mlir::Value findSegments(const MaskPart &part, int64_t rank);

/// Returns the positions, of the same form, that rise by one from place to
/// place wherever such numbers stay the same; or null: numbers that count the
/// places where positions do not rise by one.
mlir::Value positionsBehind(mlir::Value segments);

} // namespace ckopt

#endif // CKOPT_LIB_TRANSFORMS_NORMALIZE_MASKBANDS_H
