//===- WindowsExact.cpp - exact solutions of a few steps ------------------===//
//
// Problem: a plan that annealing left may still replay what a few other choices
// made together would spare. Method: large neighbourhood search with exact
// windows (Shaw 1998): a window of consecutive steps is cut out of the plan;
// what is resident before it and what later steps read of it stay as they are.
// The window's nodes, and the makers of what waits across it, so that this can
// be let go of and made again, are a small planning problem of their own, and
// A* (ExactSearch) solves it, looking only for what costs less. Windows without
// a replay have nothing to gain and are left out. Guarantee: a window's steps
// are taken only if the whole plan is then valid, within the budget and
// cheaper. Complexity: exponential in the window, so nodes, states and work of
// each are capped; linear in the plan for each window that gains.
//
//===----------------------------------------------------------------------===//
#include "WindowsExact.h"
#include "ExactSearch.h"
#include "ckopt/Planner/Verifier.h"

#include <algorithm>
#include <map>

using namespace ckopt::planner;

namespace {

/// Steps of a window.
constexpr int32_t lengths[] = {8, 14, 24, 48, 96};
/// Nodes and values of a window, at most.
constexpr size_t mostItems = 128;
constexpr size_t mostStates = 100000;
constexpr int64_t workEach = 2000000;
/// Steps of a window whose order is free.
constexpr int32_t mostFree = 14;
/// Makers of what waits across a window, at most.
constexpr size_t mostWaiting = 8;

/// A part of a plan as a problem of its own.
class Window {
public:
  Window(const Problem &problem, const std::vector<NodeId> &steps,
         const Simulation &whole, int32_t first, int32_t end)
      : problem(problem), steps(steps), whole(whole), first(first), end(end) {}

  /// Builds the problem; false if it holds what cannot be cut out.
  bool build();
  /// Cheaper steps for the window, empty if none were found.
  std::vector<NodeId> solve(const StrategyContext &context, Deadline &deadline);

private:
  bool survey();
  void chooseNodes();
  bool addValue(ValueId v);
  void addNode(NodeId n);
  bool has(NodeId n) const { return idOf.contains(n); }
  bool add(NodeId n) { return idOf.try_emplace(n, 0).second; }

  const Problem &problem;
  const std::vector<NodeId> &steps;
  const Simulation &whole;
  int32_t first, end;
  std::vector<char> ranBefore, placed;  ///< by node
  std::map<ValueId, int> before, after; ///< copies that are there
  std::vector<NodeId> nodes; ///< by new id, in the order of first runs
  std::map<NodeId, NodeId> idOf;
  std::map<ValueId, ValueId> valueOf; ///< new ids
  int64_t aside = 0;                  ///< bytes that stay whatever is done
  double cost = 0;                    ///< of the steps as they are
  ExactStart start;
  Graph graph;
};

/// What is there before and after. False: two copies of one value.
bool Window::survey() {
  for (const Copy &copy : whole.copies) {
    if (copy.made < first && copy.last >= first && ++before[copy.value] > 1)
      return false;
    if (copy.made < end && copy.last >= end && ++after[copy.value] > 1)
      return false;
  }
  ranBefore.assign(problem.numNodes, 0);
  placed = ranBefore;
  for (int32_t s = 0; s < first; ++s)
    ranBefore[steps[s]] = 1;
  for (int32_t s = first; s < end; ++s)
    if (!problem.graph.nodes[steps[s]].mutates.empty())
      return false;
  return true;
}

/// The window's nodes, and makers that it can run of what waits across it: the
/// largest values first.
void Window::chooseNodes() {
  for (int32_t s = first; s < end; ++s)
    add(steps[s]);
  std::vector<std::pair<int64_t, NodeId>> waiting;
  for (auto [v, count] : before) {
    NodeId maker = problem.producer[v];
    if (maker < 0 || problem.bytes[v] == 0 || has(maker) ||
        !problem.recompute[maker] || !problem.blockers[maker].empty())
      continue;
    bool possible = true;
    for (ValueId in : problem.reads[maker])
      possible &= before.contains(in) ||
                  (problem.producer[in] >= 0 && has(problem.producer[in]));
    if (possible)
      waiting.push_back({-problem.bytes[v], maker});
  }
  std::sort(waiting.begin(), waiting.end());
  for (size_t i = 0; i < std::min(waiting.size(), mostWaiting); ++i)
    add(waiting[i].second);
  for (int32_t s = 0; s < end; ++s)
    if (auto it = idOf.find(steps[s]); it != idOf.end() && !placed[steps[s]]) {
      placed[steps[s]] = 1;
      it->second = NodeId(nodes.size());
      nodes.push_back(steps[s]);
    }
}

/// False if the value is neither there nor made by a node of the window.
bool Window::addValue(ValueId v) {
  if (valueOf.contains(v))
    return true;
  Value value{problem.bytes[v], ValueKind::Temp, -1, ""};
  if (ValueId base = problem.base[v]; base >= 0) {
    // A view of what is not told apart counts no bytes.
    if (!addValue(base))
      return false;
    value.aliasOf = valueOf[base];
  }
  bool made = problem.producer[v] >= 0 && has(problem.producer[v]);
  if (!made && !before.contains(v))
    return false;
  bool stays = after.contains(v);
  if (!made && stays) {
    value.kind = ValueKind::Persistent;
    value.bytes = 0;
  } else if (!made) {
    value.kind = ValueKind::Input;
  } else if (stays) {
    value.kind = ValueKind::Output;
  }
  if (made || !stays)
    aside -= before.contains(v) ? problem.bytes[v] : 0;
  valueOf[v] = ValueId(graph.values.size());
  if (before.contains(v))
    start.resident.push_back(valueOf[v]);
  graph.values.push_back(std::move(value));
  return true;
}

void Window::addNode(NodeId n) {
  Node node = renamedNode(problem, n, [&](ValueId v) { return valueOf[v]; });
  for (NodeId b : problem.blockers[n])
    node.recompute &= !ranBefore[b];
  for (NodeId p : problem.preds[n])
    if (has(p))
      node.after.push_back(idOf[p]);
  if (ranBefore[n])
    start.ran.push_back(NodeId(graph.nodes.size()));
  graph.nodes.push_back(std::move(node));
}

bool Window::build() {
  if (!survey())
    return false;
  chooseNodes();
  if (nodes.size() > mostItems)
    return false;
  // All that is there stays, but for what the window tells apart.
  for (auto [v, count] : before)
    aside += problem.bytes[v];
  for (NodeId n : nodes) {
    for (ValueId v : problem.reads[n])
      if (!addValue(v))
        return false;
    for (ValueId v : problem.outputs[n])
      if (!addValue(v))
        return false;
  }
  for (NodeId n : nodes)
    addNode(n);
  for (int32_t s = first; s < end; ++s)
    cost += problem.cost[steps[s]];
  return graph.values.size() <= mostItems && validate(graph).empty();
}

std::vector<NodeId> Window::solve(const StrategyContext &context,
                                  Deadline &deadline) {
  start.below = cost * (1 - 1e-9);
  Problem part(graph);
  ExactResult result =
      exactContinuation(part, context.budget - aside,
                        context.fixedOrder || end - first > mostFree, start,
                        deadline, mostStates);
  std::vector<NodeId> found;
  if (result.kind == ExactResult::Optimal) {
    found.assign(steps.begin(), steps.begin() + first);
    for (NodeId n : result.steps)
      found.push_back(nodes[n]);
    found.insert(found.end(), steps.begin() + end, steps.end());
  }
  return found;
}

bool isBetter(const Problem &problem, const std::vector<NodeId> &steps,
              int64_t budget, double cost) {
  Plan plan;
  plan.steps = steps;
  if (!keepsSimpleRules(problem, steps) ||
      !verifySteps(problem.graph, plan).empty())
    return false;
  Simulation simulation = simulate(problem, steps, true);
  return simulation.peak <= budget && simulation.cost < cost * (1 - 1e-12);
}

} // namespace

std::vector<NodeId> ckopt::planner::solveWindows(const StrategyContext &context,
                                                 std::vector<NodeId> steps,
                                                 Deadline &deadline) {
  const Problem &problem = context.problem;
  Simulation whole;
  std::vector<int32_t> replays; // Before a step.
  auto survey = [&] {
    whole = simulate(problem, steps, true);
    replays.assign(1, 0);
    std::vector<char> ran(problem.numNodes, 0);
    for (NodeId n : steps) {
      replays.push_back(replays.back() + ran[n]);
      ran[n] = 1;
    }
  };
  survey();
  for (int32_t length : lengths) {
    for (int32_t first = 0; first < int32_t(steps.size());
         first += length / 3) {
      int32_t end = std::min(int32_t(steps.size()), first + length);
      if (replays[end] == replays[first])
        continue;
      if (!deadline.spend(int64_t(steps.size() + whole.copies.size())))
        return steps;
      Window window(problem, steps, whole, first, end);
      if (!window.build())
        continue;
      Deadline part = deadline.part(workEach);
      std::vector<NodeId> found = window.solve(context, part);
      deadline.spend(part.spent());
      if (found.empty() ||
          !isBetter(problem, found, context.budget, whole.cost))
        continue;
      deadline.spend(int64_t(16 * steps.size()));
      steps = std::move(found);
      survey();
    }
  }
  return steps;
}
