//===- GapModel.h - the program over retention gaps -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to lib/Planner: columns and rows of the program that GapMilp.cpp
// solves.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_EXACTORDER_GAPMODEL_H
#define CKOPT_LIB_PLANNER_EXACTORDER_GAPMODEL_H

#include "Bounds/Gaps.h"
#include "Math/Milp.h"

#include <map>
#include <set>
#include <utility>

namespace ckopt::planner {

class GapModel {
public:
  GapModel(const GapProblem &gaps, int64_t budget);

  /// Makes the program anew, with all that was asked for so far.
  void build();
  /// Asks about runs that a solution leaves no moment for, where the load is
  /// highest. True if anything was added: build() again.
  bool refine(const std::vector<char> &x);
  /// Asks for what replays of inputs need, too. False if it is asked already.
  bool deepen() { return !std::exchange(deep, true); }
  const Milp &program() const { return milp; }
  /// By gap, of a solution.
  std::vector<char> dropped(const std::vector<char> &x) const;

private:
  /// The run in a gap reads an input whose own gap `outer` (-1: its time after
  /// the last access) holds that gap.
  struct Conflict {
    size_t gap;
    int64_t outer;
    ValueId input;
    int32_t early, again; ///< columns that settle it
  };
  /// The storage stays beyond its last access, up to a position.
  int32_t stay(ValueId storage, int32_t until);
  int32_t again(ValueId storage, int32_t to);
  /// Part of a dropped gap in which its storage is there after all: `position`
  /// says up to where, or from where on.
  struct Part {
    size_t gap;
    bool suffix;
    int32_t position;
    auto operator<=>(const Part &) const = default;
  };
  int32_t part(Part key);
  int32_t twice(size_t gap);
  void requireTails(int32_t column, NodeId node, int32_t from, int32_t to,
                    int64_t gap);
  void requireShared(int32_t column, NodeId node, int32_t from, int32_t to,
                     int64_t gap);
  /// Adds a row with further columns that help it. (They are made before the
  /// row is: making one may add rows.)
  void addRow(Milp::Row row, std::initializer_list<int32_t> helping) {
    for (int32_t column : helping)
      row.terms.push_back({column, 1});
    milp.rows.push_back(std::move(row));
  }
  void chainParts();
  void chainStays();
  void addLoadRows();

  const GapProblem &gaps;
  const Problem &problem;
  int64_t budget;
  const std::vector<int64_t> need; ///< by position: bytes to be saved
  Milp milp;
  std::vector<int32_t> gapColumn;
  std::map<std::pair<ValueId, int32_t>, int32_t> stays;
  /// (storage, before which position); -1: at all, which is what costs.
  std::map<std::pair<ValueId, int32_t>, int32_t> agains;
  std::map<Part, int32_t> parts;
  std::map<size_t, int32_t> twices;
  std::vector<Conflict> conflicts;
  /// By gap: positions at which to ask whether its run comes before (the
  /// storage is there from then on) or after (what it reads was there until
  /// then).
  std::vector<std::set<int32_t>> splits;
  /// By storage: its gaps, ascending.
  std::vector<std::vector<size_t>> gapsOf;
  struct Again {
    ValueId storage;
    int32_t to, column;
  };
  bool deep = false;       ///< ask for what replays of inputs need, too
  std::vector<Again> open; ///< whose inputs are to be asked for
};

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_EXACTORDER_GAPMODEL_H
