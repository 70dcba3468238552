//===- BoundsResidency.cpp - least peak to have values resident -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Objective: how high the load must have risen before all storages of a set are
// resident at once. Method: let T(S) be the least peak of any plan in which all
// storages of S are resident at once at some time, up to that time. Of S's
// copies let x be the one made last. While its maker n ran, S without n's
// results was resident, and what n reads; just before, so was S' = (S without
// n's results) + reads(n). So
//   T(S) >= min over x in S of max(load while n runs, T(S')),
// and T(S) >= T(S') for S' within S. Storages that are there at the start are
// never made, and stay in the set: they have been resident from the start.
// Where n runs only once, it has not run before: nothing in S' may come after
// n, and all that waits at n's first run is in S'. The minimum over all ways
// back is a bottleneck shortest path to a set that nothing has to be made for,
// found best first; where the work limit ends it, the least key on the frontier
// is still a bound. Two shortcuts keep it short: keys start at what is known
// for each member alone, and where x can be taken back without needing more
// (reads(n) within S) and without a higher load, no other way back can be
// better, so it is the only one tried. Gives up: with the work limit, with what
// is then proven. Complexity: exponential within it.
//
//===----------------------------------------------------------------------===//
#include "Bounds/BoundsResidency.h"

#include <algorithm>
#include <map>
#include <queue>

using namespace ckopt::planner;

ResidencySearch::ResidencySearch(const Problem &problem)
    : problem(problem), reads(problem.numNodes), makes(problem.numNodes),
      pairs(problem.numNodes), single(problem.numValues, 0) {
  auto add = [&](std::vector<ValueId> &list, ValueId v) {
    ValueId root = problem.root[v];
    if (!problem.initial[root] || !problem.endLive[root])
      list.push_back(root);
  };
  auto tidy = [](std::vector<ValueId> &list) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  };
  for (NodeId n = 0; n < problem.numNodes; ++n) {
    for (ValueId v : problem.reads[n])
      add(reads[n], v);
    for (ValueId v : problem.outputs[n])
      if (problem.root[v] == v)
        makes[n].push_back(v);
    tidy(reads[n]);
    tidy(makes[n]);
    pairs[n] = sharingPairs(problem, n);
  }
}

static bool has(const std::vector<ValueId> &set, ValueId v) {
  return std::binary_search(set.begin(), set.end(), v);
}

int64_t ResidencySearch::bytesOf(const std::vector<ValueId> &set) const {
  int64_t sum = problem.persistentBytes;
  for (ValueId v : set)
    sum += problem.bytes[v];
  return sum;
}

int64_t ResidencySearch::loadAt(NodeId node,
                                const std::vector<ValueId> &kept) const {
  int64_t sum = bytesOf(kept) + problem.workspace[node];
  for (ValueId v : reads[node])
    if (!has(kept, v))
      sum += problem.bytes[v];
  for (ValueId v : makes[node]) {
    bool shares = false;
    for (auto [i, o] : pairs[node])
      shares |= o == v && !has(kept, i);
    if (!shares && !has(kept, v))
      sum += problem.bytes[v];
  }
  return sum;
}

void ResidencySearch::learn(NodeId node, int64_t bound) {
  for (ValueId v : makes[node])
    single[v] = std::max(single[v], bound);
}

/// Adds the sets that may be resident one step before. Returns false if there
/// are none, because nothing has to be made.
bool ResidencySearch::expand(const State &state, int64_t &work,
                             std::vector<State> &children) const {
  children.clear();
  NodeId previous = -1;
  bool anyMade = false;
  for (ValueId x : state.set) {
    NodeId node = problem.producer[x];
    if (node < 0 || node == previous)
      continue;
    previous = node;
    anyMade = true;
    bool once = before && !problem.recompute[node];
    if (once && std::any_of(state.set.begin(), state.set.end(), [&](ValueId v) {
          return problem.producer[v] >= 0 && before(node, problem.producer[v]);
        }))
      continue;
    State child;
    for (ValueId v : state.set)
      if (!has(makes[node], v))
        child.set.push_back(v);
    if (once) {
      child.set.insert(child.set.end(), waiting[node].begin(),
                       waiting[node].end());
      std::sort(child.set.begin(), child.set.end());
      child.set.erase(std::unique(child.set.begin(), child.set.end()),
                      child.set.end());
    }
    child.key = std::max(state.key, loadAt(node, child.set));
    size_t kept = child.set.size();
    for (ValueId v : reads[node])
      if (!std::binary_search(child.set.begin(), child.set.begin() + kept, v)) {
        child.set.push_back(v);
        child.key = std::max(child.key, single[v]);
      }
    work += int64_t(state.set.size() + reads[node].size()) * 2;
    if (child.set.size() == kept && child.key == state.key &&
        child.set.size() < state.set.size() &&
        std::includes(state.set.begin(), state.set.end(), child.set.begin(),
                      child.set.end())) {
      children.assign(1, std::move(child));
      return true;
    }
    std::sort(child.set.begin(), child.set.end());
    child.key = std::max(child.key, bytesOf(child.set));
    children.push_back(std::move(child));
  }
  return anyMade;
}

int64_t ResidencySearch::leastPeak(const std::vector<ValueId> &set,
                                   int64_t atLeast, int64_t enough,
                                   int64_t units, int64_t &work) {
  auto later = [](const State &a, const State &b) {
    if (a.key != b.key)
      return a.key > b.key;
    // Prefer sets near the start of the program.
    return a.set > b.set;
  };
  std::priority_queue<State, std::vector<State>, decltype(later)> queue(later);
  State start{std::max(atLeast, bytesOf(set)), set};
  for (ValueId v : set)
    start.key = std::max(start.key, single[v]);
  std::map<std::vector<ValueId>, int64_t> seen{{set, start.key}};
  queue.push(std::move(start));
  int64_t spent = 0;
  std::vector<State> children;
  while (true) {
    State state = queue.top();
    queue.pop();
    if (state.key >= enough || spent >= units ||
        !expand(state, spent, children)) {
      work += spent;
      return state.key;
    }
    int64_t reached = state.key;
    for (State &child : children) {
      spent += int64_t(child.set.size());
      auto [it, fresh] = seen.try_emplace(child.set, child.key);
      if (!fresh && it->second <= child.key)
        continue;
      it->second = child.key;
      queue.push(std::move(child));
    }
    if (queue.empty()) { // impossible, but still a valid bound
      work += spent;
      return reached;
    }
  }
}
