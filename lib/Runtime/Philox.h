//===- Philox.h - counter-based random numbers ------------------*- C++ -*-===//
//
// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy
// as 1, 2, 3", 2011): ten rounds of multiply and xor turn a 128-bit counter and
// a 64-bit key into 128 random bits. A number is a pure function of where it is
// used, so that recomputation, any order and any number of threads give the
// same one.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_PHILOX_H
#define CKOPT_LIB_RUNTIME_PHILOX_H

#include <cstdint>

namespace ckopt::runtime {

struct PhiloxBlock {
  uint32_t word[4];
};

inline PhiloxBlock philox4x32_10(PhiloxBlock c, uint32_t key0, uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    uint64_t p0 = uint64_t(0xD2511F53u) * c.word[0];
    uint64_t p1 = uint64_t(0xCD9E8D57u) * c.word[2];
    c = {{uint32_t(p1 >> 32) ^ c.word[1] ^ key0, uint32_t(p1),
          uint32_t(p0 >> 32) ^ c.word[3] ^ key1, uint32_t(p0)}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return c;
}

/// The upper 24 bits as a number in [0, 1): exact in f32.
inline float uniform24(uint32_t word) {
  return static_cast<float>(word >> 8) * 0x1p-24f;
}

} // namespace ckopt::runtime

#endif // CKOPT_LIB_RUNTIME_PHILOX_H
