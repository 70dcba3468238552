//===- CkoptKernelOps.td - the step after fuse --------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_DIALECT_CKOPT_KERNEL
#define CKOPT_DIALECT_CKOPT_KERNEL

include "mlir/IR/SymbolInterfaces.td"
include "ckopt/Dialect/Ckopt/IR/CkoptEnums.td"

def Ckopt_KernelCallOp : Op<Ckopt_Dialect, "kernel_call", [
    Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Runs an outlined kernel: a fused group of ops or one library primitive";
  let description = [{
    The callee is a private func.func whose body holds the ops of the kernel. A recomputed
    clone is a second call of the same symbol, so it gives the same bits by construction.

    cost: seconds, estimated or measured. workspace: bytes of scratch while the
    kernel runs. reuse: flat pairs (operand, result) that may share bytes.
    updates: flat pairs (operand, result) of state updates: such a call runs once and is
    never cloned. aliases: flat pairs (operand, result) of which the result is the operand's
    bytes, as collectives that were started leave them there. scalars: what differs between equal kernels (a dropout's site).
    offsets and workspace_offset: bytes in the arena, set by plan-memory.
    clone: number of a recomputation, set by remat.
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<AnyRankedTensor>:$args,
      DefaultValuedAttr<F64Attr, "0.0">:$cost, DefaultValuedAttr<I64Attr, "0">:$workspace,
      DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$reuse, DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$updates,
      DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$aliases, DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$scalars,
      OptionalAttr<DenseI64ArrayAttr>:$offsets, OptionalAttr<I64Attr>:$workspace_offset,
      OptionalAttr<I64Attr>:$clone);
  let results = (outs Variadic<AnyRankedTensor>:$outs);
  let assemblyFormat = "$callee `(` $args `)` attr-dict `:` functional-type($args, $outs)";
}

def Ckopt_BarrierOp : Op<Ckopt_Dialect, "barrier", [NoMemoryEffect, SameOperandsAndResultType]> {
  let summary = "Identity that no fold removes: keeps a recomputed clone apart from its original";
  let arguments = (ins AnyType:$input, OptionalAttr<I64Attr>:$clone);
  let results = (outs AnyType:$output);
  let assemblyFormat = "$input attr-dict `:` type($input)";
}

#endif // CKOPT_DIALECT_CKOPT_KERNEL
