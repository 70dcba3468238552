//===- StateCopies.h - copies of storages side by side ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to lib/Planner. A recomputation under a view that is still needed
// leaves two copies of one storage. A state of the exact search tells which
// values are there, and as a number which older copies these hang on.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_EXACT_STATECOPIES_H
#define CKOPT_LIB_PLANNER_EXACT_STATECOPIES_H

#include "Exact/StateRules.h"

#include <map>

namespace ckopt::planner {

/// One copy of a storage that is there, with all that hangs on it.
template <int Words> struct StorageCopy {
  Bits<Words> items; ///< values that are read from it
  int64_t bytes;
  bool stale; ///< a newer copy of the storage has been made
  int32_t root;
  bool doomed = false; ///< lacks a change: no use after the step
};

/// The copies that one step meets and leaves.
template <int Words> struct StepCopies {
  using List = std::vector<StorageCopy<Words>>;
  List before;   ///< all that are there when it runs
  List required; ///< those that it reads or that nothing can replace
  List optional; ///< others that may stay, by falling size
  List made;     ///< what the step makes
  int64_t requiredBytes = 0;
};

/// The numbers of the sets of older copies, and what follows from them.
template <int Words> class StateCopies {
public:
  using Set = Bits<Words>;
  using Copy = StorageCopy<Words>;

  explicit StateCopies(const StateRules<Words> &rules) : rules(rules) {
    staleId({});
  }

  /// The number of a set of older copies, each given by the values that hang on
  /// it; 0: there are none.
  int32_t staleId(std::vector<Set> list);
  /// The copies where node n runs in a state of items `kept` and older copies
  /// `stale`; `ran` holds the nodes that ran before, `after` is what comes
  /// behind the step. False if n must not run: what it changes lies in two
  /// copies of one storage.
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

#endif // CKOPT_LIB_PLANNER_EXACT_STATECOPIES_H
