//===- Passes.td - types of storage and products -----------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_PRECISION_PASSES
#define CKOPT_PRECISION_PASSES

include "mlir/Pass/PassBase.td"

def MixedPrecisionPass : Pass<"mixed-precision", "mlir::ModuleOp"> {
  let summary = "Stores what lies between products in bf16 or f16, and computes products from that";
  let description = [{
    Runs behind `fuse`, which decided what is stored. With `type=f16` read f16 for bf16: the rules are
    the same. Products and convolutions take operands of
    bf16 (their sums are f32); a value that a kernel stores becomes bf16 where it follows from such
    results and no f32 (docs/precision.md has the rules); kernels compute in f32 and round what
    they store. Arguments and results of functions keep their types: parameters, their gradients,
    losses, statistics and updates are f32. A value that is f32 and read by a product is cast by
    the kernel that makes it, if that is elementwise, else by a kernel of its own; an argument is
    cast again where many products lie between two that read it. Nodes whose names match `keep-f32`
    stay as they are. Each function gets `ckopt.bf16_products` (`ckopt.f16_products`): the operations
    of products that are computed from bf16, and those of all.
  }];
  let options = [
    Option<"type", "type", "std::string", "\"bf16\"", "bf16 or f16">,
    Option<"keepF32", "keep-f32", "std::string", "\"\"",
           "Regular expression for the whole name of a node">,
    Option<"threads", "threads", "unsigned", "1", "Threads of library kernels">,
    Option<"target", "target", "std::string", "\"cpu\"", "Name of the target">,
    Option<"libraryWorkspace", "library-workspace", "int64_t", "0",
           "cuda: bytes of workspace of each call of cuBLASLt or cuDNN; 0: our own contractions">,
    Option<"cpuClass", "cpu-class", "std::string", "\"\"",
           "cpu: class of processors whose library table decides; empty: this machine's">,
    Option<"libraryTable", "library-table", "std::string", "\"\"",
           "cpu: a file of rules that stand before the built-in ones">,
    Option<"keepCopies", "keep-copies", "bool", "false",
           "Keep what is cast from trained weights alone from step to step; `refresh` makes it again">,
    Option<"products", "products", "std::string", "\"auto\"",
           "the type, f32 (operands are widened first), auto: the type where the machine has instructions for it">,
  ];
}

def RepeatWeightsPass : Pass<"repeat-weights", "mlir::ModuleOp"> {
  let summary = "Lets products read narrow weights as they are stored";
  let description = [{
    Runs behind `fuse`, `mixed-precision` and `round-products`. What makes a factor of a product from
    frozen weights, trained ones of bf16, and constants alone (a cast, a dequantization, unpacked numbers) moves into the
    product's kernel, where the target has kernels that make a factor block by block. Otherwise the
    factor is made just before its first reader, and again for a reader with more than eight products
    between it and the last one. Nothing else moves.
  }];
  let options = [
    Option<"threads", "threads", "unsigned", "1", "Threads of library kernels">,
    Option<"target", "target", "std::string", "\"cpu\"", "Name of the target">,
    Option<"libraryWorkspace", "library-workspace", "int64_t", "0",
           "cuda: bytes of workspace of each call of cuBLASLt or cuDNN; 0: our own contractions">,
    Option<"cpuClass", "cpu-class", "std::string", "\"\"",
           "cpu: class of processors whose library table decides; empty: this machine's">,
    Option<"libraryTable", "library-table", "std::string", "\"\"",
           "cpu: a file of rules that stand before the built-in ones">,
  ];
}

def RoundProductsPass : Pass<"round-products", "mlir::ModuleOp"> {
  let summary = "Computes products of f32 from operands that are rounded to bf16";
  let description = [{
    Runs behind `fuse` and `mixed-precision`. Matrix products and convolutions of f32 take operands
    that are rounded to bf16; sums and results stay f32. Each value is rounded once a function,
    below views of it: by its maker, if that is elementwise, in place of the value where none but
    products read it, else by a kernel of its own. The planner may round it again. Products that the
    library refuses stay as they are. Kernels that changed get `ckopt.products`, the class.
  }];
  let options = [
    Option<"precision", "precision", "std::string", "\"medium\"",
           "Class of products: medium or bf16; where it is f32 on the target, nothing changes">,
    Option<"threads", "threads", "unsigned", "1", "Threads of library kernels">,
    Option<"target", "target", "std::string", "\"cpu\"", "Name of the target">,
    Option<"storage", "storage", "std::string", "\"auto\"",
           "What rounded values are stored in: bf16, f32 (the same numbers, multiplied in f32), auto: bf16 where the machine has instructions for it">,
  ];
}

#endif // CKOPT_PRECISION_PASSES
