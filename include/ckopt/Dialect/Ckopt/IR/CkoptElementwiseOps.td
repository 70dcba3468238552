//===- CkoptElementwiseOps.td - elementwise ops -------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_DIALECT_CKOPT_ELEMENTWISE
#define CKOPT_DIALECT_CKOPT_ELEMENTWISE

include "ckopt/Dialect/Ckopt/IR/CkoptEnums.td"

// The result has the first operand's element type.
class Ckopt_Broadcasting<string mnemonic, list<Trait> traits = []> : Ckopt_InferOp<mnemonic, "Elementwise", traits> {
  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::inferReturnTypes(::mlir::MLIRContext *, ::std::optional<::mlir::Location> loc,
        ::mlir::ValueRange operands, ::mlir::DictionaryAttr, ::mlir::OpaqueProperties, ::mlir::RegionRange,
        ::llvm::SmallVectorImpl<::mlir::Type> &results) {
      return ::ckopt::inferBroadcast(loc, operands, ::mlir::getElementTypeOrSelf(operands.front()), results);
    }
  }];
}

//===----------------------------------------------------------------------===//
// One operand: the result has its type.
//===----------------------------------------------------------------------===//

// `approximated`: operations where a device approximates functions, `flops` times
// the ratio of instructions in SASS (docs/benchmarks/gpu.md).
class Ckopt_UnaryOp<string mnemonic, string text, Type type = Ckopt_FloatTensor, int flops = 1,
                    list<Trait> traits = [], int approximated = flops>
    : Ckopt_Broadcasting<mnemonic, traits # [Elementwise, SameOperandsAndResultShape]> {
  let summary = text;
  let arguments = (ins type:$input);
  let results = (outs type:$output);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
  string unaryDecl = baseDecl # Ckopt_AnyLayout<>.decl # Ckopt_Flops<flops, approximated>.decl;
  let extraClassDeclaration = unaryDecl;
}

def Ckopt_NegOp : Ckopt_UnaryOp<"neg", "-x", Ckopt_NumTensor, 1, [Ckopt_Linear, Ckopt_KeepsPoles]> { let hasFolder = 1; }
def Ckopt_AbsOp : Ckopt_UnaryOp<"abs", "|x|", Ckopt_NumTensor, 1, [Ckopt_NonNegative, Ckopt_KeepsPoles]>;
def Ckopt_SignOp : Ckopt_UnaryOp<"sign", "-1, 0 or 1", Ckopt_NumTensor>;
def Ckopt_ExpOp : Ckopt_UnaryOp<"exp", "e^x", Ckopt_FloatTensor, 20, [Ckopt_NonNegative], 3>;
def Ckopt_LogOp : Ckopt_UnaryOp<"log", "natural logarithm", Ckopt_FloatTensor, 20, [Ckopt_KeepsPoles]> {
  // Differences of logarithms count.
  let extraClassDeclaration = unaryDecl # Ckopt_Storage<"Full">.decl;
}
def Ckopt_SqrtOp : Ckopt_UnaryOp<"sqrt", "square root", Ckopt_FloatTensor, 4, [Ckopt_KeepsPoles]>;
def Ckopt_RsqrtOp : Ckopt_UnaryOp<"rsqrt", "1 / sqrt(x), as a division and a square root (exactly rounded parts)", Ckopt_FloatTensor, 4>;
def Ckopt_ReciprocalOp : Ckopt_UnaryOp<"reciprocal", "1 / x", Ckopt_FloatTensor, 4>;
def Ckopt_TanhOp : Ckopt_UnaryOp<"tanh", "hyperbolic tangent", Ckopt_FloatTensor, 20, [], 6>;
def Ckopt_SigmoidOp : Ckopt_UnaryOp<"sigmoid", "1 / (1 + e^-x)", Ckopt_FloatTensor, 20, [Ckopt_NonNegative], 3>;
def Ckopt_ErfOp : Ckopt_UnaryOp<"erf", "Gauss error function", Ckopt_FloatTensor, 20, [], 10>;
def Ckopt_SinOp : Ckopt_UnaryOp<"sin", "sine", Ckopt_FloatTensor, 20>;
def Ckopt_CosOp : Ckopt_UnaryOp<"cos", "cosine", Ckopt_FloatTensor, 20>;
def Ckopt_AtanOp : Ckopt_UnaryOp<"atan", "arc tangent", Ckopt_FloatTensor, 20>;
def Ckopt_FloorOp : Ckopt_UnaryOp<"floor", "largest integer not above x">;
def Ckopt_CeilOp : Ckopt_UnaryOp<"ceil", "smallest integer not below x">;
def Ckopt_RoundOp : Ckopt_UnaryOp<"round", "nearest integer, halves to even">;
def Ckopt_ReluOp : Ckopt_UnaryOp<"relu", "max(x, 0), NaN stays NaN", Ckopt_NumTensor, 1, [Ckopt_NonNegative]>;
def Ckopt_SoftplusOp : Ckopt_UnaryOp<"softplus", "log(1 + e^x), computed as max(x,0) + log1p(e^-|x|)", Ckopt_FloatTensor, 20, [Ckopt_NonNegative], 14>;
def Ckopt_NotOp : Ckopt_UnaryOp<"not", "logical negation; of integers, of each bit", Ckopt_BitTensor>;

def Ckopt_GeluOp : Ckopt_UnaryOp<"gelu", "x * Phi(x); `tanh`: the tanh approximation", Ckopt_FloatTensor, 20, [], 10> {
  let arguments = (ins Ckopt_FloatTensor:$input, UnitAttr:$tanh);
}

def Ckopt_ClipOp : Ckopt_UnaryOp<"clip", "min(max(x, lo), hi); the gradient passes where lo <= x <= hi", Ckopt_NumTensor> {
  let arguments = (ins Ckopt_NumTensor:$input, F64Attr:$min, F64Attr:$max);
}

def Ckopt_CastOp : Ckopt_Op<"cast", "Elementwise", [Elementwise, SameOperandsAndResultShape, Ckopt_KeepsPoles]> {
  let summary = "Element type conversion as in ONNX: float to integer truncates, to bool compares with 0, float to float rounds to nearest even";
  let arguments = (ins Ckopt_Tensor:$input);
  let results = (outs Ckopt_Tensor:$output);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

//===----------------------------------------------------------------------===//
// What updates store in few bits.
//===----------------------------------------------------------------------===//

def Ckopt_SingleTensor : StaticShapeTensorOf<[F32]>;
def Ckopt_CodeTensor : StaticShapeTensorOf<[UI8]>;

// The result has the first operand's shape and the named element type.
class Ckopt_NarrowOp<string mnemonic, string text, string element, int flops>
    : Ckopt_InferOp<mnemonic, "Elementwise", [Elementwise, SameOperandsAndResultShape]> {
  let summary = text;
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = baseDecl # Ckopt_AnyLayout<>.decl # Ckopt_Flops<flops>.decl # Ckopt_Storage<"Full">.decl;
  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::inferReturnTypes(::mlir::MLIRContext *context, ::std::optional<::mlir::Location> loc,
        ::mlir::ValueRange operands, ::mlir::DictionaryAttr, ::mlir::OpaqueProperties, ::mlir::RegionRange,
        ::llvm::SmallVectorImpl<::mlir::Type> &results) {
      return ::ckopt::inferBroadcast(loc, operands, }] # element # [{, results);
    }
  }];
}

def Ckopt_RoundRandomOp : Ckopt_NarrowOp<"round_random",
    "x in bf16: the neighbor farther from 0 if the share of the distance that x has come, in steps of 2^-16, is above 1 - u",
    "::mlir::BFloat16Type::get(context)", 6> {
  let description = [{
    For u that are uniform in [0, 1) the mean is x. Infinities and NaN stay.
  }];
  let arguments = (ins Ckopt_SingleTensor:$input, Ckopt_SingleTensor:$u);
  let results = (outs StaticShapeTensorOf<[BF16]>:$output);
}

def Ckopt_DecodeDynamicOp : Ckopt_NarrowOp<"decode_dynamic",
    "The number that a code of the dynamic code book (see assign_codes) stands for",
    "::mlir::Float32Type::get(context)", 10> {
  let arguments = (ins Ckopt_CodeTensor:$input, UnitAttr:$has_sign);
  let results = (outs Ckopt_SingleTensor:$output);
}

//===----------------------------------------------------------------------===//
// Two or three operands: numpy broadcasting, equal element types.
//===----------------------------------------------------------------------===//

class Ckopt_BinaryOp<string mnemonic, string text, Type type = Ckopt_NumTensor,
                     list<Trait> traits = [], int flops = 1>
    : Ckopt_Broadcasting<mnemonic, traits # [SameOperandsElementType, ResultsBroadcastableShape]> {
  let summary = text # "; operands broadcast as in numpy";
  let arguments = (ins type:$lhs, type:$rhs);
  let results = (outs type:$output);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = baseDecl # Ckopt_AnyLayout<>.decl # Ckopt_Flops<flops>.decl;
}

def Ckopt_AddOp : Ckopt_BinaryOp<"add", "a + b", Ckopt_NumTensor, [Commutative, Ckopt_Linear, Ckopt_KeepsPoles]> { let hasFolder = 1; }
def Ckopt_SubOp : Ckopt_BinaryOp<"sub", "a - b", Ckopt_NumTensor, [Ckopt_Linear, Ckopt_KeepsPoles]> { let hasFolder = 1; }
def Ckopt_MulOp : Ckopt_BinaryOp<"mul", "a * b", Ckopt_NumTensor, [Commutative, Ckopt_KeepsPoles]> { let hasFolder = 1; }
def Ckopt_DivOp : Ckopt_BinaryOp<"div", "a / b; integers truncate toward zero, division by zero gives 0", Ckopt_NumTensor, [Ckopt_KeepsPoles], 4> { let hasFolder = 1; }
def Ckopt_ModOp : Ckopt_BinaryOp<"mod", "remainder with the sign of the divisor (ONNX Mod); `fmod`: of the dividend"> {
  let arguments = (ins Ckopt_NumTensor:$lhs, Ckopt_NumTensor:$rhs, UnitAttr:$fmod);
}
def Ckopt_PowOp : Ckopt_BinaryOp<"pow", "a ^ b", Ckopt_NumTensor, [Ckopt_KeepsPoles], 20> { let hasCanonicalizer = 1; }
def Ckopt_MaximumOp : Ckopt_BinaryOp<"maximum", "the larger one, NaN if either is; a tie shares its gradient in halves", Ckopt_NumTensor, [Commutative]>;
def Ckopt_MinimumOp : Ckopt_BinaryOp<"minimum", "the smaller one, NaN if either is; a tie shares its gradient in halves", Ckopt_NumTensor, [Commutative]>;
def Ckopt_AndOp : Ckopt_BinaryOp<"and", "logical and; of integers, of each bit", Ckopt_BitTensor, [Commutative]>;
def Ckopt_OrOp : Ckopt_BinaryOp<"or", "logical or; of integers, of each bit", Ckopt_BitTensor, [Commutative]>;
def Ckopt_XorOp : Ckopt_BinaryOp<"xor", "exclusive or; of integers, of each bit", Ckopt_BitTensor, [Commutative]>;
def Ckopt_ShiftLeftOp : Ckopt_BinaryOp<"shift_left", "a * 2^b modulo 2^width; 0 where b is not below the width", Ckopt_IntTensor>;
def Ckopt_ShiftRightOp : Ckopt_BinaryOp<"shift_right", "floor(a / 2^b): zeros enter unsigned integers, the sign enters signed ones; shifts of the width or more leave nothing else", Ckopt_IntTensor>;

def Ckopt_CompareOp : Ckopt_InferOp<"compare", "Elementwise", [SameOperandsElementType, ResultsBroadcastableShape]> {
  let summary = "Comparison (ordered; ne is unordered), numpy broadcasting";
  let arguments = (ins Ckopt_CompareAttr:$predicate, Ckopt_Tensor:$lhs, Ckopt_Tensor:$rhs);
  let results = (outs Ckopt_BoolTensor:$output);
  let assemblyFormat = "$predicate $lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
}

def Ckopt_SelectOp : Ckopt_InferOp<"select", "Elementwise", [Ckopt_KeepsPoles, ResultsBroadcastableShape,
    TypesMatchWith<"branches have equal element types", "on_true", "on_false",
      "$_self", "[](::mlir::Type a, ::mlir::Type b) { return ::mlir::getElementTypeOrSelf(a) == ::mlir::getElementTypeOrSelf(b); }">]> {
  let summary = "Where: a where the condition holds, else b; numpy broadcasting";
  let arguments = (ins Ckopt_BoolTensor:$condition, Ckopt_Tensor:$on_true, Ckopt_Tensor:$on_false);
  let results = (outs Ckopt_Tensor:$output);
  let assemblyFormat = "$condition `,` $on_true `,` $on_false attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

def Ckopt_DropoutOp : Ckopt_InferOp<"dropout", "Elementwise", [Ckopt_ReadsPlace]> {
  let summary = "Sets elements to zero with probability `ratio`, scales the rest by 1/(1-ratio)";
  let description = [{
    Keeps element e where u(seed, step, site, e) >= ratio; u is a uniform number
    in [0,1) from Philox4x32-10 with key (seed), counter (e/4, step, site) and
    word e mod 4, e the logical row-major index: a pure function, the same
    however often and in whatever order it is computed. The upper half of step
    is the rank's number: e counts on from the elements of the ranks before,
    whose tensors have as many. The op is its own gradient with respect to the input (same seed, step and site).
  }];
  let arguments = (ins Ckopt_FloatTensor:$input, 0DTensorOf<[I64]>:$seed, 0DTensorOf<[I64]>:$step,
                       F64Attr:$ratio, I64Attr:$site);
  let results = (outs Ckopt_FloatTensor:$output);
  // Random bits: ten rounds of two multiplications for four elements.
  let extraClassDeclaration = baseDecl # Ckopt_AnyLayout<>.decl # Ckopt_Flops<16>.decl;
  let assemblyFormat = "$input `,` $seed `,` $step attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Ckopt_RandomOp : Ckopt_Op<"random", "Elementwise", [Ckopt_ReadsPlace]> {
  let summary = "Random numbers: uniform in [0, 1) or normal with mean 0 and variance 1";
  let description = [{
    Element e is a pure function of (seed, step, site, e), e the logical
    row-major index, as in dropout: the words of Philox4x32-10 with key (seed)
    and counter (e/4, step, site). uniform: (word e mod 4 >> 8) * 2^-24, which
    is dropout's u. normal: Box-Muller of the pair of words that holds word
    e mod 4: with u = 1 - uniform of the pair's first word and v = uniform of
    its second, sqrt(-2 log u) * cos(2 pi v) for even e, sin for odd e. f64
    results are the f32 uniform numbers, in f64 arithmetic from there on.
  }];
  let arguments = (ins Ckopt_RandomAttr:$kind, 0DTensorOf<[I64]>:$seed, 0DTensorOf<[I64]>:$step, I64Attr:$site);
  let results = (outs Ckopt_FloatTensor:$output);
  let assemblyFormat = "$kind $seed `,` $step attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = baseDecl # Ckopt_Flops<24>.decl # Ckopt_Storage<"Full">.decl;
}

#endif // CKOPT_DIALECT_CKOPT_ELEMENTWISE
