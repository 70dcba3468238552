//===- Passes.td - losses for outputs ----------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LOSSES_PASSES
#define CKOPT_LOSSES_PASSES

include "mlir/Pass/PassBase.td"

def AttachLossPass : Pass<"attach-loss", "::mlir::ModuleOp"> {
  let summary = "Makes a loss of a function's outputs, with arguments for targets";
  let description = [{
    Makes the loss result 0 (`ckopt.name = "loss"`, `ckopt.role = "loss"`), a scalar; the other
    results follow it. `loss` is a sum of terms `KIND:OUTPUT*WEIGHT`: `output` is a scalar of the
    function's own, all other kinds take targets and append an argument with role `target`. Output
    and weight may be left out: docs/losses.md has the rules and the formulas.

    Labels (cross_entropy, nll, multi_margin) are i64 in the shape of the output without its classes, which lie
    along dimension 1, in rank 3 the last, or `class-axis`; their argument says `ckopt.classes` and
    `ckopt.ignore_index`. Other targets are like the output. `ckopt.target_of` names it.
  }];
  let options = [
    Option<"function", "function", "std::string", "\"forward\"", "The function">,
    Option<"loss", "loss", "std::string", "\"cross_entropy\"", "The terms">,
    Option<"target", "target", "std::string", "\"target\"", "Name of the new argument; of several, its beginning">,
    Option<"reduction", "reduction", "std::string", "\"mean\"", "mean or sum (kl: also batchmean)">,
    Option<"classAxis", "class-axis", "int64_t", "INT64_MIN", "Dimension of the classes, negative: from the end (default: by the rule above)">,
    Option<"ignoreIndex", "ignore-index", "int64_t", "-100", "Labels that do not count">,
    Option<"labelSmoothing", "label-smoothing", "::ckopt::Real", "0.0", "cross_entropy: share of the uniform distribution">,
    ListOption<"classWeights", "class-weights", "::ckopt::Real", "One a class">,
    ListOption<"posWeight", "pos-weight", "::ckopt::Real", "bce_logits: weight of positive targets, one or one a column">,
    Option<"beta", "beta", "::ckopt::Real", "1.0", "smooth_l1: where it becomes linear">,
    Option<"delta", "delta", "::ckopt::Real", "1.0", "huber: where it becomes linear">,
    Option<"margin", "margin", "::ckopt::Real", "1.0", "hinge, hinge_embedding, multi_margin">,
    Option<"softTargets", "soft-targets", "bool", "false", "cross_entropy: targets are probabilities">,
    Option<"ranks", "ranks", "int64_t", "1", "Processes that each take a share of a batch: counts and means are those of all, the result is a share">,
  ];
  let dependentDialects = ["::ckopt::CkoptDialect"];
}

#endif // CKOPT_LOSSES_PASSES
