//===- Arena.h - the one block that a step lives in -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CPU_ARENA_H
#define CKOPT_LIB_RUNTIME_CPU_ARENA_H

#include "Core/Pattern.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ckopt::runtime {

class Arena {
public:
  /// Maps `bytes` (rounded up to 64), which end at a guard page.
  static std::unique_ptr<Arena> create(int64_t bytes, std::string &error);
  ~Arena();
  Arena(const Arena &) = delete;
  Arena &operator=(const Arena &) = delete;

  char *base() const { return start; }
  int64_t bytes() const { return used; }

  /// Fills the arena with the pattern of `seed`: each byte before anything
  /// reads it, and those that are written first never.
  void fillPattern(uint64_t seed);
  /// Readies bytes for whoever reads them, or writes some.
  void fill(ArenaRange range) { takeBlank(range, /*filled=*/true); }
  void fillAll() { fill({0, used}); }
  /// Readies bytes for whoever writes all of them.
  void give(ArenaRange range) { takeBlank(range, /*filled=*/false); }
  /// Measures changes, then fills everything outside `keep` (sorted, disjoint)
  /// with another pattern.
  void refillPattern(const std::vector<ArenaRange> &keep, uint64_t seed);
  /// Records that the loader wrote up to `end`.
  void noteWritten(int64_t end) { peak = end > peak ? end : peak; }
  /// Returns the end of the highest byte that was ever changed.
  int64_t measure();
  bool hasPattern() const { return !segments.empty(); }
  /// Returns false if bytes in front of the arena were changed.
  bool frontIntact() const;

  const void *user = nullptr; ///< the session that wrote to it last

private:
  Arena() = default;
  void takeBlank(ArenaRange range, bool filled);

  char *mapping = nullptr;
  int64_t mapped = 0;
  char *start = nullptr;
  int64_t used = 0, front = 0, peak = 0;
  std::vector<PatternSegment> segments; ///< sorted; cover the arena once filled
  std::vector<ArenaRange> blank; ///< sorted; without the pattern that they get
};

} // namespace ckopt::runtime

#endif // CKOPT_LIB_RUNTIME_CPU_ARENA_H
