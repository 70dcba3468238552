//===- MessagePlanner.h - plans whose messages overlap kernels --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Costs of a plan add up. But if some nodes are messages to other ranks, which
// overlap other nodes, a step takes the seconds of the other nodes and of the
// messages that nothing hides. Only a simulation of the whole plan, a clock,
// tells these.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_PLANNER_MESSAGEPLANNER_H
#define CKOPT_PLANNER_MESSAGEPLANNER_H

#include "ckopt/Planner/Graph.h"
#include "ckopt/Planner/Solve.h"

#include <memory>

namespace ckopt::planner {

/// The time of a step, in the graph's unit of cost.
struct StepTime {
  double kernels = 0;
  double messages = 0; ///< all of them, without overlap
  double exposed = 0;  ///< the part that no kernel hides

  double seconds() const { return kernels + exposed; }
};

/// Knows which nodes are messages, and simulates plans. A client implements it.
class MessageClock {
public:
  virtual ~MessageClock() = default;
  /// Tells whether messages may overlap other nodes; else their costs add up
  /// like all others.
  virtual bool mayHide() const = 0;
  /// By node: set for messages.
  virtual const std::vector<char> &messages() const = 0;
  /// Simulates a packed plan within a budget (bytes as in Options; 0: none).
  /// Messages under way may use the bytes that the plan leaves. Answers depend
  /// only on the arguments.
  virtual StepTime follow(const Plan &plan, int64_t budget) = 0;
};

struct TimedPlan {
  Result result;
  StepTime time;
};

/// Gives a plan the proofs of another plan of the same graph and budget, with
/// the costs of the graph.
void takeProofs(Result &result, const Result &other);

/// Finds plans that take few seconds by a clock. Graph and clock must outlive
/// it.
class MessagePlanner {
public:
  MessagePlanner(const Graph &graph, MessageClock &clock);
  ~MessagePlanner();
  MessagePlanner(const MessagePlanner &) = delete;
  MessagePlanner &operator=(const MessagePlanner &) = delete;

  /// Returns `first`, or a faster plan within `request.budget`. `first` is a
  /// plan for that budget from a search that counts messages in full; its
  /// proofs stay. The search takes about half of that search's work.
  TimedPlan improve(Result first, const Options &request);
  /// Returns a lower bound on the seconds of plans within the budget (0: none):
  /// messages count as free.
  double bound(int64_t budget) const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace ckopt::planner

#endif // CKOPT_PLANNER_MESSAGEPLANNER_H
