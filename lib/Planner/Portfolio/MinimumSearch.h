//===- MinimumSearch.h - the smallest budget --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_PORTFOLIO_MINIMUMSEARCH_H
#define CKOPT_LIB_PLANNER_PORTFOLIO_MINIMUMSEARCH_H

#include "Portfolio/Search.h"

namespace ckopt::planner {

/// The search for the smallest budget and its progress. Without limits it is a
/// fixed sequence of steps that depends on no budget, so that every caller gets
/// the same result. Limits make it begin with constructions alone, and go on
/// until they strike.
class MinimumSearch {
public:
  /// `start` holds orders without recomputation; `provenMinimum` is a proven
  /// lower bound in bytes.
  MinimumSearch(const Archive &start, int64_t provenMinimum)
      : archive(start), tuning(start.tuning), provenMinimum(provenMinimum) {}

  /// Makes one step; does nothing when done.
  void advance(Search &search, const Options &options, Deadline &deadline);
  bool done() const { return phase == Done; }
  bool sketching() const { return phase == Sketch; }
  /// Starts another round of steps below the smallest size, with more effort
  /// and other seeds than the ones before.
  void goOn();
  /// Takes note of a better proven bound below every load.
  void raiseProvenMinimum(int64_t bound) {
    provenMinimum = std::max(provenMinimum, bound);
  }
  int64_t smallest() const { return archive.smallest()->size; }
  /// Packs the plan of the least load, if limits left it unpacked.
  void packLeastLoad(double effort);

  /// Plans of this search alone, so that plans for other budgets cannot change
  /// its result.
  Archive archive;

  /// Searches an archive for the cheapest plan of its smallest size.
  static void settle(Search &search, Archive &archive, const Options &options,
                     Deadline &deadline);

private:
  enum Phase { Sketch, Bisect, Pack, Tighten, Settle, Done };
  void sketch(Search &search, const Options &options, Deadline &deadline);
  void bisect(Search &search, const Options &options, Deadline &deadline);
  void pack(const Options &options, Deadline &deadline);
  void tighten(Search &search, const Options &options, Deadline &deadline);

  const Tuning &tuning;
  int64_t provenMinimum;
  Phase phase = Sketch;
  int round = 0;         ///< of the phase
  int again = 0;         ///< how often goOn() was called
  int64_t failed = -1;   ///< the largest load for which a search failed
  int64_t sketched = -1; ///< the same for constructions alone
  int64_t step = 0;      ///< of Tighten, bytes
};

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_PORTFOLIO_MINIMUMSEARCH_H
