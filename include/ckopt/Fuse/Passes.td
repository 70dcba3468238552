//===- Passes.td - grouping ops into kernels ----------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_FUSE_PASSES
#define CKOPT_FUSE_PASSES

include "mlir/Pass/PassBase.td"

def FusePass : Pass<"fuse", "mlir::ModuleOp"> {
  let summary = "Groups ckopt ops into kernels and outlines them";
  let description = [{
    Turns every function that is not a kernel itself into a straight line of
    `ckopt.kernel_call` on private functions that hold the grouped ops, views
    (`ckopt.reshape` of row-major values) and a return:

    ```mlir
    %0 = ckopt.sub %x, %mean : ...          // before
    %1 = ckopt.relu %0 : ...

    %1 = ckopt.kernel_call @k_elementwise_0(%x, %mean) : ...   // after
    ```

    What is computed again inside several kernels instead of being stored is
    decided here, once, and never looks at a memory budget. Equal kernels become
    one symbol; what differs between them (a dropout's site) becomes an entry of
    the call's `scalars`. Refused, with all places named: ops of other dialects,
    and states that are read after they were updated.

    With `adds-products` a product of matrices that only a kernel of additions would read becomes a
    `matmul_add`, where that moves fewer bytes: a residual, and sums of products, grow as products
    are stored. The bias of a linear layer goes along with a single product.
  }];
  let options = [
    Option<"group", "group", "bool", "true",
           "Group ops; false: each op is a kernel of its own">,
    Option<"addsProducts", "adds-products", "bool", "false",
           "Add products to tensors as they are stored">,
    Option<"rounds", "rounds", "bool", "false",
           "adds-products: factors of products are rounded to 16 bits behind this pass">,
    ListOption<"functions", "functions", "std::string",
               "Names of the functions to work on (default: all but kernels)">,
    Option<"maxOps", "max-ops", "unsigned", "64", "Ops in one kernel">,
    Option<"maxPointers", "max-pointers", "unsigned", "24",
           "Operands and results of one kernel">,
  ];
  let dependentDialects = ["::ckopt::CkoptDialect", "::mlir::func::FuncDialect"];
}

#endif // CKOPT_FUSE_PASSES
