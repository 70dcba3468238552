//===- Policy.h - what users ask to keep or compute again -------*- C++ -*-===//
//
// Rules on names and kinds, checkpointed regions, policies as JAX names them.
// docs/checkpointing.md is the manual. A policy holds first; the budget must
// hold beside it.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_REMAT_POLICY_H
#define CKOPT_REMAT_POLICY_H

#include "ckopt/Analysis/PlanningProblem.h"
#include "ckopt/Planner/Policy.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <optional>

namespace ckopt {

/// What to keep and what to compute again, as written by the user. A rule is a
/// regular expression that a whole name has to match: the name of a node, or
/// with a prefix `op:` the kind of an op, `scope:` the name of a module,
/// `class:` its class.
struct RematPolicy {
  std::vector<std::string> save, recompute, automatic;
  /// Each module that one of them matches (name or class) is a region.
  std::vector<std::string> checkpoint;
  /// "per-block", "sequential:4", or empty.
  std::string regions;
  /// What regions may keep: "nothing_saveable", "everything_saveable",
  /// "dots_saveable", "dots_with_no_batch_dims_saveable",
  /// "save_only_these_names=RULE", "save_anything_except_these_names=RULE";
  /// empty: nothing.
  std::string saveable;

  bool empty() const;
};

/// Reads the value of `--remat`: "auto", "per-block", "sequential:K", a JAX
/// policy, or regions and policy joined by "+". Usage errors say what is known.
llvm::Error parseRematMode(llvm::StringRef text, RematPolicy &policy);
/// The text that parses to the policy's regions and what they may keep.
std::string printRematMode(const RematPolicy &policy);
/// Checks the form of every rule.
llvm::Error checkPolicyForm(const RematPolicy &policy);

/// What became of a policy in one function.
struct PolicyOutcome {
  struct Rule {
    std::string text; ///< "save 'conv.*'"
    int64_t nodes = 0;
    int64_t bytes = 0; ///< of the nodes' results
  };
  std::vector<Rule> rules;
  /// Regions, as they are called ("net.h.0", "block 3"), in program order.
  std::vector<std::string> regions;
  /// By node: what asks to keep its results, to compute them again; for people.
  /// Empty: nothing does.
  std::vector<std::string> whyKept, whyAgain;
  /// Nodes that the policy computes again, and those that it cannot.
  int64_t recomputed = 0, unable = 0;
  /// A policy held.
  bool given = false;
  /// The plan for the same budget without the policy, if it was looked for.
  bool compared = false, autoFits = false;
  double autoCost = 0;
  int64_t autoArena = 0;
  /// Where no budget was given: what a plan without the policy costs in as many
  /// bytes as the policy's plan takes; 0: not looked for, or none was found.
  double sameBytesCost = 0;
};

/// The planner's form of the policy for one function. Nothing: the function has
/// no backward pass or the policy asks nothing of it. Failure: rules disagree
/// or no blocks were found (errors were emitted).
mlir::FailureOr<std::optional<planner::Policy>>
resolvePolicy(mlir::FunctionOpInterface function,
              const PlanningProblem &problem, const RematPolicy &policy,
              PolicyOutcome &outcome);

/// Emits an error for each rule that matches nothing in any of the functions,
/// with what comes near.
mlir::LogicalResult
checkPolicyMatches(llvm::ArrayRef<mlir::FunctionOpInterface> functions,
                   const RematPolicy &policy);

/// Members of the current JSON object; `arena` 0: there is no plan.
void writePolicyFigures(llvm::json::OStream &json, const PolicyOutcome &outcome,
                        double cost, int64_t arena);

} // namespace ckopt

#endif // CKOPT_REMAT_POLICY_H
