//===- LoadRules.h - what a state permits, at any cost ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to lib/Planner. The search for plans within a load (LoadSearch.h)
// walks over pairs of sets: the nodes that ran, as far as they are remembered,
// and the items that are resident. Here is what such a pair permits and rules
// out.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_EXACT_LOADRULES_H
#define CKOPT_LIB_PLANNER_EXACT_LOADRULES_H

#include "Exact/ExactSets.h"
#include "Model/Deadline.h"

#include <unordered_map>

namespace ckopt::planner {

/// What depends on the nodes that ran alone.
template <int Words> struct LoadFuture {
  Bits<Words> useful; ///< items that may still be read
  Bits<Words> lost;   ///< items that nothing can make any more
  Bits<Words> spoilt; ///< items that would lack a change if they were made
  bool dead = false;  ///< some node cannot run any more
};

/// For models that fit into `Words` (1, 2 or 6). Sets named `ran` hold
/// remembered nodes only, sets named `kept` items.
template <int Words> class LoadRules : public NodeSets<Words> {
public:
  using Set = Bits<Words>;
  using Future = LoadFuture<Words>;

  LoadRules(const ExactModel &model, int64_t budget, Deadline &deadline);

  /// Stays valid as long as the rules do.
  const Future &futureOf(const Set &ran);
  /// How many runs the rest takes, at least; negative: there is no way to the
  /// end. `essential` (or null): items that the rest reads and nothing can make
  /// again, of those in `lost`.
  int32_t runsLeft(const Set &ran, const Set &kept, const Set &lost,
                   Set *essential) const;
  bool mayRun(const Set &ran, const Set &kept, const Future &future,
              NodeId n) const;
  /// Runs all that is free and appends it to `path`; false: a dead end.
  bool close(Set &ran, Set &kept, std::vector<NodeId> &path);
  /// The items that carry the bytes of a set.
  Set classes(const Set &items) const;
  int64_t bytesOf(const Set &roots) const;
  /// Bytes of results that take over those of the inputs in `ending`.
  int64_t savedBy(NodeId n, const Set &ending) const;

  const ExactModel &model;
  const int64_t budget; ///< bytes
  const int32_t numNodes;
  using NodeSets<Words>::reads, NodeSets<Words>::makes,
      NodeSets<Words>::blockers, NodeSets<Words>::atEnd;
  Set remembered;           ///< nodes
  Set weightless;           ///< items that are there for good once made
  std::vector<Set> sharing; ///< by item: what shares its bytes

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
  std::vector<Set> spoils;     ///< by node: items not to be made again after it
  Set rooted;                  ///< items with bytes of their own
  bool plain = true;           ///< no item shares another one's bytes
  std::unordered_map<Set, Future, HashBits<Words>> futures;
};

extern template class LoadRules<1>;
extern template class LoadRules<2>;
extern template class LoadRules<6>;

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_EXACT_LOADRULES_H
