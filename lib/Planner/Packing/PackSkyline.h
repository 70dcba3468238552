//===- PackSkyline.h - packings built from the bottom -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to lib/Planner. States and branches of the exact search
// (PackSearch.cpp) and the beam search (PackBeam.cpp).
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_PACKING_PACKSKYLINE_H
#define CKOPT_LIB_PLANNER_PACKING_PACKSKYLINE_H

#include "Packing/PackSearch.h"

#include <limits>

namespace ckopt::planner {

/// A small and fast generator of random numbers that are the same everywhere.
struct PackRandom {
  uint64_t state;
  uint32_t next() {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return uint32_t(state >> 33);
  }
};

class Skyline {
public:
  static constexpr int32_t never = std::numeric_limits<int32_t>::max() / 2;

  /// A partial packing.
  struct State {
    std::vector<int32_t> floor; ///< by section: no box will be placed below
    std::vector<int32_t> rest;  ///< by section: bytes left to place
    std::vector<int32_t> count; ///< by section: number of boxes left to place
    std::vector<int32_t> room;  ///< by section: bytes that may still be wasted
    /// By box: the least offset that the floors allow; for a placed box, its
    /// offset.
    std::vector<int32_t> least;
    std::vector<int32_t> why;  ///< by box: the section whose floor decides it
    std::vector<int32_t> left; ///< boxes left to place, by falling `least`
    int32_t from = 0, to = 0;  ///< range of sections of the choice
  };
  struct Choice {
    int32_t section = -1, from = 0, to = 0; ///< in the valley [from, to]
    /// The floor if no box starts there; never: impossible.
    int32_t raise = never;
    int32_t branches = 0;
  };
  struct Box {
    int32_t first, last, leastSize;
    uint64_t mask = 0, hash = 0; ///< groups of sections that it covers
    double area = 0, tension = 0;
  };

  /// Sizes and capacity as for searchPacking().
  Skyline(const std::vector<SearchShape> &shapes, int32_t capacity,
          uint64_t seed);

  State rootState() const;
  /// Checks Jackson's bound in every section of a window; also updates `room`
  /// there. Returns false if there is no packing, and sets `conflict`.
  bool boundHolds(State &state, int32_t from, int32_t to);
  /// Returns the next branches; if there are none, no packing exists.
  Choice choose(const State &state);
  std::vector<int32_t> values(const State &state, const Choice &choice) const;
  /// Takes a branch. Returns false if there is no packing, and sets `conflict`.
  bool place(State &state, int32_t box);
  bool raise(State &state, int32_t section, int32_t floor);
  uint64_t reason(const State &state, const Choice &choice) const;
  uint64_t hashOf(const State &state) const;

  const std::vector<SearchShape> &shapes;
  const int32_t capacity;
  std::vector<Box> boxes;
  int32_t numSections = 0;
  int64_t nodeWork = 1;        ///< work units that a branch costs
  std::vector<uint64_t> group; ///< by section: its bit in conflicts
  /// Groups of sections that caused the last failure.
  uint64_t conflict = 0;
  PackRandom random;

private:
  void survey();
  void explain(const State &state, int32_t section, int32_t upTo);
  bool settle(State &state, int32_t from, int32_t to);
  int32_t nextFloor(const State &state, int32_t t) const;
  void findMeets(const State &state, int32_t from, int32_t to);
  bool equal(int32_t a, int32_t b) const;

  std::vector<int32_t> scratch, runEnd, meets;
};

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_PACKING_PACKSKYLINE_H
