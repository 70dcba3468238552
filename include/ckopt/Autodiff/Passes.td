//===- Passes.td - reverse mode, losses, optimizers --------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_AUTODIFF_PASSES
#define CKOPT_AUTODIFF_PASSES

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

def AutodiffPass : Pass<"autodiff", "::mlir::ModuleOp"> {
  let summary = "Reverse-mode differentiation: forward function to forward and backward";
  let description = [{
    Differentiates the loss (the result with role or name `loss`, else result 0; a
    floating-point scalar) with respect to the arguments named in `wrt`, by
    default those with role `parameter` or a `ckopt.grad` attribute. The function is
    renamed to `result`; its results are the loss, one gradient for each argument
    that the loss depends on (`ckopt.name = "grad/<name>"`, `ckopt.gradient = <argument
    index>`), and the forward's own `ckopt.updates` results. Other results go.

    Only ops on a path from such an argument to the loss get gradients. Several
    uses of a value add up in reverse program order. Rules come from
    DifferentiableOpInterface; ops without one are reported all at once.

    With `loss-scale` the backward pass starts from that power of two rather than 1, and its
    results are multiplied by the reciprocal: gradients that are stored in f16 on the way do not
    become zero. With `loss-scale-state` it is an argument, `optimizer/loss_scale`, that starts
    there; the pass `optimizer` changes it.

    ```mlir
    func.func @forward(%x: ..., %w: ... {ckopt.name = "w", ckopt.role = "parameter"})
        -> (tensor<f32> {ckopt.name = "loss"})
    // becomes
    func.func @step(%x: ..., %w: ...)
        -> (tensor<f32> {ckopt.name = "loss"},
            tensor<4x8xf32> {ckopt.name = "grad/w", ckopt.gradient = 1 : i64})
    ```
  }];
  let options = [
    Option<"function", "function", "std::string", "\"forward\"", "The function to differentiate">,
    Option<"result", "result", "std::string", "\"step\"", "Its name afterwards">,
    ListOption<"wrt", "wrt", "std::string", "Names of the arguments to differentiate by (default: all parameters)">,
    Option<"lossScale", "loss-scale", "::ckopt::Real", "1.0", "Factor of the loss in the backward pass, a power of two">,
    Option<"lossScaleState", "loss-scale-state", "bool", "false", "The factor is a state">,
  ];
  let dependentDialects = ["::ckopt::CkoptDialect"];
}

def DistributePass : Pass<"distribute", "::mlir::ModuleOp"> {
  let summary = "Data parallel and fully sharded: a step's share of one rank";
  let description = [{
    The function is one rank's share of a step: its loss and gradients are those of the rank's
    samples, divided by the counts of the whole batch (`attach-loss` with `ranks`), so that the
    batch's are their sums. Gradients become sums over `ranks` (`all_reduce`) in buckets: in the
    order in which the backward pass makes them, by element type, closed once they have
    `bucket-bytes`. The loss is summed, too. Batch norms keep the statistics of their rank's
    samples; what running statistics learn is the ranks' mean, so that all ranks keep the same. With
    `sync-norms` means and mean squares, and the two sums that the input's gradient needs, are those
    of all ranks. Other states must be made of sums and means over samples, or of no sample.

    With `shards` more than 1, groups of that many ranks share parameters, frozen weights, gradients
    and optimizer states: each rank keeps a part of each (`ckopt.whole`, `ckopt.shards` on
    arguments, in all functions of the module), tensors are gathered where they are used
    (`all_gather`), and of a gradient's sum each rank gets its part (`reduce_scatter`; with several
    groups, summed over these afterwards). Small tensors stay whole.

    Random numbers of samples are those that one process draws for them. Where samples lie along
    dimension 0 and a rank's numbers are a multiple of four, ops read a step that holds the rank's
    number (`ckopt.rank`); elsewhere they draw for the whole batch, of which the rank gathers its
    part. Random inputs belong to the samples that they meet.

    ```mlir
    return %loss, %dw : tensor<f32>, tensor<4x8xf32>
    // becomes, with ranks=2
    %0 = ckopt.all_reduce %dw {ranks = 2 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %1 = ckopt.all_reduce %loss {ranks = 2 : i64} : (tensor<f32>) -> tensor<f32>
    return %1, %0 : tensor<f32>, tensor<4x8xf32>
    ```
  }];
  let options = [
    Option<"function", "function", "std::string", "\"step\"", "The differentiated function">,
    Option<"ranks", "ranks", "int64_t", "2", "Processes">,
    Option<"shards", "shards", "int64_t", "1", "Ranks that share parameters">,
    Option<"bucketBytes", "bucket-bytes", "int64_t", "26214400", "Bytes of gradients from which a bucket is closed">,
    Option<"syncNorms", "sync-norms", "bool", "false", "Batch norms use the statistics of all ranks' samples">,
  ];
  let dependentDialects = ["::ckopt::CkoptDialect"];
}

def SettleBatchNumbersPass : Pass<"settle-batch-numbers", "::mlir::ModuleOp"> {
  let summary = "Gives numbers that depend on the batch's size their value";
  let description = [{
    A `ckopt.pin` with `ckopt.whole_batch` is a number that a rank's part of a batch has and the
    whole batch has otherwise. It becomes the whole batch's in training, where ranks work together,
    and the part's in the evaluation function, which is a rank's own.
  }];
  let options = [
    Option<"evaluation", "evaluation", "std::string", "\"eval\"", "The function of one rank">,
  ];
  let dependentDialects = ["::ckopt::CkoptDialect"];
}

def ShareLossPass : Pass<"share-loss", "::mlir::ModuleOp"> {
  let summary = "Makes the loss that a model computes a rank's share of the batch's";
  let description = [{
    For models with a loss of their own and several ranks, before `autodiff`: the loss becomes a
    number whose sum over ranks is the loss of the whole batch. Sums and means over samples are
    followed to the loss; a count of labels that divides becomes its sum over ranks. A loss that
    mixes samples otherwise (pairs of samples, sorting) is an error.
  }];
  let options = [
    Option<"function", "function", "std::string", "\"forward\"", "The function with the loss">,
    Option<"ranks", "ranks", "int64_t", "2", "Processes">,
  ];
  let dependentDialects = ["::ckopt::CkoptDialect"];
}

def OptimizerPass : Pass<"optimizer", "::mlir::ModuleOp"> {
  let summary = "Replaces the gradients of a step by parameter updates";
  let description = [{
    Each gradient result becomes the new value of its parameter (`ckopt.updates`).
    Appends arguments: the optimizer's state (role `optimizer_state`, named
    `<parameter>/velocity` or `/m` and `/v` and so on, zero at first), `learning_rate` and
    `step` (shared with dropout's where there is one). Formulas and defaults are
    PyTorch's (lion: those of its paper). `clip-norm` scales all gradients as
    torch.nn.utils.clip_grad_norm_; the norm is summed in argument order.

    A parameter with an attribute `ckopt.optimizer`, a dictionary of numbers, has
    hyperparameters of its own (`weight_decay`, ...), and `lr_scale`, a factor of
    the learning rate.

    `accumulate=K`: a second function, `accumulate`, adds its gradients divided by
    K to the states `<parameter>/grad_sum`; call it K - 1 times, then the step, which adds its own,
    updates and clears the sums. Both functions have the same arguments.

    `ema=D`: states `<parameter>/ema` hold D * old + (1 - D) * new parameter; the
    first step's parameters in step 1 (torch.optim.swa_utils.AveragedModel).

    Where the loss's scale is a state (see `autodiff`), a step whose gradients are not all finite
    changes no parameter and no state but the scale, which it halves; `loss-scale-growth` steps in a
    row with finite ones double it (torch.amp.GradScaler). The optimizer counts the updates that
    were made.
  }];
  let options = [
    Option<"function", "function", "std::string", "\"step\"", "The differentiated function">,
    Option<"type", "type", "std::string", "\"adamw\"", "sgd, adam, adamw, rmsprop, adagrad, adadelta, adamax, nadam, radam or lion">,
    Option<"momentum", "momentum", "::ckopt::Real", "std::numeric_limits<double>::quiet_NaN()", "sgd, rmsprop: momentum">,
    Option<"dampening", "dampening", "::ckopt::Real", "std::numeric_limits<double>::quiet_NaN()", "sgd: dampening">,
    Option<"nesterov", "nesterov", "bool", "false", "sgd: Nesterov momentum">,
    Option<"beta1", "beta1", "::ckopt::Real", "std::numeric_limits<double>::quiet_NaN()", "adam and its kin: decay of the first moment">,
    Option<"beta2", "beta2", "::ckopt::Real", "std::numeric_limits<double>::quiet_NaN()", "adam and its kin: decay of the second moment">,
    Option<"epsilon", "epsilon", "::ckopt::Real", "std::numeric_limits<double>::quiet_NaN()", "Added to the denominator">,
    Option<"weightDecay", "weight-decay", "::ckopt::Real", "std::numeric_limits<double>::quiet_NaN()", "Weight decay">,
    Option<"amsgrad", "amsgrad", "bool", "false", "adam, adamw: divide by the largest second moment so far">,
    Option<"alpha", "alpha", "::ckopt::Real", "std::numeric_limits<double>::quiet_NaN()", "rmsprop: decay of the squares">,
    Option<"centered", "centered", "bool", "false", "rmsprop: divide by the deviation">,
    Option<"rho", "rho", "::ckopt::Real", "std::numeric_limits<double>::quiet_NaN()", "adadelta: decay of the squares">,
    Option<"lrDecay", "lr-decay", "::ckopt::Real", "std::numeric_limits<double>::quiet_NaN()", "adagrad: decay of the learning rate">,
    Option<"initialAccumulatorValue", "initial-accumulator-value", "::ckopt::Real", "std::numeric_limits<double>::quiet_NaN()", "adagrad: where the sums start">,
    Option<"momentumDecay", "momentum-decay", "::ckopt::Real", "std::numeric_limits<double>::quiet_NaN()", "nadam: decay of the momentum">,
    Option<"decoupledWeightDecay", "decoupled-weight-decay", "bool", "false", "nadam, radam: weight decay as adamw's">,
    Option<"clipNorm", "clip-norm", "::ckopt::Real", "0.0", "Largest global norm of the gradients (0: no clipping)">,
    Option<"accumulate", "accumulate", "int64_t", "1", "Micro-batches in a step">,
    Option<"ema", "ema", "::ckopt::Real", "0.0", "Decay of averaged parameters (0: none)">,
    Option<"lossScaleGrowth", "loss-scale-growth", "int64_t", "2000", "Updates after which the loss's scale doubles (0: it stays)">,
  ];
  let dependentDialects = ["::ckopt::CkoptDialect"];
}

#endif // CKOPT_AUTODIFF_PASSES
