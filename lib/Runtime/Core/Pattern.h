//===- Pattern.h - bytes that show whether someone wrote them ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: prove that a step stays inside the arena and uses all of it. Method:
// before the first step every byte gets a value that depends on its position;
// later the highest byte that differs is looked for. Pattern bytes lie in
// 0x60..0x7E. As the top byte of an f32, f64 or bf16 they make numbers above
// 1e19, as that of an integer or a bool huge ones, so the results that a step
// writes at the end of a tensor rarely look like the pattern, and a step that
// reads unwritten memory soon computes an infinity. A written byte may equal
// the pattern by chance; a second fill with another seed finds it.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CORE_PATTERN_H
#define CKOPT_LIB_RUNTIME_CORE_PATTERN_H

#include <cstdint>
#include <vector>

namespace ckopt::runtime {

/// Bytes [begin, end) of the arena.
struct ArenaRange {
  int64_t begin, end;
};

/// A range and the seed of the pattern in it.
struct PatternSegment {
  int64_t begin, end;
  uint64_t seed;
};

/// Writes the pattern's bytes of positions [begin, end) to `to`.
void writePattern(char *to, int64_t begin, int64_t end, uint64_t seed);

/// Returns the end of the highest byte of [begin, end) that is not the
/// pattern's; `begin` if all are. `from` is the address of position `begin`.
int64_t highestChange(const char *from, int64_t begin, int64_t end,
                      uint64_t seed);

/// Splits [0, used) into the ranges of `keep` (sorted, disjoint), whose bytes
/// stay and are compared with the pattern of `kept`, and the rest, with `seed`.
std::vector<PatternSegment> cutAround(const std::vector<ArenaRange> &keep,
                                      int64_t used, uint64_t kept,
                                      uint64_t seed);

/// Returns whether the segment is one of `keep`.
bool isKept(const PatternSegment &segment, const std::vector<ArenaRange> &keep);

} // namespace ckopt::runtime

#endif // CKOPT_LIB_RUNTIME_CORE_PATTERN_H
