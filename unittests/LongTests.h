//===- LongTests.h - what only scripts/test --long runs ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_UNITTESTS_LONGTESTS_H
#define CKOPT_UNITTESTS_LONGTESTS_H

#include <cstdlib>

namespace ckopt::test {

/// Returns whether cases run that take long beside what they add to others, and
/// random tests take many graphs.
inline bool runsLongTests() { return std::getenv("CKOPT_LONG_TESTS"); }

} // namespace ckopt::test

/// Skips such a case, loudly.
#define CKOPT_SKIP_UNLESS_LONG()                                               \
  if (!ckopt::test::runsLongTests())                                           \
  GTEST_SKIP() << "NOT run: scripts/test --long, or CKOPT_LONG_TESTS=1, does"

#endif // CKOPT_UNITTESTS_LONGTESTS_H
