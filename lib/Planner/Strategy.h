//===- Strategy.h - what finds plans ----------------------------*- C++ -*-===//
//
// A strategy proposes sequences of steps; the driver (Solve.cpp) simulates,
// packs, verifies and compares them. A new strategy is one function and one
// line in the table of Strategy.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_STRATEGY_H
#define CKOPT_LIB_PLANNER_STRATEGY_H

#include "Problem.h"

#include <chrono>
#include <functional>
#include <limits>

namespace ckopt::planner {

/// Steps that were simulated with aligned sizes.
struct Candidate {
  std::vector<NodeId> steps;
  double cost = 0;
  int64_t peak = 0;
  std::string strategy; ///< who found them
};

/// When a search must end: a number of work units, which makes results
/// reproducible, and a wall clock, which is for people. A unit is an elementary
/// step of about 50 ns (a touched operand, a proposed move counts its
/// operands); strategies report what they do with spend(), at least every
/// millisecond.
class Deadline {
public:
  explicit Deadline(double seconds, int64_t workUnits = 0)
      : limited(seconds > 0), workLimit(workUnits),
        end(std::chrono::steady_clock::now() +
            std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                std::chrono::duration<double>(
                    seconds > 0 ? std::min(seconds, 1e7) : 0))) {}

  /// Counts work; false once the search must end.
  bool spend(int64_t units) {
    work += units;
    return !passed();
  }
  bool passed() const { return workPassed() || stale() || timePassed(); }
  bool workPassed() const { return workLimit > 0 && work >= workLimit; }
  bool timePassed() const {
    return limited && std::chrono::steady_clock::now() >= end;
  }
  /// Ends the search as well after so much work (0: any) without a gain.
  void setPatience(int64_t units) { patience = units; }
  /// Something better was found: patience starts anew.
  void gained() { lastGain = work; }
  bool stale() const { return patience > 0 && work - lastGain >= patience; }
  int64_t spent() const { return work; }
  int64_t unitsLeft() const {
    return workLimit == 0 ? 0 : std::max<int64_t>(1, workLimit - work);
  }
  bool hasWorkLimit() const { return workLimit > 0; }
  /// For a part of the search, or a task on another thread: at most that share
  /// of the time left, at most `units` (0: no limit of its own) and at most
  /// what is left here. Who asked for it spends its work here when it is done;
  /// tasks that run side by side get their parts before any of them starts, so
  /// that the outcome does not depend on which is faster.
  Deadline part(int64_t units, double timeShare = 1) const {
    Deadline result = *this;
    result.work = result.lastGain = 0;
    int64_t left = std::max<int64_t>(1, workLimit - work);
    if (timeShare < 1 && limited) {
      auto now = std::chrono::steady_clock::now();
      if (now < end)
        result.end =
            now +
            std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                (end - now) * timeShare);
    }
    result.workLimit = workLimit == 0 ? units
                       : units == 0   ? left
                                      : std::min(units, left);
    return result;
  }

private:
  bool limited;
  int64_t workLimit, work = 0, patience = 0, lastGain = 0;
  std::chrono::steady_clock::time_point end;
};

struct StrategyContext {
  const Problem &problem;
  /// Valid orders of first runs, the most promising first.
  const std::vector<std::vector<NodeId>> &orders;
  /// Load to stay within, bytes, aligned.
  int64_t budget;
  bool fixedOrder;
  uint64_t seed;
  double effort;
  Deadline &deadline;
  /// Everything found so far that may serve as a start.
  const std::vector<Candidate> &known;
  /// Reports a sequence; returns true if it is within the budget.
  std::function<bool(std::vector<NodeId>)> report;
  /// States what was proven: no plan within the budget costs less than `cost`
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
};

/// When "auto" runs a strategy. Tiers run in this order, the strategies of one
/// in the table's; improvement runs in rounds with rising effort.
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
  /// "auto" gives graphs of more nodes nothing of it, not even a share.
  int32_t mostNodes = std::numeric_limits<int32_t>::max();
};

/// The table of strategies.
const std::vector<Strategy> &strategies();

void runExact(StrategyContext &context);
void runExactOrder(StrategyContext &context);
void runGreedy(StrategyContext &context);
void runPrices(StrategyContext &context);
void runSegments(StrategyContext &context);
void runBlocks(StrategyContext &context);
void runLocalSearch(StrategyContext &context);

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_STRATEGY_H
