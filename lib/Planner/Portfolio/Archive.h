//===- Archive.h - every plan that was found --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to lib/Planner. Sequences that were simulated (Pareto: cost against
// load) and plans that were realized, that is packed where arenas count. What
// was found once is never lost: answers come from here, so they are monotone in
// the budget.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_PORTFOLIO_ARCHIVE_H
#define CKOPT_LIB_PLANNER_PORTFOLIO_ARCHIVE_H

#include "Model/Candidate.h"
#include "Model/Deadline.h"
#include "Model/Problem.h"
#include "ckopt/Planner/Plan.h"

#include <compare>
#include <map>

namespace ckopt::planner {

/// A plan with the size that counts against the budget.
struct Entry {
  Plan plan;
  int64_t size = 0;
  int64_t load = 0; ///< aligned: no packing is smaller
  double packEffort = 0;
  std::string strategy;
};

/// What answers may differ in.
struct Mode {
  bool fixedOrder = false, pack = false, holdsAll = false;
  auto operator<=>(const Mode &) const = default;
};

/// What is known about the loads to plan for, so that packing has the room that
/// it needs within one budget; bytes, 0: nothing yet.
struct Roomy {
  /// The next load to plan for.
  int64_t next(int64_t budget) const;
  /// What packing made of the cheapest plan for `load`, which has the load
  /// `peak`: `missing` bytes too many; `most`: to take off the load for that.
  void take(int64_t load, int64_t peak, int64_t missing, int64_t most);
  bool settled(int64_t budget) const;

  int64_t fits = 0;    ///< the cheapest plan for this load fits once packed
  int64_t tooMuch = 0; ///< that of this load does not
  int64_t step = 1;    ///< bytes to take off where none fits yet
  int tries = 0;
};

class Archive {
public:
  /// `programOrderOnly`: no other orders are looked for.
  Archive(const Problem &problem, Mode mode, bool programOrderOnly = false);
  /// Has what `other` has, by the costs of `problem`, the same graph but for
  /// them.
  Archive(const Problem &problem, const Archive &other);

  /// Keeps a sequence if none known is as cheap and as small; true if its load
  /// is within the budget.
  bool report(std::vector<NodeId> steps, int64_t budget,
              const std::string &strategy);
  /// Makes a plan of a candidate and returns its size. `packEffort` as in
  /// packPlan(); a plan that is there already is packed anew only with more.
  int64_t realize(const Candidate &candidate, double packEffort);
  /// Takes a plan over as it is, offsets included; it must be valid.
  void add(const Plan &plan, const std::string &strategy);
  /// Takes over all that the other one has; its costs may differ.
  void merge(const Archive &other);

  /// The cheapest plan within the budget (0: any); null if there is none.
  const Entry *bestWithin(int64_t budget) const;
  const std::vector<Entry> &all() const { return entries; }
  /// The plan of the least size, never null.
  const Entry *smallest() const;
  /// The candidate of the least load, and those of a load below `below` by
  /// rising load.
  const Candidate &leastLoad() const;
  std::vector<Candidate> byLoad(int64_t below) const;
  /// Candidates of a load within the budget by rising cost.
  std::vector<Candidate> byCost(int64_t budget) const;

  const Problem &problem;
  const Mode mode;
  std::vector<std::vector<NodeId>> orders;
  std::vector<Candidate> candidates;
  /// Loads that the constructive strategies were asked for with full effort:
  /// they would only say the same again.
  std::vector<int64_t> constructed;
  /// By budget.
  std::map<int64_t, Roomy> rooms;

private:
  void measure(Entry &entry, double packEffort) const;
  int64_t sizeOf(const Plan &plan, int64_t load) const;
  std::vector<Entry> entries;
};

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_PORTFOLIO_ARCHIVE_H
