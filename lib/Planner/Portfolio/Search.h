//===- Search.h - the portfolio for one question ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to lib/Planner. Runs the table of strategies for one load, tier by
// tier, and packs what they find where arenas count.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_PORTFOLIO_SEARCH_H
#define CKOPT_LIB_PLANNER_PORTFOLIO_SEARCH_H

#include "Model/Strategy.h"
#include "Portfolio/Archive.h"
#include "Portfolio/Tuning.h"
#include "ckopt/Planner/Certificate.h"
#include "ckopt/Planner/Solve.h"

#include <map>

namespace ckopt::planner {

/// A bound for the program order and the prices of bytes that show it.
struct PricedBound {
  double cost = 0;
  std::vector<double> prices;
  Certificate certificate;
};

/// What a search proved: no plan within the budget costs less (infinity: there
/// is none), in any order or in the program order.
struct Proof {
  int64_t budget;
  bool programOrder;
  double cost;
};

class Search {
public:
  explicit Search(const Problem &problem) : problem(problem) {}

  /// The best bound that searches proved for this budget, 0 if none did. What
  /// holds for more bytes holds for fewer, and what holds in any order holds in
  /// the program order.
  double proven(int64_t budget, bool programOrder) const;
  /// Small enough for the exact search to come first and go to its end.
  bool small() const { return problem.numNodes <= tuning.smallNodes; }

  /// Proposes sequences for a load within `load` (bytes, aligned). A quick
  /// effort (Model/Strategy.h) asks for no exact tier. With
  /// Options::searchToLimit improvement goes on until the deadline or until
  /// nothing better can exist.
  void run(Archive &store, const Options &options, int64_t load,
           Deadline &deadline);
  /// Searches for the cheapest plan whose size (arena where those count) is
  /// within the budget.
  void fit(Archive &store, const Options &options, int64_t budget,
           Deadline &deadline);
  /// True where the clock would strike before bounds and orders are computed:
  /// they are left out then, so that the answer comes in time.
  bool hurried(const Options &options) const {
    return options.timeLimitSeconds > 0 &&
           options.timeLimitSeconds <
               tuning.hurriedSecondsEachNode * double(problem.numNodes);
  }
  /// True where the time limit leaves little for each node, or the work limit
  /// does.
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
  const PricedBound &orderBound(int64_t budget);

  const Problem &problem;

private:
  void sketch(Archive &store, const Options &options, int64_t load,
              Deadline &deadline);
  void runTier(Tier tier, Archive &store, const Options &options, int64_t load,
               Deadline &deadline);
  void improve(Archive &store, const Options &options, int64_t load,
               Deadline &deadline);
  void runStrategy(const Strategy &strategy, Archive &store,
                   const Options &options, int64_t load, Deadline &deadline);
  bool isValid(const std::vector<NodeId> &steps) const;
  std::vector<Candidate> simpleCandidates(const Archive &store) const;
  bool closed(const Archive &store, const Options &options, int64_t load);
  int64_t place(Archive &store, const Options &options,
                const Candidate &candidate, int64_t budget,
                const Deadline &deadline);
  void packSmaller(Archive &store, const Options &options, int64_t budget);
  void packMore(Archive &store, const Options &options, int64_t budget,
                Deadline &deadline);

  std::map<int64_t, PricedBound> bounds;
  std::vector<Proof> proofs;
};

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_PORTFOLIO_SEARCH_H
