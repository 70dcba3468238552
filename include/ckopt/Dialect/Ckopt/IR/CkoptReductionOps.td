//===- CkoptReductionOps.td - reductions and row ops --------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_DIALECT_CKOPT_REDUCTION
#define CKOPT_DIALECT_CKOPT_REDUCTION

include "ckopt/Dialect/Ckopt/IR/CkoptEnums.td"

def Ckopt_ReduceOp : Ckopt_InferOp<"reduce", "Reduction", [SampleAxisOpInterface, Ckopt_KeepsPoles]> {
  let summary = "Reduces `axes`; `keepdims` leaves them with size 1";
  let description = [{
    Sums of f16 and bf16 accumulate in f32. max and min give NaN where one is.
  }];
  let arguments = (ins Ckopt_ReduceAttr:$kind, Ckopt_NumTensor:$input, DenseI64ArrayAttr:$axes, BoolAttr:$keepdims);
  let results = (outs Ckopt_NumTensor:$output);
  let extraClassDeclaration = baseDecl # Ckopt_AnyLayout<>.decl # Ckopt_OwnRelation<>.decl;
  let assemblyFormat = "$kind $input attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

def Ckopt_MomentsOp : Ckopt_InferOp<"moments", "Reduction", [SampleAxisOpInterface]> {
  let summary = "Mean and population variance over `axes` (keepdims: false)";
  let arguments = (ins Ckopt_FloatTensor:$input, DenseI64ArrayAttr:$axes);
  let results = (outs Ckopt_FloatTensor:$mean, Ckopt_FloatTensor:$variance);
  let extraClassDeclaration = baseDecl # Ckopt_AnyLayout<>.decl # Ckopt_OwnRelation<>.decl;
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}

class Ckopt_SoftmaxLike<string mnemonic, string text, list<Trait> traits = []>
    : Ckopt_InferOp<mnemonic, "RowWise", traits # [SampleAxisOpInterface]> {
  let summary = text;
  let arguments = (ins Ckopt_FloatTensor:$input, I64Attr:$axis);
  let results = (outs Ckopt_FloatTensor:$output);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
  string softmaxDecl = baseDecl # Ckopt_AnyWidth<>.decl # Ckopt_AlongAxis<>.decl;
  let extraClassDeclaration = softmaxDecl;
}
def Ckopt_SoftmaxOp : Ckopt_SoftmaxLike<"softmax", "e^(x - max) / sum, along `axis`", [Ckopt_NonNegative]>;
def Ckopt_LogSoftmaxOp : Ckopt_SoftmaxLike<"log_softmax", "x - max - log(sum e^(x - max)), along `axis`"> {
  // Differences of logarithms count.
  let extraClassDeclaration = softmaxDecl # Ckopt_Storage<"Full">.decl;
}

class Ckopt_SoftmaxGradLike<string mnemonic, string text> : Ckopt_InferOp<mnemonic, "RowWise", [SampleAxisOpInterface]> {
  let summary = text;
  let arguments = (ins Ckopt_FloatTensor:$grad, Ckopt_FloatTensor:$result, I64Attr:$axis);
  let results = (outs Ckopt_FloatTensor:$output);
  let assemblyFormat = "$grad `,` $result attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = baseDecl # Ckopt_AnyWidth<>.decl # Ckopt_AlongAxis<>.decl;
}
def Ckopt_SoftmaxGradOp : Ckopt_SoftmaxGradLike<"softmax_grad", "y * (dy - sum(dy * y)), y the result of softmax">;
def Ckopt_LogSoftmaxGradOp : Ckopt_SoftmaxGradLike<"log_softmax_grad", "dy - e^y * sum(dy), y the result of log_softmax">;

def Ckopt_LayerNormOp : Ckopt_InferOp<"layer_norm", "RowWise", [SampleAxisOpInterface, AttrSizedOperandSegments]> {
  let summary = "(x - mean) * rstd * scale + bias over the dimensions from `axis` on";
  let description = [{
    mean and rstd = 1 / sqrt(variance + epsilon) have the shape of the
    dimensions before `axis`. scale and bias, if there, have the shape of those
    from `axis` on (or broadcast to it).
  }];
  let arguments = (ins Ckopt_FloatTensor:$input, Optional<Ckopt_FloatTensor>:$scale,
                       Optional<Ckopt_FloatTensor>:$bias, I64Attr:$axis, F64Attr:$epsilon);
  let results = (outs Ckopt_FloatTensor:$output, Ckopt_FloatTensor:$mean, Ckopt_FloatTensor:$rstd);
  let assemblyFormat = "$input (`scale` $scale^)? (`bias` $bias^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let extraClassDeclaration = baseDecl # Ckopt_AnyWidth<>.decl # Ckopt_OwnRelation<>.decl # [{
    bool isStatistic(unsigned index) { return index > 0; }
    /// The statistics have the dimensions before `axis`.
    bool hasAxisOfFirst(unsigned result, int64_t axis) { return result == 0 || axis < int64_t(getAxis()); }
  }];
}

def Ckopt_LayerNormGradOp : Ckopt_InferOp<"layer_norm_grad", "RowWise"> {
  let summary = "Gradient of layer_norm with respect to its input";
  let description = [{
    With g = dy * scale and h = (x - mean) * rstd:
    dx = rstd * (g - mean(g) - h * mean(g * h)), means over a row.
  }];
  let arguments = (ins Ckopt_FloatTensor:$grad, Ckopt_FloatTensor:$input, Ckopt_FloatTensor:$mean,
                       Ckopt_FloatTensor:$rstd, Optional<Ckopt_FloatTensor>:$scale, I64Attr:$axis);
  let results = (outs Ckopt_FloatTensor:$output);
  let assemblyFormat = "$grad `,` $input `,` $mean `,` $rstd (`scale` $scale^)? attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = baseDecl # Ckopt_AnyWidth<>.decl;
}

def Ckopt_RmsNormOp : Ckopt_InferOp<"rms_norm", "RowWise", [SampleAxisOpInterface]> {
  let summary = "x * rstd * scale over the dimensions from `axis` on, rstd = 1 / sqrt(mean(x * x) + epsilon)";
  let description = [{
    rstd has the shape of the dimensions before `axis`, and of halves it is f32. scale, if there, has
    the shape of those from `axis` on (or broadcasts to it). Of halves, `rounds` says that x * rstd
    is rounded to the result's type before it is scaled.
  }];
  let arguments = (ins Ckopt_FloatTensor:$input, Optional<Ckopt_FloatTensor>:$scale,
                       I64Attr:$axis, F64Attr:$epsilon, UnitAttr:$rounds);
  let results = (outs Ckopt_FloatTensor:$output, Ckopt_FloatTensor:$rstd);
  let assemblyFormat = "$input (`scale` $scale^)? attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = baseDecl # Ckopt_AnyWidth<>.decl # Ckopt_OwnRelation<>.decl # [{
    bool isStatistic(unsigned index) { return index > 0; }
    /// rstd has the dimensions before `axis`.
    bool hasAxisOfFirst(unsigned result, int64_t axis) { return result == 0 || axis < int64_t(getAxis()); }
  }];
}

def Ckopt_RmsNormGradOp : Ckopt_InferOp<"rms_norm_grad", "RowWise"> {
  let summary = "Gradient of rms_norm with respect to its input";
  let description = [{
    With g = dy * scale and h = x * rstd: dx = rstd * (g - h * mean(g * h)), the mean over a row.
  }];
  let arguments = (ins Ckopt_FloatTensor:$grad, Ckopt_FloatTensor:$input, Ckopt_FloatTensor:$rstd,
                       Optional<Ckopt_FloatTensor>:$scale, I64Attr:$axis);
  let results = (outs Ckopt_FloatTensor:$output);
  let assemblyFormat = "$grad `,` $input `,` $rstd (`scale` $scale^)? attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = baseDecl # Ckopt_AnyWidth<>.decl;
}

#endif // CKOPT_DIALECT_CKOPT_REDUCTION
