//===- Sequence.h - a sequence of steps that can be edited ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to lib/Planner. Keeps cost and load of a sequence up to date while
// steps are inserted and removed, in time logarithmic in the number of slots
// for each edit. Steps lie in slots with empty ones between them; when a place
// runs out of empty slots, the steps are spread anew.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_MODEL_SEQUENCE_H
#define CKOPT_LIB_PLANNER_MODEL_SEQUENCE_H

#include "Model/Problem.h"
#include "Model/SequenceTree.h"

namespace ckopt::planner {

/// Returns the bytes that outputs take over from inputs: each pair in turn
/// whose input is at its last use (`isLast`) and of which neither was used
/// before.
template <typename IsLast>
int64_t takenOver(const std::vector<std::pair<ValueId, ValueId>> &pairs,
                  const std::vector<int64_t> &bytes, IsLast isLast) {
  int64_t sum = 0;
  uint64_t taken = 0; // pairs beyond the 64th are ignored
  for (size_t k = 0; k < pairs.size() && k < 64; ++k) {
    auto [i, o] = pairs[k];
    bool open = isLast(i);
    for (size_t j = 0; open && j < k; ++j)
      if (taken >> j & 1)
        open = pairs[j].first != i && pairs[j].second != o;
    if (!open)
      continue;
    taken |= uint64_t(1) << k;
    sum += bytes[o];
  }
  return sum;
}

class Sequence {
public:
  Sequence(const Problem &problem, const std::vector<NodeId> &steps);

  double cost() const { return totalCost; }
  int64_t peak() const { return tree.max() + always; }
  /// Returns the largest load over the slots [first, last]; 0 if there are
  /// none.
  int64_t peakIn(int32_t first, int32_t last) const {
    return first > last ? 0 : tree.maxIn(first, last) + always;
  }
  int32_t numSteps() const { return stepCount; }
  int32_t numSlots() const { return slots; }
  NodeId at(int32_t slot) const { return node[slot]; }
  int32_t peakSlot() const { return tree.argmax(); }
  std::vector<NodeId> steps() const;

  /// Returns the slots of a node's runs, ascending.
  const std::vector<int32_t> &runs(NodeId n) const { return runsOf[n]; }
  /// Returns the slots of the steps that read a value, ascending.
  const std::vector<int32_t> &uses(ValueId v) const { return usesOf[v]; }
  /// Returns the slots at which a value is made, ascending; -1 stands for the
  /// start.
  const std::vector<int32_t> &makes(ValueId v) const { return madeAt[v]; }
  /// Returns the index of the copy that a read in `slot` sees; -1: none.
  int32_t copyAt(ValueId v, int32_t slot) const;
  /// Returns the last slot that needs the copy.
  int32_t lastOf(ValueId v, int32_t copy) const { return lastOfCopy[v][copy]; }

  /// Returns the nearest step before or after a slot; -1: none.
  int32_t previousStep(int32_t slot) const;
  int32_t nextStep(int32_t slot) const;
  /// Returns an empty slot between the step before `slot` and `slot`; -1: none.
  int32_t emptyBefore(int32_t slot) const;

  /// Returns whether a run of the node may be inserted in the (empty) slot: its
  /// operands are resident, the nodes that it must follow ran, and no operand
  /// has been overwritten.
  bool mayInsert(NodeId n, int32_t slot) const;
  /// Returns whether the run in the slot may be removed: every read of its
  /// results has an earlier copy, and another run precedes all nodes that must
  /// follow it.
  bool mayRemove(int32_t slot) const;
  void insert(NodeId n, int32_t slot);
  void remove(int32_t slot);
  /// Moves a run to an empty slot. Each of its reads must find the same copy
  /// there, and each reader must read the same run's.
  void move(int32_t from, int32_t to);
  /// Spreads the steps evenly; all slots change.
  void respread();

private:
  void rebuild(const std::vector<NodeId> &steps);
  int32_t computeLast(ValueId v, int32_t copy) const;
  void setLast(ValueId v, int32_t copy, int32_t last);
  void refresh(ValueId v, int32_t copy) {
    setLast(v, copy, computeLast(v, copy));
  }
  void changeLoad(ValueId v, int32_t made, int32_t oldLast, int32_t newLast);
  void addUse(ValueId v, int32_t slot);
  void dropUse(ValueId v, int32_t slot);
  void addCopy(ValueId v, int32_t slot);
  void dropCopy(ValueId v, int32_t slot);
  /// Returns whether no view shares the bytes of the value.
  bool isPlain(ValueId v) const {
    return problem.base[v] < 0 && problem.views[v].empty();
  }
  int64_t computeCredit(int32_t slot) const;
  void settle();
  void touchCredit(int32_t slot) {
    if (anyPairs && slot >= 0 && slot < slots && node[slot] >= 0 &&
        !problem.pairs[node[slot]].empty())
      dirty.push_back(slot);
  }

  const Problem &problem;
  int32_t slots = 0, stepCount = 0;
  double totalCost = 0;
  int64_t always = 0; ///< persistent bytes, not in the tree
  std::vector<NodeId> node;
  std::vector<uint64_t> filled;
  std::vector<int64_t> credit; ///< by slot: bytes taken over there
  std::vector<std::vector<int32_t>> runsOf, usesOf, madeAt, lastOfCopy;
  std::vector<ValueId> viewsFirst; ///< all values, views before their bases
  std::vector<int32_t> dirty;
  LoadTree tree;
  bool building = false, anyPairs = false;
  std::vector<int64_t> difference; ///< of loads, while building
};

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_MODEL_SEQUENCE_H
