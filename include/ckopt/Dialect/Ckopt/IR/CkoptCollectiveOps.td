//===- CkoptCollectiveOps.td - values of several processes -*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_DIALECT_CKOPT_COLLECTIVE
#define CKOPT_DIALECT_CKOPT_COLLECTIVE

include "ckopt/Dialect/Ckopt/IR/CkoptBase.td"

class Ckopt_Group {
  string decl = [{
    ::ckopt::RankGroup getGroup() {
      return {int64_t(getRanks()), int64_t(getStride()), int64_t(getGroups())};
    }
  }];
}

// An op in which `ranks` processes meet: with `groups` more than 1 the run has that many such groups,
// and members are `stride` ranks apart (Base/Shards.h).
class Ckopt_CollectiveOp<string mnemonic, int rounds> : Ckopt_InferOp<mnemonic, "Library", [CollectiveOpInterface]> {
  let hasVerifier = 1;
  string groupDecl = baseDecl # Ckopt_AnyLayout<>.decl # Ckopt_Layout<"Pairs">.decl # Ckopt_Group<>.decl # [{
    double getFlops();
    int64_t getRounds() { return }] # rounds # [{; }
  }];
  let extraClassDeclaration = groupDecl;
}

def Ckopt_AllReduceOp : Ckopt_CollectiveOp<"all_reduce", 2> {
  let summary = "Sums of tensors over all ranks, added in the order of the ranks, on every rank";
  let description = [{
    Each of `ranks` processes runs the same program and comes to this op with tensors of its own.
    Result i is operand i of rank 0, plus that of rank 1, and so on: every rank gets the same bits,
    which do not depend on who came first. The operands of one op are a bucket: they travel
    together. All are of one element type; each result may take its operand's bytes.

    The derivative of a sum over ranks, where each rank's results count, is the sum of the results'
    gradients over ranks.
  }];
  let arguments = (ins Variadic<Ckopt_FloatTensor>:$inputs, I64Attr:$ranks,
                       DefaultValuedAttr<I64Attr, "1">:$groups, DefaultValuedAttr<I64Attr, "1">:$stride);
  let results = (outs Variadic<Ckopt_FloatTensor>:$outputs);
  let assemblyFormat = "$inputs attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = groupDecl # [{
    ::llvm::SmallVector<std::pair<unsigned, unsigned>> getReusePairs();
  }];
}

def Ckopt_AllGatherOp : Ckopt_CollectiveOp<"all_gather", 1> {
  let summary = "Tensors of which each rank has some rows, whole on every rank";
  let description = [{
    Result i has `rows[i]` indices in dimension 0, of which rank r gives those from r * s on, with s
    the size of dimension 0 of operand i on every rank: the ranks' share of `rows[i]`, rounded up.
    What operands have beyond the last row (padding) is not read. Tensors of one op travel together;
    all are of one element type. Rows are contiguous: dimension 0 comes first in every layout.

    The derivative sums the results' gradients over ranks and keeps the rank's rows
    (`reduce_scatter`). The op may be repeated like any other: a parameter that is gathered once more
    for the backward pass is a recomputation whose cost is its messages.
  }];
  let arguments = (ins Variadic<Ckopt_FloatTensor>:$inputs, DenseI64ArrayAttr:$rows, I64Attr:$ranks,
                       DefaultValuedAttr<I64Attr, "1">:$groups, DefaultValuedAttr<I64Attr, "1">:$stride);
  let results = (outs Variadic<Ckopt_FloatTensor>:$outputs);
  let extraClassDeclaration = groupDecl # "::mlir::ValueRange getWholeTensors() { return getOutputs(); }";
  let assemblyFormat = "$inputs attr-dict `:` functional-type(operands, results)";
}

def Ckopt_ReduceScatterOp : Ckopt_CollectiveOp<"reduce_scatter", 1> {
  let summary = "Each rank's rows of sums over all ranks, added in the order of the ranks";
  let description = [{
    Rank r gets the rows of the sums that `all_gather` takes from it; rows beyond the last are zero.
    A sum is rank 0's number, plus rank 1's, and so on: the bits of `all_reduce`. Tensors of one op
    travel together; all are of one element type.

    The derivative gathers the results' gradients.
  }];
  let arguments = (ins Variadic<Ckopt_FloatTensor>:$inputs, I64Attr:$ranks,
                       DefaultValuedAttr<I64Attr, "1">:$groups, DefaultValuedAttr<I64Attr, "1">:$stride);
  let results = (outs Variadic<Ckopt_FloatTensor>:$outputs);
  let assemblyFormat = "$inputs attr-dict `:` functional-type(operands, results)";
}

def Ckopt_BroadcastOp : Ckopt_CollectiveOp<"broadcast", 1> {
  let summary = "The tensors of one rank, on every rank";
  let description = [{
    Every result is the operand of the group's member `root`. The derivative is, on that rank, the
    sum of the results' gradients over ranks, and zero on the others.
  }];
  let arguments = (ins Variadic<Ckopt_FloatTensor>:$inputs, I64Attr:$root, I64Attr:$ranks,
                       DefaultValuedAttr<I64Attr, "1">:$groups, DefaultValuedAttr<I64Attr, "1">:$stride);
  let results = (outs Variadic<Ckopt_FloatTensor>:$outputs);
  let assemblyFormat = "$inputs attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = groupDecl # [{
    ::llvm::SmallVector<std::pair<unsigned, unsigned>> getReusePairs();
    bool sendsShares() { return false; }
  }];
}

def Ckopt_OwnRowsOp : Ckopt_CollectiveOp<"own_rows", 0> {
  let summary = "The rows of whole tensors that a rank keeps of them";
  let description = [{
    What `all_gather` puts together: rank r's result has its rows of the operand, which all ranks
    have; rows beyond the last are zero. Nothing is sent.
  }];
  let arguments = (ins Variadic<Ckopt_FloatTensor>:$inputs, I64Attr:$ranks,
                       DefaultValuedAttr<I64Attr, "1">:$groups, DefaultValuedAttr<I64Attr, "1">:$stride);
  let results = (outs Variadic<Ckopt_FloatTensor>:$outputs);
  let assemblyFormat = "$inputs attr-dict `:` functional-type(operands, results)";
}

// What all ops between the start and the end of messages say of their group.
class Ckopt_FlightOp<string mnemonic> : Ckopt_Op<mnemonic, "Library", [CollectiveOpInterface]> {
  let hasVerifier = 1;
  let assemblyFormat = "$inputs attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = baseDecl # Ckopt_Layout<"Pairs">.decl # Ckopt_Group<>.decl # "double getFlops() { return 0; }";
}

def Ckopt_CollectiveStartOp : Ckopt_FlightOp<"collective_start"> {
  let summary = "Begins a collective, whose messages go on while other kernels run";
  let description = [{
    `collective` is the name of the op that is split: `all_reduce`, `all_gather`, `reduce_scatter` or
    `broadcast`. Results are that op's, and behind them `ui8` bytes in which it works. Until the
    `collective_wait` that takes all of them they are in flight: nothing else may read them, and
    nothing may write what they are made of, which the wait takes, too, unless results lie in its
    bytes.

    The pass `overlap` makes such ops of planned kernel calls; none runs twice. Starts are carried out
    one behind the other, in the same order on all ranks, so additions are those of the op that is
    split.
  }];
  let arguments = (ins Variadic<Ckopt_FloatTensor>:$inputs, StrAttr:$collective, I64Attr:$ranks,
                       DefaultValuedAttr<I64Attr, "1">:$groups, DefaultValuedAttr<I64Attr, "1">:$stride,
                       DefaultValuedAttr<I64Attr, "0">:$root);
  let results = (outs Variadic<Ckopt_Tensor>:$outputs);
}

def Ckopt_CollectiveWaitOp : Ckopt_FlightOp<"collective_wait"> {
  let summary = "Waits for the end of a collective that was started";
  let description = [{
    Takes all results of a `collective_start`, then those of its operands that are to stay as they are
    until the end. Result i is operand i, in the same bytes, complete.
  }];
  let arguments = (ins Variadic<Ckopt_Tensor>:$inputs, I64Attr:$ranks,
                       DefaultValuedAttr<I64Attr, "1">:$groups, DefaultValuedAttr<I64Attr, "1">:$stride);
  let results = (outs Variadic<Ckopt_FloatTensor>:$outputs);
}

def Ckopt_RankOp : Ckopt_Op<"rank", "Library", [CollectiveOpInterface]> {
  let extraClassDeclaration = baseDecl # "::ckopt::RankGroup getGroup() { return {int64_t(getRanks()), 1, 1}; }";
  let summary = "The number of the rank that runs the op, from 0 to `ranks` - 1";
  let arguments = (ins I64Attr:$ranks);
  let results = (outs 0DTensorOf<[I64]>:$output);
  let assemblyFormat = "attr-dict `:` type($output)";
  let hasVerifier = 1;
}

#endif // CKOPT_DIALECT_CKOPT_COLLECTIVE
