//===- CkoptShapeOps.td - constants, shapes, data movement --*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
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

def Ckopt_ReshapeOp : Ckopt_Op<"reshape", "View", [SampleAxisOpInterface, Ckopt_KeepsElements, Ckopt_KeepsPoles]> {
  let summary = "Same elements in row-major order, another shape";
  let extraClassDeclaration = baseDecl # [{
    /// Only dimensions of size 1 come or go: an index maps to one index.
    bool isFusible();
    /// What a reshape does to an axis depends on what lies along it.
    ::ckopt::AxisRelation relateAxis(unsigned, int64_t) { return ::ckopt::AxisRelation::other(); }
  }];
  let arguments = (ins Ckopt_Tensor:$input);
  let results = (outs Ckopt_Tensor:$output);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Ckopt_TransposeOp : Ckopt_InferOp<"transpose", "Indexed", [SampleAxisOpInterface, Ckopt_KeepsElements, Ckopt_KeepsPoles]> {
  let summary = "Result dimension i is operand dimension permutation[i]";
  let description = [{
    A view, without any code, where the layouts of operand and result make the
    bytes of both the same.
  }];
  let extraClassDeclaration = Ckopt_AnyLayout<>.decl # Ckopt_OwnRelation<>.decl # [{
    ::ckopt::KernelKind getKernelKind();
    bool isFusible();
  }];
  let arguments = (ins Ckopt_Tensor:$input, DenseI64ArrayAttr:$permutation);
  let results = (outs Ckopt_Tensor:$output);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Ckopt_SliceOp : Ckopt_InferOp<"slice", "Indexed", [SampleAxisOpInterface, Ckopt_ReadsPart]> {
  let extraClassDeclaration = baseDecl # Ckopt_AnyLayout<>.decl # Ckopt_Layout<"Uniform">.decl # Ckopt_OwnRelation<>.decl # "bool isFusible();";
  let summary = "Elements start, start + step, ... (size of them) of each dimension; steps may be negative";
  let arguments = (ins Ckopt_Tensor:$input, DenseI64ArrayAttr:$starts,
                       DenseI64ArrayAttr:$sizes, DenseI64ArrayAttr:$steps);
  let results = (outs Ckopt_Tensor:$output);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Ckopt_ConcatOp : Ckopt_InferOp<"concat", "Indexed", [SampleAxisOpInterface, SameOperandsElementType]> {
  let extraClassDeclaration = baseDecl # Ckopt_AnyLayout<>.decl # Ckopt_Layout<"Uniform">.decl # Ckopt_AlongAxis<>.decl # "bool isFusible();";
  let summary = "Operands one after another along `axis`";
  let arguments = (ins Variadic<Ckopt_Tensor>:$inputs, I64Attr:$axis);
  let results = (outs Ckopt_Tensor:$output);
  let assemblyFormat = "$inputs attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

def Ckopt_PadOp : Ckopt_InferOp<"pad", "Indexed", [SampleAxisOpInterface]> {
  let extraClassDeclaration = baseDecl # Ckopt_AnyLayout<>.decl # Ckopt_Layout<"Uniform">.decl # Ckopt_OwnRelation<>.decl # "bool isFusible();";
  let summary = "Surrounds with `value`: low before, high after, interior between neighbours (none negative)";
  let arguments = (ins Ckopt_Tensor:$input, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high,
                       DenseI64ArrayAttr:$interior, DefaultValuedAttr<F64Attr, "0.0">:$value);
  let results = (outs Ckopt_Tensor:$output);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Ckopt_ExpandOp : Ckopt_Op<"expand", "Indexed", [SampleAxisOpInterface, Ckopt_KeepsElements, Ckopt_KeepsPoles]> {
  let extraClassDeclaration = baseDecl # Ckopt_Broadcasts<>.decl # "bool isFusible() { return true; }";
  let summary = "numpy broadcast to the result's shape";
  let arguments = (ins Ckopt_Tensor:$input);
  let results = (outs Ckopt_Tensor:$output);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Ckopt_TriluOp : Ckopt_UnaryOp<"trilu", "Keeps the triangle col - row >= k (upper) or <= k (lower) of the last two dimensions, zero elsewhere", Ckopt_Tensor, 1, [Ckopt_ReadsPlace]> {
  let arguments = (ins Ckopt_Tensor:$input, BoolAttr:$upper, DefaultValuedAttr<I64Attr, "0">:$k);
  let relation = Ckopt_OwnRelation<>.decl;
  let extraClassDefinition = ""; // needs two dimensions
}

def Ckopt_GatherOp : Ckopt_InferOp<"gather", "Indexed", [SampleAxisOpInterface, IndexingOpInterface, Ckopt_ReadsPart]> {
  let extraClassDeclaration = baseDecl # Ckopt_AnyLayout<>.decl # Ckopt_OwnRelation<>.decl # [{
    ::mlir::Value getTable() { return getData(); }
    bool isFusible();
    bool needsStoredOperand(unsigned index) { return index == 0; }
  }];
  let summary = "ONNX Gather: result[i.., j.., k..] = data[i.., indices[j..], k..]; negative indices count from the end";
  let arguments = (ins Ckopt_Tensor:$data, Ckopt_IndexTensor:$indices, I64Attr:$axis);
  let results = (outs Ckopt_Tensor:$output);
  let assemblyFormat = "$data `,` $indices attr-dict `:` functional-type(operands, results)";
}

def Ckopt_ScatterAddOp : Ckopt_InferOp<"scatter_add", "Structured", [SampleAxisOpInterface, IndexingOpInterface]> {
  let summary = "The gradient of gather: init plus each update added at its index along `axis`, in the order of the updates";
  let arguments = (ins Ckopt_NumTensor:$init, Ckopt_IndexTensor:$indices, Ckopt_NumTensor:$updates, I64Attr:$axis);
  let results = (outs Ckopt_NumTensor:$output);
  let assemblyFormat = "$init `,` $indices `,` $updates attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = baseDecl # Ckopt_AnyLayout<>.decl # Ckopt_OwnRelation<>.decl # [{
    ::mlir::Value getTable() { return getInit(); }
    ::llvm::SmallVector<std::pair<unsigned, unsigned>> getReusePairs() {
      if (getInit().getType() == getOutput().getType())
        return {{0, 0}};
      return {};
    }
  }];
}

def Ckopt_GatherElementsOp : Ckopt_InferOp<"gather_elements", "Indexed", [SampleAxisOpInterface, IndexingOpInterface, Ckopt_ReadsPart]> {
  let extraClassDeclaration = baseDecl # Ckopt_AnyLayout<>.decl # Ckopt_AlongAxis<>.decl # [{
    ::mlir::Value getTable() { return getData(); }
    bool namesElements() { return true; }
    bool needsStoredOperand(unsigned index) { return index == 0; }
  }];
  let summary = "ONNX GatherElements: result[.., j, ..] = data[.., indices[.., j, ..], ..]; negative indices count from the end";
  let description = [{
    data and indices have equal rank; the result has the shape of indices. Along
    the other dimensions indices may be smaller than data, never larger.
  }];
  let arguments = (ins Ckopt_Tensor:$data, Ckopt_IndexTensor:$indices, I64Attr:$axis);
  let results = (outs Ckopt_Tensor:$output);
  let assemblyFormat = "$data `,` $indices attr-dict `:` functional-type(operands, results)";
}

def Ckopt_ScatterElementsOp : Ckopt_InferOp<"scatter_elements", "Structured", [SampleAxisOpInterface, IndexingOpInterface]> {
  let summary = "ONNX ScatterElements: init, with each update put at (or added to, ...) the element that its index names along `axis`";
  let description = [{
    Updates along `axis` are applied in increasing order, so that of several
    for one element the last one stays (`set`) and sums have one set of bits.
    max and min give NaN where one is.
  }];
  let arguments = (ins Ckopt_ScatterAttr:$kind, Ckopt_Tensor:$init, Ckopt_IndexTensor:$indices, Ckopt_Tensor:$updates, I64Attr:$axis);
  let results = (outs Ckopt_Tensor:$output);
  let assemblyFormat = "$kind $init `,` $indices `,` $updates attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = baseDecl # Ckopt_AnyLayout<>.decl # Ckopt_AlongAxis<>.decl # [{
    ::mlir::Value getTable() { return getInit(); }
    bool namesElements() { return true; }
    ::llvm::SmallVector<std::pair<unsigned, unsigned>> getReusePairs() {
      if (getInit().getType() == getOutput().getType())
        return {{0, 0}};
      return {};
    }
  }];
}

def Ckopt_CumulativeSumOp : Ckopt_InferOp<"cumulative_sum", "Structured", [SampleAxisOpInterface]> {
  let summary = "Sums of all elements up to each one along `axis`, added in order; `exclusive`: without the element itself, `reverse`: from the end";
  let arguments = (ins Ckopt_NumTensor:$input, I64Attr:$axis, UnitAttr:$exclusive, UnitAttr:$reverse);
  let results = (outs Ckopt_NumTensor:$output);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = baseDecl # Ckopt_AnyLayout<>.decl # Ckopt_AlongAxis<>.decl;
}

def Ckopt_TopKOp : Ckopt_InferOp<"top_k", "Structured", [SampleAxisOpInterface]> {
  let summary = "Indices along `axis` of the `k` largest (`smallest`: smallest) elements, best first; of equal ones the lower index first (`last`: the higher one)";
  let description = [{
    NaN is larger than every number, as in PyTorch. The values themselves are
    gather_elements of the operand, so that gradients rest on the indices that
    this op chose.
  }];
  let arguments = (ins Ckopt_NumTensor:$input, I64Attr:$axis, I64Attr:$k, UnitAttr:$smallest, UnitAttr:$last);
  let results = (outs Ckopt_IndexTensor:$indices);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = baseDecl # Ckopt_AnyLayout<>.decl # Ckopt_AlongAxis<>.decl;
}

def Ckopt_PinOp : Ckopt_InferOp<"pin", "View", [SampleAxisOpInterface, Ckopt_KeepsElements]> {
  let summary = "The operand, stored: all readers see the same bytes";
  let description = [{
    Fusion may compute an expression again inside each kernel that reads it.
    Where a gradient compares a value with what was chosen from it (a maximum),
    both must read one stored copy, or a difference in the last bit would lose
    the gradient. Autodiff puts a pin there; it costs the bytes of the operand
    and no time.
  }];
  let extraClassDeclaration = baseDecl # Ckopt_AnyLayout<>.decl # Ckopt_Broadcasts<>.decl;
  let arguments = (ins Ckopt_Tensor:$input);
  let results = (outs Ckopt_Tensor:$output);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}

def Ckopt_RelayoutOp : Ckopt_Op<"relayout", "Indexed", [Ckopt_KeepsElements, SameOperandsAndResultShape, SameOperandsAndResultElementType]> {
  let summary = "Same logical tensor, another physical order of dimensions";
  let arguments = (ins Ckopt_Tensor:$input);
  let results = (outs Ckopt_Tensor:$output);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

#endif // CKOPT_DIALECT_CKOPT_SHAPE
