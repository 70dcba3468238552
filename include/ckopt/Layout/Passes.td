//===- Passes.td - physical orders of dimensions ------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LAYOUT_PASSES
#define CKOPT_LAYOUT_PASSES

include "mlir/Pass/PassBase.td"

def LayoutPass : Pass<"layout", "mlir::ModuleOp"> {
  let summary = "Makes what convolutions touch channels-last";
  let description = [{
    Activations of convolutions, and all values that are connected to them
    through ops that work in any layout, lie channels-last:

    ```mlir
    %1 = ckopt.conv %0, %w ... -> tensor<8x64x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>
    ```

    So are weights, `[out, window..., in]`, with their gradients and states,
    unless an op reads or makes one row-major. Arguments and results with a
    `ckopt.name` lie as the values around them do; all functions agree on an
    argument. Others stay row-major, and so does what reshapes, matrix products
    and row ops read. `ckopt.relayout` copies where the two meet. A tensor whose
    bytes lie the same way in both orders (channels or all spatial dimensions of
    size 1) is always written row-major, so it needs no copy. Logical shapes
    never change.

    With `planes`, the numbers of rows that attention keeps for its gradient,
    and nothing else reads, lie as `#ckopt.layout<[3, 0, 1, 2]>`.
  }];
  let options = [
    Option<"layout", "layout", "std::string", "\"channels-last\"",
           "channels-last, or none: everything stays row-major">,
    Option<"planes", "planes", "bool", "false",
           "Place the two numbers that attention keeps of each row in two "
           "planes">,
    ListOption<"functions", "functions", "std::string",
               "Names of the functions to work on (default: all but kernels)">,
  ];
  let dependentDialects = ["::ckopt::CkoptDialect"];
}

#endif // CKOPT_LAYOUT_PASSES
