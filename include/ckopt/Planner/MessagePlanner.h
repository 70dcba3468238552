//===- MessagePlanner.h - plans whose messages go on meanwhile --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Costs of a plan add up. Where some nodes are messages to other ranks, which
// go on while other nodes run, a step takes the seconds of those others and of
// messages that nothing hides, which only a clock over the whole plan tells.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_PLANNER_MESSAGEPLANNER_H
#define CKOPT_PLANNER_MESSAGEPLANNER_H

#include "ckopt/Planner/Graph.h"
#include "ckopt/Planner/Solve.h"

#include <memory>

namespace ckopt::planner {

/// What a step takes, in the graph's unit of cost.
struct StepTime {
  double kernels = 0;
  double messages = 0; ///< all of them, each alone
  double exposed = 0;  ///< of them what no kernel hides

  double seconds() const { return kernels + exposed; }
};

/// Knows which nodes are messages, and follows plans. A client makes it.
class MessageClock {
public:
  virtual ~MessageClock() = default;
  /// Tells whether messages may go on under other nodes; else their costs add
  /// up like all others.
  virtual bool mayHide() const = 0;
  /// By node: set for messages.
  virtual const std::vector<char> &messages() const = 0;
  /// Follows a packed plan within a budget (bytes as in Options; 0: none), of
  /// which messages under way may take what the plan leaves. Answers depend on
  /// the arguments alone.
  virtual StepTime follow(const Plan &plan, int64_t budget) = 0;
};

struct TimedPlan {
  Result result;
  StepTime time;
};

/// Gives a plan what was proven along with another one of the same graph and
/// budget, with the costs of the graph.
void takeProofs(Result &result, const Result &other);

/// Finds plans that take few seconds by a clock. Graph and clock must outlive
/// it.
class MessagePlanner {
public:
  MessagePlanner(const Graph &graph, MessageClock &clock);
  ~MessagePlanner();
  MessagePlanner(const MessagePlanner &) = delete;
  MessagePlanner &operator=(const MessagePlanner &) = delete;

  /// Returns `first`, or a plan within `request.budget` that takes less time.
  /// `first` is a plan for that budget, found where messages count in full;
  /// what is proven of it stays. The search takes about half of its work.
  TimedPlan improve(Result first, const Options &request);
  /// Returns seconds that no plan within the budget (0: none) falls below:
  /// messages count as free.
  double bound(int64_t budget) const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace ckopt::planner

#endif // CKOPT_PLANNER_MESSAGEPLANNER_H
