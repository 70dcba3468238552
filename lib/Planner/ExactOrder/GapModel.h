//===- GapModel.h - the program over retention gaps -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to lib/Planner: columns and rows of the integer program that
// GapMilp.cpp solves.
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

  /// Builds the program again, with all rows and columns requested so far.
  void build();
  /// Finds runs for which a solution leaves no possible position, at the
  /// highest load, and requests rows for them. Returns whether anything was
  /// added: then call build() again.
  bool refine(const std::vector<char> &x);
  /// Also requests the inputs of replayed inputs. Returns false if they are
  /// included already.
  bool deepen() { return !std::exchange(deep, true); }
  const Milp &program() const { return milp; }
  /// Returns, by gap, whether a solution drops it.
  std::vector<char> dropped(const std::vector<char> &x) const;

private:
  /// A conflict: the run in a gap reads an input whose own gap `outer` (-1: the
  /// time after its last access) contains that gap.
  struct Conflict {
    size_t gap;
    int64_t outer;
    ValueId input;
    int32_t early, again; ///< columns that resolve it
  };
  /// Returns the column that keeps the storage beyond its last access, up to a
  /// position.
  int32_t stay(ValueId storage, int32_t until);
  int32_t again(ValueId storage, int32_t to);
  /// A part of a dropped gap in which its storage is resident after all: up to
  /// `position`, or from it on.
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
  /// Adds a row with further columns that help to satisfy it. (They are made
  /// before the row, since making one may add rows.)
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
  /// Columns by (storage, before which position). Position -1 stands for the
  /// column that carries the cost of making the storage again at all.
  std::map<std::pair<ValueId, int32_t>, int32_t> agains;
  std::map<Part, int32_t> parts;
  std::map<size_t, int32_t> twices;
  std::vector<Conflict> conflicts;
  /// By gap: positions at which the program must decide whether its run comes
  /// before (the storage is resident from then on) or after (its inputs were
  /// resident until then).
  std::vector<std::set<int32_t>> splits;
  /// By storage: its gaps, ascending.
  std::vector<std::vector<size_t>> gapsOf;
  struct Again {
    ValueId storage;
    int32_t to, column;
  };
  bool deep = false;       ///< includes the inputs of replayed inputs
  std::vector<Again> open; ///< columns whose inputs are yet to be added
};

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_EXACTORDER_GAPMODEL_H
