//===- Collectives.h - how collectives cut tensors into shares --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// CPUs and devices cut tensors in the same way.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_BASE_COLLECTIVES_H
#define CKOPT_BASE_COLLECTIVES_H

#include <cstdint>

namespace ckopt {

/// Bytes of a block, which is cut into shares, sent and added at a time.
inline constexpr int64_t kPieceBytes = int64_t(4) << 20;

/// The elements of a block that one of `ranks` ranks adds; the last ranks may
/// have fewer, or none.
constexpr int64_t shareOf(int64_t elements, int64_t ranks) {
  return (elements + ranks - 1) / ranks;
}

} // namespace ckopt

#endif // CKOPT_BASE_COLLECTIVES_H
