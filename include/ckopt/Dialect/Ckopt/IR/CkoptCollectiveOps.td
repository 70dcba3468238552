//===- CkoptCollectiveOps.td - values of several processes -*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_DIALECT_CKOPT_COLLECTIVE
#define CKOPT_DIALECT_CKOPT_COLLECTIVE

include "ckopt/Dialect/Ckopt/IR/CkoptBase.td"

def Ckopt_AllReduceOp : Ckopt_InferOp<"all_reduce", "Library"> {
  let summary = "Sums of tensors over all ranks, added in the order of the ranks, on every rank";
  let description = [{
    Each of `ranks` processes runs the same program and comes to this op with tensors of its own.
    Result i is operand i of rank 0, plus that of rank 1, and so on: every rank gets the same bits,
    which do not depend on who came first. The operands of one op are a bucket: they travel
    together. All are of one element type; each result may take its operand's bytes.

    The derivative of a sum over ranks, where each rank's results count, is the sum of the results'
    gradients over ranks.
  }];
  let arguments = (ins Variadic<Ckopt_FloatTensor>:$inputs, I64Attr:$ranks);
  let results = (outs Variadic<Ckopt_FloatTensor>:$outputs);
  let assemblyFormat = "$inputs attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let extraClassDeclaration = baseDecl # Ckopt_AnyLayout<>.decl # Ckopt_Layout<"Pairs">.decl # [{
    double getFlops();
    ::llvm::SmallVector<std::pair<unsigned, unsigned>> getReusePairs();
  }];
}

def Ckopt_RankOp : Ckopt_Op<"rank", "Library"> {
  let summary = "The number of the rank that runs the op, from 0 to `ranks` - 1";
  let arguments = (ins I64Attr:$ranks);
  let results = (outs 0DTensorOf<[I64]>:$output);
  let assemblyFormat = "attr-dict `:` type($output)";
  let hasVerifier = 1;
}

#endif // CKOPT_DIALECT_CKOPT_COLLECTIVE
