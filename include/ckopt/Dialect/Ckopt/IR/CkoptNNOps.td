//===- CkoptNNOps.td - contractions, convolutions, pooling --*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_DIALECT_CKOPT_NN
#define CKOPT_DIALECT_CKOPT_NN

include "ckopt/Dialect/Ckopt/IR/CkoptEnums.td"

def Ckopt_MatMulOp : Ckopt_InferOp<"matmul", "Library", [SameOperandsElementType]> {
  let summary = "Batched matrix product; leading dimensions broadcast; `transpose_*` swaps an operand's last two. Halves may have a result of f32";
  let arguments = (ins Ckopt_FloatTensor:$lhs, Ckopt_FloatTensor:$rhs, UnitAttr:$transpose_lhs, UnitAttr:$transpose_rhs);
  let results = (outs Ckopt_FloatTensor:$output);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = baseDecl # Ckopt_AnyWidth<>.decl # [{
    double getFlops();
  }];
  let hasCanonicalizer = 1;
}

def Ckopt_MatMulAddOp : Ckopt_InferOp<"matmul_add", "Library"> {
  let summary = "addend + lhs rhs, of two matrices; `transpose_*` swaps an operand's dimensions";
  let description = [{
    A sum that grows product by product, in the addend's bytes where a plan
    allows it. lhs and rhs may be halves with an addend and a result of f32.
  }];
  let arguments = (ins Ckopt_FloatTensor:$lhs, Ckopt_FloatTensor:$rhs, Ckopt_FloatTensor:$addend, UnitAttr:$transpose_lhs, UnitAttr:$transpose_rhs);
  let results = (outs Ckopt_FloatTensor:$output);
  let assemblyFormat = "$lhs `,` $rhs `,` $addend attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = baseDecl # Ckopt_AnyLayout<>.decl # [{
    double getFlops();
    ::llvm::SmallVector<std::pair<unsigned, unsigned>> getReusePairs() { return {{2, 0}}; }
  }];
}

// Convolutions, cross-correlation as in ONNX: input [N, C, spatial...],
// weight [M, C/group, kernel...], output [N, M, spatial...]. Three ops that are
// closed under differentiation; ConvTranspose is conv_input_grad.
class Ckopt_ConvLike<string mnemonic, list<Trait> traits = []> : Ckopt_Op<mnemonic, "Library", traits # [SameOperandsElementType]> {
  dag windowAttrs = (ins DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$pads_low,
      DenseI64ArrayAttr:$pads_high, DenseI64ArrayAttr:$dilations, I64Attr:$groups);
  let hasVerifier = 1;
  let extraClassDeclaration = baseDecl # Ckopt_Layout<"Convolution">.decl # "double getFlops();\n";
}

def Ckopt_ConvOp : Ckopt_ConvLike<"conv", [DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "Convolution (1-D to 3-D), without bias";
  let arguments = !con((ins Ckopt_FloatTensor:$input, Ckopt_FloatTensor:$weight), windowAttrs);
  let results = (outs Ckopt_FloatTensor:$output);
  let assemblyFormat = "$input `,` $weight attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = baseDecl # Ckopt_AnyWidth<>.decl # Ckopt_Layout<"Convolution">.decl # "double getFlops();\n";
}
def Ckopt_ConvInputGradOp : Ckopt_ConvLike<"conv_input_grad"> {
  let summary = "Gradient of conv with respect to its input (of the result's shape); also ConvTranspose";
  let arguments = !con((ins Ckopt_FloatTensor:$grad, Ckopt_FloatTensor:$weight), windowAttrs);
  let results = (outs Ckopt_FloatTensor:$output);
  let assemblyFormat = "$grad `,` $weight attr-dict `:` functional-type(operands, results)";
}
def Ckopt_ConvWeightGradOp : Ckopt_ConvLike<"conv_weight_grad"> {
  let summary = "Gradient of conv with respect to its weight (of the result's shape)";
  let arguments = !con((ins Ckopt_FloatTensor:$grad, Ckopt_FloatTensor:$input), windowAttrs);
  let results = (outs Ckopt_FloatTensor:$output);
  let assemblyFormat = "$grad `,` $input attr-dict `:` functional-type(operands, results)";
}

class Ckopt_PoolLike<string mnemonic> : Ckopt_Op<mnemonic, "Indexed"> {
  let extraClassDeclaration = baseDecl # Ckopt_Layout<"Uniform">.decl;
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

def Ckopt_BatchNormOp : Ckopt_InferOp<"batch_norm", "RowWise"> {
  let extraClassDeclaration = baseDecl # Ckopt_AnyLayout<>.decl # Ckopt_Layout<"Uniform">.decl;
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
def Ckopt_BatchNormInferenceOp : Ckopt_InferOp<"batch_norm_inference", "Elementwise"> {
  let summary = "Batch normalization with given statistics: (x - mean) / sqrt(variance + epsilon) * scale + bias";
  let arguments = (ins Ckopt_FloatTensor:$input, Ckopt_FloatTensor:$scale, Ckopt_FloatTensor:$bias,
                       Ckopt_FloatTensor:$mean, Ckopt_FloatTensor:$variance, F64Attr:$epsilon);
  let results = (outs Ckopt_FloatTensor:$output);
  let assemblyFormat = "$input `,` $scale `,` $bias `,` $mean `,` $variance attr-dict `:` functional-type(operands, results)";
}

#endif // CKOPT_DIALECT_CKOPT_NN
