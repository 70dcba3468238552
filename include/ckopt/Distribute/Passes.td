//===- Passes.td - a step's share of one rank --------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_DISTRIBUTE_PASSES
#define CKOPT_DISTRIBUTE_PASSES

include "mlir/Pass/PassBase.td"

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

#endif // CKOPT_DISTRIBUTE_PASSES
