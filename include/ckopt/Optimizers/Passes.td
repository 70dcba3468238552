//===- Passes.td - parameter updates -----------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_OPTIMIZERS_PASSES
#define CKOPT_OPTIMIZERS_PASSES

include "mlir/Pass/PassBase.td"

def StoreParametersPass : Pass<"store-parameters", "::mlir::ModuleOp"> {
  let summary = "Stores trained weights in bf16";
  let description = [{
    In all functions, parameters of f32 with two dimensions or more and 4096 elements or more become
    arguments of bf16, which one cast before their first reader makes f32. Others (biases, scales of
    norms) stay f32. Runs before `autodiff`, which makes gradients of f32, and `optimizer`, which rounds
    new weights at random.
  }];
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

    `state-type=bf16`: states of parameters with 4096 elements or more are stored in bf16. What is
    computed in f32 goes to one of its two neighbors, to the nearer one with the larger probability, so
    that the mean is what was computed. Random numbers are functions of (seed, step, the state's name,
    element), for which there is an argument of role `seed`.

    `state-type=int8`: such states, if their numbers fill blocks of 256, are codes of 8 bits
    (`ckopt.assign_codes`; without a sign where a state has none) of what a block's numbers are
    relative to the largest magnitude in it, which is a state `<state>_scale` of f32. The new parameter
    is computed from new states before they are coded. So do bitsandbytes and torchao.

    Parameters of bf16 (see `store-parameters`) are updated likewise: what is computed in f32 from the
    f32 gradient is rounded at random. Their states and averages are f32 where `state-type` does not say
    otherwise.

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
    Option<"stateType", "state-type", "std::string", "\"f32\"", "What states are stored in: f32, bf16 or int8">,
    Option<"lossScaleGrowth", "loss-scale-growth", "int64_t", "2000", "Updates after which the loss's scale doubles (0: it stays)">,
  ];
  let dependentDialects = ["::ckopt::CkoptDialect"];
}

#endif // CKOPT_OPTIMIZERS_PASSES
