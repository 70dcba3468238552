//===- Philox.h - counter-based random numbers ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy
// as 1, 2, 3", SC 2011) maps a key of two 32-bit words and a counter of four to
// four random words. It is a pure function, so recomputation can draw the
// number of any element again, in any order and on any machine. Header only.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_BASE_PHILOX_H
#define CKOPT_BASE_PHILOX_H

#include <array>
#include <cmath>
#include <cstdint>

namespace ckopt {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

/// Returns the block of random words for a counter and a key, after ten rounds.
constexpr PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t(0xD2511F53u) * counter[0];
    const uint64_t product1 = uint64_t(0xCD9E8D57u) * counter[2];
    counter = {
        uint32_t(product1 >> 32) ^ counter[1] ^ key[0], uint32_t(product1),
        uint32_t(product0 >> 32) ^ counter[3] ^ key[1], uint32_t(product0)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

/// Maps the upper 24 bits of a word to a number in [0, 1), which is exact in
/// f32.
constexpr float uniform24(uint32_t word) { return float(word >> 8) * 0x1p-24f; }

/// The purpose of a stream of random numbers. Streams of one seed with
/// different purposes never share a counter.
enum class RandomUse : uint32_t {
  Dropout = 0, ///< generated code: site, step and element are in the counter
  Initialization = 1,
  EpochOrder = 2,
  Holdout = 3,
  Test = 4,
  Augmentation = 5, ///< block, sample and epoch are in the counter
};

/// Generates the numbers of (seed, use, stream), one after another. The counter
/// is {block low, block high, stream, use}: 2^32 streams a use.
class PhiloxStream {
public:
  constexpr PhiloxStream(uint64_t seed, RandomUse use, uint32_t stream)
      : key{uint32_t(seed), uint32_t(seed >> 32)}, stream(stream),
        use(uint32_t(use)) {}

  constexpr uint32_t next32() {
    if (used == 4) {
      words = philox4x32({uint32_t(block), uint32_t(block >> 32), stream, use},
                         key);
      ++block;
      used = 0;
    }
    return words[used++];
  }
  constexpr uint64_t next64() {
    const uint64_t low = next32();
    return low | (uint64_t(next32()) << 32);
  }
  /// Uniform in [0, 1), a multiple of 2^-53.
  constexpr double uniform() { return double(next64() >> 11) * 0x1p-53; }
  /// Uniform in [0, bound), without bias; bound > 0.
  constexpr uint64_t below(uint64_t bound) {
    // Values under (2^64 mod bound) would make the low results likelier.
    const uint64_t reject = (0 - bound) % bound;
    uint64_t value = next64();
    while (value < reject)
      value = next64();
    return value % bound;
  }
  /// Standard normal by Box and Muller's transform; log and cos are libm's.
  double normal() {
    const double u = 1.0 - uniform(); // in (0, 1]
    return std::sqrt(-2.0 * std::log(u)) *
           std::cos(6.283185307179586477 * uniform());
  }

private:
  PhiloxKey key;
  uint32_t stream, use;
  uint64_t block = 0;
  PhiloxCounter words{};
  unsigned used = 4;
};

} // namespace ckopt

#endif // CKOPT_BASE_PHILOX_H
