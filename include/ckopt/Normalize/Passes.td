//===- Passes.td - evaluation form, decomposition ----------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_NORMALIZE_PASSES
#define CKOPT_NORMALIZE_PASSES

include "mlir/Pass/PassBase.td"

def MakeEvalPass : Pass<"make-eval", "::mlir::ModuleOp"> {
  let summary = "Derives the evaluation function from the training function";
  let description = [{
    Clones `function` and puts the clone into evaluation form: dropout is the identity,
    batch normalization reads the running statistics (the arguments that the
    training function's `ckopt.moving_average` ops update), and results with
    `ckopt.updates` are gone. The argument list stays the same, names, roles and
    order included, so that both functions share one set of tensors; an argument
    may be unused. A batch normalization whose statistics no argument tracks
    keeps using those of the batch, as PyTorch does; a remark names it.

    ```mlir
    %y, %m, %v = ckopt.batch_norm %x, %s, %b {epsilon = 1.0e-5} : ...
    %new = ckopt.moving_average %running_mean, %m {momentum = 0.9} : ...
    // becomes
    %y = ckopt.batch_norm_inference %x, %s, %b, %running_mean, %running_var ...
    ```
  }];
  let options = [
    Option<"function", "function", "std::string", "\"forward\"", "The training function">,
    Option<"result", "result", "std::string", "\"eval\"", "Name of the new function">,
    Option<"replace", "replace", "bool", "false", "Remove the training function">,
    Option<"asWritten", "as-written", "bool", "false", "Keep dropouts and batch statistics as they are: a clone without updates">,
  ];
  let dependentDialects = ["::ckopt::CkoptDialect"];
}

def FreezeNormsPass : Pass<"freeze-norms", "::mlir::ModuleOp"> {
  let summary = "Puts batch norms that are not trained into evaluation form";
  let description = [{
    A `ckopt.batch_norm` whose scale and bias are frozen (role `frozen`) becomes a
    `batch_norm_inference` of its running statistics, and the results that update these
    go: they keep their bits. So does one whose scale and bias are constants, if its
    running statistics carry `ckopt.frozen`. What PyTorch calls `module.eval()` for the
    norms of a frozen backbone.
  }];
  let options = [
    Option<"function", "function", "std::string", "\"forward\"", "The training function">,
  ];
  let dependentDialects = ["::ckopt::CkoptDialect"];
}

def AddAdaptersPass : Pass<"add-adapters", "::mlir::func::FuncOp"> {
  let summary = "Gives trained low-rank adapters to products with a weight (LoRA, DoRA)";
  let description = [{
    Products of activations with a matrix of weights get the product of two small trained
    matrices beside them, `NAME.lora_A.weight` and `NAME.lora_B.weight`; parameters that
    the function has become frozen. `targets` is a regular expression of products' names
    (docs/fine-tune.md); without it all but output heads get one. With `dora` a trained
    vector `NAME.lora_magnitude_vector` scales each output's row to a length. Evaluation
    forms are derived later.

    ```mlir
    %y = ckopt.matmul %x, %w {transpose_rhs} : ...
    // becomes
    %y = ckopt.matmul %x, %w {transpose_rhs} : ...
    %0 = ckopt.matmul %x, %a {transpose_rhs} : ...
    %1 = ckopt.matmul %0, %b {transpose_rhs} : ...
    %2 = ckopt.mul %1, %scaling : ...
    %3 = ckopt.add %y, %2 : ...
    ```
  }];
  let options = [
    Option<"rank", "rank", "int64_t", "8", "Rows of A">,
    Option<"alpha", "alpha", "double", "8", "alpha / rank scales the adapter">,
    Option<"targets", "targets", "std::string", "\"\"", "Names of products; empty: all but output heads">,
    Option<"dropout", "dropout", "double", "0", "Dropout of the adapter's input">,
    Option<"dora", "dora", "bool", "false", "Weights are a trained magnitude and a direction">,
  ];
  let dependentDialects = ["::ckopt::CkoptDialect"];
}

def NormalizePass : Pass<"normalize", "::mlir::func::FuncOp"> {
  let summary = "Brings forward graphs of exporters to one form, before autodiff";
  let description = [{
    Products of a batch of matrices with one matrix, [B, T, K] x [K, N], become
    2-D products of [B * T, K] (reshapes are free): the fast form for every
    library, and its weight gradient is one product, too. A product's operand that
    is transposed in its innermost dimension is transposed without it, and read
    transposed. A bias that is added to 2-D rows (Gemm) is added behind the reshape
    that splits them. Canonicalizes.
  }];
  let dependentDialects = ["::ckopt::CkoptDialect"];
}

def ChunkVocabPass : Pass<"chunk-vocab", "::mlir::ModuleOp"> {
  let summary = "Takes the cross entropy of a large head in chunks of rows, before autodiff";
  let description = [{
    A `cross_entropy` over the last dimension of a product with one matrix (with a
    bias, reshapes, slices of rows between them) becomes a `linear_cross_entropy` of
    `rows` rows at a time, if nothing else reads the logits. Results of the function
    do not count as readers: autodiff, which comes next, drops them. `auto` chunks by
    a rule of the sizes alone (docs/losses.md); `off` never; a number chunks
    every head of more rows. With `blocks`, each chunked head has this number of chunks of
    `rows` rows, of which the last are filled with rows that are ignored: then nothing but
    sizes depends on the number of rows. What was done, or what kept a large head whole, is a remark.

    ```mlir
    %logits = ckopt.matmul %x, %w {transpose_rhs} : ...
    %loss, %lse, %lost = ckopt.cross_entropy %logits, %targets {axis = 1 : i64} : ...
    // becomes
    %loss = ckopt.linear_cross_entropy %x, %w, %targets {rows = 256 : i64, transpose_weight} : ...
    ```
  }];
  let options = [
    Option<"function", "function", "std::string", "\"forward\"", "The training function">,
    Option<"rows", "rows", "std::string", "\"auto\"", "auto, off, or rows of a chunk">,
    Option<"mostBytes", "most-bytes", "int64_t", "52428800", "auto: of a chunk's logits">,
    Option<"leastRows", "least-rows", "int64_t", "128", "auto: of a chunk, whatever they take">,
    Option<"enoughRows", "enough-rows", "int64_t", "0", "auto: of a chunk, where there are four or more">,
    Option<"rowStep", "row-step", "int64_t", "32", "auto: rows of a chunk are a multiple">,
    Option<"blocks", "blocks", "int64_t", "0", "The number of chunks; 0: as many as hold the rows">,
    Option<"evaluates", "evaluates", "bool", "false", "Results count as readers, and nothing is said">,
  ];
  let dependentDialects = ["::ckopt::CkoptDialect"];
}

def TileRowsPass : Pass<"tile-rows", "::mlir::ModuleOp"> {
  let summary = "Writes regions that work row by row as blocks of rows, before autodiff";
  let description = [{
    A region around a product that makes more columns than it takes (the MLP of a
    transformer), all of whose ops keep rows apart, and which narrow values alone enter
    and leave, is written once for each block of `rows` rows. `auto` tiles by a rule of the
    sizes alone (docs/checkpointing.md); `off` never; a number tiles every such region of more rows.

    ```mlir
    %h = ckopt.matmul %x, %w1 : ...
    %a = ckopt.relu %h : ...
    %y = ckopt.matmul %a, %w2 : ...
    // becomes, for two blocks
    %x0 = ckopt.slice %x ...
    %y0 = ... // the three ops
    %x1 = ckopt.slice %x ...
    %y1 = ...
    %y = ckopt.concat %y0, %y1 {axis = 0 : i64} : ...
    ```
  }];
  let options = [
    Option<"function", "function", "std::string", "", "The function, of which nothing is said (default: all of them)">,
    Option<"rows", "rows", "std::string", "\"auto\"", "auto, off, or rows of a block">,
    Option<"leastBytes", "least-bytes", "int64_t", "134217728", "auto: of a region's largest value">,
    Option<"mostBytes", "most-bytes", "int64_t", "67108864", "auto: of a block's largest value">,
    Option<"mostBlocks", "most-blocks", "int64_t", "8", "auto: of a region">,
    Option<"rowStep", "row-step", "int64_t", "32", "auto: rows of a block are a multiple">,
    Option<"draws", "draws", "bool", "true", "Regions with a dropout, too: its step has no rank's number">,
  ];
  let dependentDialects = ["::ckopt::CkoptDialect"];
}

def FuseAttentionPass : Pass<"fuse-attention", "::mlir::func::FuncOp"> {
  let summary = "Makes attention ops of products around a softmax, before autodiff";
  let description = [{
    A product, masks, biases and factors, a softmax over the last dimension and a second
    product that reads nothing else become `ckopt.attention`, if there are at least
    `least-keys` keys. Masks that bound keys by their distance from the row become `causal` and
    `window`, masks that compare numbers of rows and keys `segments`; c tanh(s / c) of the scores
    becomes `softcap`, and a dropout behind the softmax the op's own. A trained bias leaves things
    as they are; a remark says so.

    ```mlir
    %s = ckopt.matmul %q, %k {transpose_rhs} : ...
    %t = ckopt.div %s, %eight : ...
    %p = ckopt.softmax %t {axis = 3 : i64} : ...
    %o = ckopt.matmul %p, %v : ...
    // becomes
    %o, %lse = ckopt.attention %q, %k, %v {scale = 1.250000e-01 : f64} : ...
    ```
  }];
  let options = [
    Option<"leastKeys", "least-keys", "int64_t", "0", "fewer keys stay products">,
    Option<"mostColumns", "most-columns", "int64_t", "0", "more columns of a head stay products; 0: any number becomes an op">,
  ];
  let dependentDialects = ["::ckopt::CkoptDialect"];
}

def SampleOrderPass : Pass<"sample-order", "::mlir::func::FuncOp"> {
  let summary = "Lets attention read samples as they lie, without transposes around its products";
  let description = [{
    Where the operands of `ckopt.attention` and its result are computed row by
    row between transposes from [samples, tokens, columns] and back, as
    exporters of PyTorch write its multi-head attention, these steps are made on
    rows in the order of samples, and the transposes go.
  }];
  let dependentDialects = ["::ckopt::CkoptDialect"];
}

def DecomposePass : Pass<"decompose", "::mlir::func::FuncOp"> {
  let summary = "Turns composite ops into reductions and elementwise ops";
  let description = [{
    `batch_norm` becomes `moments` and elementwise ops, `batch_norm_grad` two sums
    over the same domain (one fused kernel) and elementwise ops,
    `batch_norm_inference` elementwise ops. What depends on the channel alone is
    computed on [C], once: the reciprocal standard deviation is shared between
    forward and backward. Products and convolutions of tensors without elements
    become zeros. Products with more than two batch dimensions that broadcasting keeps apart
    get one. `linear_cross_entropy` and its gradient become products and cross
    entropies of some rows at a time, the loss and the gradients of one chunk after
    another; with `class-group` the rows of logits are padded to a multiple of it, by rows of
    zeros of the weight, if that is at most a third more. With `widen-halves`, products and convolutions of f16 are computed in
    f32 and rounded once. Concatenations of more than `max-joined` tensors (0: of any
    number) become concatenations of concatenations, with as little as possible
    copied twice.
  }];
  let options = [
    Option<"maxJoined", "max-joined", "unsigned", "0", "most operands of a concatenation; 0: any number">,
    Option<"widenHalves", "widen-halves", "bool", "false", "products and convolutions of f16 in f32">,
    Option<"classGroup", "class-group", "int64_t", "0", "classes of a loss in chunks that are loaded at once; 0: any number is fine">,
  ];
  let dependentDialects = ["::ckopt::CkoptDialect"];
}

def WidenChannelsPass : Pass<"widen-channels", "::mlir::func::FuncOp"> {
  let summary = "Pads few input channels of convolutions to what kernels load at once";
  let description = [{
    Runs behind `layout`. Where the channels of a convolution's input are innermost in
    memory and no multiple of `group`, each element of an image would be loaded and
    addressed on its own. Input and weight get channels of zeros up to a multiple, if
    that is at most a third more; the weight's gradient loses them again. Input
    gradients stay as they are. Each convolution pads for itself, since a copy that
    waits from forward to backward costs more than it takes to make.

    ```mlir
    %y = ckopt.conv %x, %w : (tensor<8x3x32x32xf32, ...>, tensor<64x3x7x7xf32, ...>) -> ...
    // becomes
    %0 = ckopt.pad %x {high = array<i64: 0, 1, 0, 0>, ...} : ... -> tensor<8x4x32x32xf32, ...>
    %1 = ckopt.pad %w {high = array<i64: 0, 1, 0, 0>, ...} : ... -> tensor<64x4x7x7xf32, ...>
    %y = ckopt.conv %0, %1 : ...
    ```
  }];
  let options = [
    Option<"group", "group", "int64_t", "0", "channels that are loaded at once; 0: any number is fine">,
  ];
  let dependentDialects = ["::ckopt::CkoptDialect"];
}

#endif // CKOPT_NORMALIZE_PASSES
