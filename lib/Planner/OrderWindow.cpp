//===- OrderWindow.cpp - the best order of a few nodes --------------------===//
//
// Problem: order nodes so that the largest load is the least. What is resident
// depends on the set of nodes that ran, not on their order, so it is a
// bottleneck path through the sets that respect the order's edges. Method:
// best-first search on the largest load so far, sets that ran more first;
// a node whose run neither passes the largest load so far nor leaves more
// resident than before is taken at once: moving it forward in any order makes
// no later load larger (bytes that pairs take over aside, which only matter for
// `proved` where nodes have pairs; then nothing is taken at once). Guarantee:
// the least possible if `proved`. Complexity: at most `states` sets, each
// O(nodes and operands of the window).
//
//===----------------------------------------------------------------------===//
#include "OrderSearch.h"
#include "Sequence.h"

#include <algorithm>
#include <map>
#include <queue>

using namespace ckopt::planner;

OrderState::OrderState(const Problem &problem)
    : problem(problem), ran(problem.numNodes, 0), made(problem.numValues, 0),
      toEnd(problem.numValues, 0), waiting(problem.numNodes),
      readersLeft(problem.numValues, 0), bytes(problem.persistentBytes) {
  std::vector<std::vector<int32_t>> reads(problem.numNodes),
      outputs(problem.numNodes);
  for (NodeId n = 0; n < problem.numNodes; ++n) {
    waiting[n] = int32_t(problem.preds[n].size());
    for (ValueId v : problem.reads[n])
      reads[n].push_back(problem.root[v]);
    std::sort(reads[n].begin(), reads[n].end());
    reads[n].erase(std::unique(reads[n].begin(), reads[n].end()),
                   reads[n].end());
    for (ValueId storage : reads[n])
      ++readersLeft[storage];
    for (ValueId v : problem.outputs[n])
      if (problem.base[v] < 0)
        outputs[n].push_back(v);
  }
  storages = Csr::from(reads);
  makes = Csr::from(outputs);
  for (ValueId v = 0; v < problem.numValues; ++v) {
    toEnd[problem.root[v]] |= problem.endLive[v];
    made[v] = problem.initial[v] && problem.base[v] < 0;
  }
  for (ValueId v = 0; v < problem.numValues; ++v) {
    if (problem.initial[v] && problem.endLive[v])
      made[v] = 0; // Counted in persistentBytes.
    else if (lives(v))
      bytes += problem.bytes[v];
  }
}

int64_t OrderState::loadOf(NodeId n) const {
  int64_t load = bytes + problem.workspace[n];
  for (ValueId v : makes[n])
    load += problem.bytes[v];
  load -= takenOver(problem.pairs[n], problem.bytes, [&](ValueId v) {
    return made[v] && readersLeft[v] == 1 && !toEnd[v];
  });
  return load;
}

void OrderState::run(NodeId n) {
  ran[n] = 1;
  for (NodeId s : problem.succs[n])
    --waiting[s];
  for (ValueId v : makes[n]) {
    made[v] = 1;
    if (lives(v))
      bytes += problem.bytes[v];
  }
  for (ValueId v : storages[n]) {
    bool lived = lives(v);
    --readersLeft[v];
    if (lived && !lives(v))
      bytes -= problem.bytes[v];
  }
}

void OrderState::undo(NodeId n) {
  for (ValueId v : storages[n]) {
    bool lived = lives(v);
    ++readersLeft[v];
    if (!lived && lives(v))
      bytes += problem.bytes[v];
  }
  for (ValueId v : makes[n]) {
    if (lives(v))
      bytes -= problem.bytes[v];
    made[v] = 0;
  }
  for (NodeId s : problem.succs[n])
    ++waiting[s];
  ran[n] = 0;
}

namespace {

using Set = std::vector<uint64_t>;

class WindowSearch {
public:
  WindowSearch(const Problem &problem, OrderState &state,
               const std::vector<NodeId> &window, int64_t below)
      : state(state), window(window), below(below) {
    for (NodeId n : window)
      eager &= problem.pairs[n].empty();
  }
  std::vector<NodeId> run(int64_t states, Deadline &deadline, bool &proved);

private:
  /// A set that was reached: the runs that led from the one before.
  struct Reached {
    int64_t peak;
    int32_t from, count;
    std::vector<int32_t> runs; ///< indices into the window
    const Set *set;
  };
  struct Worse {
    const std::vector<Reached> &all;
    bool operator()(int32_t a, int32_t b) const {
      const Reached &x = all[a], &y = all[b];
      if (x.peak != y.peak)
        return x.peak > y.peak;
      return x.count != y.count ? x.count < y.count : a > b;
    }
  };
  void expand(int32_t index);
  void runFree(int64_t peak, Set &set, std::vector<int32_t> &runs);
  void push(int32_t from, int64_t peak, Set set, std::vector<int32_t> runs);
  std::vector<NodeId> trace(int32_t index) const;

  OrderState &state;
  const std::vector<NodeId> &window;
  int64_t below;
  bool eager = true;
  std::vector<Reached> reached;
  std::map<Set, int64_t> leastPeak;
  std::priority_queue<int32_t, std::vector<int32_t>, Worse> queue{
      Worse{reached}};
};

/// Runs what costs nothing.
void WindowSearch::runFree(int64_t peak, Set &set, std::vector<int32_t> &runs) {
  if (!eager)
    return;
  for (bool again = true; again;) {
    again = false;
    for (int32_t i = 0; i < int32_t(window.size()); ++i) {
      NodeId n = window[i];
      if (!state.ready(n) || state.loadOf(n) > peak)
        continue;
      int64_t before = state.resident();
      state.run(n);
      if (state.resident() > before) {
        state.undo(n);
        continue;
      }
      set[i / 64] |= uint64_t(1) << (i % 64);
      runs.push_back(i);
      again = true;
    }
  }
}

void WindowSearch::push(int32_t from, int64_t peak, Set set,
                        std::vector<int32_t> runs) {
  auto [it, fresh] = leastPeak.try_emplace(std::move(set), peak);
  if (!fresh && it->second <= peak)
    return;
  it->second = peak;
  int32_t count = (from < 0 ? 0 : reached[from].count) + int32_t(runs.size());
  reached.push_back({peak, from, count, std::move(runs), &it->first});
  queue.push(int32_t(reached.size()) - 1);
}

void WindowSearch::expand(int32_t index) {
  const Set set = *reached[index].set;
  int64_t peak = reached[index].peak;
  std::vector<int32_t> path;
  for (int32_t at = index; at >= 0; at = reached[at].from)
    path.insert(path.end(), reached[at].runs.rbegin(), reached[at].runs.rend());
  for (auto it = path.rbegin(); it != path.rend(); ++it)
    state.run(window[*it]);
  for (int32_t i = 0; i < int32_t(window.size()); ++i) {
    if (!state.ready(window[i]))
      continue;
    int64_t load = std::max(peak, state.loadOf(window[i]));
    if (load >= below)
      continue;
    Set next = set;
    next[i / 64] |= uint64_t(1) << (i % 64);
    std::vector<int32_t> runs{i};
    state.run(window[i]);
    runFree(load, next, runs);
    for (auto it = runs.rbegin(); it != runs.rend(); ++it)
      state.undo(window[*it]);
    push(index, load, std::move(next), std::move(runs));
  }
  for (int32_t i : path)
    state.undo(window[i]);
}

std::vector<NodeId> WindowSearch::trace(int32_t index) const {
  std::vector<NodeId> order;
  for (; index >= 0; index = reached[index].from)
    for (auto it = reached[index].runs.rbegin();
         it != reached[index].runs.rend(); ++it)
      order.push_back(window[*it]);
  std::reverse(order.begin(), order.end());
  return order;
}

std::vector<NodeId> WindowSearch::run(int64_t states, Deadline &deadline,
                                      bool &proved) {
  proved = false;
  Set none((window.size() + 63) / 64, 0);
  push(-1, 0, none, {});
  while (!queue.empty()) {
    int32_t index = queue.top();
    queue.pop();
    auto known = leastPeak.find(*reached[index].set);
    if (known->second < reached[index].peak)
      continue;
    if (reached[index].count == int32_t(window.size())) {
      proved = true;
      return trace(index);
    }
    if (--states < 0 || !deadline.spend(int64_t(window.size()) * 8))
      return {};
    expand(index);
  }
  proved = true;
  return {};
}

} // namespace

std::vector<NodeId>
ckopt::planner::searchWindow(const Problem &problem, OrderState &state,
                             const std::vector<NodeId> &window, int64_t states,
                             int64_t below, Deadline &deadline, bool &proved) {
  return WindowSearch(problem, state, window, below)
      .run(states, deadline, proved);
}
