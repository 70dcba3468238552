//===- Permutation.h - the order of samples ---------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A permutation is a pure function of (count, seed, use, stream): Fisher and
// Yates's shuffle driven by Philox, integers only, so that a run resumed on
// another machine sees the same samples in the same order. O(count).
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TRAIN_DATA_PERMUTATION_H
#define CKOPT_TRAIN_DATA_PERMUTATION_H

#include "ckopt/Base/Philox.h"
#include "llvm/Support/Error.h"
#include <utility>
#include <vector>

namespace ckopt {

/// Returns 0 .. count-1 in random order, as numbers of a type that holds them.
template <typename T = int64_t>
std::vector<T> randomPermutation(int64_t count, uint64_t seed, RandomUse use,
                                 uint32_t stream) {
  std::vector<T> order(size_t(count > 0 ? count : 0));
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = T(i);
  PhiloxStream random(seed, use, stream);
  for (size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[size_t(random.below(i))]);
  return order;
}

/// Returns the order of `count` samples in `epoch` (0-based).
template <typename T = int64_t>
std::vector<T> epochPermutation(int64_t count, uint64_t seed, int64_t epoch) {
  return randomPermutation<T>(count, seed, RandomUse::EpochOrder,
                              uint32_t(epoch));
}

/// The samples that train and those that are kept back, each in ascending
/// order.
struct HeldOut {
  std::vector<uint32_t> train, held;
};

/// Keeps a share of `count` samples back. A share that leaves one part empty is
/// an error; with 0 both lists are empty, and all samples train.
llvm::Expected<HeldOut> drawHeldOut(int64_t count, double share, uint64_t seed);

} // namespace ckopt

#endif // CKOPT_TRAIN_DATA_PERMUTATION_H
