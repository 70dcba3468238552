//===- LoadRules.cpp - what a state permits, at any cost ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: the rules of the pebble game with sizes: given the nodes that ran
// and the resident values, which nodes may run, which of them should run at
// once, and what can no longer be reached. Method: the reductions 1, 2 and 4 of
// LoadSearch.cpp. 1. Remembered are nodes that run once, whose results nobody
// reads, or that
//    others wait for without reading what they make.
// 2. A node that fits beside the resident values and does not raise the load
// afterwards runs at once. 4. A node that must still run meets what nodes after
// it read and nothing can
//    make again: where that does not fit, the state is a dead end.
// Guarantee: safe where cost does not count, i.e. no plan is lost; but a second
// copy of a storage whose views are still read is counted once. Complexity: a
// future takes O(nodes^2) in the worst case and is computed once for each set
// of nodes that ran.
//
//===----------------------------------------------------------------------===//
#include "Exact/LoadRules.h"

using namespace ckopt::planner;

template <int Words>
LoadRules<Words>::LoadRules(const ExactModel &model, int64_t budget,
                            Deadline &deadline)
    : NodeSets<Words>(model), model(model), budget(budget),
      numNodes(int32_t(model.nodes.size())), sharing(model.items.size()),
      deadline(deadline), preds(model.nodes.size()), later(preds),
      madeBefore(preds), spoils(preds) {
  sortItems();
  chooseRemembered();
  encodeOrder();
}

template <int Words> void LoadRules<Words>::sortItems() {
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
    for (NodeId n : item.spoilers)
      spoils[n].add(int32_t(i));
  }
}

template <int Words> void LoadRules<Words>::chooseRemembered() {
  std::vector<char> isRead(model.nodes.size(), 0);
  for (const ExactItem &item : model.items)
    if (item.producer >= 0 && !item.readers.empty())
      isRead[item.producer] = 1;
  for (NodeId n = 0; n < numNodes; ++n)
    if (!model.nodes[n].rerun || !isRead[n])
      remembered.add(n);
  // Remember nodes whose order matters, unless one of their readers implies it.
  for (NodeId n = 0; n < numNodes; ++n)
    for (NodeId p : model.nodes[n].preds)
      if (!blockers[p].has(n) && !makes[p].meets(reads[n]))
        remembered.add(p);
}

template <int Words> void LoadRules<Words>::encodeOrder() {
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
auto LoadRules<Words>::classes(const Set &items) const -> Set {
  if (plain)
    return items & rooted;
  Set roots;
  items.each([&](int32_t i) {
    if (model.items[i].root >= 0)
      roots.add(model.items[i].root);
  });
  return roots;
}

template <int Words> int64_t LoadRules<Words>::bytesOf(const Set &roots) const {
  int64_t sum = 0;
  roots.each([&](int32_t i) { sum += model.items[i].bytes; });
  return sum;
}

/// Bytes of results that take over those of the inputs in `ending`.
template <int Words>
int64_t LoadRules<Words>::savedBy(NodeId n, const Set &ending) const {
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
bool LoadRules<Words>::deadEnd(const Set &ran, const Set &lost) const {
  for (NodeId n = 0; n < numNodes; ++n) {
    if (!remembered.has(n) || ran.has(n))
      continue;
    Set held = (later[n] & (lost | madeBefore[n])).without(makes[n]);
    int64_t load =
        model.always + model.nodes[n].bytes + bytesOf(classes(held | reads[n]));
    if (load <= budget)
      continue;
    // At most the sum over all of its pairs.
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
auto LoadRules<Words>::futureOf(const Set &ran) -> const Future & {
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
int32_t LoadRules<Words>::runsLeft(const Set &ran, const Set &kept,
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
bool LoadRules<Words>::mayRun(const Set &ran, const Set &kept,
                              const Future &future, NodeId n) const {
  if (!kept.includes(reads[n]) || blockers[n].meets(ran))
    return false;
  if (ran.has(n) || !remembered.has(n)) // to restore useful items
    return model.nodes[n].rerun &&
           !kept.includes((makes[n] & future.useful).without(future.spoilt)) &&
           ran.includes(preds[n]);
  return ran.includes(preds[n]);
}

/// Runs the node if that cannot lose a plan.
template <int Words>
bool LoadRules<Words>::runFree(Set &ran, Set &kept, NodeId n) {
  const ExactNode &node = model.nodes[n];
  Set after = ran;
  if (remembered.has(n))
    after.add(n);
  const Future &future = futureOf(after);
  const Future &now = futureOf(ran);
  if (future.dead)
    return false;
  // Never run for free a node that would create a second live copy of a
  // storage.
  bool copies = false;
  makes[n].each([&](int32_t i) {
    if (model.items[i].root == i && kept.meets(sharing[i]))
      copies = true;
  });
  if (copies)
    return false;
  Set ends; // items that are not read afterwards
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
    // A view of a resident item keeps its bytes alive.
    int64_t grows = bytesOf(classes(makes[n] & future.useful)) -
                    bytesOf(classes(ends & now.lost));
    if (grows > 0)
      return false;
  }
  ran = after;
  kept = (kept | makes[n].without(now.spoilt)) & (future.useful | weightless);
  return true;
}

/// Runs all nodes that are free to run; returns false at a dead end.
template <int Words>
bool LoadRules<Words>::close(Set &ran, Set &kept, std::vector<NodeId> &path) {
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

template class ckopt::planner::LoadRules<1>;
template class ckopt::planner::LoadRules<2>;
template class ckopt::planner::LoadRules<6>;
