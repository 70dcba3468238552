//===- PackEject.h - packing by ejection ------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_PACKING_PACKEJECT_H
#define CKOPT_LIB_PLANNER_PACKING_PACKEJECT_H

#include "Packing/PackModel.h"
#include "Packing/PackSkyline.h"

namespace ckopt::planner {

/// Places units within a capacity; if a unit finds no room, others are removed
/// to make room, and are placed again in turn.
class PackEject {
public:
  /// `ids` are the units to place, of a model that is not `linked`.
  PackEject(const PackModel &model, std::vector<int32_t> ids, uint64_t seed);

  /// Starts from the units of `start` (offsets by unit of the model; may be
  /// empty) that lie within the capacity (bytes); the largest of the others are
  /// placed first. With `newestFirst`, units that were removed last are the
  /// first to be placed again; otherwise any of them. Returns whether
  /// everything was placed before the deadline passed.
  bool run(int64_t capacity, const std::vector<int64_t> &start,
           bool newestFirst, Deadline &deadline);
  /// Returns the units that were placed when the least area was left, and their
  /// offsets.
  std::vector<int32_t> placedIds() const;
  std::vector<int64_t> placedAt() const;

private:
  struct Spot {
    int64_t low, high;
    int32_t first, last;
    int32_t box;
  };
  void begin(const std::vector<int64_t> &start, Deadline &deadline);
  void meet(int32_t box);
  int64_t gapFor(int32_t box) const;
  int64_t cheapest(int32_t box);
  void insert(int32_t box, int64_t low);
  void makeWay(int32_t box, int64_t low);
  void keepBest();
  double area(int32_t box) const;
  int64_t bytes(int32_t box) const { return model.units[ids[box]].bytes; }

  const PackModel &model;
  const std::vector<int32_t> ids;
  PackRandom random;
  int64_t capacity = 0;
  std::vector<Spot> placed;    ///< by `low`
  std::vector<int32_t> queue;  ///< boxes without a place
  std::vector<double> penalty; ///< by box: how often it found no room
  std::vector<int64_t> at;     ///< by box, -1: not placed
  // The placed boxes whose lifetimes overlap the current box, by `low`; prefix
  // sums of the cost of removing them; the same boxes by their end.
  std::vector<Spot> meets;
  std::vector<double> costBefore, costEnded;
  std::vector<std::pair<int64_t, double>> ends;
  std::vector<int64_t> bestAt;
  double bestLeft = 0; ///< area of boxes that bestAt does not place
};

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_PACKING_PACKEJECT_H
