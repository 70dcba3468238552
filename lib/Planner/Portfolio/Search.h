//===- Search.h - the portfolio for one question ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to lib/Planner. Runs the table of strategies for one load, tier by
// tier, and packs the sequences that they find if the arena counts.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_PORTFOLIO_SEARCH_H
#define CKOPT_LIB_PLANNER_PORTFOLIO_SEARCH_H

#include "Model/Strategy.h"
#include "Portfolio/Archive.h"
#include "ckopt/Planner/Certificate.h"
#include "ckopt/Planner/Solve.h"

#include <map>

namespace ckopt::planner {

/// A bound for the program order, and the prices of bytes that prove it.
struct PricedBound {
  double cost = 0;
  std::vector<double> prices;
  Certificate certificate;
};

/// A proof by search that no plan within the budget costs less (infinity: there
/// is none), in any order or in the program order.
struct SearchedBound {
  int64_t budget;
  bool programOrder;
  double cost;
};

/// Rounds differ in their seeds by this prime, so that none repeats another.
inline constexpr uint64_t seedStride = 1000003;

/// Returns whether the user set a limit on work or time.
inline bool isLimited(const Options &options) {
  return options.searchToLimit || options.workLimit > 0;
}

class Search {
public:
  Search(const Problem &problem, const Tuning &tuning)
      : problem(problem), tuning(tuning) {}

  /// Returns the best bound that searches proved for this budget, 0 if none
  /// did. A bound for more bytes holds for fewer, and a bound for any order
  /// holds for the program order.
  double proven(int64_t budget, bool programOrder) const;
  /// Returns whether the graph is so small that the exact search comes first
  /// and runs to its end.
  bool small() const { return problem.numNodes <= tuning.smallNodes; }

  /// Proposes sequences with at most `load` (bytes, aligned). A quick effort
  /// (Model/Strategy.h) skips the exact tier. With Options::searchToLimit,
  /// improvement continues until the deadline or until nothing better can
  /// exist.
  void run(Archive &store, const Options &options, int64_t load,
           Deadline &deadline);
  /// Searches for the cheapest plan whose size (the arena, if that counts) is
  /// within the budget.
  void fit(Archive &store, const Options &options, int64_t budget,
           Deadline &deadline);
  /// Tries the surest construction with little effort, and ends at its first
  /// plan within the load.
  void probe(Archive &store, const Options &options, int64_t load,
             Deadline &deadline);
  /// Returns whether time would run out before bounds and orders are computed:
  /// they are skipped then, so that the answer comes in time.
  bool hurried(const Options &options) const {
    return options.timeLimitSeconds > 0 &&
           options.timeLimitSeconds <
               tuning.hurriedSecondsEachNode * double(problem.numNodes);
  }
  /// Returns whether the time or work limit leaves little for each node.
  bool shortOfTime(const Options &options) const {
    return options.timeLimitSeconds > 0 &&
           options.timeLimitSeconds <
               tuning.tightSecondsEachNode * double(problem.numNodes);
  }
  bool tight(const Options &options, const Deadline &deadline) const {
    return shortOfTime(options) ||
           (deadline.hasWorkLimit() &&
            deadline.unitsLeft() < tuning.tightWorkEachNode * problem.numNodes);
  }
  /// Cached by budget.
  const PricedBound &pricedBound(int64_t budget);

  const Problem &problem;
  const Tuning &tuning;

private:
  void sketch(Archive &store, const Options &options, int64_t load,
              Deadline &deadline);
  void runTier(Tier tier, Archive &store, const Options &options, int64_t load,
               Deadline &deadline);
  void improve(Archive &store, const Options &options, int64_t load,
               Deadline &deadline);
  void runStrategy(const Strategy &strategy, Archive &store,
                   const Options &options, int64_t load, Deadline &deadline,
                   bool firstPlan = false);
  bool isValid(const std::vector<NodeId> &steps) const;
  std::vector<Candidate> simpleCandidates(const Archive &store) const;
  double worth(const Options &options) const;
  bool packedEnough(const Archive &store, const Options &options,
                    int64_t budget) const;
  /// Returns whether a search ends where a bound is near.
  bool stopsEarly(const Options &options) const {
    return worth(options) > 0 && !hurried(options) && options.isAuto();
  }
  double bestBound(const Options &options, int64_t load);
  /// Returns whether the exact tier is likely to end.
  bool mayProve(const Options &options) const {
    return !isQuick(options.effort) &&
           (isLimited(options) || options.fixedOrder ||
            problem.numNodes <= tuning.provenPlanNodes * options.effort);
  }
  bool closed(const Archive &store, const Options &options, int64_t load);
  int64_t place(Archive &store, const Options &options,
                const Candidate &candidate, int64_t budget,
                const Deadline &deadline);
  void packSmaller(Archive &store, const Options &options, int64_t budget);
  void packMore(Archive &store, const Options &options, int64_t budget,
                Deadline &deadline);

  std::map<int64_t, PricedBound> bounds;
  std::map<int64_t, double> freeBounds; ///< by load, of plans in any order
  std::vector<SearchedBound> proofs;
};

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_PORTFOLIO_SEARCH_H
