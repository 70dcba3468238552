//===- MaskBands.h - masks that bound keys by their distance ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRANSFORMS_NORMALIZE_MASKBANDS_H
#define CKOPT_LIB_TRANSFORMS_NORMALIZE_MASKBANDS_H

#include "mlir/IR/Value.h"

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
/// show one.
std::optional<MaskBand> findMaskBand(mlir::Value condition, bool allowedWhere);

} // namespace ckopt

#endif // CKOPT_LIB_TRANSFORMS_NORMALIZE_MASKBANDS_H
