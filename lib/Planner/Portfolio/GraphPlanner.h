//===- GraphPlanner.h - plans one graph -------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to lib/Planner: the planner for a graph that is known to be well
// formed (Solve.cpp checks it).
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_PORTFOLIO_GRAPHPLANNER_H
#define CKOPT_LIB_PLANNER_PORTFOLIO_GRAPHPLANNER_H

#include "Model/Canonical.h"
#include "Portfolio/MinimumSearch.h"

#include <optional>

namespace ckopt::planner {

/// A graph without the cost of starting kernels. The smallest budget is
/// searched for on it, because the time that a kernel takes to start must not
/// affect the result.
struct StartlessGraph {
  StartlessGraph(const Graph &graph, const Tuning &tuning)
      : canonical(graph, /*startless=*/true), problem(canonical.graph),
        search(problem, tuning) {}

  CanonicalGraph canonical;
  Problem problem;
  Search search;
};

class GraphPlanner {
public:
  GraphPlanner(const Graph &graph, const Tuning &tuning);

  /// Do what solve() and minimize() promise (Solve.h), until the deadline.
  Result findWithin(const Options &options, Deadline &deadline);
  Result findSmallest(const Options &options, Deadline &deadline);
  /// Returns the best plan known for a budget without any search; Unknown if
  /// there is none.
  Result recall(const Options &options);

private:
  using Key = std::tuple<Mode, std::string, uint64_t, double>;
  /// The search for the smallest budget in one mode.
  struct Minimum {
    MinimumSearch search;
    bool settled = false; ///< also final by the graph's own costs
  };

  Archive &archive(const Options &options);
  Minimum &minimumOf(const Options &options);
  void advance(MinimumSearch &run, const Options &options, Deadline &deadline);
  void settleMinimum(Minimum &minimum, const Options &options,
                     Deadline &deadline);
  void takeHint(Archive &store, const Options &options);
  int64_t findMinimum(const Options &options, int64_t budget,
                      Deadline &deadline);
  void begin(const Options &options, const char *question);
  void boundMemory(const Options &options);
  int64_t provenMinimum(const Options &options);
  void proveLeastLoad(const Options &options, Deadline &deadline);
  bool infeasible(const Options &options);
  Result solveOrder(const Options &options, Deadline &deadline);
  Result answer(const Entry &entry, const Options &options, int64_t budget);
  Result failure(const Options &options, Deadline &deadline);
  /// Says that nothing was found, after `plan` has its bounds.
  void sayNone(Result &result, const Options &options) const;
  Scope scopeOf(const Options &options) const;
  /// Returns the smallest plan without recomputation; a hint may recompute.
  const Entry *smallestOrder(const Options &options);
  /// Reports that a limit was reached, if more could have been found (with
  /// `open`, even if the status is optimal).
  void sayCut(Result &result, const Options &options, const Deadline &deadline,
              bool open = false) const;
  void nameAlive(Result &result, const std::vector<NodeId> &steps) const;
  void addCases(Plan &plan, int64_t budget);

  Search &startlessSearch();
  double costOf(const std::vector<NodeId> &steps) const;
  const PricedBound &pricedBound(int64_t budget);

  const Graph &graph; ///< as it was given; results refer to it
  const Tuning &tuning;
  CanonicalGraph canonical; ///< searches, archives and hints use this form
  Problem problem;
  Search search;
  /// Proven bounds below every feasible budget: in any order, and in the
  /// program order.
  int64_t provenMinima[2];
  bool minimaBounded = false; ///< `provenMinima` are final
  /// Steps of the smallest load of all, once it is proven.
  std::optional<std::vector<NodeId>> leastLoadSteps;
  std::map<Mode, Archive> starts; ///< orders without recomputation only
  std::map<Mode, Archive> archives;
  std::unique_ptr<StartlessGraph> startless; ///< null until it is needed
  std::map<Key, Minimum> minima;
  std::map<int64_t, PricedBound> bounds; ///< by budget, of the given graph
  /// By budget and bound: its proof by cases, empty if there is none.
  std::map<std::pair<int64_t, double>, Certificate> cases;
};

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_PORTFOLIO_GRAPHPLANNER_H
