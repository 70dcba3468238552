//===- LoadSearch.cpp - plans within a load, at any cost ------------------===//
//
// Problem: the pebble game with sizes: can every node run, some again, within a
// number of bytes? PSPACE-complete in general. Method: search over states
// (nodes that ran, values resident) with four reductions that are safe as long
// as cost does not count.
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
// The most advanced state (fewest runs to the end, at least) comes first.
// A second copy of a storage whose views are still read is counted once: a
// relaxation that only such graphs notice, so what is found is to be simulated.
// Guarantee: NoPlan is a proof. Complexity: exponential; states * nodes *
// maximal sets.
//
//===----------------------------------------------------------------------===//
#include "LoadSearch.h"
#include "ExactBits.h"

#include <algorithm>
#include <queue>
#include <unordered_map>

using namespace ckopt::planner;

namespace {

/// Inputs of one node that its in-place pairs may end, at most.
constexpr size_t maxEnding = 10;
/// Sets of values to keep that a beam tries for one step.
constexpr int32_t beamSets = 4;

/// Sets that can be asked for one that includes another: for each number, which
/// sets have it, as bits.
template <int Words> class SetIndex {
public:
  using Set = Bits<Words>;

  size_t size() const { return count; }
  void add(const Set &set) {
    if (count % 64 == 0)
      for (std::vector<uint64_t> &row : rows)
        row.push_back(0);
    if (rows.empty())
      rows.assign(size_t(Words) * 64, {0});
    set.each(
        [&](int32_t i) { rows[i][count / 64] |= uint64_t(1) << (count % 64); });
    ++count;
  }
  /// True if one of the sets from `first` on includes `set`.
  bool covers(const Set &set, size_t first = 0) const {
    const uint64_t *list[size_t(Words) * 64];
    int size = 0;
    if (count > 0)
      set.each([&](int32_t i) { list[size++] = rows[i].data(); });
    for (size_t w = first / 64; w < (count + 63) / 64; ++w) {
      uint64_t left = ~uint64_t(0);
      if (w == first / 64)
        left <<= first % 64;
      if (w == count / 64)
        left &= (uint64_t(1) << (count % 64)) - 1;
      for (int k = 0; k < size && left; ++k)
        left &= list[k][w];
      if (left)
        return true;
    }
    return false;
  }

private:
  size_t count = 0;
  std::vector<std::vector<uint64_t>> rows; ///< by number
};

template <int Words> class LoadSearch {
public:
  using Set = Bits<Words>;

  LoadSearch(const ExactModel &model, int64_t budget, Deadline &deadline,
             size_t stateLimit, int32_t width)
      : model(model), budget(budget), deadline(deadline),
        stateLimit(stateLimit), width(width),
        numNodes(int32_t(model.nodes.size())), reads(model.nodes.size()),
        makes(reads), preds(reads), blockers(reads), later(reads),
        madeBefore(reads), spoils(reads) {}
  LoadResult run();

private:
  struct State {
    Set ran, kept;
    int32_t parent;
    int32_t path, pathLength; ///< steps from the parent, in `paths`
    int32_t left;             ///< runs to the end, at least
    int32_t place;            ///< in the index of its `ran`
  };
  struct Open {
    int32_t left, state;
    bool operator<(const Open &o) const { // The least on top, latest first.
      return left != o.left ? left > o.left : state < o.state;
    }
  };
  /// What depends on the nodes that ran alone.
  struct Future {
    Set useful; ///< items that may still be read
    Set lost;   ///< items that nothing can make any more
    Set spoilt; ///< items that would lack a change if they were made
    bool dead;  ///< some node cannot run any more
  };

  bool encode();
  void encodeOrder();
  const Future &futureOf(const Set &ran);
  bool deadEnd(const Set &ran, const Set &lost) const;
  Set classes(const Set &items) const;
  int64_t bytesOf(const Set &roots) const;
  int32_t runsLeft(const Set &ran, const Set &kept, const Set &lost,
                   Set *essential) const;
  bool mayRun(const Set &ran, const Set &kept, const Future &future,
              NodeId n) const;
  bool runFree(Set &ran, Set &kept, NodeId n);
  bool close(Set &ran, Set &kept, std::vector<NodeId> &path);
  void expand(int32_t index);
  void expandNode(const State &state, int32_t index, NodeId n);
  void keepMaximal(size_t k, int64_t room, int64_t rest);
  void emit();
  void sortChoice(const Set &lost);
  bool runBeam();
  void push(Set ran, Set kept, int32_t parent, NodeId node);
  int64_t savedBy(NodeId n, const Set &ending) const;

  const ExactModel &model;
  int64_t budget;
  Deadline &deadline;
  size_t stateLimit;
  int32_t width; ///< of the beam; 0: none
  int32_t numNodes;
  std::vector<Set> reads, makes, preds, blockers;
  std::vector<Set> later;      ///< by node: items read by nodes after it
  std::vector<Set> madeBefore; ///< by node: items of nodes before it, made once
  std::vector<Set> spoils;     ///< by node: items not to be made again after it
  std::vector<Set> sharing;    ///< by item: what shares its bytes
  Set remembered, atEnd, weightless, rooted;
  bool plain = true; ///< no item shares another one's bytes

  std::vector<State> states;
  std::vector<NodeId> paths;
  std::priority_queue<Open> open;
  std::unordered_map<Set, SetIndex<Words>, HashBits<Words>> known;
  std::unordered_map<Set, Future, HashBits<Words>> futures;
  int32_t goal = -1;

  // The step that is being expanded.
  struct {
    int32_t parent;
    NodeId node;
    Set ran, certain;
    std::vector<std::pair<int64_t, int32_t>> choice; ///< bytes, root
    std::vector<char> stays;
    Set kept;
    int32_t sets; ///< reported so far
  } step;
};

template <int Words> bool LoadSearch<Words>::encode() {
  size_t limit = size_t(Words) * 64;
  if (model.nodes.size() > limit || model.items.size() > limit)
    return false;
  sharing.resize(model.items.size());
  std::vector<char> isRead(model.nodes.size(), 0);
  for (size_t i = 0; i < model.items.size(); ++i) {
    const ExactItem &item = model.items[i];
    if (item.root < 0)
      weightless.add(int32_t(i));
    else {
      sharing[item.root].add(int32_t(i));
      if (item.root == int32_t(i))
        rooted.add(int32_t(i));
      else
        plain = false;
    }
    if (item.endLive)
      atEnd.add(int32_t(i));
    if (item.producer >= 0 && !item.readers.empty())
      isRead[item.producer] = 1;
    for (NodeId n : item.spoilers)
      spoils[n].add(int32_t(i));
  }
  for (NodeId n = 0; n < numNodes; ++n) {
    const ExactNode &node = model.nodes[n];
    for (int32_t i : node.reads)
      reads[n].add(i);
    for (int32_t i : node.makes)
      makes[n].add(i);
    for (NodeId p : node.blockers)
      blockers[n].add(p);
    std::vector<int32_t> ending;
    for (const ExactNode::Pair &pair : node.pairs)
      if (std::find(ending.begin(), ending.end(), pair.input) == ending.end())
        ending.push_back(pair.input);
    if (ending.size() > maxEnding)
      return false;
    if (!node.rerun || !isRead[n])
      remembered.add(n);
  }
  // Whose order matters is remembered too, but for what a reader implies.
  for (NodeId n = 0; n < numNodes; ++n)
    for (NodeId p : model.nodes[n].preds)
      if (!blockers[p].has(n) && !makes[p].meets(reads[n]))
        remembered.add(p);
  encodeOrder();
  return true;
}

template <int Words> void LoadSearch<Words>::encodeOrder() {
  std::vector<Set> before(model.nodes.size());
  for (NodeId n = 0; n < numNodes; ++n)
    for (NodeId p : model.nodes[n].preds) {
      before[n] = before[n] | before[p];
      before[n].add(p);
      if (remembered.has(p))
        preds[n].add(p);
    }
  for (NodeId n = 0; n < numNodes; ++n) {
    later[n] = atEnd;
    for (NodeId m = n + 1; m < numNodes; ++m)
      if (before[m].has(n))
        later[n] = later[n] | reads[m];
    before[n].each([&](NodeId p) {
      if (!model.nodes[p].rerun)
        madeBefore[n] = madeBefore[n] | makes[p];
    });
  }
}

/// The items that carry the bytes of a set.
template <int Words>
auto LoadSearch<Words>::classes(const Set &items) const -> Set {
  if (plain)
    return items & rooted;
  Set roots;
  items.each([&](int32_t i) {
    if (model.items[i].root >= 0)
      roots.add(model.items[i].root);
  });
  return roots;
}

template <int Words>
int64_t LoadSearch<Words>::bytesOf(const Set &roots) const {
  int64_t sum = 0;
  roots.each([&](int32_t i) { sum += model.items[i].bytes; });
  return sum;
}

/// Bytes of results that take over those of the inputs in `ending`.
template <int Words>
int64_t LoadSearch<Words>::savedBy(NodeId n, const Set &ending) const {
  int64_t saved = 0;
  const std::vector<ExactNode::Pair> &pairs = model.nodes[n].pairs;
  uint64_t taken = 0;
  for (size_t k = 0; k < pairs.size() && k < 64; ++k) {
    if (!ending.has(pairs[k].input))
      continue;
    bool open = true;
    for (size_t j = 0; j < k; ++j)
      if (taken >> j & 1)
        open &= pairs[j].input != pairs[k].input &&
                pairs[j].output != pairs[k].output;
    if (open) {
      taken |= uint64_t(1) << k;
      saved += pairs[k].bytes;
    }
  }
  return saved;
}

template <int Words>
bool LoadSearch<Words>::deadEnd(const Set &ran, const Set &lost) const {
  for (NodeId n = 0; n < numNodes; ++n) {
    if (!remembered.has(n) || ran.has(n))
      continue;
    Set held = (later[n] & (lost | madeBefore[n])).without(makes[n]);
    int64_t load =
        model.always + model.nodes[n].bytes + bytesOf(classes(held | reads[n]));
    if (load <= budget)
      continue;
    // At most what all of its pairs give.
    int64_t saved = 0;
    for (const ExactNode::Pair &pair : model.nodes[n].pairs)
      if (!held.has(pair.input))
        saved += pair.bytes;
    if (load - saved > budget)
      return true;
  }
  return false;
}

template <int Words>
auto LoadSearch<Words>::futureOf(const Set &ran) -> const Future & {
  auto [it, fresh] = futures.try_emplace(ran);
  Future &future = it->second;
  if (!fresh)
    return future;
  future.useful = atEnd;
  ran.each([&](NodeId n) { future.spoilt = future.spoilt | spoils[n]; });
  Set makeable;
  for (NodeId n = numNodes - 1; n >= 0; --n) {
    bool open = remembered.has(n) && !ran.has(n);
    bool again = model.nodes[n].rerun && !blockers[n].meets(ran);
    Set made = makes[n].without(future.spoilt);
    if (open || again)
      makeable = makeable | made;
    if (open || (again && made.meets(future.useful)))
      future.useful = future.useful | reads[n];
  }
  for (size_t i = 0; i < model.items.size(); ++i)
    if (!makeable.has(int32_t(i)))
      future.lost.add(int32_t(i));
  deadline.spend(numNodes / 4);
  future.dead = deadEnd(ran, future.lost);
  return future;
}

/// How many runs the rest takes, at least; negative: there is no way to the
/// end. `essential`: items that the rest reads and nothing can make again.
template <int Words>
int32_t LoadSearch<Words>::runsLeft(const Set &ran, const Set &kept,
                                    const Set &lost, Set *essential) const {
  Set needed = atEnd, again, seen;
  int32_t count = 0;
  remembered.without(ran).each([&](NodeId n) {
    needed = needed | reads[n];
    ++count;
  });
  for (;;) {
    Set missing = needed.without(kept).without(seen);
    if (missing.empty())
      break;
    if (missing.meets(lost))
      return -1;
    seen = seen | missing;
    missing.each([&](int32_t i) {
      NodeId maker = model.items[i].producer;
      if (again.has(maker) || (remembered.has(maker) && !ran.has(maker)))
        return;
      again.add(maker);
      ++count;
      needed = needed | reads[maker];
    });
  }
  if (essential)
    *essential = needed & lost;
  return count;
}

template <int Words>
bool LoadSearch<Words>::mayRun(const Set &ran, const Set &kept,
                               const Future &future, NodeId n) const {
  if (!kept.includes(reads[n]) || blockers[n].meets(ran))
    return false;
  if (ran.has(n) || !remembered.has(n)) // To bring back what is useful.
    return model.nodes[n].rerun &&
           !kept.includes((makes[n] & future.useful).without(future.spoilt)) &&
           ran.includes(preds[n]);
  return ran.includes(preds[n]);
}

/// Runs the node if that cannot be a mistake.
template <int Words>
bool LoadSearch<Words>::runFree(Set &ran, Set &kept, NodeId n) {
  const ExactNode &node = model.nodes[n];
  Set after = ran;
  if (remembered.has(n))
    after.add(n);
  const Future &future = futureOf(after);
  const Future &now = futureOf(ran);
  if (future.dead)
    return false;
  // A second copy of a storage is another matter.
  bool copies = false;
  makes[n].each([&](int32_t i) {
    if (model.items[i].root == i && kept.meets(sharing[i]))
      copies = true;
  });
  if (copies)
    return false;
  Set ends; // Nothing of these is read afterwards.
  reads[n].each([&](int32_t i) {
    int32_t root = model.items[i].root;
    if (root >= 0 && !((kept | makes[n]) & sharing[root]).meets(future.useful))
      ends.add(i);
  });
  int64_t usage =
      model.always + node.bytes + bytesOf(classes(kept)) - savedBy(n, ends);
  if (usage > budget)
    return false;
  if (!node.rerun) {
    if (!now.lost.includes(spoils[n] & now.useful))
      return false;
    for (NodeId m = 0; m < numNodes; ++m)
      if (blockers[m].has(n) && !now.lost.includes(makes[m] & now.useful))
        return false;
    // A view of what is there holds on to it.
    int64_t grows = bytesOf(classes(makes[n] & future.useful)) -
                    bytesOf(classes(ends & now.lost));
    if (grows > 0)
      return false;
  }
  ran = after;
  kept = (kept | makes[n].without(now.spoilt)) & (future.useful | weightless);
  return true;
}

/// Runs all that is free; false: a dead end.
template <int Words>
bool LoadSearch<Words>::close(Set &ran, Set &kept, std::vector<NodeId> &path) {
  bool changed = true;
  while (changed) {
    changed = false;
    for (NodeId n = 0; n < numNodes; ++n) {
      const Future &future = futureOf(ran);
      if (future.dead)
        return false;
      if (mayRun(ran, kept, future, n) && runFree(ran, kept, n)) {
        path.push_back(n);
        changed = true;
      }
    }
    deadline.spend(numNodes / 8 + 1);
  }
  return true;
}

template <int Words> void LoadSearch<Words>::expand(int32_t index) {
  State state = states[index];
  const Future &future = futureOf(state.ran);
  for (NodeId n = 0; n < numNodes && goal < 0; ++n) {
    if (mayRun(state.ran, state.kept, future, n))
      expandNode(state, index, n);
    if (deadline.passed() || states.size() > stateLimit)
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
  if (remembered.has(n))
    step.ran.add(n);
  const Future &future = futureOf(step.ran);
  deadline.spend(numNodes / 8 + 4);
  if (future.dead)
    return;
  Set essential;
  Set all = state.kept | makes[n].without(futureOf(state.ran).spoilt);
  if (runsLeft(step.ran, all, future.lost, &essential) < 0)
    return;
  Set present = classes(state.kept);
  Set held = classes(state.kept & (reads[n] | essential));
  Set optional = classes(all & future.useful) & present.without(held);
  int64_t usage = model.always + node.bytes + bytesOf(held);
  step.kept = all & (future.useful | weightless);
  step.choice.clear();
  int64_t rest = 0;
  optional.each([&](int32_t r) {
    step.choice.push_back({model.items[r].bytes, r});
    rest += model.items[r].bytes;
  });
  sortChoice(future.lost);
  std::vector<int32_t> ending;
  for (const ExactNode::Pair &pair : node.pairs)
    if (std::find(ending.begin(), ending.end(), pair.input) == ending.end() &&
        state.kept.has(pair.input) && model.items[pair.input].root >= 0 &&
        !(essential & sharing[model.items[pair.input].root])
             .meets(essential.without(makes[n])))
      ending.push_back(pair.input);
  bool roomy = usage + rest <= budget;
  for (uint32_t mask = 0; mask < 1u << ending.size(); ++mask) {
    if (roomy && mask)
      break;
    Set ends;
    for (size_t k = 0; k < ending.size(); ++k)
      if (mask >> k & 1)
        ends = ends | sharing[ending[k]];
    int64_t saved = savedBy(n, ends);
    if (usage - saved > budget)
      continue;
    step.certain = ends.without(makes[n]);
    step.stays.assign(step.choice.size(), 0);
    step.sets = 0;
    keepMaximal(0, budget - (usage - saved), rest);
  }
}

/// Chooses from step.choice[k...] what stays, `rest` bytes in all; `room` is
/// left. Every set that is reported is maximal.
template <int Words>
void LoadSearch<Words>::keepMaximal(size_t k, int64_t room, int64_t rest) {
  if (goal >= 0 || states.size() > stateLimit || deadline.workPassed() ||
      (width > 0 && step.sets >= beamSets))
    return;
  if (rest <= room) {
    for (size_t i = k; i < step.choice.size(); ++i)
      step.stays[i] = 1;
    room -= rest;
    bool maximal = true;
    for (size_t i = 0; i < k; ++i)
      maximal &= step.stays[i] || step.choice[i].first > room;
    if (maximal)
      emit();
    for (size_t i = k; i < step.choice.size(); ++i)
      step.stays[i] = 0;
    return;
  }
  deadline.spend(1);
  int64_t bytes = step.choice[k].first;
  if (bytes <= room) {
    step.stays[k] = 1;
    keepMaximal(k + 1, room - bytes, rest - bytes);
    step.stays[k] = 0;
  }
  keepMaximal(k + 1, room, rest - bytes);
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
    int32_t left =
        runsLeft(step.ran, step.kept.without(sharing[root]), lost, nullptr);
    double value = left < 0 ? 1e9 : left;
    rated.push_back({value / double(bytes + 1), {bytes, root}});
  }
  int32_t base = runsLeft(step.ran, step.kept, lost, nullptr);
  for (auto &[rate, choice] : rated)
    rate -= double(base) / double(choice.first + 1);
  std::sort(rated.begin(), rated.end(), std::greater<>());
  for (size_t k = 0; k < rated.size(); ++k)
    step.choice[k] = rated[k].second;
}

template <int Words> void LoadSearch<Words>::emit() {
  ++step.sets;
  Set gone = step.certain;
  for (size_t i = 0; i < step.choice.size(); ++i)
    if (!step.stays[i])
      gone = gone | sharing[step.choice[i].second];
  push(step.ran, step.kept.without(gone.without(makes[step.node])), step.parent,
       step.node);
}

template <int Words>
void LoadSearch<Words>::push(Set ran, Set kept, int32_t parent, NodeId node) {
  std::vector<NodeId> path;
  if (node >= 0)
    path.push_back(node);
  if (!close(ran, kept, path))
    return;
  SetIndex<Words> &rivals = known[ran];
  deadline.spend(int64_t(rivals.size()) / 512 + 4);
  if (rivals.covers(kept))
    return;
  int32_t left = runsLeft(ran, kept, futureOf(ran).lost, nullptr);
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

/// Level by level, the most advanced states of each; true if the end was
/// reached.
template <int Words> bool LoadSearch<Words>::runBeam() {
  std::vector<int32_t> level;
  for (int32_t depth = 0; depth < 8 * numNodes + 100; ++depth) {
    level.clear();
    for (; !open.empty() && int32_t(level.size()) < width; open.pop())
      level.push_back(open.top().state);
    open = {};
    for (int32_t index : level) {
      expand(index);
      if (goal >= 0)
        return true;
      if (deadline.passed() || states.size() > stateLimit)
        return false;
    }
  }
  return false;
}

template <int Words> LoadResult LoadSearch<Words>::run() {
  LoadResult result;
  if (!encode())
    return result;
  Set kept;
  for (size_t i = 0; i < model.items.size(); ++i)
    if (model.items[i].producer < 0)
      kept.add(int32_t(i));
  if (model.always + bytesOf(classes(kept)) > budget) {
    result.kind = LoadResult::NoPlan;
    return result;
  }
  push({}, kept, -1, -1);
  if (width > 0 && goal < 0 && !runBeam())
    return result;
  while (!open.empty() && goal < 0) {
    if (deadline.passed() || states.size() > stateLimit)
      return result;
    Open top = open.top();
    open.pop();
    const State &state = states[top.state];
    if (!known[state.ran].covers(state.kept, size_t(state.place) + 1))
      expand(top.state);
  }
  if (goal < 0) {
    if (!deadline.passed() && states.size() <= stateLimit)
      result.kind = LoadResult::NoPlan;
    return result;
  }
  std::vector<int32_t> chain;
  for (int32_t s = goal; s >= 0; s = states[s].parent)
    chain.push_back(s);
  for (size_t k = chain.size(); k-- > 0;) {
    const State &state = states[chain[k]];
    result.steps.insert(result.steps.end(), paths.begin() + state.path,
                        paths.begin() + state.path + state.pathLength);
  }
  result.kind = LoadResult::Found;
  return result;
}

} // namespace

LoadResult ckopt::planner::searchWithin(const ExactModel &model, int64_t budget,
                                        Deadline &deadline, size_t stateLimit,
                                        int32_t width) {
  size_t size = std::max(model.nodes.size(), model.items.size());
  if (size <= 64)
    return LoadSearch<1>(model, budget, deadline, stateLimit, width).run();
  if (size <= 128)
    return LoadSearch<2>(model, budget, deadline, stateLimit, width).run();
  return LoadSearch<6>(model, budget, deadline, stateLimit, width).run();
}
