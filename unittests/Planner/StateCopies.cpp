//===- StateCopies.cpp - copies of storages side by side ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: find which copies of storages exist in a state, which of them a step
// needs, and which it leaves. Method: the newest copy of a storage is implied
// by the resident values; an older one is remembered as the set of values that
// show it. A node overwrites a storage in one copy: all other copies are of no
// use from then on. Guarantee: all rules of ckopt-graph/1 hold. Complexity:
// O(items + copies * results) a step.
//
//===----------------------------------------------------------------------===//
#include "StateCopies.h"

using namespace ckopt::planner;

template <int Words>
int32_t StateCopies<Words>::staleId(std::vector<Set> list) {
  std::sort(list.begin(), list.end());
  auto [it, fresh] = staleIds.insert({list, int32_t(staleLists.size())});
  if (fresh)
    staleLists.push_back(std::move(list));
  return it->second;
}

template <int Words>
auto StateCopies<Words>::ofState(const Set &kept, int32_t stale) const
    -> std::vector<Copy> {
  const std::vector<ExactItem> &items = rules.model.items;
  std::vector<Copy> copies;
  Set old;
  for (const Set &set : staleLists[stale]) {
    old = old | set;
    for (int32_t i = 0; i < int32_t(items.size()); ++i)
      if (set.has(i)) {
        int32_t root = items[i].root;
        copies.push_back({set, items[root].bytes, true, root});
        break;
      }
  }
  std::vector<int32_t> at(items.size(), -1);
  kept.without(old).without(rules.weightless).each([&](int32_t i) {
    int32_t root = items[i].root;
    if (at[root] < 0) {
      at[root] = int32_t(copies.size());
      copies.push_back({{}, items[root].bytes, false, root});
    }
    copies[at[root]].items.add(i);
  });
  return copies;
}

/// Marks the copies that lack the changes of node n. Returns false if it would
/// have to change two copies of one storage.
template <int Words>
bool StateCopies<Words>::markDoomed(std::vector<Copy> &copies, NodeId n) const {
  const ExactModel &model = rules.model;
  for (int32_t item : model.nodes[n].writes)
    for (Copy &copy : copies)
      if (copy.root == model.items[item].root && !copy.items.has(item))
        copy.doomed = true;
  for (const Copy &copy : copies)
    for (int32_t item : model.nodes[n].writes)
      if (copy.doomed && copy.items.has(item))
        return false;
  return true;
}

template <int Words>
bool StateCopies<Words>::ofStep(NodeId n, const Set &ran, const Set &kept,
                                int32_t stale, const StateFuture<Words> &after,
                                StepCopies<Words> &step) const {
  step = {};
  step.before = ofState(kept, stale);
  if (!markDoomed(step.before, n))
    return false;
  for (const Copy &copy : step.before) {
    Copy left = copy;
    left.items = copy.items.without(rules.makes[n]);
    for (int32_t i : rules.model.nodes[n].makes)
      left.stale |= rules.model.items[i].root == i && copy.items.has(i);
    if (copy.items.meets(rules.reads[n]) ||
        (!copy.doomed && left.items.meets(after.essential))) {
      step.requiredBytes += copy.bytes;
      step.required.push_back(left);
    } else if (!copy.doomed && left.items.meets(after.useful)) {
      step.optional.push_back(left);
    }
  }
  std::sort(step.optional.begin(), step.optional.end(),
            [](const Copy &a, const Copy &b) {
              return a.bytes != b.bytes ? a.bytes > b.bytes : a.items < b.items;
            });
  addMade(n, ran, step);
  return true;
}

/// Adds the copies that the step makes: new ones, or views of what it reads.
template <int Words>
void StateCopies<Words>::addMade(NodeId n, const Set &ran,
                                 StepCopies<Words> &step) const {
  auto hangOn = [](std::vector<Copy> &copies, int32_t base, int32_t view) {
    for (Copy &copy : copies)
      if (copy.items.has(base)) {
        copy.items.add(view);
        return true;
      }
    return false;
  };
  for (int32_t i : rules.model.nodes[n].makes) {
    const ExactItem &item = rules.model.items[i];
    if (item.root == i) {
      step.made.push_back(
          {{}, item.bytes, false, i, rules.spoilers[i].meets(ran)});
      step.made.back().items.add(i);
    } else if (item.root >= 0 && !hangOn(step.made, item.base, i)) {
      hangOn(step.required, item.base, i);
    }
  }
}

template class ckopt::planner::StateCopies<1>;
template class ckopt::planner::StateCopies<2>;
template class ckopt::planner::StateCopies<6>;
