//===- Answer.h - the planner's statements on plans -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every statement on plans holds for some set of plans: all, or those in
// program order, those that obey a policy, ... An answer holds statements and
// that set together, so that both can be printed together. Both are typed until
// a file or a message is written.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_PLANNER_ANSWER_H
#define CKOPT_PLANNER_ANSWER_H

#include "ckopt/Planner/Certificate.h"

#include <string_view>

namespace ckopt::planner {

enum class Status : uint8_t {
  Optimal,      ///< the plan's cost equals the proven lower bound
  OrderOptimal, ///< it equals the bound for plans in program order
  Feasible,     ///< a plan within the budget
  Infeasible,   ///< proven that no plan fits
  Unknown,      ///< no plan found, but not proven impossible
  Error,        ///< invalid graph or options, or a defect
};
/// Returns "optimal", "order_optimal", ..., the names in files, and back.
const char *statusName(Status status);
std::optional<Status> parseStatus(std::string_view name);
inline bool isPlan(Status status) { return status <= Status::Feasible; }

/// How the bound that decides the status was proven.
enum class Proof : uint8_t {
  Derived, ///< by a bound that can be computed again independently
  Search,  ///< by an exhaustive search
};

/// Restrictions on the plans that a statement covers.
enum class Restriction : uint8_t {
  FixedOrder,   ///< first runs follow the program order
  OrderOnly,    ///< nothing is recomputed (under a policy: nothing else)
  Policy,       ///< rules on what to keep and recompute are obeyed
  CalleePlans,  ///< functions that are called keep the plans that they have
  CountedBytes, ///< bytes that cannot be counted are left out
};

/// The set of plans that statements cover: those that obey all restrictions.
class Scope {
public:
  static constexpr int numRestrictions = int(Restriction::CountedBytes) + 1;

  Scope() = default;
  Scope(std::initializer_list<Restriction> all) {
    for (Restriction each : all)
      add(each);
  }
  void add(Restriction r) { bits |= bit(r); }
  bool has(Restriction r) const { return bits & bit(r); }
  bool empty() const { return bits == 0; }
  bool operator==(const Scope &other) const { return bits == other.bits; }

  /// The names that files have ("fixed_order", "order_only", "policy",
  /// "callee_plans", "counted_bytes"), in this order; add() takes one, and
  /// returns false if it is none.
  std::vector<std::string> names() const;
  bool add(std::string_view name);
  /// Returns the words that follow "no plan": " in program order", " that
  /// recomputes nothing", ...; "" where none are needed.
  std::string words() const;
  /// Returns the scope of bounds on cost and of "optimal": they hold for all
  /// orders and any recomputation, however restricted the search was.
  Scope ofCost() const;

private:
  static uint8_t bit(Restriction r) { return uint8_t(1 << int(r)); }
  uint8_t bits = 0;
};

/// Returns what is to be said beside bounds on cost, and beside the lack of
/// proofs: that the planner was built without the means to find better ones; ""
/// where it was not.
const char *boundsNote();

/// Statements on the plans of one graph for one budget.
struct Answer {
  Status status = Status::Unknown;
  Proof proof = Proof::Derived;
  /// The plans that status and provenMinimum cover; bounds on cost cover
  /// scope.ofCost().
  Scope scope;
  /// Proven lower bound on the cost of any plan within the budget.
  double lowerBound = 0;
  /// Proven lower bound over plans whose first runs follow the program order.
  double orderLowerBound = 0;
  /// Proofs of lowerBound and orderLowerBound, except for a bound that an
  /// exhaustive search proved; checkCertificate() derives the same figures.
  std::vector<Certificate> certificates;
  /// The smallest budget known to be feasible, and a proven lower bound on it
  /// (bytes). Set for infeasible budgets and by minimize(); otherwise the first
  /// may be 0 (not searched).
  int64_t minimumBudget = 0;
  int64_t provenMinimum = 0;
};

} // namespace ckopt::planner

#endif // CKOPT_PLANNER_ANSWER_H
