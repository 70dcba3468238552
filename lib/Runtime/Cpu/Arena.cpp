//===- Arena.cpp - the one block that a step lives in ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The arena ends (to 64 bytes) at a page that faults on access, and the bytes
// in front of it are checked for changes; Pattern.h explains how its own bytes
// are checked.
//
// Where a model is as large as memory, its weights must not be there twice: a
// page of the arena takes memory once it is written, so the pattern comes late.
// Weights go to their places while the rest of the arena is blank, and what
// they came from is let go before a step needs the rest.
//
//===----------------------------------------------------------------------===//
#include "Arena.h"

#include "PrimitiveImpl.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

using namespace ckopt::runtime;

std::unique_ptr<Arena> Arena::create(int64_t bytes, std::string &error) {
  int64_t page = sysconf(_SC_PAGESIZE);
  std::unique_ptr<Arena> arena(new Arena);
  arena->used = alignUp(bytes);
  int64_t inner = (arena->used + page - 1) / page * page;
  arena->mapped = inner + 2 * page;
  void *at = mmap(nullptr, static_cast<size_t>(arena->mapped), PROT_NONE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) {
    arena->mapped = 0;
    error = "cannot map an arena of " + std::to_string(bytes) +
            " bytes: " + std::strerror(errno);
    return nullptr;
  }
  arena->mapping = static_cast<char *>(at);
  char *inside = arena->mapping + page;
  if (inner > 0 && mprotect(inside, static_cast<size_t>(inner),
                            PROT_READ | PROT_WRITE) != 0) {
    error = "cannot map an arena of " + std::to_string(bytes) +
            " bytes: " + std::strerror(errno);
    return nullptr;
  }
  // Large pages are used where the system has them; they only affect speed.
  if (inner > 0)
    (void)madvise(inside, static_cast<size_t>(inner), MADV_HUGEPAGE);
  arena->front = inner - arena->used;
  arena->start = inside + arena->front;
  return arena;
}

Arena::~Arena() {
  if (mapped)
    munmap(mapping, static_cast<size_t>(mapped));
}

void Arena::fillPattern(uint64_t seed) {
  segments = {{0, used, seed}};
  blank = {{0, used}};
  std::memset(start - front, 0x6D, static_cast<size_t>(front));
}

void Arena::takeBlank(ArenaRange range, bool filled) {
  std::vector<ArenaRange> left;
  for (const ArenaRange &one : blank) {
    const int64_t begin = std::max(one.begin, range.begin);
    const int64_t end = std::min(one.end, range.end);
    if (begin >= end) {
      left.push_back(one);
      continue;
    }
    if (filled)
      writePattern(start + begin, begin, end, segments.front().seed);
    if (one.begin < begin)
      left.push_back({one.begin, begin});
    if (end < one.end)
      left.push_back({end, one.end});
  }
  blank = std::move(left);
}

void Arena::refillPattern(const std::vector<ArenaRange> &keep, uint64_t seed) {
  measure();
  segments = cutAround(keep, used,
                       segments.empty() ? seed : segments.front().seed, seed);
  for (const PatternSegment &segment : segments)
    if (!isKept(segment, keep))
      writePattern(start + segment.begin, segment.begin, segment.end,
                   segment.seed);
}

int64_t Arena::measure() {
  fillAll();
  for (auto it = segments.rbegin(); it != segments.rend(); ++it) {
    int64_t low = std::max(it->begin, peak);
    if (low >= it->end)
      continue;
    int64_t high = highestChange(start + low, low, it->end, it->seed);
    if (high > low)
      return peak = high;
  }
  return peak;
}

bool Arena::frontIntact() const {
  return !hasPattern() ||
         std::all_of(start - front, start, [](char c) { return c == 0x6D; });
}
