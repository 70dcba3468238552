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

def RankLabelsPass : Pass<"rank-labels", "::mlir::ModuleOp"> {
  let summary = "Returns the loss and the rank of each label in place of large scores";
  let description = [{
    Scores of `least-bytes` or more that a `cross_entropy` reads stop being a result of the
    function: it returns the cross entropy of the label at each place, and how many classes have a
    larger score or, with the same one, a lower number. Labels are an argument as `attach-loss`
    makes it. An evaluation needs no more for loss, accuracy, top-k and perplexity.

    ```mlir
    func.func @eval(%x: ...) -> (tensor<64x8000xf32> {ckopt.name = "logits"})
    // becomes
    func.func @eval(%x: ..., %labels: tensor<64xi64> {ckopt.name = "target", ...})
        -> (tensor<64xf32> {ckopt.name = "ckopt.label_losses"}, tensor<64xf32> {ckopt.name = "ckopt.label_ranks"})
    ```
  }];
  let options = [
    Option<"function", "function", "std::string", "\"eval\"", "The function">,
    Option<"loss", "loss", "std::string", "\"cross_entropy\"", "The term">,
    Option<"target", "target", "std::string", "\"target\"", "Name of the new argument">,
    Option<"classAxis", "class-axis", "int64_t", "INT64_MIN", "Dimension of the classes">,
    Option<"ignoreIndex", "ignore-index", "int64_t", "-100", "Labels that do not count">,
    Option<"leastBytes", "least-bytes", "int64_t", "0", "Smaller scores stay results">,
  ];
  let dependentDialects = ["::ckopt::CkoptDialect"];
}

#endif // CKOPT_LOSSES_PASSES
