//===- RematOptions.h - options of recomputation ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_REMAT_REMATOPTIONS_H
#define CKOPT_REMAT_REMATOPTIONS_H

#include "ckopt/Analysis/CostOptions.h"
#include "ckopt/Planner/Solve.h"
#include "ckopt/Remat/StoredPlan.h"
#include "ckopt/Support/ByteSize.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ckopt {

/// The values to keep and the ops to recompute, as the user wrote them. A rule
/// is a regular expression that a whole name has to match: the name of a node,
/// or with a prefix `op:` the kind of an op, `scope:` the name of a module,
/// `class:` its class.
struct RematPolicy {
  std::vector<std::string> save, recompute, automatic;
  /// Rules on names or classes of modules; each module that matches one is a
  /// region.
  std::vector<std::string> checkpoint;
  /// "per-block", "sequential:4", or empty.
  std::string regions;
  /// The values that regions may keep: "nothing_saveable",
  /// "everything_saveable", "dots_saveable",
  /// "dots_with_no_batch_dims_saveable", "save_only_these_names=RULE",
  /// "save_anything_except_these_names=RULE"; empty: nothing.
  std::string saveable;

  bool empty() const;
};

/// Reads the value of `--remat`: "auto", "per-block", "sequential:K", a JAX
/// policy, or regions and policy joined by "+". Usage errors list the known
/// values.
llvm::Error parseRematMode(llvm::StringRef text, RematPolicy &policy);
/// Returns the text that parses to the policy's regions and the values that
/// they may keep.
std::string printRematMode(const RematPolicy &policy);
/// Checks the form of every rule.
llvm::Error checkPolicyForm(const RematPolicy &policy);

/// How a plan under a policy is compared with one without it.
enum class Comparison {
  Quick, ///< with at most a quarter of the policy's own work
  On,    ///< with a search as long as the policy's own
  Off,
};
/// Parses "quick", "on" or "off".
llvm::Expected<Comparison> parseComparison(llvm::StringRef text,
                                           const MessageText &name);

/// Budget, search, costs and policy of a plan.
struct RematSettings {
  MemoryBudget budget;
  /// Options of the search, without budget, hint and packing, which planRemat()
  /// sets. Limits hold for one search.
  planner::Options search;
  CostOptions costs;
  /// Plan for a budget although not all bytes can be counted.
  bool allowUncounted = false;
  /// Bodies of functions that are called may be read; see PlanningContext.
  bool mayReadCallees = true;
  /// Collectives cost the time that no kernel hides after the pass `overlap`;
  /// else they block their rank.
  bool overlap = false;
  /// Bytes of the arena for other functions' arguments.
  int64_t reservedBytes = 0;
  /// The user's policy, which attributes of ops add to.
  RematPolicy policy;
  /// Plan without `policy` and without the policy of attributes.
  bool ignorePolicy = false;
  /// How thoroughly to measure the cost of the policy.
  Comparison compare = Comparison::Quick;
  /// A plan for the function that it names, from which the search starts; the
  /// result is never worse.
  std::optional<StoredPlan> hint;
  /// A plan for the function that it names, to be used instead of searching.
  std::optional<StoredPlan> plan;
  /// Emit a remark for each value that is kept or computed again.
  bool remarks = false;
  /// Names of functions that bound no budget: where no plan of one fits, it is
  /// erased.
  std::vector<std::string> optional;
};

} // namespace ckopt

#endif // CKOPT_REMAT_REMATOPTIONS_H
