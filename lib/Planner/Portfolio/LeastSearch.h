//===- LeastSearch.h - the smallest budget ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_PORTFOLIO_LEASTSEARCH_H
#define CKOPT_LIB_PLANNER_PORTFOLIO_LEASTSEARCH_H

#include "Portfolio/Search.h"

namespace ckopt::planner {

/// The search for the smallest budget and how far it got: a fixed sequence of
/// steps that depends on no budget, so that whoever asks takes the same ones.
class LeastSearch {
public:
  /// `start` holds orders without recomputation; no plan needs less than
  /// `lowest` bytes.
  LeastSearch(const Archive &start, int64_t lowest)
      : archive(start), lowest(lowest) {}

  /// One step; does nothing when done.
  void advance(Search &search, const Options &options, Deadline &deadline);
  bool done() const { return phase == Done; }
  int64_t smallest() const { return archive.smallest()->size; }
  /// Packs the plan of the least load, where limits left it unpacked.
  void packLeast(double effort);

  Archive archive; ///< its own: no other question changes its course

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
  int64_t failed = -1; ///< largest load that a search missed
  int64_t step = 0;    ///< of Tighten, bytes
};

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_PORTFOLIO_LEASTSEARCH_H
