//===- Policy.h - users' rules on recomputation -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A policy says which values to keep and which ops to recompute, by rules on
// names and kinds, by checkpointed regions, or by JAX's policies.
// docs/checkpointing.md is the manual. Every plan obeys the policy, and the
// budget as well. A function that a policy would make larger stays as it is.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_REMAT_POLICY_H
#define CKOPT_REMAT_POLICY_H

#include "ckopt/Analysis/PlanningProblem.h"
#include "ckopt/Planner/Policy.h"
#include "ckopt/Remat/RematOptions.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <optional>

namespace ckopt {

/// The effect of a policy on one function.
struct PolicyOutcome {
  struct Rule {
    std::string text; ///< "save 'conv.*'"
    int64_t nodes = 0;
    int64_t bytes = 0; ///< of the nodes' results
  };
  std::vector<Rule> rules;
  /// Names of the regions ("net.h.0", "block 3"), in program order.
  std::vector<std::string> regions;
  /// By node: the rule that keeps its results, and the rule that recomputes
  /// them, as text for people; empty if there is none.
  std::vector<std::string> whyKept, whyAgain;
  /// Nodes that the policy recomputes, and those that it cannot.
  int64_t recomputed = 0, unable = 0;
  /// Whether there was a policy.
  bool given = false;
  /// The plan for the same budget without the policy, if it was looked for.
  bool compared = false, autoFits = false;
  double autoCost = 0;
  int64_t autoArena = 0;
  /// Without a budget: the cost of a plan without the policy in the bytes that
  /// the policy's plan takes; 0 if none was searched or found.
  double sameBytesCost = 0;
};

/// Translates the policy to the planner's form for one function. Returns
/// nothing if the function has no backward pass or the policy does not concern
/// it, and failure (with errors emitted) if rules disagree or no blocks were
/// found.
mlir::FailureOr<std::optional<planner::Policy>>
resolvePolicy(mlir::FunctionOpInterface function,
              const PlanningProblem &problem, const RematPolicy &policy,
              PolicyOutcome &outcome);

/// Emits an error for each rule that matches nothing in any of the functions,
/// with similar names.
mlir::LogicalResult
checkPolicyMatches(llvm::ArrayRef<mlir::FunctionOpInterface> functions,
                   const RematPolicy &policy);

/// Writes the effect as members of the current JSON object; `arena` is 0
/// without a plan.
void writePolicyFigures(llvm::json::OStream &json, const PolicyOutcome &outcome,
                        double cost, int64_t arena);

} // namespace ckopt

#endif // CKOPT_REMAT_POLICY_H
