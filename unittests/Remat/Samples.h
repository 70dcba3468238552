//===- Samples.h - small functions on tensors -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_UNITTESTS_REMAT_SAMPLES_H
#define CKOPT_UNITTESTS_REMAT_SAMPLES_H

#include <string>
#include <vector>

namespace ckopt::test {

/// Elements of each tensor.
inline constexpr int kElements = 256;

struct Sample {
  std::string name;
  /// A module with @main(tensor, tensor, i1, index) -> tensor.
  std::string text;
};

/// Returns functions of many kinds: chains with destinations shared, apart and
/// left, loops, branches, calls, slices, and mixtures of them.
std::vector<Sample> samples();

} // namespace ckopt::test

#endif // CKOPT_UNITTESTS_REMAT_SAMPLES_H
