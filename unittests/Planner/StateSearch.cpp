//===- StateSearch.cpp - the cheapest way through states ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: the cheapest sequence of runs within a byte budget, any order,
// everything that ckopt-graph/1 knows: a pebble game, PSPACE-complete in
// general, so this is for small graphs. Method: A* (Hart, Nilsson, Raphael
// 1968) over states (nodes that ran, copies kept). Letting go is free at any
// time, so a step keeps an inclusion-maximal set of copies that fits, and a
// state is dropped where another one with the same nodes run keeps more for no
// more cost. Only in-place pairs ask for letting go at the very step; which
// inputs do is branched on. The estimate (StateRules.cpp) is consistent, so the
// first complete state is the optimum. Guarantee: Optimal and Infeasible are
// proofs for the rules of the format; where the limits strike, the smallest
// estimate that is left bounds the cost, and it gives up. Complexity:
// exponential; states * nodes * maximal sets.
//
//===----------------------------------------------------------------------===//
#include "StateSearch.h"
#include "Exact/MaximalSets.h"
#include "StateCopies.h"
#include "ckopt/Planner/Simulator.h"

#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <queue>

using namespace ckopt::planner;
using namespace ckopt::planner::test;

namespace {

constexpr double noPlanCost = std::numeric_limits<double>::infinity();
/// Inputs of one node that its in-place pairs may end, at most.
constexpr size_t maxEnding = 12;

template <int Words> class StateSearch {
public:
  using Set = Bits<Words>;
  using Copy = StorageCopy<Words>;

  StateSearch(const ExactModel &model, int64_t budget, bool fixedOrder,
              bool countCost, Deadline &deadline, size_t stateLimit)
      : model(model), rules(model), copies(rules), budget(budget),
        fixedOrder(fixedOrder), countCost(countCost), deadline(deadline),
        stateLimit(stateLimit) {}
  ExactResult run();

private:
  struct State {
    Set ran, kept;
    double cost;
    int32_t stale; ///< number of the copies that are not the newest
    int32_t parent;
    NodeId node;
  };
  struct Open {
    double estimate;
    int32_t left; ///< nodes that did not run
    int32_t state;
    bool operator<(const Open &o) const { // The least on top.
      return estimate != o.estimate ? estimate > o.estimate
             : left != o.left       ? left > o.left
                                    : state < o.state;
    }
  };

  bool limitsPassed() const {
    return deadline.passed() || states.size() > stateLimit;
  }
  /// Node n is not before its turn.
  bool inOrder(const Set &ran, NodeId n) const {
    return !fixedOrder || n == 0 || ran.has(n) || ran.has(n - 1);
  }
  void begin();
  bool complete(const State &state) const {
    return state.ran.count() == int(model.nodes.size()) &&
           state.kept.includes(rules.atEnd);
  }
  std::vector<NodeId> stepsTo(int32_t index) const;
  void expand(int32_t index);
  void expandNode(const State &state, int32_t index, NodeId n);
  std::optional<int64_t> savedBy(const std::vector<int32_t> &inputs,
                                 uint32_t ends) const;
  void keepWithin(int64_t room, const std::vector<int32_t> &inputs,
                  uint32_t ends);
  void emit(const std::vector<char> &stays);
  void push(const Set &ran, const Set &kept, int32_t stale, double cost,
            int32_t parent, NodeId node);

  const ExactModel &model;
  StateRules<Words> rules;
  StateCopies<Words> copies;
  int64_t budget;
  bool fixedOrder, countCost;
  Deadline &deadline;
  size_t stateLimit;

  std::vector<State> states;
  std::priority_queue<Open> open;
  /// By nodes that ran: the states that none of the others makes needless.
  std::unordered_map<Set, std::vector<int32_t>, HashBits<Words>> frontier;

  // The step that is being expanded.
  struct {
    int32_t parent;
    NodeId node;
    double cost;
    Set ran, weightless, useful; ///< after it
    StepCopies<Words> copies;
    std::vector<Copy> certain; ///< there after the step
  } step;
};

template <int Words> void StateSearch<Words>::expand(int32_t index) {
  State state = states[index];
  Set useful = rules.futureOf(state.ran).useful;
  for (NodeId n = 0; n < NodeId(model.nodes.size()); ++n) {
    if (inOrder(state.ran, n) && rules.mayRun(state.ran, state.kept, useful, n))
      expandNode(state, index, n);
    if (limitsPassed())
      return;
  }
}

template <int Words>
void StateSearch<Words>::expandNode(const State &state, int32_t index,
                                    NodeId n) {
  const ExactNode &node = model.nodes[n];
  step.parent = index;
  step.node = n;
  step.cost = state.cost + (countCost ? node.cost : 0);
  step.ran = state.ran;
  step.ran.add(n);
  const StateFuture<Words> &future = rules.futureOf(step.ran);
  if (!copies.ofStep(n, state.ran, state.kept, state.stale, future,
                     step.copies))
    return;
  step.weightless = (state.kept | rules.makes[n]) & rules.weightless;
  step.useful = future.useful;
  const std::vector<Copy> &optional = step.copies.optional;
  deadline.spend(int64_t(4 * (step.copies.required.size() + optional.size()) +
                         model.nodes.size() + 20));
  int64_t usage = model.always + node.bytes + step.copies.requiredBytes;
  int64_t rest = 0;
  for (const Copy &copy : optional)
    rest += copy.bytes;
  bool roomy = usage + rest <= budget;
  // Inputs that end here and give their bytes to an output.
  std::vector<int32_t> inputs = node.pairInputs();
  for (uint32_t ends = 0; ends < 1u << inputs.size(); ++ends) {
    if (roomy && ends)
      break;
    std::optional<int64_t> saved = savedBy(inputs, ends);
    if (saved && usage - *saved <= budget)
      keepWithin(budget - (usage - *saved), inputs, ends);
  }
}

/// Bytes that results of the step take over from those of `inputs` that end
/// there, by bits; nothing if one of these has no result to give its own to.
template <int Words>
std::optional<int64_t>
StateSearch<Words>::savedBy(const std::vector<int32_t> &inputs,
                            uint32_t ends) const {
  auto inTheWay = [&](const ExactNode::Pair &pair) {
    for (const Copy &copy : step.copies.before)
      for (int32_t view : pair.views)
        if (!copy.stale && copy.items.has(pair.input) && copy.items.has(view))
          return true;
    return false;
  };
  std::vector<ValueId> given;
  uint32_t taken = 0;
  int64_t saved = 0;
  for (const ExactNode::Pair &pair : model.nodes[step.node].pairs) {
    size_t k =
        std::find(inputs.begin(), inputs.end(), pair.input) - inputs.begin();
    if (!(ends >> k & 1) || (taken >> k & 1) || inTheWay(pair) ||
        std::find(given.begin(), given.end(), pair.output) != given.end())
      continue;
    taken |= 1u << k;
    given.push_back(pair.output);
    saved += pair.bytes;
  }
  if (taken != ends)
    return std::nullopt;
  return saved;
}

/// Adds the states in which a maximal part of what may stay does.
template <int Words>
void StateSearch<Words>::keepWithin(int64_t room,
                                    const std::vector<int32_t> &inputs,
                                    uint32_t ends) {
  step.certain = step.copies.made;
  for (const Copy &copy : step.copies.required) {
    bool gone = false;
    for (size_t k = 0; k < inputs.size(); ++k)
      gone |= (ends >> k & 1) && !copy.stale && copy.items.has(inputs[k]);
    if (!gone)
      step.certain.push_back(copy);
  }
  std::vector<int64_t> bytes;
  for (const Copy &copy : step.copies.optional)
    bytes.push_back(copy.bytes);
  auto goOn = [&](bool) { return deadline.spend(2); };
  auto found = [&](const std::vector<char> &stays) { emit(stays); };
  MaximalSets(std::move(bytes), goOn, found).within(room);
}

template <int Words>
void StateSearch<Words>::emit(const std::vector<char> &stays) {
  Set kept = step.weightless;
  std::vector<Set> stale;
  auto add = [&](const Copy &copy) {
    if (copy.doomed || !copy.items.meets(step.useful))
      return;
    kept = kept | copy.items;
    if (copy.stale)
      stale.push_back(copy.items);
  };
  for (const Copy &copy : step.certain)
    add(copy);
  for (size_t i = 0; i < stays.size(); ++i)
    if (stays[i])
      add(step.copies.optional[i]);
  push(step.ran, kept, stale.empty() ? 0 : copies.staleId(std::move(stale)),
       step.cost, step.parent, step.node);
}

template <int Words>
void StateSearch<Words>::push(const Set &ran, const Set &kept, int32_t stale,
                              double cost, int32_t parent, NodeId node) {
  std::vector<int32_t> &rivals = frontier[ran];
  deadline.spend(int64_t(rivals.size() / 2) + 10);
  for (int32_t r : rivals)
    if (states[r].cost <= cost && states[r].stale == stale &&
        states[r].kept.includes(kept))
      return;
  double left = rules.costLeft(ran, kept);
  if (left < noPlanCost && !countCost)
    left = 0;
  if (left == noPlanCost)
    return;
  std::erase_if(rivals, [&](int32_t r) {
    bool worse = states[r].cost >= cost && states[r].stale == stale &&
                 kept.includes(states[r].kept);
    if (worse)
      states[r].node = -2 - states[r].node; // Not to be expanded any more.
    return worse;
  });
  rivals.push_back(int32_t(states.size()));
  open.push({cost + left, int32_t(model.nodes.size()) - ran.count(),
             int32_t(states.size())});
  states.push_back({ran, kept, cost, stale, parent, node});
}

template <int Words> void StateSearch<Words>::begin() {
  Set ran, kept;
  for (size_t i = 0; i < model.items.size(); ++i)
    if (model.items[i].producer < 0)
      kept.add(int32_t(i));
  push(ran, kept, 0, 0, -1, -1);
}

template <int Words>
std::vector<NodeId> StateSearch<Words>::stepsTo(int32_t index) const {
  std::vector<NodeId> steps;
  for (int32_t s = index; states[s].parent >= 0; s = states[s].parent) {
    NodeId n = states[s].node;
    steps.push_back(n < -1 ? -2 - n : n);
  }
  std::reverse(steps.begin(), steps.end());
  return steps;
}

/// Inputs all have to be there when the first step runs; that they are is seen
/// there, but for a graph that runs nothing.
bool fitsEmpty(const ExactModel &model, int64_t budget) {
  int64_t usage = model.always, ends = model.always;
  for (const ExactItem &item : model.items) {
    if (item.producer < 0)
      usage += item.bytes;
    if (item.endLive)
      ends += item.bytes;
  }
  return std::max(usage, ends) <= budget;
}

template <int Words> ExactResult StateSearch<Words>::run() {
  ExactResult result;
  for (const ExactNode &node : model.nodes)
    if (node.pairInputs().size() > maxEnding)
      return result;
  if (model.nodes.empty() && !fitsEmpty(model, budget)) {
    result.kind = ExactResult::Infeasible;
    return result;
  }
  begin();
  while (!open.empty()) {
    Open top = open.top();
    if (states[top.state].node < -1 && states[top.state].parent >= 0) {
      open.pop();
      continue;
    }
    const State &state = states[top.state];
    if (complete(state)) {
      result.steps = stepsTo(top.state);
      result.kind = ExactResult::Optimal;
      result.cost = state.cost;
      return result;
    }
    if (!limitsPassed()) {
      open.pop();
      expand(top.state);
    }
    if (limitsPassed()) {
      result.cost = top.estimate;
      return result;
    }
  }
  result.kind = ExactResult::Infeasible;
  return result;
}

} // namespace

/// Without `countCost` any steps will do, and their cost counts as 0. Steps
/// that do not hold what was claimed of them are a defect.
static ExactResult searchStates(const Problem &problem, const ExactModel &model,
                                int64_t budget, bool fixedOrder, bool countCost,
                                Deadline &deadline, size_t stateLimit) {
  ExactResult result = withWords(model, [&](auto words) {
    return StateSearch<words()>(model, budget, fixedOrder, countCost, deadline,
                                stateLimit)
        .run();
  });
  if (result.kind != ExactResult::Optimal)
    return result;
  Simulation simulation = simulate(problem, result.steps, true);
  result.cost = simulation.cost;
  result.leastPeak = simulation.peak;
  EXPECT_LE(simulation.peak, budget);
  return result;
}

ExactResult ckopt::planner::test::exactSearch(const Problem &problem,
                                              int64_t budget, bool fixedOrder,
                                              Deadline &deadline,
                                              size_t stateLimit) {
  return searchStates(problem,
                      ExactModel(Problem(problem.graph, Rules::Format)), budget,
                      fixedOrder, true, deadline, stateLimit);
}

ExactResult ckopt::planner::test::exactLeastPeak(
    const Problem &problem, bool fixedOrder, int64_t low,
    const std::vector<NodeId> &known, Deadline &deadline, size_t stateLimit) {
  ExactModel model(Problem(problem.graph, Rules::Format));
  ExactResult best;
  best.steps = known;
  best.leastPeak = simulate(problem, known, true).peak;
  low = alignTo(std::max<int64_t>(low, 0), model.granule);
  while (low < best.leastPeak) {
    int64_t middle =
        low + (best.leastPeak - low) / 2 / model.granule * model.granule;
    ExactResult found = searchStates(problem, model, middle, fixedOrder, false,
                                     deadline, stateLimit);
    if (found.kind == ExactResult::GaveUp)
      return best;
    if (found.kind == ExactResult::Infeasible)
      low = middle + model.granule;
    else
      best = std::move(found);
  }
  best.kind = ExactResult::Optimal;
  return best;
}
