//===- Holes.cpp - values of which some bits were never written -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: a compiler may leave half of a register undefined and shift it out
// later: LLVM packs {undefined, x} to get x << 16. So an instruction that only
// moves bits may read such a register; all others (arithmetic, addresses,
// stores, branches) may not. Method: as in Memcheck (Seward and Nethercote,
// "Using Valgrind to Detect Undefined Value Errors with Bit-Precision", 2005),
// each bit is defined or not. The instruction runs with zeros for the undefined
// bits, then with ones; bits of the result that differ are undefined.
// Guarantee: this is exact, since each bit of these results is one bit of a
// source, its complement, or monotonic in bits of sources ("and", "or").
//
// Registers with undefined bits do not count as written, so code without them
// pays nothing.
//
//===----------------------------------------------------------------------===//
#include "Execution.h"

#include <cstdio>

using namespace standin::ptx;

// Undefined registers hold this value, so that a program that reads one gets a
// strange number.
static constexpr uint32_t kPattern = 0xA5A5A5A5;

uint64_t Execution::holeOf(const Warp &warp, Slot slot, unsigned lane) const {
  auto found = warp.holes.find(slot);
  if (found == warp.holes.end() || !(found->second.lanes >> lane & 1))
    return 0;
  const uint32_t *bits = found->second.bits;
  return kernel.wide.count(slot)
             ? bits[2 * lane] | uint64_t(bits[2 * lane + 1]) << 32
             : bits[lane];
}

std::string Execution::holeText(const Warp &warp, Slot slot,
                                unsigned lane) const {
  uint64_t hole = holeOf(warp, slot, lane);
  if (!hole)
    return ", which was never written";
  char text[80];
  std::snprintf(text, sizeof text, ", whose bits 0x%llx were never written",
                static_cast<unsigned long long>(hole));
  return text;
}

bool Execution::movesHoles(const Warp &warp, const Instruction &in,
                           uint32_t lanes) const {
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!(lanes >> l & 1))
      continue;
    bool any = false; // some bit of the result is defined
    for (unsigned i = 0; i < in.srcs; ++i) {
      Slot slot = in.slots[in.dsts + i];
      bool written = warp.written[slot] >> l & 1;
      bool hole = !written && holeOf(warp, slot, l);
      any |= written || hole;
      if (!written && (!(in.moves >> i & 1) || !(hole || in.packs)))
        return false;
    }
    if (!any)
      return false;
  }
  return true;
}

void Execution::moveHoles(Warp &warp, const Instruction &in, uint32_t active) {
  unsigned all = unsigned(in.dsts) + in.srcs;
  auto size = [&](unsigned i) {
    return kernel.wide.count(in.slots[i]) ? 2 * kLanes : kLanes;
  };
  auto words = [&](unsigned i) {
    return &warp.file[size_t(in.slots[i]) * kLanes];
  };
  // The registers of the operands before the instruction, and their undefined
  // bits.
  std::vector<std::vector<uint32_t>> before, holes(all);
  for (unsigned i = 0; i < all; ++i)
    before.emplace_back(words(i), words(i) + size(i));
  for (unsigned i = in.dsts; i < all; ++i) {
    holes[i].resize(size(i));
    Slot slot = in.slots[i];
    unsigned parts = size(i) / kLanes;
    uint32_t lacking = active & ~warp.written[slot];
    for (unsigned l = 0; l < kLanes; ++l) {
      if (!(lacking >> l & 1))
        continue;
      uint64_t hole = holeOf(warp, slot, l);
      if (!hole) // this part of a pack was never written
        hole = (uint64_t(1) << in.detail) - 1;
      for (unsigned w = 0; w < parts; ++w)
        holes[i][parts * l + w] = uint32_t(hole >> (32 * w));
    }
  }
  auto runWith = [&](uint32_t fill) {
    for (unsigned i = in.dsts; i < all; ++i)
      for (unsigned w = 0; w < size(i); ++w)
        words(i)[w] = (before[i][w] & ~holes[i][w]) | (fill & holes[i][w]);
    Lanes lanes{warp.file.data(), active, &warp};
    in.run(in, lanes);
    std::vector<std::vector<uint32_t>> results;
    for (unsigned i = 0; i < in.dsts; ++i)
      results.emplace_back(words(i), words(i) + size(i));
    for (unsigned i = 0; i < all; ++i)
      std::copy(before[i].begin(), before[i].end(), words(i));
    return results;
  };
  auto zeros = runWith(0), ones = runWith(~uint32_t(0));
  for (unsigned i = 0; i < in.dsts; ++i) {
    Slot slot = in.slots[i];
    Holes &to = warp.holes[slot];
    unsigned parts = size(i) / kLanes;
    for (unsigned w = 0; w < size(i); ++w) {
      uint32_t lane = 1u << (w / parts);
      if (!(active & lane))
        continue;
      if (w % parts == 0) {
        to.lanes &= ~lane;
        warp.written[slot] |= lane;
      }
      to.bits[w] = zeros[i][w] ^ ones[i][w];
      words(i)[w] = (zeros[i][w] & ones[i][w]) | (kPattern & to.bits[w]);
      if (to.bits[w]) {
        to.lanes |= lane;
        warp.written[slot] &= ~lane;
      }
    }
  }
}
