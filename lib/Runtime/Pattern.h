//===- Pattern.h - bytes that show whether someone wrote them ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: "the step stays inside the arena and uses all of it" has to be seen,
// not believed. Method: before the first step every byte gets a value that
// depends on its position; later the highest byte that differs is looked for.
// Pattern bytes lie in 0x60..0x7E: as the top byte of an f32, f64 or bf16 these
// are numbers above 1e19 and as that of an integer or a bool huge ones, so what
// a step writes at the end of a tensor does not look like the pattern; and a
// step that reads what it never wrote soon makes an infinity of it. A second
// fill with another seed shows the byte that coincided all the same.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_PATTERN_H
#define CKOPT_LIB_RUNTIME_PATTERN_H

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

/// The highest position of [begin, end) whose byte at `from` (that of position
/// `begin`) is not the pattern's, plus one; `begin` if all are.
int64_t highestChange(const char *from, int64_t begin, int64_t end,
                      uint64_t seed);

/// [0, used) cut into `keep` (sorted, disjoint), whose bytes stay as they are
/// and are compared with the pattern of `kept`, and the rest, with `seed`.
std::vector<PatternSegment> cutAround(const std::vector<ArenaRange> &keep,
                                      int64_t used, uint64_t kept,
                                      uint64_t seed);

/// True if the segment is one of `keep`.
bool isKept(const PatternSegment &segment, const std::vector<ArenaRange> &keep);

} // namespace ckopt::runtime

#endif // CKOPT_LIB_RUNTIME_PATTERN_H
