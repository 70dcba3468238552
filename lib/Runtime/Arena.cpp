//===- Arena.cpp - the one block that a step lives in ---------------------===//
//
// Problem: "the step stays inside the arena and uses all of it" has to be seen,
// not believed. Method: the arena's end lies flush (to 64 bytes) with a page
// that no one may touch; before the first step every byte gets a value that
// depends on its position, and later the highest byte that differs is looked
// for. Pattern bytes lie in 0x60..0x7E: as the top byte of an f32, f64 or bf16
// these are numbers above 1e19 and as that of an integer or a bool huge ones,
// so what a step writes at the end of a tensor does not look like the pattern;
// and a step that reads what it never wrote soon makes an infinity of it. A
// second fill with another seed shows the byte that coincided all the same.
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

static uint64_t patternWord(uint64_t seed, int64_t word) {
  uint64_t z = seed + 0x9E3779B97F4A7C15ull * (static_cast<uint64_t>(word) + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  z ^= z >> 31;
  // Five random bits a byte over 0x60; 0x7F (part of NaNs) becomes 0x77.
  z = (z & 0x1F1F1F1F1F1F1F1Full) | 0x6060606060606060ull;
  uint64_t full =
      z & (z >> 1) & (z >> 2) & (z >> 3) & (z >> 4) & 0x0101010101010101ull;
  return z & ~(full << 3);
}

static unsigned char patternByte(uint64_t seed, int64_t at) {
  return static_cast<unsigned char>(patternWord(seed, at / 8) >>
                                    (8 * (at % 8)));
}

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
  // Large pages where the system has them; only speed depends on it.
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

void Arena::fill(const Segment &segment) {
  int64_t at = segment.begin;
  for (; at < segment.end && at % 8 != 0; ++at)
    start[at] = static_cast<char>(patternByte(segment.seed, at));
  for (; at + 8 <= segment.end; at += 8) {
    uint64_t word = patternWord(segment.seed, at / 8);
    std::memcpy(start + at, &word, 8);
  }
  for (; at < segment.end; ++at)
    start[at] = static_cast<char>(patternByte(segment.seed, at));
}

void Arena::fillPattern(uint64_t seed) {
  segments = {{0, used, seed}};
  fill(segments.front());
  std::memset(start - front, 0x6D, static_cast<size_t>(front));
}

void Arena::refillPattern(const std::vector<ArenaRange> &keep, uint64_t seed) {
  measure();
  uint64_t kept = segments.empty() ? seed : segments.front().seed;
  segments.clear();
  int64_t at = 0;
  for (const ArenaRange &range : keep) {
    if (at < range.begin)
      segments.push_back({at, range.begin, seed});
    segments.push_back({range.begin, range.end, kept});
    at = range.end;
  }
  if (at < used)
    segments.push_back({at, used, seed});
  for (const Segment &segment : segments)
    if (!std::any_of(keep.begin(), keep.end(), [&](const ArenaRange &range) {
          return range.begin == segment.begin && range.end == segment.end;
        }))
      fill(segment);
}

int64_t Arena::measure() {
  // From the top down; whole words while they hold the pattern.
  for (auto it = segments.rbegin(); it != segments.rend(); ++it) {
    int64_t low = std::max(it->begin, peak);
    for (int64_t at = it->end; at > low;) {
      uint64_t word;
      if (at % 8 == 0 && at - low >= 8) {
        std::memcpy(&word, start + at - 8, 8);
        if (word == patternWord(it->seed, at / 8 - 1)) {
          at -= 8;
          continue;
        }
      }
      if (static_cast<unsigned char>(start[at - 1]) !=
          patternByte(it->seed, at - 1))
        return peak = at;
      --at;
    }
  }
  return peak;
}

bool Arena::frontIntact() const {
  return !hasPattern() ||
         std::all_of(start - front, start, [](char c) { return c == 0x6D; });
}
