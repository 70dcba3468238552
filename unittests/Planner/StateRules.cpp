//===- StateRules.cpp - what a state permits, at what cost ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: in planning as a search over states, decide which nodes may run next
// and which items may still be read, and bound the cost that remains. Method:
// by the rules of the format; the bound is the cost of the nodes that did not
// run, and of those that must run again because a needed result is gone. A node
// overwrites a storage in one copy: copies that its maker makes later are of no
// use. Guarantee: the bound never exceeds the truth and falls by no more than a
// step costs (consistent, as A* asks). Complexity: a future takes O(nodes *
// items) and is computed once for each set of nodes that ran; a bound takes
// O(nodes + items).
//
//===----------------------------------------------------------------------===//
#include "StateRules.h"

#include <limits>

using namespace ckopt::planner;

template <int Words>
StateRules<Words>::StateRules(const ExactModel &model)
    : NodeSets<Words>(model), model(model), spoilers(model.items.size()),
      preds(model.nodes.size()) {
  for (size_t n = 0; n < model.nodes.size(); ++n)
    for (NodeId p : model.nodes[n].preds)
      preds[n].add(p);
  for (size_t i = 0; i < model.items.size(); ++i) {
    for (NodeId n : model.items[i].spoilers)
      spoilers[i].add(n);
    anySpoilers |= !spoilers[i].empty();
    if (model.items[i].root < 0)
      weightless.add(int32_t(i));
  }
}

/// An item may still be read if it is needed at the end, or by a node that did
/// not run or may usefully run again.
template <int Words>
auto StateRules<Words>::futureOf(const Set &ran) -> const Future & {
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

template <int Words>
double StateRules<Words>::costLeft(const Set &ran, const Set &kept) const {
  Set needed = atEnd, again;
  double sum = 0;
  for (size_t n = 0; n < model.nodes.size(); ++n)
    if (!ran.has(int32_t(n))) {
      needed = needed | reads[n];
      sum += model.nodes[n].cost;
    }
  // Items have larger numbers than their makers' operands only by value id, so
  // repeat until nothing new is missing.
  Set seen;
  for (;;) {
    Set missing = needed.without(kept).without(seen);
    if (missing.empty())
      break;
    seen = seen | missing;
    bool deadEnd = false;
    missing.each([&](int32_t i) {
      NodeId maker = model.items[i].producer;
      if (maker >= 0 && !ran.has(maker))
        return;
      if (maker < 0 || !mayRunAgain(maker, ran) || spoilers[i].meets(ran)) {
        deadEnd = true;
        return;
      }
      if (again.has(maker))
        return;
      again.add(maker);
      sum += model.nodes[maker].cost;
      needed = needed | reads[maker];
    });
    if (deadEnd)
      return std::numeric_limits<double>::infinity();
  }
  return sum;
}

template <int Words>
bool StateRules<Words>::mayRun(const Set &ran, const Set &kept,
                               const Set &useful, NodeId n) const {
  if (!kept.includes(reads[n]) || blockers[n].meets(ran))
    return false;
  if (ran.has(n)) // again, to restore needed items
    return model.nodes[n].rerun && !kept.includes(bringsBack(n, ran) & useful);
  return ran.includes(preds[n]);
}

template <int Words>
auto StateRules<Words>::spoilt(const Set &ran) const -> Set {
  Set result;
  for (size_t i = 0; anySpoilers && i < spoilers.size(); ++i)
    if (spoilers[i].meets(ran))
      result.add(int32_t(i));
  return result;
}

template class ckopt::planner::StateRules<1>;
template class ckopt::planner::StateRules<2>;
template class ckopt::planner::StateRules<6>;
