//===- LoadSearch.cpp - plans within a load, at any cost ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: the pebble game with sizes: can every node run, some again, within a
// number of bytes? PSPACE-complete in general. Method: search over states
// (nodes that ran, values resident) with four reductions that are safe as long
// as cost does not count (1, 2 and 4 are in LoadRules.cpp).
// 1. Of the nodes that ran only those are remembered that run once or whose
//    results nobody reads: every other node has run where one that needs it
//    has, and may run again at any time.
// 2. What fits beside all that is there and leaves no burden runs at once, and
//    nothing else is tried: a node that may run again, since its results may be
//    let go of at any time; one that runs once, where what it leaves takes no
//    more than what had to wait for it.
// 3. A step keeps an inclusion-maximal set of values, among them all that the
//    rest needs and nothing can make again; a state is dropped where another
//    one with the same nodes run keeps more.
// 4. A state is a dead end where some node that must still run would meet more
//    bytes that have to wait for nodes after it than fit.
// The most advanced state (fewest runs to the end, at least) comes first. A
// second copy of a storage whose views are still read is counted once: a
// relaxation that only such graphs notice, so what is found is to be simulated.
// Guarantee: NoPlan is a proof. Gives up: beyond a number of states or the
// work. Complexity: exponential; states * nodes * maximal sets.
//
//===----------------------------------------------------------------------===//
#include "Exact/LoadSearch.h"
#include "Exact/LoadRules.h"
#include "Exact/MaximalSets.h"
#include "Exact/SetIndex.h"

#include <algorithm>
#include <queue>
#include <unordered_map>

using namespace ckopt::planner;

namespace {

/// The most inputs of one node whose bytes in-place pairs may take.
constexpr size_t maxLoadEnding = 10;
/// Sets of values to keep that a beam tries for one step.
constexpr int32_t beamSets = 4;

template <int Words> class LoadSearch {
public:
  using Set = Bits<Words>;

  LoadSearch(const ExactModel &model, int64_t budget, Deadline &deadline,
             size_t stateLimit, int32_t width)
      : model(model), rules(model, budget, deadline), deadline(deadline),
        stateLimit(stateLimit), width(width) {}
  LoadResult run();

private:
  struct State {
    Set ran, kept;
    int32_t parent;
    int32_t path, pathLength; ///< steps from the parent, in `paths`
    int32_t left;             ///< least number of runs to the end
    int32_t place;            ///< position in the index of its `ran`
  };
  struct Open {
    int32_t left, state;
    // The least on top, among equals the latest.
    bool operator<(const Open &o) const {
      return left != o.left ? left > o.left : state < o.state;
    }
  };

  bool limitsPassed() const {
    return deadline.passed() || states.size() > stateLimit;
  }
  void expand(int32_t index);
  void expandNode(const State &state, int32_t index, NodeId n);
  void keepWithin(int64_t room);
  void emit(const std::vector<char> &stays);
  void sortChoice(const Set &lost);
  void push(Set ran, Set kept, int32_t parent, NodeId node);
  void runBeam();
  void runBestFirst();
  std::vector<NodeId> stepsTo(int32_t index) const;

  const ExactModel &model;
  LoadRules<Words> rules;
  Deadline &deadline;
  size_t stateLimit;
  int32_t width; ///< of the beam; 0 for no beam

  std::vector<State> states;
  std::vector<NodeId> paths;
  std::priority_queue<Open> open;
  std::unordered_map<Set, SetIndex<Words>, HashBits<Words>> known;
  int32_t goal = -1;

  // The step that is being expanded.
  struct {
    int32_t parent;
    NodeId node;
    Set ran, kept, certain;
    std::vector<std::pair<int64_t, int32_t>> choice; ///< bytes, root
    int32_t sets;                                    ///< reported so far
  } step;
};

template <int Words> void LoadSearch<Words>::expand(int32_t index) {
  State state = states[index];
  const LoadFuture<Words> &future = rules.futureOf(state.ran);
  for (NodeId n = 0; n < rules.numNodes && goal < 0; ++n) {
    if (rules.mayRun(state.ran, state.kept, future, n))
      expandNode(state, index, n);
    if (limitsPassed())
      return;
  }
}

template <int Words>
void LoadSearch<Words>::expandNode(const State &state, int32_t index,
                                   NodeId n) {
  const ExactNode &node = model.nodes[n];
  step.parent = index;
  step.node = n;
  step.ran = state.ran;
  if (rules.remembered.has(n))
    step.ran.add(n);
  const LoadFuture<Words> &future = rules.futureOf(step.ran);
  deadline.spend(rules.numNodes / 8 + 4);
  if (future.dead)
    return;
  Set essential, makes = rules.makes[n];
  Set all = state.kept | makes.without(rules.futureOf(state.ran).spoilt);
  if (rules.runsLeft(step.ran, all, future.lost, &essential) < 0)
    return;
  Set present = rules.classes(state.kept);
  Set held = rules.classes(state.kept & (rules.reads[n] | essential));
  Set optional = rules.classes(all & future.useful) & present.without(held);
  int64_t usage = model.always + node.bytes + rules.bytesOf(held);
  step.kept = all & (future.useful | rules.weightless);
  step.choice.clear();
  optional.each(
      [&](int32_t r) { step.choice.push_back({model.items[r].bytes, r}); });
  sortChoice(future.lost);
  // Inputs whose last use may be here, and whose bytes an output may take.
  std::vector<int32_t> ending = node.pairInputs();
  std::erase_if(ending, [&](int32_t i) {
    int32_t root = model.items[i].root;
    return !state.kept.has(i) || root < 0 ||
           (essential & rules.sharing[root]).meets(essential.without(makes));
  });
  bool roomy = usage + rules.bytesOf(optional) <= rules.budget;
  for (uint32_t mask = 0; mask < 1u << ending.size(); ++mask) {
    if (roomy && mask)
      break;
    Set ends;
    for (size_t k = 0; k < ending.size(); ++k)
      if (mask >> k & 1)
        ends = ends | rules.sharing[ending[k]];
    int64_t saved = rules.savedBy(n, ends);
    if (usage - saved > rules.budget)
      continue;
    step.certain = ends.without(makes);
    keepWithin(rules.budget - (usage - saved));
  }
}

/// Adds the states in which a maximal subset of the step's choice stays.
template <int Words> void LoadSearch<Words>::keepWithin(int64_t room) {
  std::vector<int64_t> bytes;
  for (auto [size, root] : step.choice)
    bytes.push_back(size);
  step.sets = 0;
  auto goOn = [&](bool branches) {
    if (goal >= 0 || states.size() > stateLimit || deadline.workPassed() ||
        (width > 0 && step.sets >= beamSets))
      return false;
    if (branches)
      deadline.spend(1);
    return true;
  };
  auto found = [&](const std::vector<char> &stays) { emit(stays); };
  MaximalSets(std::move(bytes), goOn, found).within(room);
}

/// Largest first; in a beam, those first that take the most runs a byte to make
/// again.
template <int Words> void LoadSearch<Words>::sortChoice(const Set &lost) {
  if (width == 0) {
    std::sort(step.choice.begin(), step.choice.end(), std::greater<>());
    return;
  }
  std::vector<std::pair<double, std::pair<int64_t, int32_t>>> rated;
  for (auto [bytes, root] : step.choice) {
    int32_t left = rules.runsLeft(
        step.ran, step.kept.without(rules.sharing[root]), lost, nullptr);
    double value = left < 0 ? 1e9 : left;
    rated.push_back({value / double(bytes + 1), {bytes, root}});
  }
  int32_t base = rules.runsLeft(step.ran, step.kept, lost, nullptr);
  for (auto &[rate, choice] : rated)
    rate -= double(base) / double(choice.first + 1);
  std::sort(rated.begin(), rated.end(), std::greater<>());
  for (size_t k = 0; k < rated.size(); ++k)
    step.choice[k] = rated[k].second;
}

template <int Words>
void LoadSearch<Words>::emit(const std::vector<char> &stays) {
  ++step.sets;
  Set gone = step.certain;
  for (size_t i = 0; i < step.choice.size(); ++i)
    if (!stays[i])
      gone = gone | rules.sharing[step.choice[i].second];
  push(step.ran, step.kept.without(gone.without(rules.makes[step.node])),
       step.parent, step.node);
}

template <int Words>
void LoadSearch<Words>::push(Set ran, Set kept, int32_t parent, NodeId node) {
  std::vector<NodeId> path;
  if (node >= 0)
    path.push_back(node);
  if (!rules.close(ran, kept, path))
    return;
  SetIndex<Words> &rivals = known[ran];
  deadline.spend(int64_t(rivals.size()) / 512 + 4);
  if (rivals.covers(kept))
    return;
  int32_t left = rules.runsLeft(ran, kept, rules.futureOf(ran).lost, nullptr);
  if (left < 0)
    return;
  int32_t index = int32_t(states.size());
  open.push({left, index});
  states.push_back({ran, kept, parent, int32_t(paths.size()),
                    int32_t(path.size()), left, int32_t(rivals.size())});
  rivals.add(kept);
  paths.insert(paths.end(), path.begin(), path.end());
  if (left == 0)
    goal = index;
}

/// Level by level, the most advanced states of each, until the end is reached
/// or a limit strikes.
template <int Words> void LoadSearch<Words>::runBeam() {
  std::vector<int32_t> level;
  for (int32_t depth = 0; depth < 8 * rules.numNodes + 100; ++depth) {
    level.clear();
    for (; !open.empty() && int32_t(level.size()) < width; open.pop())
      level.push_back(open.top().state);
    open = {};
    for (int32_t index : level) {
      expand(index);
      if (goal >= 0 || limitsPassed())
        return;
    }
  }
}

/// The same without levels: where `open` ends up empty, all has been looked at.
template <int Words> void LoadSearch<Words>::runBestFirst() {
  while (!open.empty() && goal < 0 && !limitsPassed()) {
    Open top = open.top();
    open.pop();
    const State &state = states[top.state];
    if (!known[state.ran].covers(state.kept, size_t(state.place) + 1))
      expand(top.state);
  }
}

template <int Words>
std::vector<NodeId> LoadSearch<Words>::stepsTo(int32_t index) const {
  std::vector<int32_t> chain;
  for (int32_t s = index; s >= 0; s = states[s].parent)
    chain.push_back(s);
  std::vector<NodeId> steps;
  for (size_t k = chain.size(); k-- > 0;) {
    const State &state = states[chain[k]];
    steps.insert(steps.end(), paths.begin() + state.path,
                 paths.begin() + state.path + state.pathLength);
  }
  return steps;
}

template <int Words> LoadResult LoadSearch<Words>::run() {
  LoadResult result;
  for (const ExactNode &node : model.nodes)
    if (node.pairInputs().size() > maxLoadEnding)
      return result;
  Set kept;
  for (size_t i = 0; i < model.items.size(); ++i)
    if (model.items[i].producer < 0)
      kept.add(int32_t(i));
  if (model.always + rules.bytesOf(rules.classes(kept)) > rules.budget) {
    result.kind = LoadResult::NoPlan;
    return result;
  }
  push({}, kept, -1, -1);
  if (goal < 0 && width > 0)
    runBeam();
  else if (goal < 0)
    runBestFirst();
  if (goal >= 0) {
    result.kind = LoadResult::Found;
    result.steps = stepsTo(goal);
  } else if (width == 0 && !limitsPassed()) {
    result.kind = LoadResult::NoPlan;
  }
  return result;
}

} // namespace

LoadResult ckopt::planner::searchWithin(const ExactModel &model, int64_t budget,
                                        Deadline &deadline, size_t stateLimit,
                                        int32_t width) {
  return withWords(model, [&](auto words) {
    return LoadSearch<words()>(model, budget, deadline, stateLimit, width)
        .run();
  });
}
