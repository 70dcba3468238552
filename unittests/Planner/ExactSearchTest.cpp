//===- ExactSearchTest.cpp - the state search against brute force ---------===//
//
// The reference plays by the words of the format: single copies with the copy
// that each view hangs on, each let go of by a move of its own, and Dijkstra's
// algorithm over all that can be reached. It shares nothing with the search but
// the graph.
//
//===----------------------------------------------------------------------===//
#include "../../lib/Planner/ExactSearch.h"
#include "TestGraphs.h"
#include "ckopt/Planner/Bounds.h"
#include "ckopt/Planner/Verifier.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>
#include <queue>
#include <unordered_map>

using namespace ckopt::planner;
using namespace ckopt::planner::test;

namespace {

/// Up to `most` nodes with everything that the format has.
Graph smallGraph(uint64_t seed, int most) {
  std::mt19937_64 rng(seed * 7919 + 13);
  auto below = [&](uint64_t n) { return int64_t(rng() % n); };
  Graph graph;
  graph.alignment = below(4) == 0 ? 4 : 1;
  std::vector<ValueId> values;
  for (int64_t k = 1 + below(2); k > 0; --k)
    values.push_back(addValue(graph, below(5), ValueKind::Input));
  ValueId param = addValue(graph, 1 + below(3), ValueKind::Persistent);
  int nodes = 2 + int(below(most - 1));
  for (int i = 0; i < nodes; ++i) {
    std::vector<ValueId> inputs;
    if (below(8))
      inputs.push_back(values[values.size() - 1 -
                              below(std::min<size_t>(2, values.size()))]);
    ValueId extra = values[below(values.size())];
    if (below(2) &&
        std::find(inputs.begin(), inputs.end(), extra) == inputs.end())
      inputs.push_back(extra);
    if (below(5) == 0)
      inputs.push_back(param);
    NodeId n = addNode(graph, double(below(6)), inputs, {});
    graph.nodes[n].recompute = below(6) != 0;
    graph.nodes[n].workspace = below(4) == 0 ? below(5) : 0;
    if (n > 1 && below(6) == 0)
      graph.nodes[n].after = {NodeId(below(n))};
    if (!inputs.empty() && below(9) == 0) {
      ValueId target = inputs[below(inputs.size())];
      graph.nodes[n].mutates = {target};
    }
    ValueId viewed =
        !inputs.empty() && below(4) == 0 ? inputs[below(inputs.size())] : -1;
    int64_t outputs = below(8) == 0 ? 0 : 1 + (below(4) == 0);
    for (int64_t k = 0; k < outputs; ++k) {
      bool view = viewed >= 0 && k == 0;
      if (k == 1 && below(3) == 0) {
        viewed = graph.nodes[n].outputs[0];
        view = true;
      }
      ValueId v = addValue(graph, below(7),
                           below(7) ? ValueKind::Temp : ValueKind::Output,
                           view ? viewed : -1);
      graph.nodes[n].outputs.push_back(v);
      values.push_back(v);
      if (below(3) == 0)
        for (ValueId input : inputs)
          graph.nodes[n].reuse.push_back({input, v});
    }
  }
  return graph;
}

class CopyGame {
public:
  CopyGame(const Graph &graph, bool programOrder)
      : graph(graph), programOrder(programOrder) {}
  /// Least cost within the budget; negative: infeasible.
  double solve(int64_t budget);

private:
  struct Copy {
    ValueId value;
    int8_t base;  ///< index of a copy; -1: none
    bool current; ///< reads see it
    auto operator<=>(const Copy &) const = default;
  };
  struct State {
    uint32_t ran = 0;
    std::vector<Copy> copies;
    std::string key() const {
      std::string text(reinterpret_cast<const char *>(&ran), 4);
      for (const Copy &c : copies) {
        text += char(c.value);
        text += char(c.base + 1);
        text += char(c.current);
      }
      return text;
    }
  };
  int64_t bytes(const Copy &copy) const {
    return copy.base >= 0
               ? 0
               : alignTo(graph.values[copy.value].bytes, graph.alignment);
  }
  ValueId storage(ValueId v) const {
    while (graph.values[v].aliasOf >= 0)
      v = graph.values[v].aliasOf;
    return v;
  }
  static int find(const State &state, ValueId v) {
    for (size_t i = 0; i < state.copies.size(); ++i)
      if (state.copies[i].value == v && state.copies[i].current)
        return int(i);
    return -1;
  }
  static void drop(State &state, int index);
  static bool carries(const State &state, int index);
  void clean(State &state) const;
  bool allowed(const State &state, NodeId n) const;
  bool run(State &state, NodeId n, uint32_t ends, int64_t budget) const;
  bool finished(const State &state) const;

  const Graph &graph;
  bool programOrder;
};

void CopyGame::drop(State &state, int index) {
  state.copies.erase(state.copies.begin() + index);
  for (Copy &copy : state.copies)
    if (copy.base > index)
      --copy.base;
}

bool CopyGame::carries(const State &state, int index) {
  for (const Copy &copy : state.copies)
    if (copy.base == index)
      return true;
  return false;
}

/// Lets go of old copies that nothing hangs on.
void CopyGame::clean(State &state) const {
  for (int i = int(state.copies.size()) - 1; i >= 0; --i)
    if (!state.copies[i].current && !carries(state, i)) {
      drop(state, i);
      i = int(state.copies.size());
    }
}

bool CopyGame::allowed(const State &state, NodeId n) const {
  const Node &node = graph.nodes[n];
  bool again = state.ran >> n & 1;
  if (again && (!node.recompute || !node.mutates.empty()))
    return false;
  if (!again && programOrder && state.ran != (1u << n) - 1)
    return false;
  for (NodeId p : node.after)
    if (!(state.ran >> p & 1))
      return false;
  std::vector<ValueId> touched;
  for (ValueId v : node.inputs)
    touched.push_back(storage(v));
  for (ValueId v : node.mutates)
    touched.push_back(storage(v));
  for (NodeId w = 0; w < NodeId(graph.nodes.size()); ++w)
    for (ValueId v : graph.nodes[w].mutates) {
      bool done = state.ran >> w & 1;
      if (std::find(touched.begin(), touched.end(), storage(v)) !=
              touched.end() &&
          (w < n ? !done : done))
        return false;
      // A copy made afresh would lack the change. (Where there are views, an
      // older copy could even be read beside it.)
      for (ValueId o : node.outputs)
        if (o == storage(v) && again) {
          bool viewed = false;
          for (const Value &value : graph.values)
            viewed |= value.aliasOf == o;
          if (done || viewed)
            return false;
        }
    }
  return true;
}

bool CopyGame::run(State &state, NodeId n, uint32_t ends,
                   int64_t budget) const {
  const Node &node = graph.nodes[n];
  std::vector<int> ending;
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    int source = find(state, node.inputs[k]);
    if (source < 0)
      return false;
    if (ends >> k & 1)
      ending.push_back(source);
  }
  // Views of what ends here would keep it.
  for (int source : ending)
    if (carries(state, source))
      return false;
  for (ValueId v : node.outputs)
    if (int old = find(state, v); old >= 0)
      state.copies[old].current = false;
  // Copies that end are named by value; cleaning moves indices.
  std::vector<ValueId> ended;
  for (int source : ending)
    ended.push_back(state.copies[source].value);
  clean(state);
  int64_t usage = graph.alignment > 1 ? alignTo(node.workspace, graph.alignment)
                                      : node.workspace;
  for (ValueId v : node.outputs) {
    int base = -1;
    if (ValueId b = graph.values[v].aliasOf; b >= 0) {
      base = find(state, b);
      if (base < 0)
        return false;
      if (std::find(ended.begin(), ended.end(), b) != ended.end())
        return false; // It goes on as the view's bytes.
    }
    state.copies.push_back({v, int8_t(base), true});
  }
  for (const Copy &copy : state.copies)
    usage += bytes(copy);
  std::vector<ValueId> taken, given;
  for (auto [i, o] : node.reuse) {
    auto in = [](const std::vector<ValueId> &list, ValueId v) {
      return std::find(list.begin(), list.end(), v) != list.end();
    };
    if (!in(ended, i) || !in(node.outputs, o) || in(taken, i) || in(given, o) ||
        graph.values[i].kind == ValueKind::Input ||
        graph.values[i].kind == ValueKind::Persistent ||
        graph.values[i].aliasOf >= 0 || graph.values[o].aliasOf >= 0 ||
        graph.values[o].bytes > graph.values[i].bytes)
      continue;
    bool inTheWay = false;
    for (ValueId v : node.inputs)
      inTheWay |= graph.values[v].aliasOf == i;
    if (inTheWay)
      continue;
    taken.push_back(i);
    given.push_back(o);
    usage -= alignTo(graph.values[o].bytes, graph.alignment);
  }
  if (usage > budget)
    return false;
  for (ValueId v : ended)
    drop(state, find(state, v));
  state.ran |= 1u << n;
  return true;
}

bool CopyGame::finished(const State &state) const {
  if (state.ran != (1u << graph.nodes.size()) - 1)
    return false;
  for (ValueId v = 0; v < ValueId(graph.values.size()); ++v)
    if (graph.values[v].kind == ValueKind::Output && find(state, v) < 0)
      return false;
  return true;
}

double CopyGame::solve(int64_t budget) {
  struct Item {
    double cost;
    State state;
    bool operator<(const Item &o) const { return cost > o.cost; }
  };
  std::unordered_map<std::string, double> best;
  std::priority_queue<Item> queue;
  auto push = [&](double cost, State state) {
    auto [it, fresh] = best.insert({state.key(), cost});
    if (!fresh && it->second <= cost)
      return;
    it->second = cost;
    queue.push({cost, std::move(state)});
  };
  State start;
  for (ValueId v = 0; v < ValueId(graph.values.size()); ++v)
    if (graph.values[v].kind == ValueKind::Input ||
        graph.values[v].kind == ValueKind::Persistent)
      start.copies.push_back({v, -1, true});
  push(0, start);
  while (!queue.empty()) {
    auto [cost, state] = queue.top();
    queue.pop();
    if (best[state.key()] < cost)
      continue;
    if (finished(state))
      return cost;
    for (int i = 0; i < int(state.copies.size()); ++i)
      if (!carries(state, i) &&
          graph.values[state.copies[i].value].kind != ValueKind::Persistent) {
        State next = state;
        drop(next, i);
        clean(next);
        push(cost, std::move(next));
      }
    for (NodeId n = 0; n < NodeId(graph.nodes.size()); ++n) {
      if (!allowed(state, n))
        continue;
      const Node &node = graph.nodes[n];
      for (uint32_t ends = 0; ends < 1u << node.inputs.size(); ++ends) {
        bool sensible = true;
        for (size_t k = 0; k < node.inputs.size(); ++k)
          if (ends >> k & 1)
            sensible &= graph.values[node.inputs[k]].kind == ValueKind::Temp ||
                        graph.values[node.inputs[k]].kind == ValueKind::Output;
        State next = state;
        if (sensible && run(next, n, ends, budget))
          push(cost + node.cost, std::move(next));
      }
    }
  }
  return -1;
}

int64_t programPeak(const Problem &problem) {
  std::vector<NodeId> program(problem.numNodes);
  std::iota(program.begin(), program.end(), 0);
  return simulate(problem, program, true).peak;
}

/// One case: a graph, a budget around where it becomes tight, any order or
/// program order.
void checkCase(uint64_t seed, int most, int &infeasible, int &costly) {
  Graph graph = smallGraph(seed, most);
  ASSERT_EQ(validate(graph), "") << "seed " << seed;
  Problem problem(graph);
  int64_t peak = programPeak(problem);
  int64_t low = memoryBound(graph);
  bool fixed = seed % 3 == 0;
  int64_t budget =
      low + int64_t(seed / 3 % 4) * std::max<int64_t>(1, (peak - low) / 5);
  double truth = CopyGame(graph, fixed).solve(budget);
  Deadline deadline(0);
  ExactResult result = exactSearch(problem, budget, fixed, deadline);
  std::string where = "seed " + std::to_string(seed) + " budget " +
                      std::to_string(budget) + (fixed ? " fixed" : "");
  ASSERT_TRUE(result.proven()) << where;
  if (truth < 0) {
    ++infeasible;
    EXPECT_EQ(result.kind, ExactResult::Infeasible) << where;
  } else {
    ASSERT_EQ(result.kind, ExactResult::Optimal) << where;
    EXPECT_NEAR(result.cost, truth, 1e-9) << where;
    costly += truth > problem.baseCost;
    Plan plan;
    plan.steps = result.steps;
    Simulation exact = simulate(graph, plan.steps);
    plan.cost = exact.cost;
    plan.peak = exact.peak;
    EXPECT_EQ(verify(graph, plan, budget), "") << where;
  }
  std::vector<NodeId> program(problem.numNodes);
  std::iota(program.begin(), program.end(), 0);
  ExactResult least = exactLeastPeak(problem, fixed, low, program, deadline);
  ASSERT_EQ(least.kind, ExactResult::Optimal) << where;
  EXPECT_EQ(simulate(problem, least.steps, true).peak, least.leastPeak);
  EXPECT_EQ(truth >= 0, least.leastPeak <= budget) << where;
}

TEST(ExactSearch, AgreesWithBruteForce) {
  const char *asked = std::getenv("CKOPT_BRUTE_FORCE_CASES");
  uint64_t cases = asked ? std::strtoull(asked, nullptr, 10) : 400;
  int infeasible = 0, costly = 0;
  for (uint64_t seed = 0; seed < cases; ++seed) {
    checkCase(seed, asked ? 9 : 7, infeasible, costly);
    if (HasFatalFailure())
      return;
  }
  // Cases that say something.
  EXPECT_GE(infeasible * 50, int(cases));
  EXPECT_GE(costly * 50, int(cases));
}

} // namespace
