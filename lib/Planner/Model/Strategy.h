//===- Strategy.h - what finds plans ----------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A strategy proposes sequences of steps; the portfolio (Portfolio/Search.cpp)
// simulates, packs, verifies and compares them. A new strategy is one function
// in a folder of its kind and one line in the table of
// Portfolio/Strategies.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_MODEL_STRATEGY_H
#define CKOPT_LIB_PLANNER_MODEL_STRATEGY_H

#include "Model/Candidate.h"
#include "Model/Deadline.h"
#include "Model/Problem.h"
#include "Model/Tuning.h"

#include <functional>
#include <limits>

namespace ckopt::planner {

/// Below this effort, a quick answer is wanted: fewer settings, no proofs.
inline constexpr double fullEffort = 0.5;
/// The largest effort that is quick.
inline constexpr double quickEffort = 0.49;
constexpr bool isQuick(double effort) { return effort < fullEffort; }

struct StrategyContext {
  const Problem &problem;
  /// Valid orders of first runs, the most promising first.
  const std::vector<std::vector<NodeId>> &orders;
  /// The largest allowed load in bytes, aligned.
  int64_t budget;
  bool fixedOrder;
  uint64_t seed;
  double effort;
  Deadline &deadline;
  /// Everything found so far that may serve as a start.
  const std::vector<Candidate> &known;
  /// Reports a sequence; returns true if it is within the budget.
  std::function<bool(std::vector<NodeId>)> report;
  /// Records a proof that no plan within the budget costs less than `cost`
  /// (infinity: there is none), in any order or, if `programOrder`, among those
  /// whose first runs follow the program order.
  std::function<void(double cost, bool programOrder)> prove;
  /// Threads that the strategy may use (1 or more); the outcome must not depend
  /// on it.
  int threads = 1;
  /// Prices of a byte by position of the program order: the best dual solution
  /// of the gap relaxation for this budget, computed when it is first asked
  /// for. May be null.
  std::function<const std::vector<double> &()> prices = nullptr;
  const Tuning &tuning = defaultTuning;
  /// A limit was set: the best plan within it is wanted, not what pays.
  bool toLimit = false;
  /// The part of its cost by which a plan must become cheaper to be worth the
  /// search, 0: any; and, where that is set, what no plan in any order and none
  /// in the program order can cost less than.
  double worth = 0, bound = 0, orderBound = 0;
};

/// The phase in which "auto" runs a strategy. Tiers run in this order,
/// strategies of one tier in the table's; improvement runs in rounds with
/// rising effort.
enum class Tier : uint8_t {
  Construct, ///< gives first plans, fast
  Exact,     ///< may prove that a plan is the best
  Improve,   ///< starts from what is known
  Named,     ///< not part of "auto"
};

struct Strategy {
  const char *name;
  void (*run)(StrategyContext &context);
  Tier tier;
};

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_MODEL_STRATEGY_H
