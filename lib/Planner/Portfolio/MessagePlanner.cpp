//===- MessagePlanner.cpp - plans whose messages go on meanwhile ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: strategies minimize a sum of costs, and what a message costs depends
// on what runs beside it. Method: the graph is solved again with lower prices
// for messages, and with some bytes left over for those that are under way;
// the clock follows every plan that comes out, and the least time wins.
// Guarantee: never slower by the clock than the plan it is given; a function of
// its arguments; plans passed verify(). Complexity: six searches, each with a
// share of the first one's work, and as many looks at the clock.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Planner/MessagePlanner.h"

#include "ckopt/Planner/Bounds.h"
#include "ckopt/Planner/Packing.h"
#include "ckopt/Planner/Simulator.h"
#include "ckopt/Planner/Verifier.h"

#include <algorithm>
#include <map>

using namespace ckopt::planner;

/// Work of a search that may always be done.
static constexpr int64_t kMoment = 1000000;
/// Times that differ by less are the same.
static constexpr double kSame = 1e-9;

namespace {
/// What a search counts messages for, and the bytes that it leaves for those
/// under way, in terms of the largest one; it takes the first search's work
/// divided by `share`.
struct Attempt {
  double price, left;
  int64_t share;
};
} // namespace

/// Without bytes left over a plan may hide nothing, and with a low price it may
/// send too much: no single price is right.
static constexpr Attempt kAttempts[] = {{0.3, 0, 6},    {0.03, 0, 12},
                                        {0.3, 0.5, 16}, {1, 0.5, 16},
                                        {0.3, 1, 16},   {1, 1, 16}};

struct MessagePlanner::Impl {
  Impl(const Graph &graph, MessageClock &clock) : graph(graph), clock(clock) {
    for (size_t n = 0; n < graph.nodes.size(); ++n)
      if (clock.messages()[n])
        left = std::max(left, bytesOf(graph.nodes[n]));
  }
  int64_t bytesOf(const Node &node) const;
  Graph priced(double price) const;
  BudgetPlanner &solver(double price);
  double costOf(const Plan &plan) const;
  void consider(Result found, const Options &request, TimedPlan &best);
  void considerHint(const Options &request, TimedPlan &best);

  const Graph &graph;
  MessageClock &clock;
  std::map<int64_t, double> bounds; ///< by budget
  int64_t left = 0; ///< bytes of the largest message while it is under way
  struct Priced {
    explicit Priced(Graph given) : graph(std::move(given)), solver(graph) {}
    const Graph graph;
    BudgetPlanner solver;
  };
  std::map<double, Priced> solvers; ///< by price
};

MessagePlanner::MessagePlanner(const Graph &graph, MessageClock &clock)
    : impl(std::make_unique<Impl>(graph, clock)) {}
MessagePlanner::~MessagePlanner() = default;

int64_t MessagePlanner::Impl::bytesOf(const Node &node) const {
  int64_t bytes = alignTo(node.workspace, graph.alignment);
  for (ValueId value : node.outputs)
    if (graph.values[size_t(value)].aliasOf < 0)
      bytes += alignTo(graph.values[size_t(value)].bytes, graph.alignment);
  return bytes;
}

Graph MessagePlanner::Impl::priced(double price) const {
  Graph result = graph;
  for (size_t n = 0; n < result.nodes.size(); ++n)
    if (clock.messages()[n])
      result.nodes[n].cost *= price;
  return result;
}

BudgetPlanner &MessagePlanner::Impl::solver(double price) {
  auto found = solvers.find(price);
  if (found == solvers.end())
    found = solvers.try_emplace(price, priced(price)).first;
  return found->second.solver;
}

double MessagePlanner::Impl::costOf(const Plan &plan) const {
  double cost = 0;
  for (NodeId node : plan.steps)
    cost += graph.nodes[size_t(node)].cost;
  return cost;
}

void ckopt::planner::takeProofs(Result &result, const Result &other) {
  Plan &plan = result.plan;
  static_cast<Answer &>(plan) = other.plan;
  if (plan.cost > other.plan.cost * (1 + kSame)) {
    plan.status = Status::Feasible;
    plan.proof = Proof::Derived;
  }
}

/// Takes a plan if it is faster.
void MessagePlanner::Impl::consider(Result found, const Options &request,
                                    TimedPlan &best) {
  best.result.work += found.work;
  if (!found.hasPlan() || found.plan.steps == best.result.plan.steps)
    return;
  found.plan.cost = costOf(found.plan);
  StepTime time = clock.follow(found.plan, request.budget);
  if (time.seconds() >= best.time.seconds() * (1 - kSame))
    return;
  takeProofs(found, best.result);
  if (!verify(graph, found.plan, request.budget).empty())
    return;
  found.work = best.result.work;
  found.budget = best.result.budget;
  found.cut = best.result.cut;
  found.message = best.result.message;
  best = {std::move(found), time};
}

/// A plan that the user gives may be faster than one of less cost.
void MessagePlanner::Impl::considerHint(const Options &request,
                                        TimedPlan &best) {
  if (!request.hint || !verifySteps(graph, *request.hint).empty())
    return;
  Result hint;
  hint.plan.status = Status::Feasible;
  hint.strategy = "hint";
  hint.outside = best.result.outside;
  hint.plan.steps = request.hint->steps;
  hint.plan.cost = costOf(hint.plan);
  hint.plan.peak = simulate(graph, hint.plan.steps).peak;
  hint.aliveAtPeak = best.result.aliveAtPeak;
  packPlan(graph, hint.plan, request.arenaHoldsAll);
  if (verify(graph, hint.plan, request.budget).empty())
    consider(std::move(hint), request, best);
}

TimedPlan MessagePlanner::improve(Result first, const Options &request) {
  TimedPlan best;
  best.time = impl->clock.follow(first.plan, request.budget);
  best.result = std::move(first);
  if (request.budget <= 0 || !impl->clock.mayHide())
    return best;
  impl->considerHint(request, best);
  const int64_t firstWork = best.result.work;
  double least = bound(request.budget) * (1 + kSame);
  for (const Attempt &attempt : kAttempts) {
    Options own = request;
    own.workLimit = std::max(firstWork / attempt.share, kMoment);
    if (request.workLimit > 0)
      own.workLimit =
          std::min(own.workLimit,
                   std::max<int64_t>(request.workLimit / attempt.share, 1));
    own.timeLimitSeconds /= double(attempt.share);
    own.searchToLimit = false;
    own.hint = &best.result.plan;
    own.budget -= int64_t(attempt.left * double(impl->left));
    if (best.time.seconds() <= least ||
        own.budget <= best.result.plan.provenMinimum)
      continue;
    impl->consider(impl->solver(attempt.price).solve(own), request, best);
  }
  return best;
}

double MessagePlanner::bound(int64_t budget) const {
  auto [entry, isNew] = impl->bounds.try_emplace(budget, 0);
  if (!isNew)
    return entry->second;
  Graph free = impl->priced(0);
  entry->second = baseCost(free);
  if (budget > 0)
    entry->second = std::max(entry->second, costBound(free, budget));
  return entry->second;
}
