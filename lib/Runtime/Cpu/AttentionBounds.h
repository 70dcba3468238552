//===- AttentionBounds.h - keys that a row looks at -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to attention: the bounds of keys that causality, windows and segments
// leave a row. Neither bound falls from one row to the next.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CPU_ATTENTIONBOUNDS_H
#define CKOPT_LIB_RUNTIME_CPU_ATTENTIONBOUNDS_H

#include "ckopt/Runtime/Primitive.h"

#include <utility>

namespace ckopt::runtime {

class KeyBounds {
public:
  /// Keys from first to before second.
  using Keys = std::pair<int64_t, int64_t>;

  explicit KeyBounds(const AttentionDesc &desc) : a(desc) {}

  bool any() const { return a.causal || a.hasWindow || a.hasSegments; }
  /// The i32 of workspace that they take.
  int64_t size() const { return a.hasSegments ? 2 * a.keys + 2 : 0; }

  /// Finds the keys of each row's segment, which `space` then has, by the
  /// numbers of a sample's keys.
  void findSegments(const int64_t *numbers, int32_t *space) const;
  /// Returns the keys of a row, which may be none.
  Keys keysOf(int64_t row, const int32_t *space) const;
  /// Returns whether a row of the sample has no keys.
  bool hasEmptyRow(const int32_t *space) const;
  /// Returns whether between a row's bounds some keys have other segments.
  bool isMixed(const int32_t *space) const {
    return a.hasSegments && space[2 * a.keys];
  }

private:
  AttentionDesc a;
};

} // namespace ckopt::runtime

#endif // CKOPT_LIB_RUNTIME_CPU_ATTENTIONBOUNDS_H
