//===- StateRules.h - what a state permits, at what cost --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The exact search (StateSearch.h) explores states: the
// nodes that ran and the items that are resident. The rules here say which
// steps a state allows, and bound the cost that remains.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_UNITTESTS_PLANNER_STATERULES_H
#define CKOPT_UNITTESTS_PLANNER_STATERULES_H

#include "Exact/ExactSets.h"

#include <unordered_map>

namespace ckopt::planner {

/// Facts that depend only on the nodes that ran.
template <int Words> struct StateFuture {
  Bits<Words> useful;    ///< items that may still be read
  Bits<Words> essential; ///< items that are needed and cannot be made again
};

/// For models that fit into `Words` (1, 2 or 6). Sets named `ran` hold nodes,
/// sets named `kept` items.
template <int Words> class StateRules : public NodeSets<Words> {
public:
  using Set = Bits<Words>;
  using Future = StateFuture<Words>;

  explicit StateRules(const ExactModel &model);

  /// Returns a reference that stays valid as long as the rules do.
  const Future &futureOf(const Set &ran);
  /// Returns a lower bound on the cost still to come; infinite at a dead end.
  double costLeft(const Set &ran, const Set &kept) const;
  /// Returns whether node n can run and is of use; `useful` is that of `ran`.
  bool mayRun(const Set &ran, const Set &kept, const Set &useful,
              NodeId n) const;
  /// Returns the items that would get old contents if they were made again.
  Set spoilt(const Set &ran) const;

  const ExactModel &model;
  using NodeSets<Words>::reads, NodeSets<Words>::makes,
      NodeSets<Words>::blockers, NodeSets<Words>::atEnd;
  std::vector<Set> spoilers; ///< by item: nodes
  Set weightless;            ///< items that stay for good once made

private:
  /// Returns the items that running n again would restore.
  Set bringsBack(NodeId n, const Set &ran) const {
    return makes[n].without(spoilt(ran));
  }
  bool mayRunAgain(NodeId n, const Set &ran) const {
    return model.nodes[n].rerun && !blockers[n].meets(ran);
  }

  std::vector<Set> preds; ///< by node
  bool anySpoilers = false;
  std::unordered_map<Set, Future, HashBits<Words>> futures;
};

extern template class StateRules<1>;
extern template class StateRules<2>;
extern template class StateRules<6>;

} // namespace ckopt::planner

#endif // CKOPT_UNITTESTS_PLANNER_STATERULES_H
