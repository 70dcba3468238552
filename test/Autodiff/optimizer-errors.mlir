// Options outside of their ranges and functions without gradients are refused.
// RUN: not ckopt-opt %s --optimizer="type=magic" 2>&1 | FileCheck %s --check-prefix=TYPE
// RUN: not ckopt-opt %s --optimizer="beta1=1" 2>&1 | FileCheck %s --check-prefix=BETA
// RUN: not ckopt-opt %s --optimizer="type=sgd nesterov=true" 2>&1 | FileCheck %s --check-prefix=NESTEROV
// RUN: not ckopt-opt %s --optimizer="clip-norm=-1" 2>&1 | FileCheck %s --check-prefix=CLIP
// RUN: not ckopt-opt %s --optimizer="accumulate=0" 2>&1 | FileCheck %s --check-prefix=MICRO
// RUN: not ckopt-opt %s --optimizer="type=sgd beta1=0.5" 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: not ckopt-opt %s --optimizer="ema=1" 2>&1 | FileCheck %s --check-prefix=EMA
// RUN: not ckopt-opt %s --optimizer="function=own type=sgd" 2>&1 | FileCheck %s --check-prefix=OWN
// RUN: not ckopt-opt %s --optimizer="function=text type=sgd" 2>&1 | FileCheck %s --check-prefix=TEXT
// RUN: not ckopt-opt %s --optimizer="function=nothing" 2>&1 | FileCheck %s --check-prefix=NOTHING
// RUN: not ckopt-opt %s --optimizer="function=half" 2>&1 | FileCheck %s --check-prefix=HALF

// TYPE: unknown optimizer 'magic'; expected sgd, adam, adamw, rmsprop
// BETA: beta1 must lie in [0, 1), got 1
// NESTEROV: nesterov needs a momentum above 0 and no dampening
// CLIP: the clipping norm must not be negative, got -1
// MICRO: micro-batches must be 1 or more, got 0
// OTHER: sgd has no 'beta1'; it has: momentum, dampening, weight_decay, nesterov
// EMA: the decay of averaged parameters must lie in [0, 1), got 1
func.func @step(%a: tensor<3xf32>, %ga: tensor<3xf32>)
    -> (tensor<3xf32> {ckopt.gradient = 0 : i64}) {
  return %ga : tensor<3xf32>
}

// NOTHING: 'nothing' has no gradients: its loss depends on no parameter that is trained, or autodiff did not run
func.func @nothing(%a: tensor<3xf32>) -> tensor<3xf32> {
  return %a : tensor<3xf32>
}

// HALF: parameter 'w' has element type 'f16'; updates need parameters of f32, f64 or bf16
func.func @half(%a: tensor<3xf16> {ckopt.name = "w"}) -> (tensor<3xf16> {ckopt.gradient = 0 : i64}) {
  return %a : tensor<3xf16>
}

// OWN: parameter 'w': sgd has no 'rho'
func.func @own(%a: tensor<3xf32> {ckopt.name = "w", ckopt.optimizer = {rho = 0.5}}) -> (tensor<3xf32> {ckopt.gradient = 0 : i64}) {
  return %a : tensor<3xf32>
}

// TEXT: parameter 'w': ckopt.optimizer.momentum must be a floating-point number
func.func @text(%a: tensor<3xf32> {ckopt.name = "w", ckopt.optimizer = {momentum = "much"}}) -> (tensor<3xf32> {ckopt.gradient = 0 : i64}) {
  return %a : tensor<3xf32>
}
