//===- CkoptShapeOps.td - constants, shapes, data movement --*- tablegen -*-===//
#ifndef CKOPT_DIALECT_CKOPT_SHAPE
#define CKOPT_DIALECT_CKOPT_SHAPE

include "ckopt/Dialect/Ckopt/IR/CkoptEnums.td"

def Ckopt_ConstantOp : Ckopt_InferOp<"constant", "Constant", [ConstantLike]> {
  let summary = "A constant tensor (small ones and splats; large ones are arguments)";
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Ckopt_Tensor:$output);
  let assemblyFormat = "attr-dict $value";
  let hasFolder = 1;
}

def Ckopt_IotaOp : Ckopt_Op<"iota", "Constant"> {
  let summary = "Element i along `axis` is start + i * delta";
  let arguments = (ins I64Attr:$axis, DefaultValuedAttr<F64Attr, "0.0">:$start, DefaultValuedAttr<F64Attr, "1.0">:$delta);
  let results = (outs Ckopt_NumTensor:$output);
  let assemblyFormat = "attr-dict `:` type($output)";
  let hasVerifier = 1;
}

def Ckopt_ReshapeOp : Ckopt_Op<"reshape", "View"> {
  let summary = "Same elements in row-major order, another shape";
  let arguments = (ins Ckopt_Tensor:$input);
  let results = (outs Ckopt_Tensor:$output);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Ckopt_TransposeOp : Ckopt_InferOp<"transpose", "Indexed"> {
  let summary = "Result dimension i is operand dimension permutation[i]";
  let description = [{
    A view, without any code, where the layouts of operand and result make the
    bytes of both the same.
  }];
  let extraClassDeclaration = [{
    ::ckopt::KernelKind getKernelKind();
    static bool isCompatibleReturnTypes(::mlir::TypeRange l, ::mlir::TypeRange r) {
      return ::ckopt::detail::equalUpToLayout(l, r);
    }
  }];
  let arguments = (ins Ckopt_Tensor:$input, DenseI64ArrayAttr:$permutation);
  let results = (outs Ckopt_Tensor:$output);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Ckopt_SliceOp : Ckopt_InferOp<"slice", "Indexed"> {
  let summary = "Elements start, start + step, ... (size of them) of each dimension; steps may be negative";
  let arguments = (ins Ckopt_Tensor:$input, DenseI64ArrayAttr:$starts,
                       DenseI64ArrayAttr:$sizes, DenseI64ArrayAttr:$steps);
  let results = (outs Ckopt_Tensor:$output);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Ckopt_ConcatOp : Ckopt_InferOp<"concat", "Indexed", [SameOperandsElementType]> {
  let summary = "Operands one after another along `axis`";
  let arguments = (ins Variadic<Ckopt_Tensor>:$inputs, I64Attr:$axis);
  let results = (outs Ckopt_Tensor:$output);
  let assemblyFormat = "$inputs attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

def Ckopt_PadOp : Ckopt_InferOp<"pad", "Indexed"> {
  let summary = "Surrounds with `value`: low before, high after, interior between neighbours (none negative)";
  let arguments = (ins Ckopt_Tensor:$input, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high,
                       DenseI64ArrayAttr:$interior, DefaultValuedAttr<F64Attr, "0.0">:$value);
  let results = (outs Ckopt_Tensor:$output);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Ckopt_ExpandOp : Ckopt_Op<"expand", "Indexed"> {
  let summary = "numpy broadcast to the result's shape";
  let arguments = (ins Ckopt_Tensor:$input);
  let results = (outs Ckopt_Tensor:$output);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Ckopt_TriluOp : Ckopt_UnaryOp<"trilu", "Keeps the triangle col - row >= k (upper) or <= k (lower) of the last two dimensions, zero elsewhere", Ckopt_Tensor> {
  let arguments = (ins Ckopt_Tensor:$input, BoolAttr:$upper, DefaultValuedAttr<I64Attr, "0">:$k);
}

def Ckopt_GatherOp : Ckopt_InferOp<"gather", "Indexed"> {
  let summary = "ONNX Gather: result[i.., j.., k..] = data[i.., indices[j..], k..]; negative indices count from the end";
  let arguments = (ins Ckopt_Tensor:$data, Ckopt_IndexTensor:$indices, I64Attr:$axis);
  let results = (outs Ckopt_Tensor:$output);
  let assemblyFormat = "$data `,` $indices attr-dict `:` functional-type(operands, results)";
}

def Ckopt_ScatterAddOp : Ckopt_InferOp<"scatter_add", "Structured"> {
  let summary = "The gradient of gather: init plus each update added at its index along `axis`, in the order of the updates";
  let arguments = (ins Ckopt_NumTensor:$init, Ckopt_IndexTensor:$indices, Ckopt_NumTensor:$updates, I64Attr:$axis);
  let results = (outs Ckopt_NumTensor:$output);
  let assemblyFormat = "$init `,` $indices `,` $updates attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = baseDecl # [{
    static bool isCompatibleReturnTypes(::mlir::TypeRange l, ::mlir::TypeRange r) {
      return ::ckopt::detail::equalUpToLayout(l, r);
    }
    ::llvm::SmallVector<std::pair<unsigned, unsigned>> getReusePairs() {
      if (getInit().getType() == getOutput().getType())
        return {{0, 0}};
      return {};
    }
  }];
}

def Ckopt_RelayoutOp : Ckopt_Op<"relayout", "Indexed", [SameOperandsAndResultShape, SameOperandsAndResultElementType]> {
  let summary = "Same logical tensor, another physical order of dimensions";
  let arguments = (ins Ckopt_Tensor:$input);
  let results = (outs Ckopt_Tensor:$output);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

#endif // CKOPT_DIALECT_CKOPT_SHAPE
