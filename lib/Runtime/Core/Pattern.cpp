//===- Pattern.cpp - bytes that show whether someone wrote them -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Pattern.h"

#include <algorithm>
#include <cstring>

using namespace ckopt::runtime;

static uint64_t patternWord(uint64_t seed, int64_t word) {
  uint64_t z = seed + 0x9E3779B97F4A7C15ull * (static_cast<uint64_t>(word) + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  z ^= z >> 31;
  // Each byte has five random bits over 0x60; 0x7F (part of NaNs) becomes 0x77.
  z = (z & 0x1F1F1F1F1F1F1F1Full) | 0x6060606060606060ull;
  uint64_t full =
      z & (z >> 1) & (z >> 2) & (z >> 3) & (z >> 4) & 0x0101010101010101ull;
  return z & ~(full << 3);
}

static unsigned char patternByte(uint64_t seed, int64_t at) {
  return static_cast<unsigned char>(patternWord(seed, at / 8) >>
                                    (8 * (at % 8)));
}

void ckopt::runtime::writePattern(char *to, int64_t begin, int64_t end,
                                  uint64_t seed) {
  int64_t at = begin;
  for (; at < end && at % 8 != 0; ++at)
    to[at - begin] = static_cast<char>(patternByte(seed, at));
  for (; at + 8 <= end; at += 8) {
    uint64_t word = patternWord(seed, at / 8);
    std::memcpy(to + (at - begin), &word, 8);
  }
  for (; at < end; ++at)
    to[at - begin] = static_cast<char>(patternByte(seed, at));
}

int64_t ckopt::runtime::highestChange(const char *from, int64_t begin,
                                      int64_t end, uint64_t seed) {
  // Search from the top down, by whole words while they hold the pattern.
  for (int64_t at = end; at > begin;) {
    uint64_t word;
    if (at % 8 == 0 && at - begin >= 8) {
      std::memcpy(&word, from + (at - begin) - 8, 8);
      if (word == patternWord(seed, at / 8 - 1)) {
        at -= 8;
        continue;
      }
    }
    if (static_cast<unsigned char>(from[at - 1 - begin]) !=
        patternByte(seed, at - 1))
      return at;
    --at;
  }
  return begin;
}

std::vector<PatternSegment>
ckopt::runtime::cutAround(const std::vector<ArenaRange> &keep, int64_t used,
                          uint64_t kept, uint64_t seed) {
  std::vector<PatternSegment> segments;
  int64_t at = 0;
  for (const ArenaRange &range : keep) {
    if (at < range.begin)
      segments.push_back({at, range.begin, seed});
    segments.push_back({range.begin, range.end, kept});
    at = range.end;
  }
  if (at < used)
    segments.push_back({at, used, seed});
  return segments;
}

bool ckopt::runtime::isKept(const PatternSegment &segment,
                            const std::vector<ArenaRange> &keep) {
  return std::any_of(keep.begin(), keep.end(), [&](const ArenaRange &range) {
    return range.begin == segment.begin && range.end == segment.end;
  });
}
