//===- StateCopies.h - copies of storages side by side ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// If a storage is recomputed while a view of its old
// copy is still needed, there are two copies. A state of the exact search holds
// the resident values, and a number that tells which of them show older copies.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_UNITTESTS_PLANNER_STATECOPIES_H
#define CKOPT_UNITTESTS_PLANNER_STATECOPIES_H

#include "StateRules.h"

#include <map>

namespace ckopt::planner {

/// One resident copy of a storage, with all values that show it.
template <int Words> struct StorageCopy {
  Bits<Words> items; ///< values that are read from it
  int64_t bytes;
  bool stale; ///< a newer copy of the storage has been made
  int32_t root;
  /// It lacks a later change, so nothing may read it after the step.
  bool doomed = false;
};

/// The copies before and after one step.
template <int Words> struct StepCopies {
  using List = std::vector<StorageCopy<Words>>;
  List before;   ///< all that are resident before it
  List required; ///< those that it reads or that cannot be made again
  List optional; ///< others that may stay, by falling size
  List made;     ///< those that the step makes
  int64_t requiredBytes = 0;
};

/// Numbers the sets of older copies, and derives the copies of a state.
template <int Words> class StateCopies {
public:
  using Set = Bits<Words>;
  using Copy = StorageCopy<Words>;

  explicit StateCopies(const StateRules<Words> &rules) : rules(rules) {
    staleId({});
  }

  /// Returns the number of a set of older copies, each given by the values that
  /// show it; 0 for none.
  int32_t staleId(std::vector<Set> list);
  /// Computes the copies at node n in a state with items `kept` and older
  /// copies `stale`; `ran` holds the nodes that ran before, `after` is the
  /// state after the step. Returns false if n must not run, because it would
  /// change a storage of which two copies are needed.
  bool ofStep(NodeId n, const Set &ran, const Set &kept, int32_t stale,
              const StateFuture<Words> &after, StepCopies<Words> &step) const;

private:
  std::vector<Copy> ofState(const Set &kept, int32_t stale) const;
  bool markDoomed(std::vector<Copy> &copies, NodeId n) const;
  void addMade(NodeId n, const Set &ran, StepCopies<Words> &step) const;

  const StateRules<Words> &rules;
  std::map<std::vector<Set>, int32_t> staleIds;
  std::vector<std::vector<Set>> staleLists;
};

extern template class StateCopies<1>;
extern template class StateCopies<2>;
extern template class StateCopies<6>;

} // namespace ckopt::planner

#endif // CKOPT_UNITTESTS_PLANNER_STATECOPIES_H
