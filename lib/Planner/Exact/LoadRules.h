//===- LoadRules.h - what a state permits, at any cost ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to lib/Planner. The search for plans within a load (LoadSearch.h)
// explores pairs of sets: the nodes that ran, as far as they are remembered,
// and the items that are resident. The rules here say which steps such a pair
// allows, and which pairs are dead ends.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_EXACT_LOADRULES_H
#define CKOPT_LIB_PLANNER_EXACT_LOADRULES_H

#include "Exact/ExactSets.h"
#include "Model/Deadline.h"

#include <unordered_map>

namespace ckopt::planner {

/// Facts that depend only on the nodes that ran.
template <int Words> struct LoadFuture {
  Bits<Words> useful; ///< items that may still be read
  Bits<Words> lost;   ///< items that no node can make any more
  /// Items that would get old contents if they were made again.
  Bits<Words> spoilt;
  bool dead = false; ///< some node cannot run any more
};

/// For models that fit into `Words` (1, 2 or 6). Sets named `ran` hold
/// remembered nodes only, sets named `kept` items.
template <int Words> class LoadRules : public NodeSets<Words> {
public:
  using Set = Bits<Words>;
  using Future = LoadFuture<Words>;

  LoadRules(const ExactModel &model, int64_t budget, Deadline &deadline);

  /// Returns a reference that stays valid as long as the rules do.
  const Future &futureOf(const Set &ran);
  /// Returns the least number of runs that remain; negative if the end cannot
  /// be reached. `essential` (or null) receives the items in `lost` that
  /// remaining nodes read and nothing can make again.
  int32_t runsLeft(const Set &ran, const Set &kept, const Set &lost,
                   Set *essential) const;
  bool mayRun(const Set &ran, const Set &kept, const Future &future,
              NodeId n) const;
  /// Runs all nodes that are free to run and appends them to `path`; returns
  /// false at a dead end.
  bool close(Set &ran, Set &kept, std::vector<NodeId> &path);
  /// Returns the items that carry the bytes of a set.
  Set classes(const Set &items) const;
  int64_t bytesOf(const Set &roots) const;
  /// Returns the bytes of results that take over those of the inputs in
  /// `ending`.
  int64_t savedBy(NodeId n, const Set &ending) const;

  const ExactModel &model;
  const int64_t budget; ///< bytes
  const int32_t numNodes;
  using NodeSets<Words>::reads, NodeSets<Words>::makes,
      NodeSets<Words>::blockers, NodeSets<Words>::atEnd;
  Set remembered;           ///< nodes
  Set weightless;           ///< items that stay for good once made
  std::vector<Set> sharing; ///< by item: items that share its bytes

private:
  void sortItems();
  void chooseRemembered();
  void encodeOrder();
  bool deadEnd(const Set &ran, const Set &lost) const;
  bool runFree(Set &ran, Set &kept, NodeId n);

  Deadline &deadline;
  std::vector<Set> preds;      ///< by node: remembered ones
  std::vector<Set> later;      ///< by node: items read by nodes after it
  std::vector<Set> madeBefore; ///< by node: items of nodes before it, made once
  /// By node: items that it overwrites, not to be made again after it.
  std::vector<Set> spoils;
  Set rooted;        ///< items with bytes of their own
  bool plain = true; ///< no item shares another one's bytes
  std::unordered_map<Set, Future, HashBits<Words>> futures;
};

extern template class LoadRules<1>;
extern template class LoadRules<2>;
extern template class LoadRules<6>;

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_EXACT_LOADRULES_H
