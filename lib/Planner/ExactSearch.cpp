//===- ExactSearch.cpp - plans of small graphs, with proof ----------------===//
//
// Problem: the cheapest sequence of runs within a byte budget, any order,
// everything that ckopt-graph/1 knows: a pebble game, PSPACE-complete in
// general, so this is for small graphs. Method: A* (Hart, Nilsson, Raphael
// 1968) over states (nodes that ran, copies kept). Letting go is free at any
// time, so a step keeps an inclusion-maximal set of copies that fits, and a
// state is dropped where another one with the same nodes run keeps more for no
// more cost. Only in-place pairs ask for letting go at the very step; which
// inputs do is branched on. A recomputation under a view that is still needed
// leaves two copies of one storage: the older one is remembered as the set of
// views that hang on it. What overwrites a storage does so in one copy; all
// others are of no use from then on, nor is what its maker makes again. The
// estimate is the cost of the nodes that did not run, and of those that must
// run again because what they made is needed and gone: consistent, so the first
// complete state is the optimum. The least load is found by bisection with the
// same search at cost nought. Guarantee: Optimal and Infeasible are proofs for
// the rules of the format; where the limits strike, the smallest estimate that
// is left bounds the cost. Complexity: exponential; states * nodes * maximal
// sets.
//
//===----------------------------------------------------------------------===//
#include "ExactSearch.h"
#include "ExactBits.h"
#include "ExactModel.h"
#include "LoadSearch.h"
#include "ckopt/Planner/Verifier.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <queue>
#include <unordered_map>

using namespace ckopt::planner;

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
/// Inputs of one node that its in-place pairs may end, at most.
constexpr size_t maxEnding = 12;

template <int Words> class StateSearch {
public:
  using Set = Bits<Words>;

  StateSearch(const ExactModel &model, int64_t budget, bool fixedOrder,
              bool countCost, Deadline &deadline, size_t stateLimit)
      : model(model), budget(budget), fixedOrder(fixedOrder),
        countCost(countCost), deadline(deadline), stateLimit(stateLimit),
        reads(model.nodes.size()), makes(reads), preds(reads), blockers(reads),
        spoilers(model.items.size()) {}
  ExactResult run(const ExactStart *start);

private:
  /// One copy of a storage that is there, with all that hangs on it.
  struct Class {
    Set items; ///< values that are read from it
    int64_t bytes;
    bool stale; ///< a newer copy of the storage has been made
    int32_t root;
    bool doomed = false; ///< lacks a change: no use after the step
  };
  struct State {
    Set ran, kept;
    double cost;
    int32_t stale; ///< into `staleLists`: copies that are not the newest
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

  void encode();
  bool prepare();
  struct Future {
    Set useful;    ///< items that may still be read
    Set essential; ///< items that are needed and cannot be made again
  };
  const Future &futureOf(const Set &ran);
  double estimate(const Set &ran, const Set &kept);
  std::vector<Class> classesOf(const State &state) const;
  bool mayRun(const State &state, const Set &useful, NodeId n) const;
  /// What running n again would bring back.
  Set bringsBack(NodeId n, const Set &ran) const {
    return makes[n].without(spoilt(ran));
  }
  bool mayRunAgain(NodeId n, const Set &ran) const {
    return model.nodes[n].rerun && !blockers[n].meets(ran);
  }
  Set spoilt(const Set &ran) const;
  bool markDoomed(std::vector<Class> &classes, NodeId n) const;
  void expand(int32_t index);
  void expandNode(const State &state, int32_t index, NodeId n);
  void keepMaximal(size_t k, int64_t room, int64_t rest);
  void emit();
  void push(const Set &ran, const Set &kept, int32_t stale, double cost,
            int32_t parent, NodeId node);
  int32_t staleId(std::vector<Set> list);

  const ExactModel &model;
  int64_t budget;
  bool fixedOrder, countCost;
  Deadline &deadline;
  size_t stateLimit;
  double below = infinite; ///< what plans have to cost less than
  std::vector<Set> reads, makes, preds, blockers; ///< by node
  std::vector<Set> spoilers;                      ///< by item
  bool anySpoilers = false;
  Set all, atEnd;

  std::vector<State> states;
  std::priority_queue<Open> open;
  /// By nodes that ran: the states that none of the others makes needless.
  std::unordered_map<Set, std::vector<int32_t>, HashBits<Words>> frontier;
  std::map<std::vector<Set>, int32_t> staleIds;
  std::vector<std::vector<Set>> staleLists;

  std::unordered_map<Set, Future, HashBits<Words>> futures;

  // The step that is being expanded.
  struct {
    int32_t parent;
    NodeId node;
    double cost;
    Set ran, made, useful;
    std::vector<Class> certain; ///< there after the step
    std::vector<Class> choice;  ///< may stay, by falling size
    std::vector<char> stays;
  } step;
};

template <int Words> bool StateSearch<Words>::prepare() {
  size_t limit = size_t(Words) * 64;
  if (model.nodes.size() > limit || model.items.size() > limit)
    return false;
  for (const ExactNode &node : model.nodes) {
    std::vector<int32_t> ending;
    for (const ExactNode::Pair &pair : node.pairs)
      ending.push_back(pair.input);
    std::sort(ending.begin(), ending.end());
    if (size_t(std::unique(ending.begin(), ending.end()) - ending.begin()) >
        maxEnding)
      return false;
  }
  encode();
  return true;
}

template <int Words> void StateSearch<Words>::encode() {
  for (size_t n = 0; n < model.nodes.size(); ++n) {
    const ExactNode &node = model.nodes[n];
    for (int32_t i : node.reads)
      reads[n].add(i);
    for (int32_t i : node.makes)
      makes[n].add(i);
    for (NodeId p : node.preds)
      preds[n].add(p);
    for (NodeId p : node.blockers)
      blockers[n].add(p);
    all.add(int32_t(n));
  }
  for (size_t i = 0; i < model.items.size(); ++i) {
    if (model.items[i].endLive)
      atEnd.add(int32_t(i));
    for (NodeId n : model.items[i].spoilers)
      spoilers[i].add(n);
    anySpoilers |= !spoilers[i].empty();
  }
  staleId({});
}

template <int Words>
int32_t StateSearch<Words>::staleId(std::vector<Set> list) {
  std::sort(list.begin(), list.end());
  auto [it, fresh] = staleIds.insert({list, int32_t(staleLists.size())});
  if (fresh)
    staleLists.push_back(std::move(list));
  return it->second;
}

/// What depends on the nodes that ran alone. An item may still be read if it is
/// needed at the end, or if a node reads it which did not run or may run again
/// to some use.
template <int Words>
auto StateSearch<Words>::futureOf(const Set &ran) -> const Future & {
  auto [it, fresh] = futures.try_emplace(ran);
  Future &future = it->second;
  if (!fresh)
    return future;
  future.useful = future.essential = atEnd;
  for (NodeId n = NodeId(model.nodes.size()) - 1; n >= 0; --n) {
    if (!ran.has(n))
      future.essential = future.essential | reads[n];
    if (!ran.has(n) ||
        (mayRunAgain(n, ran) && bringsBack(n, ran).meets(future.useful)))
      future.useful = future.useful | reads[n];
  }
  for (NodeId n = 0; n < NodeId(model.nodes.size()); ++n)
    if (!ran.has(n) || mayRunAgain(n, ran))
      future.essential = future.essential.without(bringsBack(n, ran));
  return future;
}

/// A lower bound on the cost still to come; infinite: a dead end.
template <int Words>
double StateSearch<Words>::estimate(const Set &ran, const Set &kept) {
  Set needed = atEnd, again;
  double sum = 0;
  for (size_t n = 0; n < model.nodes.size(); ++n)
    if (!ran.has(int32_t(n))) {
      needed = needed | reads[n];
      sum += model.nodes[n].cost;
    }
  // Items have larger numbers than what their makers read only by value id, so
  // look until nothing new is missing.
  Set seen;
  for (;;) {
    Set missing = needed.without(kept).without(seen);
    if (missing.empty())
      break;
    seen = seen | missing;
    for (int k = 0; k < Words; ++k)
      for (uint64_t w = missing.word[k]; w; w &= w - 1) {
        int32_t i = k * 64 + std::countr_zero(w);
        NodeId maker = model.items[i].producer;
        if (maker < 0)
          return infinite;
        if (!ran.has(maker))
          continue;
        if (!mayRunAgain(maker, ran) || spoilers[i].meets(ran))
          return infinite;
        if (again.has(maker))
          continue;
        again.add(maker);
        sum += model.nodes[maker].cost;
        needed = needed | reads[maker];
      }
  }
  return countCost ? sum : 0;
}

template <int Words>
auto StateSearch<Words>::classesOf(const State &state) const
    -> std::vector<Class> {
  std::vector<Class> classes;
  Set stale;
  for (const Set &set : staleLists[state.stale]) {
    stale = stale | set;
    for (int32_t i = 0; i < int32_t(model.items.size()); ++i)
      if (set.has(i)) {
        int32_t root = model.items[i].root;
        classes.push_back({set, model.items[root].bytes, true, root});
        break;
      }
  }
  std::vector<int32_t> at(model.items.size(), -1);
  for (int32_t i = 0; i < int32_t(model.items.size()); ++i) {
    int32_t root = model.items[i].root;
    if (root < 0 || !state.kept.has(i) || stale.has(i))
      continue;
    if (at[root] < 0) {
      at[root] = int32_t(classes.size());
      classes.push_back({{}, model.items[root].bytes, false, root});
    }
    classes[at[root]].items.add(i);
  }
  return classes;
}

template <int Words>
bool StateSearch<Words>::mayRun(const State &state, const Set &useful,
                                NodeId n) const {
  if (!state.kept.includes(reads[n]) || blockers[n].meets(state.ran))
    return false;
  if (state.ran.has(n)) // Again: to bring back what is useful and gone.
    return model.nodes[n].rerun &&
           !state.kept.includes(bringsBack(n, state.ran) & useful);
  if (fixedOrder && n > 0 && !state.ran.has(n - 1))
    return false;
  return state.ran.includes(preds[n]);
}

/// Items that lack a change if they are made again.
template <int Words>
auto StateSearch<Words>::spoilt(const Set &ran) const -> Set {
  Set result;
  for (size_t i = 0; anySpoilers && i < spoilers.size(); ++i)
    if (spoilers[i].meets(ran))
      result.add(int32_t(i));
  return result;
}

/// Marks the copies that lack what node n changes. False if what it changes
/// lies in two copies of one storage.
template <int Words>
bool StateSearch<Words>::markDoomed(std::vector<Class> &classes,
                                    NodeId n) const {
  for (int32_t item : model.nodes[n].writes)
    for (Class &copy : classes)
      if (copy.root == model.items[item].root && !copy.items.has(item))
        copy.doomed = true;
  for (const Class &copy : classes)
    for (int32_t item : model.nodes[n].writes)
      if (copy.doomed && copy.items.has(item))
        return false;
  return true;
}

template <int Words> void StateSearch<Words>::expand(int32_t index) {
  State state = states[index];
  Set useful = futureOf(state.ran).useful;
  for (NodeId n = 0; n < NodeId(model.nodes.size()); ++n) {
    if (mayRun(state, useful, n))
      expandNode(state, index, n);
    if (deadline.passed() || states.size() > stateLimit)
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
  const Future &future = futureOf(step.ran);
  std::vector<Class> required, optional, made;
  int64_t usage = model.always + node.bytes;
  std::vector<Class> classes = classesOf(state);
  if (!markDoomed(classes, n))
    return;
  for (const Class &copy : classes) {
    Class left = copy;
    bool replaced = false;
    for (int32_t i : node.makes)
      if (model.items[i].root == i && copy.items.has(i) && !copy.stale)
        replaced = true;
    left.items = copy.items.without(makes[n]);
    left.stale |= replaced;
    if (copy.items.meets(reads[n]) ||
        (!copy.doomed && left.items.meets(future.essential))) {
      usage += copy.bytes;
      required.push_back(left);
    } else if (!copy.doomed && left.items.meets(future.useful)) {
      optional.push_back(left);
    }
  }
  // What the step makes: copies of its own, or views of what it reads.
  Set after;
  for (int32_t i : node.makes) {
    const ExactItem &item = model.items[i];
    if (item.root < 0) {
      after.add(i);
      continue;
    }
    if (item.root == i) {
      made.push_back({{}, item.bytes, false, i, spoilers[i].meets(state.ran)});
      made.back().items.add(i);
      continue;
    }
    for (std::vector<Class> *list : {&made, &required})
      for (Class &copy : *list)
        if (copy.items.has(item.base)) {
          copy.items.add(i);
          goto placed;
        }
  placed:;
  }
  for (size_t i = 0; i < model.items.size(); ++i)
    if (model.items[i].root < 0 && state.kept.has(int32_t(i)))
      after.add(int32_t(i));
  step.made = after;
  step.useful = future.useful;
  deadline.spend(int64_t(4 * (required.size() + optional.size()) +
                         model.nodes.size() + 20));

  // Inputs that end here and give their bytes to an output.
  std::vector<int32_t> ending;
  for (const ExactNode::Pair &pair : node.pairs)
    if (std::find(ending.begin(), ending.end(), pair.input) == ending.end())
      ending.push_back(pair.input);
  auto inTheWay = [&](const ExactNode::Pair &pair) {
    for (const Class &copy : classes)
      for (int32_t view : pair.views)
        if (!copy.stale && copy.items.has(pair.input) && copy.items.has(view))
          return true;
    return false;
  };
  std::sort(optional.begin(), optional.end(),
            [](const Class &a, const Class &b) {
              return a.bytes != b.bytes ? a.bytes > b.bytes : a.items < b.items;
            });
  int64_t rest = 0;
  for (const Class &copy : optional)
    rest += copy.bytes;
  bool roomy = usage + rest <= budget;
  for (uint32_t ends = 0; ends < 1u << ending.size(); ++ends) {
    if (roomy && ends)
      break;
    std::vector<ValueId> given;
    uint32_t taken = 0;
    int64_t saved = 0;
    for (const ExactNode::Pair &pair : node.pairs) {
      size_t k =
          std::find(ending.begin(), ending.end(), pair.input) - ending.begin();
      if (!(ends >> k & 1) || (taken >> k & 1) || inTheWay(pair) ||
          std::find(given.begin(), given.end(), pair.output) != given.end())
        continue;
      taken |= 1u << k;
      given.push_back(pair.output);
      saved += pair.bytes;
    }
    if (taken != ends || usage - saved > budget)
      continue;
    step.certain = made;
    for (const Class &copy : required) {
      bool gone = false;
      for (size_t k = 0; k < ending.size(); ++k)
        gone |= (ends >> k & 1) && !copy.stale && copy.items.has(ending[k]);
      if (!gone)
        step.certain.push_back(copy);
    }
    step.choice = optional;
    step.stays.assign(optional.size(), 0);
    keepMaximal(0, budget - (usage - saved), rest);
  }
}

/// Chooses from step.choice[k...] what stays, `rest` bytes in all; `room` is
/// left. Every set that is reported is maximal.
template <int Words>
void StateSearch<Words>::keepMaximal(size_t k, int64_t room, int64_t rest) {
  if (!deadline.spend(2))
    return;
  if (rest <= room) {
    // All that is left stays. Nothing that went may still fit.
    for (size_t i = k; i < step.choice.size(); ++i)
      step.stays[i] = 1;
    room -= rest;
    bool maximal = true;
    for (size_t i = 0; i < k; ++i)
      maximal &= step.stays[i] || step.choice[i].bytes > room;
    if (maximal)
      emit();
    for (size_t i = k; i < step.choice.size(); ++i)
      step.stays[i] = 0;
    return;
  }
  const Class &copy = step.choice[k];
  if (copy.bytes <= room) {
    step.stays[k] = 1;
    keepMaximal(k + 1, room - copy.bytes, rest - copy.bytes);
    step.stays[k] = 0;
  }
  // Without it the rest must fill the room so far that it does not fit.
  if (rest > room)
    keepMaximal(k + 1, room, rest - copy.bytes);
}

template <int Words> void StateSearch<Words>::emit() {
  Set kept = step.made;
  std::vector<Set> stale;
  auto add = [&](const Class &copy) {
    if (copy.doomed || !copy.items.meets(step.useful))
      return;
    kept = kept | copy.items;
    if (copy.stale)
      stale.push_back(copy.items);
  };
  for (const Class &copy : step.certain)
    add(copy);
  for (size_t i = 0; i < step.choice.size(); ++i)
    if (step.stays[i])
      add(step.choice[i]);
  push(step.ran, kept, stale.empty() ? 0 : staleId(std::move(stale)), step.cost,
       step.parent, step.node);
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
  double left = estimate(ran, kept);
  if (left == infinite || cost + left >= below)
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

template <int Words>
ExactResult StateSearch<Words>::run(const ExactStart *start) {
  ExactResult result;
  if (!prepare())
    return result;
  Set ran, kept;
  if (start) {
    below = start->below;
    for (NodeId n : start->ran)
      ran.add(n);
    for (ValueId v : start->resident)
      if (model.itemOf[v] >= 0)
        kept.add(model.itemOf[v]);
  }
  int64_t usage = model.always, ends = model.always;
  for (size_t i = 0; i < model.items.size(); ++i) {
    const ExactItem &item = model.items[i];
    if (item.producer < 0) {
      kept.add(int32_t(i));
      usage += item.bytes;
    }
    // Inputs all have to be there when the first step runs; that they are is
    // seen there, but for a graph that runs nothing.
    if (item.endLive)
      ends += item.bytes;
  }
  if (model.nodes.empty() && std::max(usage, ends) > budget) {
    result.kind = ExactResult::Infeasible;
    return result;
  }
  push(ran, kept, 0, 0, -1, -1);
  while (!open.empty()) {
    Open top = open.top();
    if (states[top.state].node < -1 && states[top.state].parent >= 0) {
      open.pop();
      continue;
    }
    const State &state = states[top.state];
    if (state.ran == all && state.kept.includes(atEnd)) {
      for (int32_t s = top.state; states[s].parent >= 0; s = states[s].parent) {
        NodeId n = states[s].node;
        result.steps.push_back(n < -1 ? -2 - n : n);
      }
      std::reverse(result.steps.begin(), result.steps.end());
      result.kind = ExactResult::Optimal;
      result.cost = state.cost;
      return result;
    }
    if (deadline.passed() || states.size() > stateLimit) {
      result.cost = top.estimate;
      return result;
    }
    open.pop();
    expand(top.state);
    if (deadline.passed() || states.size() > stateLimit) {
      result.cost = top.estimate;
      return result;
    }
  }
  result.kind = ExactResult::Infeasible;
  return result;
}

ExactResult searchStates(const ExactModel &model, int64_t budget,
                         bool fixedOrder, bool countCost, Deadline &deadline,
                         size_t stateLimit, const ExactStart *start = nullptr) {
  size_t size = std::max(model.nodes.size(), model.items.size());
  if (size <= 64)
    return StateSearch<1>(model, budget, fixedOrder, countCost, deadline,
                          stateLimit)
        .run(start);
  if (size <= 128)
    return StateSearch<2>(model, budget, fixedOrder, countCost, deadline,
                          stateLimit)
        .run(start);
  return StateSearch<6>(model, budget, fixedOrder, countCost, deadline,
                        stateLimit)
      .run(start);
}

} // namespace

ExactResult ckopt::planner::exactSearch(const Problem &problem, int64_t budget,
                                        bool fixedOrder, Deadline &deadline,
                                        size_t stateLimit) {
  ExactModel model(Problem(problem.graph, Rules::Format));
  ExactResult result =
      searchStates(model, budget, fixedOrder, true, deadline, stateLimit);
  if (result.kind != ExactResult::Optimal)
    return result;
  Simulation simulation = simulate(problem, result.steps, true);
  result.cost = simulation.cost;
  result.leastPeak = simulation.peak;
  if (simulation.peak > budget) // A defect; never claim what is not so.
    return {};
  return result;
}

ExactResult ckopt::planner::exactContinuation(const Problem &problem,
                                              int64_t budget, bool fixedOrder,
                                              const ExactStart &start,
                                              Deadline &deadline,
                                              size_t stateLimit) {
  ExactModel model(Problem(problem.graph, Rules::Format));
  ExactResult result = searchStates(model, budget, fixedOrder, true, deadline,
                                    stateLimit, &start);
  // What is dearer was never looked at: nothing is proven without a plan.
  if (result.kind == ExactResult::Infeasible)
    result.kind = ExactResult::GaveUp;
  return result;
}

ExactResult ckopt::planner::exactLeastPeak(const Problem &problem,
                                           bool fixedOrder, int64_t low,
                                           const std::vector<NodeId> &known,
                                           Deadline &deadline,
                                           size_t stateLimit) {
  ExactModel model(Problem(problem.graph, Rules::Format));
  ExactResult result;
  result.steps = known;
  Simulation simulation = simulate(problem, known, true);
  int64_t high = simulation.peak;
  result.cost = simulation.cost;
  auto roundUp = [&](int64_t bytes) {
    return alignTo(std::max<int64_t>(bytes, 0), model.granule);
  };
  /// Takes steps over; false if they are not valid within `within`.
  auto take = [&](std::vector<NodeId> steps, int64_t within) {
    Plan plan;
    plan.steps = steps;
    if (!verifySteps(problem.graph, plan).empty())
      return false;
    Simulation found = simulate(problem, steps, true);
    if (found.peak > within)
      return false;
    high = found.peak;
    result.steps = std::move(steps);
    result.cost = found.cost;
    return true;
  };
  low = std::min(roundUp(low), high);
  // Below `open` nothing was found; where that is above `low`, searches were
  // cut off.
  int64_t open = low;
  bool first = true;
  auto ask = [&](int64_t middle, int32_t width, Deadline &part) {
    ExactResult::Kind kind = ExactResult::GaveUp;
    if (!fixedOrder) {
      LoadResult found = searchWithin(model, middle, part, stateLimit, width);
      if (found.kind == LoadResult::NoPlan)
        kind = ExactResult::Infeasible;
      else if (found.kind == LoadResult::Found &&
               take(std::move(found.steps), middle))
        kind = ExactResult::Optimal;
    }
    // Copies of one storage side by side ask for the whole model.
    if (kind == ExactResult::GaveUp && !part.passed() && width == 0) {
      ExactResult found =
          searchStates(model, middle, fixedOrder, false, part, stateLimit);
      if (found.kind == ExactResult::Infeasible ||
          (found.kind == ExactResult::Optimal &&
           take(std::move(found.steps), middle)))
        kind = found.kind;
    }
    return kind;
  };
  auto bisect = [&](int32_t width, Deadline &limit, int share) {
    while (open < high && !limit.passed()) {
      // The bound is often met: ask there first.
      int64_t middle = open + (high - open) / 2 / model.granule * model.granule;
      if (first)
        middle = open;
      first = false;
      Deadline part = limit.part(limit.unitsLeft() / share);
      ExactResult::Kind kind = ask(middle, width, part);
      limit.spend(part.spent());
      if (kind == ExactResult::Optimal)
        continue;
      open = middle + model.granule;
      if (kind == ExactResult::Infeasible)
        low = open;
    }
  };
  // Narrow beams find small plans, which leaves less to prove.
  if (!fixedOrder && deadline.hasWorkLimit())
    for (int32_t width : {8, 64}) {
      Deadline part = deadline.part(deadline.unitsLeft() / 4);
      open = low;
      bisect(width, part, 6);
      deadline.spend(part.spent());
    }
  open = low;
  first = true;
  bisect(0, deadline, 3);
  low = std::min(low, high);
  result.leastPeak = std::max<int64_t>(low, 1);
  if (low >= high) {
    result.kind = ExactResult::Optimal;
    result.leastPeak = high;
  }
  return result;
}
