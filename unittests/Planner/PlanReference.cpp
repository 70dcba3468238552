//===- PlanReference.cpp - exhaustive search over small graphs ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: the truth about a small planning problem. Method: Dijkstra's
// algorithm over packed states. A copy of a storage is there or not as a whole,
// with the views that hang on it: a view needs no bytes, so where its bytes are
// it can be read. So a state is the set of nodes that ran and, for each value,
// the copy that a read of it would find: 0 none, 1 the newest of its storage,
// 2... older ones, which views can hang on.
//
// Letting go costs nothing and can wait until a step does not fit, so a step
// leaves behind an inclusion-maximal set of what may stay; only inputs whose
// bytes a result takes over must end at that very step, and which of them do is
// tried out. (That a source ends never saves less: more sources cover at least
// the same results.)
//
// Overwritten storages: a node reads one after all overwriting nodes before it
// in program order and before all others. The change is made to one copy, the
// one that the node finds; what lacks it can never be read again. Storages
// without bytes have no contents to lose.
//
//===----------------------------------------------------------------------===//
#include "PlanReference.h"

#include <algorithm>
#include <cstdlib>
#include <queue>
#include <unordered_map>

using namespace ckopt::planner;
using namespace ckopt::planner::test;

namespace {

/// Four bits a value.
using Places = uint64_t;

struct State {
  uint32_t ran = 0;
  Places places = 0;
  bool operator==(const State &) const = default;
};

struct HashState {
  size_t operator()(const State &s) const {
    uint64_t h = (s.places ^ (uint64_t(s.ran) << 47)) * 0x9e3779b97f4a7c15;
    return (h ^ (h >> 29)) * 0xbf58476d1ce4e5b9 >> 7;
  }
};

/// A copy of a storage while a step runs.
struct Group {
  ValueId root;
  uint32_t members = 0; ///< values that are read from it afterwards
  bool newest = false, required = false, doomed = false;
};

class Game {
public:
  Game(const Graph &graph, bool programOrder, int64_t budget);
  double solve();

private:
  int place(const State &s, ValueId v) const { return s.places >> 4 * v & 15; }
  bool allowed(const State &state, NodeId n) const;
  bool oneTarget(const State &state, NodeId n) const;
  void collectGroups(const State &state, NodeId n);
  bool makeOutputs(const State &state, NodeId n);
  void tryStep(const State &state, NodeId n, double cost);
  int64_t takenOver(const State &state, NodeId n, uint32_t ending) const;
  void leave(uint32_t keep, uint32_t ran, double cost);
  void push(double cost, const State &state);

  const Graph &graph;
  bool programOrder;
  int64_t budget, always = 0;
  int nodes, values;
  std::vector<ValueId> root;
  std::vector<int64_t> bytes;                     ///< aligned; 0 for views
  std::vector<uint32_t> inputs, outputs, writers; ///< sets, by node and root
  std::vector<char> persistent;

  std::vector<Group> groups; ///< of the step that is tried
  uint32_t alive = 0;        ///< after it, values without bytes to hold

  struct Open {
    double cost;
    State state;
    bool operator<(const Open &o) const { return cost > o.cost; }
  };
  std::unordered_map<State, double, HashState> best;
  std::priority_queue<Open> queue;
};

Game::Game(const Graph &graph, bool programOrder, int64_t budget)
    : graph(graph), programOrder(programOrder), budget(budget),
      nodes(int(graph.nodes.size())), values(int(graph.values.size())),
      inputs(nodes, 0), outputs(nodes, 0), writers(values, 0) {
  if (nodes > 16 || values > 16)
    std::abort();
  for (ValueId v = 0; v < values; ++v) {
    ValueId r = v;
    while (graph.values[r].aliasOf >= 0)
      r = graph.values[r].aliasOf;
    root.push_back(r);
    bytes.push_back(r == v ? alignTo(graph.values[v].bytes, graph.alignment)
                           : 0);
    persistent.push_back(graph.values[r].kind == ValueKind::Persistent);
    if (persistent[v])
      always += bytes[v];
  }
  for (NodeId n = 0; n < nodes; ++n) {
    for (ValueId v : graph.nodes[n].inputs)
      inputs[n] |= 1u << v;
    for (ValueId v : graph.nodes[n].outputs)
      outputs[n] |= 1u << v;
    for (ValueId v : graph.nodes[n].mutates)
      writers[root[v]] |= 1u << n;
  }
}

/// Returns whether the node may run, apart from the state of its operands.
bool Game::allowed(const State &state, NodeId n) const {
  const Node &node = graph.nodes[n];
  if (state.ran >> n & 1) {
    if (!node.recompute || !node.mutates.empty())
      return false;
  } else if (programOrder && state.ran != (1u << n) - 1) {
    return false;
  }
  for (NodeId p : node.after)
    if (!(state.ran >> p & 1))
      return false;
  for (const std::vector<ValueId> *list : {&node.inputs, &node.mutates})
    for (ValueId v : *list) {
      uint32_t early = writers[root[v]] & ((1u << n) - 1);
      uint32_t late = writers[root[v]] & ~((1u << n) - 1);
      if ((early & ~state.ran) || (late & state.ran))
        return false;
    }
  for (ValueId v : node.inputs)
    if (!place(state, v))
      return false;
  return oneTarget(state, n);
}

/// Values of one storage that the node overwrites lie in one copy.
bool Game::oneTarget(const State &state, NodeId n) const {
  const std::vector<ValueId> &list = graph.nodes[n].mutates;
  for (ValueId a : list)
    for (ValueId b : list)
      if (root[a] == root[b] && bytes[root[a]] > 0 &&
          place(state, a) != place(state, b))
        return false;
  return true;
}

/// Collects the resident copies, without those that the step makes.
void Game::collectGroups(const State &state, NodeId n) {
  groups.clear();
  alive = 0;
  int8_t index[16][16];
  std::fill(&index[0][0], &index[0][0] + 256, -1);
  auto groupOf = [&](ValueId v) -> Group & {
    int8_t &i = index[root[v]][place(state, v)];
    if (i < 0) {
      i = int8_t(groups.size());
      groups.push_back({root[v]});
      groups.back().newest = place(state, v) == 1;
    }
    return groups[i];
  };
  const Node &node = graph.nodes[n];
  for (ValueId v = 0; v < values; ++v) {
    if (!place(state, v))
      continue;
    if (persistent[v] || bytes[root[v]] == 0) {
      alive |= 1u << v;
      continue;
    }
    Group &group = groupOf(v);
    if (inputs[n] >> v & 1)
      group.required = true;
    if (!(outputs[n] >> v & 1))
      group.members |= 1u << v;
  }
  // Copies that lack a change are of no use any more.
  for (ValueId v : node.mutates)
    if (!persistent[v] && bytes[root[v]] > 0) {
      Group *target = &groupOf(v);
      for (Group &group : groups)
        group.doomed |= group.root == root[v] && &group != target;
    }
}

/// Adds the copies that the step makes. Returns false if the base of a view is
/// gone.
bool Game::makeOutputs(const State &state, NodeId n) {
  for (Group &group : groups)
    if (outputs[n] >> group.root & 1)
      group.newest = false;
  size_t before = groups.size();
  for (ValueId v : graph.nodes[n].outputs) {
    ValueId r = root[v], base = graph.values[v].aliasOf;
    if (base < 0 && bytes[r] > 0) {
      groups.push_back({v, 1u << v, true, true, false});
      // Made after a change that it lacks.
      groups.back().doomed = (writers[v] & state.ran) != 0;
      continue;
    }
    if (base < 0 || persistent[base] || bytes[r] == 0) {
      if (base >= 0 && !(alive >> base & 1))
        return false;
      alive |= 1u << v;
      continue;
    }
    bool here = outputs[n] >> base & 1;
    int below = place(state, base);
    if (!here && !below)
      return false;
    for (size_t g = 0; g < groups.size(); ++g)
      if (groups[g].root == r &&
          (here ? (groups[g].members >> base & 1) != 0
                : g < before && (groups[g].members >> base & 1))) {
        groups[g].members |= 1u << v;
        groups[g].required = true;
      }
  }
  return true;
}

int64_t Game::takenOver(const State &state, NodeId n, uint32_t ending) const {
  const Node &node = graph.nodes[n];
  uint32_t given = 0, taken = 0;
  int64_t saved = 0;
  for (auto [i, o] : node.reuse) {
    if (!(ending >> i & 1) || !(inputs[n] >> i & 1) || !(outputs[n] >> o & 1) ||
        (given >> i & 1) || (taken >> o & 1) || root[o] != o ||
        graph.values[o].bytes > graph.values[i].bytes)
      continue;
    bool inTheWay = false;
    for (ValueId w = 0; w < values; ++w)
      inTheWay |= graph.values[w].aliasOf == i &&
                  ((outputs[n] >> w & 1) ||
                   ((inputs[n] >> w & 1) && place(state, w) == 1));
    if (inTheWay)
      continue;
    given |= 1u << i;
    taken |= 1u << o;
    saved += bytes[o];
  }
  return saved;
}

void Game::push(double cost, const State &state) {
  auto [it, fresh] = best.insert({state, cost});
  if (!fresh && it->second <= cost)
    return;
  it->second = cost;
  queue.push({cost, state});
}

/// The state with the groups of `keep`; older copies are numbered in the order
/// of their first member.
void Game::leave(uint32_t keep, uint32_t ran, double cost) {
  State next{ran, 0};
  int older[16];
  std::fill(older, older + 16, 2);
  std::vector<int> number(groups.size(), 0);
  for (ValueId v = 0; v < values; ++v) {
    if (alive >> v & 1)
      next.places |= Places(1) << 4 * v;
    for (size_t g = 0; g < groups.size(); ++g) {
      const Group &group = groups[g];
      if (!(keep >> g & 1) || group.doomed || !(group.members >> v & 1))
        continue;
      if (number[g] == 0)
        number[g] = group.newest ? 1 : older[root[v]]++;
      next.places |= Places(number[g]) << 4 * v;
    }
  }
  push(cost, next);
}

void Game::tryStep(const State &state, NodeId n, double cost) {
  const Node &node = graph.nodes[n];
  collectGroups(state, n);
  if (!makeOutputs(state, n))
    return;
  int64_t usage = always + alignTo(node.workspace, graph.alignment), rest = 0;
  uint32_t required = 0, optional = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    const Group &group = groups[g];
    if (group.required) {
      required |= 1u << g;
      usage += bytes[group.root];
    } else if (group.members && !group.doomed) {
      optional |= 1u << g;
      rest += bytes[group.root];
    }
  }
  uint32_t ran = state.ran | 1u << n;
  cost += node.cost;
  if (usage + rest <= budget)
    return leave(required | optional, ran, cost);
  uint32_t sources = 0;
  for (auto [i, o] : node.reuse)
    if ((inputs[n] >> i & 1) && root[i] == i &&
        graph.values[i].kind != ValueKind::Input && !persistent[i] &&
        bytes[i] > 0)
      sources |= 1u << i;
  uint32_t ending = 0;
  do {
    int64_t room = budget - usage + takenOver(state, n, ending);
    if (room >= 0) {
      uint32_t stays = required;
      for (size_t g = 0; g < groups.size(); ++g)
        if (groups[g].newest && groups[g].required &&
            (ending >> groups[g].root & 1))
          stays &= ~(1u << g);
      // Enumerate the maximal subsets of copies that may stay.
      for (uint32_t set = optional;; set = (set - 1) & optional) {
        int64_t sum = 0, smallestOut = INT64_MAX;
        for (size_t g = 0; g < groups.size(); ++g) {
          if (set >> g & 1)
            sum += bytes[groups[g].root];
          else if (optional >> g & 1)
            smallestOut = std::min(smallestOut, bytes[groups[g].root]);
        }
        if (sum <= room && smallestOut > room - sum)
          leave(stays | set, ran, cost);
        if (set == 0)
          break;
      }
    }
    ending = (ending - sources) & sources;
  } while (ending);
}

double Game::solve() {
  uint32_t all = (1u << nodes) - 1;
  State start;
  for (ValueId v = 0; v < values; ++v) {
    ValueKind kind = graph.values[v].kind;
    bool used = kind == ValueKind::Persistent;
    for (NodeId n = 0; n < nodes && kind == ValueKind::Input; ++n) {
      used |= inputs[n] >> v & 1;
      for (ValueId o : graph.nodes[n].outputs)
        used |= graph.values[o].aliasOf == v;
    }
    if (used)
      start.places |= Places(1) << 4 * v;
  }
  push(0, start);
  while (!queue.empty()) {
    auto [cost, state] = queue.top();
    queue.pop();
    if (best[state] < cost)
      continue;
    bool done = state.ran == all;
    for (ValueId v = 0; v < values && done; ++v)
      done = graph.values[v].kind != ValueKind::Output || place(state, v);
    if (done)
      return cost;
    for (NodeId n = 0; n < nodes; ++n)
      if (allowed(state, n))
        tryStep(state, n, cost);
  }
  return -1;
}

} // namespace

double PlanReference::leastCost(int64_t budget) const {
  return Game(graph, programOrder, budget).solve();
}
