//===- LeastSearch.h - the smallest budget ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_PORTFOLIO_LEASTSEARCH_H
#define CKOPT_LIB_PLANNER_PORTFOLIO_LEASTSEARCH_H

#include "Portfolio/Search.h"

namespace ckopt::planner {

/// The search for the smallest budget and its progress. It is a fixed sequence
/// of steps that depends on no budget, so that every caller gets the same
/// result.
class LeastSearch {
public:
  /// `start` holds orders without recomputation; `lowest` is a proven lower
  /// bound in bytes.
  LeastSearch(const Archive &start, int64_t lowest)
      : archive(start), lowest(lowest) {}

  /// Makes one step; does nothing when done.
  void advance(Search &search, const Options &options, Deadline &deadline);
  bool done() const { return phase == Done; }
  int64_t smallest() const { return archive.smallest()->size; }
  /// Packs the plan of the least load, if limits left it unpacked.
  void packLeast(double effort);

  /// Plans of this search alone, so that plans for other budgets cannot change
  /// its result.
  Archive archive;

  /// Searches an archive for the cheapest plan of its smallest size.
  static void settle(Search &search, Archive &archive, const Options &options,
                     Deadline &deadline);

private:
  enum Phase { Bisect, Pack, Tighten, Settle, Done };
  void bisect(Search &search, const Options &options, Deadline &deadline);
  void pack(const Options &options, Deadline &deadline);
  void tighten(Search &search, const Options &options, Deadline &deadline);

  int64_t lowest;
  Phase phase = Bisect;
  int round = 0;       ///< of the phase
  int64_t failed = -1; ///< the largest load for which a search failed
  int64_t step = 0;    ///< of Tighten, bytes
};

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_PORTFOLIO_LEASTSEARCH_H
