//===- PrimitiveFixture.h - running primitives under watch ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs a primitive on guarded buffers twice and hands back the result: no byte
// outside of the result and of the reported workspace may change, and the
// second run must give the same bits. What lies around operands, and in the
// workspace before, is NaN, so that what is read there shows.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_UNITTESTS_RUNTIME_PRIMITIVEFIXTURE_H
#define CKOPT_UNITTESTS_RUNTIME_PRIMITIVEFIXTURE_H

#include "ckopt/Runtime/Primitive.h"
#include "ckopt/Runtime/ckrt.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
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

/// Runs `desc` with `threads` threads on a and b; the result has `count`
/// elements of type R and starts as 7s.
template <typename T, typename R = T>
std::vector<R> runPrimitive(const PrimitiveDesc &desc, const std::vector<T> &a,
                            const std::vector<T> &b, int64_t count,
                            int32_t threads = 2) {
  std::string error;
  int64_t planned = primitiveWorkspace(desc, threads, error);
  EXPECT_GE(planned, 0) << error;
  auto primitive = Primitive::create(desc, threads, error);
  EXPECT_TRUE(primitive) << error;
  if (!primitive)
    return {};
  EXPECT_EQ(primitive->workspaceBytes(), planned);
  bool exact = desc.dtype == DType::F64 &&
               desc.kind >= PrimitiveKind::ConvForward &&
               desc.kind <= PrimitiveKind::ConvWeightGrad;
  EXPECT_TRUE(exact || planned % 64 == 0);
  ckrt_env *env = ckrt_env_create(threads, 0);
  int64_t index = -1;
  EXPECT_EQ(ckrt_env_add_primitive(env, &desc, &index), CKRT_OK);
  std::vector<R> runs[2];
  for (std::vector<R> &run : runs) {
    Guarded workspace(planned), result(count * int64_t(sizeof(R)));
    Guarded first(a), second(b);
    auto *out = static_cast<R *>(result.data());
    std::fill(out, out + count, R(7));
    void *args[] = {first.data(), second.data(), out};
    EXPECT_EQ(ckrt_execute(env, index, args, workspace.data()), 0)
        << ckrt_last_error();
    EXPECT_TRUE(workspace.intact()) << "workspace exceeded";
    EXPECT_TRUE(!exact || workspace.endIsWritten()) << "padding is planned";
    EXPECT_TRUE(result.intact()) << "result exceeded";
    EXPECT_TRUE(first.holds(a) && second.holds(b)) << "operands changed";
    run.assign(out, out + count);
  }
  EXPECT_EQ(std::memcmp(runs[0].data(), runs[1].data(), count * sizeof(R)), 0)
      << "two runs differ in bits";
  ckrt_env_destroy(env);
  return runs[0];
}

/// The same values as bf16, which are exact in f32.
inline std::vector<uint16_t> halves(const std::vector<float> &values) {
  std::vector<uint16_t> result;
  for (float value : values)
    result.push_back(floatToBFloat16(value));
  return result;
}

/// Returns whether the library multiplies halves on this CPU.
inline bool multipliesHalves(const PrimitiveDesc &desc) {
  std::string error;
  return Primitive::create(desc, 2, error) != nullptr;
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

#endif // CKOPT_UNITTESTS_RUNTIME_PRIMITIVEFIXTURE_H
