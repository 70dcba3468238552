//===- PrimitiveFixture.h - running primitives under watch ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs a primitive on guarded buffers twice and hands back the result: no byte
// outside of the result and of the reported workspace may change, and the
// second run must give the same bits.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_UNITTESTS_RUNTIME_PRIMITIVEFIXTURE_H
#define CKOPT_UNITTESTS_RUNTIME_PRIMITIVEFIXTURE_H

#include "Operands.h"
#include "ckopt/Runtime/Primitive.h"
#include "ckopt/Runtime/ckrt.h"

#include <gtest/gtest.h>

namespace ckopt::runtime::test {

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
  bool exact = primitive->implementation().starts_with("im2col");
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

/// Returns whether the library multiplies halves on this CPU.
inline bool multipliesHalves(const PrimitiveDesc &desc) {
  std::string error;
  return Primitive::create(desc, 2, error) != nullptr;
}

} // namespace ckopt::runtime::test

#endif // CKOPT_UNITTESTS_RUNTIME_PRIMITIVEFIXTURE_H
