//===- CkoptNNOps.td - contractions, convolutions, pooling --*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_DIALECT_CKOPT_NN
#define CKOPT_DIALECT_CKOPT_NN

include "ckopt/Dialect/Ckopt/IR/CkoptEnums.td"

// Methods of ContractionOpInterface.
class Ckopt_Contraction<string kind> {
  string decl = "::ckopt::ContractionKind getContractionKind() { return ::ckopt::ContractionKind::" # kind # "; }\n";
}
class Ckopt_Convolved<string first, string second, string weight> {
  string decl = "::std::array<::mlir::Value, 3> getConvolved() { return {"
      # first # "(), " # second # "(), " # weight # "()}; }\n";
}

def Ckopt_MatMulOp : Ckopt_InferOp<"matmul", "Library", [SampleAxisOpInterface, ContractionOpInterface, SameOperandsElementType]> {
  let summary = "Batched matrix product; leading dimensions broadcast; `transpose_*` swaps an operand's last two. Halves may have a result of f32";
  let arguments = (ins Ckopt_FloatTensor:$lhs, Ckopt_FloatTensor:$rhs, UnitAttr:$transpose_lhs, UnitAttr:$transpose_rhs);
  let results = (outs Ckopt_FloatTensor:$output);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = baseDecl # Ckopt_AnyWidth<>.decl # Ckopt_Layout<"Matrices">.decl
      # Ckopt_OwnRelation<>.decl # Ckopt_Contraction<"Product">.decl # [{
    double getFlops();
    bool acceptsStrides(bool, unsigned, ::llvm::ArrayRef<int64_t> strides) {
      return ::ckopt::detail::suitsProduct(strides);
    }
  }];
  let hasCanonicalizer = 1;
}

def Ckopt_MatMulAddOp : Ckopt_InferOp<"matmul_add", "Library", [ContractionOpInterface]> {
  let summary = "addend + (lhs rhs + bias), of two matrices; `transpose_*` swaps an operand's dimensions";
  let description = [{
    A sum that grows product by product, in the addend's bytes where a plan
    allows it. lhs and rhs may be halves with an addend and a result of f32. A
    bias has the result's type, and an element for each of its columns; only
    targets that add to tensors take it.
  }];
  let arguments = (ins Ckopt_FloatTensor:$lhs, Ckopt_FloatTensor:$rhs, Ckopt_FloatTensor:$addend, Optional<Ckopt_FloatTensor>:$bias, UnitAttr:$transpose_lhs, UnitAttr:$transpose_rhs);
  let results = (outs Ckopt_FloatTensor:$output);
  let assemblyFormat = "$lhs `,` $rhs `,` $addend (`bias` $bias^)? attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = baseDecl # Ckopt_AnyLayout<>.decl # Ckopt_Contraction<"Product">.decl # [{
    double getFlops();
    bool isFactor(unsigned index) { return index < 2; }
    ::llvm::SmallVector<std::pair<unsigned, unsigned>> getReusePairs() { return {{2, 0}}; }
  }];
}

// Attention and its gradient, for each head of each sample.
class Ckopt_AttentionLike<string mnemonic, list<Trait> traits = []>
    : Ckopt_InferOp<mnemonic, "Library", traits # [ContractionOpInterface, AttrSizedOperandSegments]> {
  dag scoreOperands = (ins Ckopt_FloatTensor:$query, Ckopt_FloatTensor:$key, Ckopt_FloatTensor:$value,
      Optional<Ckopt_FloatTensor>:$bias, Optional<Ckopt_BoolTensor>:$mask,
      Optional<2DTensorOf<[I64]>>:$segments, Optional<0DTensorOf<[I64]>>:$seed, Optional<0DTensorOf<[I64]>>:$step);
  dag scoreAttrs = (ins F64Attr:$scale, OptionalAttr<F64Attr>:$softcap, OptionalAttr<F64Attr>:$fill,
      OptionalAttr<I64Attr>:$causal, OptionalAttr<I64Attr>:$window, UnitAttr:$zero_empty_rows, OptionalAttr<F64Attr>:$ratio, OptionalAttr<I64Attr>:$site);
  string attentionDecl = baseDecl # Ckopt_AnyLayout<>.decl # Ckopt_Layout<"Matrices">.decl
      # Ckopt_Contraction<"Attention">.decl # [{
    double getFlops();
    bool isFactor(unsigned index);
    bool acceptsStrides(bool isResult, unsigned index, ::llvm::ArrayRef<int64_t> strides);
    std::optional<int64_t> getCausalOffset() {
      return getCausal() ? std::optional<int64_t>(int64_t(*getCausal())) : std::nullopt;
    }
    std::optional<int64_t> getWindowSize() {
      return getWindow() ? std::optional<int64_t>(int64_t(*getWindow())) : std::nullopt;
    }
    /// The keys from first to before second are those that causality and the window allow in a row.
    std::pair<int64_t, int64_t> getKeysOfRow(int64_t row) {
      int64_t keys = ::llvm::cast<::mlir::RankedTensorType>(getKey().getType()).getShape().take_back(2)[0];
      return {getWindow() ? std::max<int64_t>(row - *getWindowSize() + 1, 0) : 0,
              getCausal() ? std::min(row + *getCausalOffset() + 1, keys) : keys};
    }
    /// What scores are capped at, 0 where they are not.
    double getCapValue() { return getSoftcap() ? getSoftcap()->convertToDouble() : 0; }
    double getFillValue() {
      return getFill() ? getFill()->convertToDouble() : -std::numeric_limits<double>::infinity();
    }
  }];
  let extraClassDeclaration = attentionDecl;
}

def Ckopt_AttentionOp : Ckopt_AttentionLike<"attention", [SampleAxisOpInterface]> {
  let extraClassDeclaration = attentionDecl # Ckopt_OwnRelation<>.decl # [{
    bool hasAxisOfFirst(unsigned result, int64_t axis);
    bool isStatistic(unsigned index) { return index == 1; }
  }];
  let summary = "softmax(scale * query key^T + bias, where allowed) value, without the matrix of scores in memory";
  let description = [{
    query [batch, heads, queries, depth], key [batch, key heads, keys, depth], value [batch, key
    heads, keys, width]; without `batch` in rank 3. Query heads are a multiple of key heads; query
    head h reads key head h / (heads / key heads). `softcap = c` (positive) makes c tanh(s / c) of each
    score s = scale * query key^T, before anything else. bias (added) and mask (true: allowed) broadcast
    to [batch, heads, queries, keys]. A score that the mask does not allow is `fill`, -inf where it is
    not given. `causal = c` allows key j in row i where j <= i + c, `window = w` where j > i - w.
    segments [batch or 1, keys], of as many queries as keys, allow key j of a sample in its row i
    where both have the same number: packed samples attend to themselves. These three fill with
    -inf, and kernels skip the keys that they forbid.

    With seed and step, the probabilities pass through a dropout of `ratio` and `site` before they
    weigh the values: element e is that of the row-major [batch, heads, queries, keys].

    A row whose scores are all -inf gives NaN, or zeros with `zero_empty_rows`. lse [batch, heads,
    queries, 2] is the log of each row's sum of exponentials, -inf for a row of zeros: the number,
    and what rounding took from it (0 where it is not finite), without which a row of scores of
    -1e9 has no probabilities. It and bias are f32 where the other operands are halves.
  }];
  let arguments = !con(scoreOperands, scoreAttrs);
  let results = (outs Ckopt_FloatTensor:$output, Ckopt_FloatTensor:$lse);
  let assemblyFormat = "$query `,` $key `,` $value (`bias` $bias^)? (`mask` $mask^)? (`segments` $segments^)? (`dropout` $seed^ `,` $step)? attr-dict `:` functional-type(operands, results)";
}

def Ckopt_AttentionGradOp : Ckopt_AttentionLike<"attention_grad"> {
  let extraClassDeclaration = attentionDecl # "bool isGradient() { return true; }\n";
  let summary = "Gradients of attention with respect to query, key and value; makes the probabilities again from lse";
  let arguments = !con(scoreOperands, (ins Ckopt_FloatTensor:$output, Ckopt_FloatTensor:$lse, Ckopt_FloatTensor:$grad), scoreAttrs);
  let results = (outs Ckopt_FloatTensor:$query_grad, Ckopt_FloatTensor:$key_grad, Ckopt_FloatTensor:$value_grad);
  let assemblyFormat = "$query `,` $key `,` $value (`bias` $bias^)? (`mask` $mask^)? (`segments` $segments^)? (`dropout` $seed^ `,` $step)? `of` $output `,` $lse `by` $grad attr-dict `:` functional-type(operands, results)";
}

// Convolutions, cross-correlation as in ONNX: input [N, C, spatial...],
// weight [M, C/group, kernel...], output [N, M, spatial...]. Three ops that are
// closed under differentiation; ConvTranspose is conv_input_grad.
class Ckopt_ConvLike<string mnemonic, list<Trait> traits = []> : Ckopt_Op<mnemonic, "Library", traits # [ContractionOpInterface, SameOperandsElementType]> {
  dag windowAttrs = (ins DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$pads_low,
      DenseI64ArrayAttr:$pads_high, DenseI64ArrayAttr:$dilations, I64Attr:$groups);
  let hasVerifier = 1;
  string convDecl = baseDecl # Ckopt_Layout<"Convolution">.decl # Ckopt_Contraction<"Convolution">.decl
      # "double getFlops();\n";
}

def Ckopt_ConvOp : Ckopt_ConvLike<"conv", [SampleAxisOpInterface, DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "Convolution (1-D to 3-D), without bias";
  let arguments = !con((ins Ckopt_FloatTensor:$input, Ckopt_FloatTensor:$weight), windowAttrs);
  let results = (outs Ckopt_FloatTensor:$output);
  let assemblyFormat = "$input `,` $weight attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = convDecl # Ckopt_AnyWidth<>.decl # Ckopt_OwnRelation<>.decl
      # Ckopt_Convolved<"getInput", "getOutput", "getWeight">.decl;
}
def Ckopt_ConvInputGradOp : Ckopt_ConvLike<"conv_input_grad", [SampleAxisOpInterface]> {
  let extraClassDeclaration = convDecl # Ckopt_OwnRelation<>.decl
      # Ckopt_Convolved<"getGrad", "getOutput", "getWeight">.decl;
  let summary = "Gradient of conv with respect to its input (of the result's shape); also ConvTranspose";
  let arguments = !con((ins Ckopt_FloatTensor:$grad, Ckopt_FloatTensor:$weight), windowAttrs);
  let results = (outs Ckopt_FloatTensor:$output);
  let assemblyFormat = "$grad `,` $weight attr-dict `:` functional-type(operands, results)";
}
def Ckopt_ConvWeightGradOp : Ckopt_ConvLike<"conv_weight_grad"> {
  let extraClassDeclaration = convDecl # Ckopt_Convolved<"getGrad", "getInput", "getOutput">.decl;
  let summary = "Gradient of conv with respect to its weight (of the result's shape)";
  let arguments = !con((ins Ckopt_FloatTensor:$grad, Ckopt_FloatTensor:$input), windowAttrs);
  let results = (outs Ckopt_FloatTensor:$output);
  let assemblyFormat = "$grad `,` $input attr-dict `:` functional-type(operands, results)";
}

class Ckopt_PoolLike<string mnemonic> : Ckopt_Op<mnemonic, "Indexed", [SampleAxisOpInterface]> {
  let extraClassDeclaration = baseDecl # Ckopt_Layout<"Uniform">.decl # Ckopt_OwnRelation<>.decl;
  dag windowAttrs = (ins DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$pads_low,
      DenseI64ArrayAttr:$pads_high, DenseI64ArrayAttr:$dilations);
  let hasVerifier = 1;
}

def Ckopt_MaxPoolOp : Ckopt_PoolLike<"max_pool"> {
  let summary = "Max pooling over the spatial dimensions, and which point of the window won";
  let description = [{
    `index` is the winner's row-major position in the window (the first of
    equals, a NaN before all), i8 for windows of up to 127 points, else i32.
    pads_high may be negative or larger than asked for: it fixes the result's size
    (ceil_mode is resolved when importing); padding never wins.
  }];
  let arguments = !con((ins Ckopt_FloatTensor:$input), windowAttrs);
  let results = (outs Ckopt_FloatTensor:$output, TensorOf<[I8, I32]>:$index);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}
def Ckopt_MaxPoolGradOp : Ckopt_PoolLike<"max_pool_grad"> {
  let summary = "Adds each window's gradient at the point that won";
  let arguments = !con((ins Ckopt_FloatTensor:$grad, TensorOf<[I8, I32]>:$index), windowAttrs);
  let results = (outs Ckopt_FloatTensor:$output);
  let assemblyFormat = "$grad `,` $index attr-dict `:` functional-type(operands, results)";
}
def Ckopt_AvgPoolOp : Ckopt_PoolLike<"avg_pool"> {
  let summary = "Average pooling; `count_include_pad` divides by the window's size (as clipped to the padded input), else by its points inside";
  let arguments = !con((ins Ckopt_FloatTensor:$input), windowAttrs, (ins UnitAttr:$count_include_pad));
  let results = (outs Ckopt_FloatTensor:$output);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}
def Ckopt_AvgPoolGradOp : Ckopt_PoolLike<"avg_pool_grad"> {
  let summary = "Spreads each window's gradient over its points";
  let arguments = !con((ins Ckopt_FloatTensor:$grad), windowAttrs, (ins UnitAttr:$count_include_pad));
  let results = (outs Ckopt_FloatTensor:$output);
  let assemblyFormat = "$grad attr-dict `:` functional-type(operands, results)";
}

def Ckopt_BatchNormOp : Ckopt_InferOp<"batch_norm", "RowWise", [SampleAxisOpInterface]> {
  let extraClassDeclaration = baseDecl # Ckopt_AnyLayout<>.decl # Ckopt_Layout<"Uniform">.decl # Ckopt_OwnRelation<>.decl # [{
    /// Each sample enters the statistics, which have channels alone.
    bool hasAxisOfFirst(unsigned result, int64_t) { return result == 0; }
  }];
  let summary = "Batch normalization with the batch's own statistics, per channel (dimension 1)";
  let description = [{
    A composite for autodiff: `ckopt-decompose` turns it into moments and
    elementwise ops. mean and variance (population) have shape [C].
  }];
  let arguments = (ins Ckopt_FloatTensor:$input, Ckopt_FloatTensor:$scale, Ckopt_FloatTensor:$bias, F64Attr:$epsilon);
  let results = (outs Ckopt_FloatTensor:$output, Ckopt_FloatTensor:$mean, Ckopt_FloatTensor:$variance);
  let assemblyFormat = "$input `,` $scale `,` $bias attr-dict `:` functional-type(operands, results)";
}
def Ckopt_BatchNormGradOp : Ckopt_InferOp<"batch_norm_grad", "RowWise"> {
  let extraClassDeclaration = baseDecl # Ckopt_AnyLayout<>.decl # Ckopt_Layout<"Uniform">.decl;
  let summary = "Gradients of batch_norm with respect to input, scale and bias";
  let arguments = (ins Ckopt_FloatTensor:$grad, Ckopt_FloatTensor:$input, Ckopt_FloatTensor:$scale,
                       Ckopt_FloatTensor:$mean, Ckopt_FloatTensor:$variance, F64Attr:$epsilon);
  let results = (outs Ckopt_FloatTensor:$input_grad, Ckopt_FloatTensor:$scale_grad, Ckopt_FloatTensor:$bias_grad);
  let assemblyFormat = "$grad `,` $input `,` $scale `,` $mean `,` $variance attr-dict `:` functional-type(operands, results)";
}
def Ckopt_BatchNormInferenceOp : Ckopt_InferOp<"batch_norm_inference", "Elementwise", [Ckopt_ReadsPlace]> {
  let relation = Ckopt_OwnRelation<>.decl;
  let summary = "Batch normalization with given statistics: (x - mean) / sqrt(variance + epsilon) * scale + bias";
  let arguments = (ins Ckopt_FloatTensor:$input, Ckopt_FloatTensor:$scale, Ckopt_FloatTensor:$bias,
                       Ckopt_FloatTensor:$mean, Ckopt_FloatTensor:$variance, F64Attr:$epsilon);
  let results = (outs Ckopt_FloatTensor:$output);
  let assemblyFormat = "$input `,` $scale `,` $bias `,` $mean `,` $variance attr-dict `:` functional-type(operands, results)";
}

#endif // CKOPT_DIALECT_CKOPT_NN
