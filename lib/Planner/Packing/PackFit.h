//===- PackFit.h - best fit and hill climbing -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_PACKING_PACKFIT_H
#define CKOPT_LIB_PLANNER_PACKING_PACKFIT_H

#include "Model/Deadline.h"
#include "Packing/PackModel.h"

namespace ckopt::planner {

/// Places units one by one, and keeps the best placement.
class PackFit {
public:
  PackFit(const PackModel &model, uint64_t seed);

  /// Tries several orders, until one reaches `target` (bytes).
  void tryOrders(int64_t target, Deadline &deadline);
  /// Tries orders by tension and lifetime with random weights.
  void sample(int64_t target, Deadline &deadline);
  /// Improves the best order by hill climbing.
  void improve(int64_t target, Deadline &deadline);
  /// Places the units of `fixed` (with offsets) first, the others by best fit.
  void complete(const std::vector<int32_t> &fixed,
                const std::vector<int64_t> &at, Deadline &deadline);
  /// Replaces the best placement by this one if it is smaller.
  void offer(const std::vector<int64_t> &at);

  int64_t arena() const { return best; }
  const std::vector<int64_t> &offsets() const { return bestOffset; }

private:
  bool place(const std::vector<int32_t> &order, size_t from, bool lowest,
             Deadline &deadline);
  int64_t choose(const PackUnit &unit, int32_t id, bool lowest) const;
  bool fits(int64_t offset, int32_t id, int32_t except) const;
  void insert(int32_t id, int64_t offset);
  void clear();
  std::vector<int32_t> sorted(int rule) const;
  std::vector<int32_t> sampled();
  double random();

  const PackModel &model;
  const std::vector<PackUnit> &units;
  // The placed units by offset; separate arrays for speed.
  std::vector<int32_t> placedFirst, placedLast, placedId;
  std::vector<int64_t> placedLow, placedHigh;
  std::vector<int64_t> offset; ///< by unit

  int64_t best = -1;
  std::vector<int64_t> bestOffset;
  std::vector<int32_t> bestOrder, bestByOffset;
  int64_t work = 0; ///< simple steps spent
  bool bestLowest = false;
  uint64_t state; ///< of the random number generator
};

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_PACKING_PACKFIT_H
