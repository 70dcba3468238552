//===- Operands.h - numbers for primitives, and memory under watch -*- C++ -*-//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What lies around operands, and in the workspace before, is NaN, so that what
// is read there shows.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_UNITTESTS_RUNTIME_OPERANDS_H
#define CKOPT_UNITTESTS_RUNTIME_OPERANDS_H

#include "ckopt/Base/DType.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace ckopt::runtime::test {

/// Bytes between two guards of 4 KiB.
class Guarded {
public:
  explicit Guarded(int64_t bytes)
      : bytes(bytes), storage(bytes + 2 * kGuard + 64, kFill) {
    auto address = reinterpret_cast<uintptr_t>(storage.data()) + kGuard;
    at = reinterpret_cast<unsigned char *>((address + 63) / 64 * 64);
  }
  template <typename T>
  explicit Guarded(const std::vector<T> &values)
      : Guarded(int64_t(values.size() * sizeof(T))) {
    std::memcpy(at, values.data(), size_t(bytes));
  }
  template <typename T> bool holds(const std::vector<T> &values) const {
    return std::memcmp(at, values.data(), size_t(bytes)) == 0;
  }
  void *data() { return at; }
  /// Whether the last byte has changed, of finite numbers.
  bool endIsWritten() const { return bytes == 0 || at[bytes - 1] != kFill; }
  bool intact() const {
    auto filled = [](unsigned char c) { return c == kFill; };
    const unsigned char *begin = storage.data(), *inside = at;
    return std::all_of(begin, inside, filled) &&
           std::all_of(inside + bytes, begin + storage.size(), filled);
  }

private:
  static constexpr int64_t kGuard = 4096;
  static constexpr unsigned char kFill = 0xFF; ///< of NaNs
  int64_t bytes;
  std::vector<unsigned char> storage;
  unsigned char *at;
};

/// Small pseudo-random values, all different from run to run of the generator.
template <typename T> std::vector<T> values(int64_t count, uint32_t seed) {
  std::vector<T> result(count);
  uint32_t state = seed * 2654435761u + 12345u;
  for (T &value : result) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<T>(static_cast<int32_t>(state >> 8) % 2001 - 1000) /
            T(1000);
  }
  return result;
}

/// The same values as bf16, which are exact in f32.
inline std::vector<uint16_t> halves(const std::vector<float> &values) {
  std::vector<uint16_t> result;
  for (float value : values)
    result.push_back(floatToBFloat16(value));
  return result;
}

/// Largest difference in units of `scale` (the largest expected value).
template <typename T>
double worst(const std::vector<T> &got, const std::vector<double> &expected) {
  if (got.size() != expected.size())
    return INFINITY;
  double scale = 1, difference = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    scale = std::max(scale, std::fabs(expected[i]));
    double d = std::fabs(double(got[i]) - expected[i]);
    difference = std::isnan(d) ? INFINITY : std::max(difference, d);
  }
  return difference / scale;
}

} // namespace ckopt::runtime::test

#endif // CKOPT_UNITTESTS_RUNTIME_OPERANDS_H
