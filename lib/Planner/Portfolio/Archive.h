//===- Archive.h - every plan that was found --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to lib/Planner. Stores sequences that were simulated (Pareto: cost
// against load) and plans that were realized, which means packed if the arena
// counts. Nothing found is ever lost: answers come from here, so they are
// monotone in the budget.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_PORTFOLIO_ARCHIVE_H
#define CKOPT_LIB_PLANNER_PORTFOLIO_ARCHIVE_H

#include "Model/Candidate.h"
#include "Model/Deadline.h"
#include "Model/Problem.h"
#include "Model/Tuning.h"
#include "ckopt/Planner/Plan.h"

#include <compare>
#include <map>

namespace ckopt::planner {

/// A plan with the size that counts against the budget.
struct Entry {
  Plan plan;
  int64_t size = 0;
  int64_t load = 0; ///< aligned; no packing is smaller
  double packEffort = 0;
  std::string strategy;
};

/// Options under which answers differ.
struct Mode {
  bool fixedOrder = false, pack = false, holdsAll = false;
  auto operator<=>(const Mode &) const = default;
};

/// Facts about the loads to plan for within one budget, so that the packed plan
/// fits; bytes, 0: not known yet.
struct LoadBracket {
  /// Returns the next load to plan for; `width` as for settled().
  int64_t next(int64_t budget, int64_t width) const;
  /// Records the packing of the cheapest plan for `load`, which has the load
  /// `peak`: it exceeded the budget by `missing` bytes. At most `most` is
  /// subtracted from the load for that.
  void take(int64_t load, int64_t peak, int64_t missing, int64_t most);
  /// Returns whether the bracket is narrower than twice `width` bytes.
  bool settled(int64_t width) const;

  int64_t fits = 0;    ///< the cheapest plan for this load fits once packed
  int64_t tooMuch = 0; ///< that for this load does not fit
  int64_t step = 1;    ///< bytes to subtract while none fits
  int tries = 0;
};

class Archive {
public:
  /// With `programOrderOnly`, no other orders are considered.
  Archive(const Problem &problem, Mode mode, const Tuning &tuning,
          bool programOrderOnly = false);
  /// Copies what `other` holds, with the costs of `problem`, whose graph
  /// differs only in them.
  Archive(const Problem &problem, const Archive &other);

  /// Stores a sequence unless a known one is as cheap and as small; returns
  /// whether its load is within the budget.
  bool report(std::vector<NodeId> steps, int64_t budget,
              const std::string &strategy);
  /// Makes a plan of a candidate and returns its size. `packEffort` is as in
  /// packPlan(); an existing plan is packed again only with more.
  int64_t realize(const Candidate &candidate, double packEffort);
  /// Realizes the most promising orders without recomputation whose load is
  /// within the budget, but for those that cannot be smaller than one before.
  void packOrders(int64_t budget, double packEffort);
  /// Adds a plan unchanged, offsets included; it must be valid.
  void add(const Plan &plan, const std::string &strategy);
  /// Adds all that the other one holds; its costs may differ.
  void merge(const Archive &other);

  /// Returns the cheapest plan within the budget (0: any); null if there is
  /// none.
  const Entry *bestWithin(int64_t budget) const;
  const std::vector<Entry> &all() const { return entries; }
  /// Returns the plan of the least size, never null.
  const Entry *smallest() const;
  /// Return the candidate of the least load, and those with a load below
  /// `below` by rising load.
  const Candidate &leastLoad() const;
  std::vector<Candidate> byLoad(int64_t below) const;
  /// Returns candidates with a load within the budget by rising cost.
  std::vector<Candidate> byCost(int64_t budget) const;

  const Problem &problem;
  const Mode mode;
  const Tuning &tuning;
  std::vector<std::vector<NodeId>> orders;
  std::vector<Candidate> candidates;
  /// Loads that the constructive strategies have already been run for with full
  /// effort.
  std::vector<int64_t> constructed;
  /// By budget.
  std::map<int64_t, LoadBracket> brackets;

private:
  void measure(Entry &entry, double packEffort) const;
  int64_t sizeOf(const Plan &plan, int64_t load) const;
  std::vector<Entry> entries;
};

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_PORTFOLIO_ARCHIVE_H
