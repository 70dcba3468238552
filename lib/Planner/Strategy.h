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

namespace ckopt::planner {

/// Steps that were simulated with aligned sizes.
struct Candidate {
  std::vector<NodeId> steps;
  double cost = 0;
  int64_t peak = 0;
};

/// Wall clock as a safety net only.
class Deadline {
public:
  explicit Deadline(double seconds)
      : limited(seconds > 0),
        end(std::chrono::steady_clock::now() +
            std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                std::chrono::duration<double>(
                    seconds > 0 ? std::min(seconds, 1e7) : 0))) {}
  bool passed() const {
    return limited && std::chrono::steady_clock::now() >= end;
  }

private:
  bool limited;
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
  const Deadline &deadline;
  /// Everything found so far that may serve as a start.
  const std::vector<Candidate> &known;
  /// Reports a sequence; returns true if it is within the budget.
  std::function<bool(std::vector<NodeId>)> report;
};

struct Strategy {
  const char *name;
  void (*run)(StrategyContext &context);
  /// Part of "auto", in the table's order.
  bool automatic;
};

/// The table of strategies.
const std::vector<Strategy> &strategies();

void runGreedy(StrategyContext &context);
void runPrices(StrategyContext &context);
void runSegments(StrategyContext &context);
void runLocalSearch(StrategyContext &context);

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_STRATEGY_H
