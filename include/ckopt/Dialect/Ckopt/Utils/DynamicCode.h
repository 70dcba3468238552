//===- DynamicCode.h - the code book of 8-bit states ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The dynamic code book of bitsandbytes and torchao (create_dynamic_map) is
// seven decades of evenly spaced numbers, 0 and 1. A kernel finds codes and
// numbers by a decade's line, with a few operations of lanes in place of a
// lookup: the entry of rank k is `low + (k - first + 0.5) * spacing` in the
// decade where first <= k < 2 * first. Ranks count from 0's, which is rank 0
// with signs and 1 without; the rank behind the last decade is that of 1.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_DIALECT_CKOPT_UTILS_DYNAMICCODE_H
#define CKOPT_DIALECT_CKOPT_UTILS_DYNAMICCODE_H

#include <array>

namespace ckopt {

struct CodeDecade {
  double first;   ///< rank of the first entry, and number of entries
  double low;     ///< where the first entry's interval begins
  double spacing; ///< between entries
  double end;     ///< halfway to the first entry of the next decade
};

inline constexpr int kCodeDecades = 7;

/// The decades of entries above 0, smallest first.
inline std::array<CodeDecade, kCodeDecades> codeDecades(bool hasSign) {
  std::array<CodeDecade, kCodeDecades> decades;
  double first = hasSign ? 1 : 2, top = 1e-6;
  for (CodeDecade &decade : decades) {
    bool isLast = &decade == &decades.back();
    decade = {first, top / 10, 0.9 * top / first,
              top * (1 + (isLast ? -0.225 : 0.9) / first)};
    first *= 2;
    top *= 10;
  }
  return decades;
}

/// What codes are above ranks.
inline constexpr double codeOfRank0(bool hasSign) { return hasSign ? 127 : -1; }

} // namespace ckopt

#endif // CKOPT_DIALECT_CKOPT_UTILS_DYNAMICCODE_H
