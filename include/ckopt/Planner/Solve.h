//===- Solve.h - the planner's front door -----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// BudgetPlanner is the only entry point: solve() finds a plan of small cost
// within a budget, minimize() the smallest budget for which it can find a plan,
// pareto() the curve between. Every returned plan was checked by verify(),
// which shares no code with the solvers, and its statements name the set of
// plans that they cover. The same graph and options give the same plan: all
// limits are counts scaled from the graph's size; the time limit is only for
// safety.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_PLANNER_SOLVE_H
#define CKOPT_PLANNER_SOLVE_H

#include "ckopt/Planner/Plan.h"

#include <memory>

namespace ckopt::planner {

struct Strategy;
struct Tuning;

struct Options {
  /// Budget in bytes; 0: unconstrained (smallest cost, then smallest peak).
  /// With `pack` it limits the arena, otherwise the load.
  int64_t budget = 0;
  /// A name from strategyNames(); "auto" tries its own strategies and takes the
  /// best plan.
  std::string strategy = "auto";
  /// Further strategies that `strategy` may name (benchmarks/Baselines); may
  /// be null.
  const std::vector<Strategy> *more = nullptr;
  /// Limit in seconds, for safety; 0: none. A plan depends on it only if it is
  /// reached.
  double timeLimitSeconds = 60;
  uint64_t seed = 1;
  /// Work units (about 50 ns each) after which the best plan so far is taken;
  /// 0: a limit scaled from the graph's size. Reproducible, unlike time.
  int64_t workLimit = 0;
  /// Improves until a limit is reached or nothing better can exist, instead of
  /// for a fixed effort.
  bool searchToLimit = false;
  /// Threads to use, 0: as many as the machine has. The answer does not depend
  /// on it.
  int threads = 0;
  /// Only searches orders, without recomputation.
  bool orderOnly = false;
  /// A known plan to start from (only its steps are read); the result is never
  /// worse, if the plan is valid and fits.
  const Plan *hint = nullptr;
  /// Makes first runs follow the program order.
  bool fixedOrder = false;
  /// Assigns offsets, and keeps the arena (plus the bytes outside it) within
  /// the budget.
  bool pack = false;
  /// With `pack`, inputs and persistent values lie in the arena too.
  bool arenaHoldsAll = true;
  /// Work factor of the local search; 1 is the default effort, 0 does none.
  double effort = 1;

  bool isAuto() const { return strategy == "auto"; }
};

struct Result {
  /// Has steps if there is a plan. Otherwise `steps` is empty, but the answer's
  /// bounds are set as far as they are known.
  Plan plan;
  /// Why there is no plan, or that the time limit ended the search; empty
  /// otherwise.
  std::string message;
  /// Set if the time limit ended the search: the plan is the best found by
  /// then.
  bool cut = false;
  /// Set if the status is Error because of a defect in the planner.
  bool internalError = false;
  /// Bytes resident at the peak of the plan (or of the smallest plan found, if
  /// the budget was too small), largest first.
  std::vector<PeakEntry> aliveAtPeak;
  /// The strategy that made the plan.
  std::string strategy;
  /// In a curve: the budget of this point, in bytes.
  int64_t budget = 0;
  /// Bytes of inputs and persistent values outside of the arena, which count in
  /// addition.
  int64_t outside = 0;
  /// Work units that the search spent.
  int64_t work = 0;

  Status status() const { return plan.status; }
  bool hasPlan() const { return isPlan(plan.status); }
};

/// Answers questions on one graph and remembers every plan, so that a larger
/// budget never gives a costlier plan than a smaller one asked for earlier. The
/// graph must outlive it; for one question a temporary is enough.
class BudgetPlanner {
public:
  /// `tuning` (null: the defaults) is for tests, and must outlive it, too.
  explicit BudgetPlanner(const Graph &graph, const Tuning *tuning = nullptr);
  ~BudgetPlanner();
  BudgetPlanner(const BudgetPlanner &) = delete;
  BudgetPlanner &operator=(const BudgetPlanner &) = delete;

  Result solve(const Options &options);
  /// Finds the smallest budget for which it can find a plan, as
  /// `plan.minimumBudget`; `plan.provenMinimum` is a proven bound below it.
  /// options.budget is ignored. solve() succeeds for every budget from there on
  /// and for none below (unless the time limit was reached).
  Result minimize(const Options &options);
  /// Returns the curve of cost against budget: at most `points` budgets from
  /// the smallest found to the one that needs no recomputation, rising; cost
  /// never rises along it. Returns a single result without a plan if there is
  /// none.
  std::vector<Result> pareto(const Options &options, int points);

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

/// Returns the names that Options::strategy takes, "auto" first; `more` as in
/// Options.
std::vector<std::string>
strategyNames(const std::vector<Strategy> *more = nullptr);

} // namespace ckopt::planner

#endif // CKOPT_PLANNER_SOLVE_H
