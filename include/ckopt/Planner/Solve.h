//===- Solve.h - the planner's front door -----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// solve() finds a plan of small cost within a budget, minimize() the smallest
// budget it can find a plan for. Every plan that leaves here was checked by
// verify(), which shares no code with the solvers. The same graph and options
// give the same plan: all limits are counts scaled from the graph's size; the
// time limit is only a safety net.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_PLANNER_SOLVE_H
#define CKOPT_PLANNER_SOLVE_H

#include "ckopt/Planner/Plan.h"

#include <memory>

namespace ckopt::planner {

struct Strategy;

struct Options {
  /// Bytes; 0: unconstrained (smallest cost, then smallest peak). With `pack`
  /// the arena is held within it, otherwise the load.
  int64_t budget = 0;
  /// A name from strategyNames(); "auto" takes the best of its own.
  std::string strategy = "auto";
  /// Further strategies that may be named (Baselines.h); may be null.
  const std::vector<Strategy> *more = nullptr;
  /// Safety net in seconds; 0: none. A plan may depend on it only where it
  /// strikes.
  double timeLimitSeconds = 60;
  uint64_t seed = 1;
  /// Work units (about 50 ns each) after which the best plan so far is taken;
  /// 0: a limit scaled from the graph's size. Reproducible, unlike time.
  int64_t workLimit = 0;
  /// Improve until a limit strikes or nothing better can exist, instead of
  /// for a fixed effort.
  bool searchToLimit = false;
  /// Threads to use, 0: as many as the machine has. The answer does not depend
  /// on it.
  int threads = 0;
  /// No recomputation: only the order is searched.
  bool orderOnly = false;
  /// A known plan to start from (only its steps are read); the
  /// answer is never worse than it where it is valid and fits.
  const Plan *hint = nullptr;
  /// First runs keep the program order.
  bool fixedOrder = false;
  /// Give offsets, and hold arena (plus what lies outside it) <= budget.
  bool pack = false;
  /// Inputs and persistent values lie in the arena too (with `pack`).
  bool arenaHoldsAll = true;
  /// Work factor of the local search; 1 is the default effort, 0 none.
  double effort = 1;
};

enum class Status : uint8_t {
  Optimal,    ///< the plan's cost equals the proven lower bound
  Feasible,   ///< a plan within the budget
  Infeasible, ///< proven: no plan fits
  Unknown,    ///< no plan found, none ruled out
  Error,      ///< bad graph or options, or a defect; see message
};

struct Result {
  Status status = Status::Error;
  /// Valid if status is Optimal or Feasible. Otherwise `steps` is empty and
  /// lowerBound, minimumBudget and provenMinimum still say what is known.
  Plan plan;
  /// Why there is no plan, and that the time limit cut the search off; empty
  /// otherwise.
  std::string message;
  /// True if the time limit cut the search off: the plan is the best so far.
  bool cut = false;
  /// True if status is Error through a defect of the planner.
  bool internalError = false;
  /// Bytes resident at the peak of the plan (or of the smallest plan found,
  /// where the budget was too small), largest first.
  std::vector<PeakEntry> aliveAtPeak;
  /// Which strategy made the plan.
  std::string strategy;
  /// Of a curve: the budget that this point answers, bytes.
  int64_t budget = 0;
  /// Bytes of inputs and persistent values that lie outside of the arena and
  /// count beside it.
  int64_t outside = 0;
  /// Work units that the search spent.
  int64_t work = 0;

  bool hasPlan() const {
    return status == Status::Optimal || status == Status::Feasible;
  }
};

Result solve(const Graph &graph, const Options &options);

/// The smallest budget that a plan was found for; `plan.minimumBudget` is it,
/// `plan.provenMinimum` a proven bound below it. options.budget is ignored.
/// solve() succeeds for every budget from there on and for none below (unless
/// the time limit struck).
Result minimize(const Graph &graph, const Options &options);

/// BudgetPlanner::pareto for one graph.
std::vector<Result> pareto(const Graph &graph, const Options &options,
                           int points);

/// Plans one graph for several budgets and remembers every plan, so that a
/// larger budget never gives a costlier plan than a smaller one asked for
/// earlier. The graph must outlive it.
class BudgetPlanner {
public:
  explicit BudgetPlanner(const Graph &graph);
  ~BudgetPlanner();
  BudgetPlanner(const BudgetPlanner &) = delete;
  BudgetPlanner &operator=(const BudgetPlanner &) = delete;

  Result solve(const Options &options);
  Result minimize(const Options &options);
  /// The curve of cost against budget: at most `points` budgets from the
  /// smallest found to what no recomputation needs, rising; cost never rises
  /// along it. One result without a plan where there is none.
  std::vector<Result> pareto(const Options &options, int points);

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

/// Names that Options::strategy takes, "auto" first; `more` as in Options.
std::vector<std::string>
strategyNames(const std::vector<Strategy> *more = nullptr);

} // namespace ckopt::planner

#endif // CKOPT_PLANNER_SOLVE_H
