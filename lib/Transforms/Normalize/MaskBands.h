//===- MaskBands.h - masks that bound keys by their distance ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRANSFORMS_NORMALIZE_MASKBANDS_H
#define CKOPT_LIB_TRANSFORMS_NORMALIZE_MASKBANDS_H

#include "ckopt/Reference/Tensor.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstdint>
#include <limits>
#include <optional>

namespace ckopt {

/// Allows key j in row i where least <= j - i <= most.
struct MaskBand {
  int64_t least = std::numeric_limits<int64_t>::min();
  int64_t most = std::numeric_limits<int64_t>::max();
};

/// Returns the band of a condition [.., queries, keys] that holds where
/// `allowedWhere` is true, and fails elsewhere; nullopt where the ops do not
/// show one. `evaluate` gives the elements of vectors that are constant, or
/// null.
std::optional<MaskBand> findMaskBand(
    mlir::Value condition, bool allowedWhere,
    llvm::function_ref<const reference::Tensor *(mlir::Value)> evaluate);

} // namespace ckopt

#endif // CKOPT_LIB_TRANSFORMS_NORMALIZE_MASKBANDS_H
