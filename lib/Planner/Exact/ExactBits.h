//===- ExactBits.h - small sets of numbers ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to lib/Planner: bit sets, of which states of the exact searches are
// made.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_EXACT_EXACTBITS_H
#define CKOPT_LIB_PLANNER_EXACT_EXACTBITS_H

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace ckopt::planner {

/// A set of numbers below 64 * Words.
template <int Words> struct Bits {
  std::array<uint64_t, Words> word{};

  bool has(int32_t i) const { return word[i >> 6] >> (i & 63) & 1; }
  void add(int32_t i) { word[i >> 6] |= uint64_t(1) << (i & 63); }
  bool empty() const {
    for (uint64_t w : word)
      if (w)
        return false;
    return true;
  }
  bool meets(const Bits &other) const {
    for (int k = 0; k < Words; ++k)
      if (word[k] & other.word[k])
        return true;
    return false;
  }
  bool includes(const Bits &other) const {
    for (int k = 0; k < Words; ++k)
      if (other.word[k] & ~word[k])
        return false;
    return true;
  }
  Bits operator|(const Bits &other) const {
    Bits result;
    for (int k = 0; k < Words; ++k)
      result.word[k] = word[k] | other.word[k];
    return result;
  }
  Bits operator&(const Bits &other) const {
    Bits result;
    for (int k = 0; k < Words; ++k)
      result.word[k] = word[k] & other.word[k];
    return result;
  }
  Bits without(const Bits &other) const {
    Bits result;
    for (int k = 0; k < Words; ++k)
      result.word[k] = word[k] & ~other.word[k];
    return result;
  }
  int count() const {
    int sum = 0;
    for (uint64_t w : word)
      sum += std::popcount(w);
    return sum;
  }
  /// Calls `visit(i)` for each number, ascending. Searches spend much of their
  /// time in such visits, so the attribute makes the compiler inline it.
  template <typename Visit>
  [[gnu::always_inline]] void each(Visit visit) const {
    for (int k = 0; k < Words; ++k)
      for (uint64_t w = word[k]; w; w &= w - 1)
        visit(int32_t(k * 64 + std::countr_zero(w)));
  }
  auto operator<=>(const Bits &) const = default;
};

template <int Words> struct HashBits {
  size_t operator()(const Bits<Words> &bits) const {
    uint64_t h = 0x9e3779b97f4a7c15;
    for (uint64_t w : bits.word) {
      h = (h ^ w) * 0xbf58476d1ce4e5b9;
      h ^= h >> 31;
    }
    return h;
  }
};

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_EXACT_EXACTBITS_H
