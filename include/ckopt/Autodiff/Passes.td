//===- Passes.td - reverse mode ----------------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_AUTODIFF_PASSES
#define CKOPT_AUTODIFF_PASSES

include "mlir/Pass/PassBase.td"

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

#endif // CKOPT_AUTODIFF_PASSES
