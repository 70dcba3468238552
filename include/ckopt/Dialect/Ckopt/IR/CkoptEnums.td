//===- CkoptEnums.td - enums of the ckopt dialect -----------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_DIALECT_CKOPT_ENUMS
#define CKOPT_DIALECT_CKOPT_ENUMS

include "ckopt/Dialect/Ckopt/IR/CkoptBase.td"

def Ckopt_Compare : I32EnumAttr<"ComparePredicate", "comparison", [
    I32EnumAttrCase<"EQ", 0, "eq">, I32EnumAttrCase<"NE", 1, "ne">,
    I32EnumAttrCase<"LT", 2, "lt">, I32EnumAttrCase<"LE", 3, "le">,
    I32EnumAttrCase<"GT", 4, "gt">, I32EnumAttrCase<"GE", 5, "ge">]> {
  let cppNamespace = "::ckopt";
  let genSpecializedAttr = 0;
}
def Ckopt_CompareAttr : EnumAttr<Ckopt_Dialect, Ckopt_Compare, "compare_predicate">;

def Ckopt_Reduce : I32EnumAttr<"ReduceKind", "reduction", [
    I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Mean", 1, "mean">,
    I32EnumAttrCase<"Max", 2, "max">, I32EnumAttrCase<"Min", 3, "min">,
    I32EnumAttrCase<"Prod", 4, "prod">]> {
  let cppNamespace = "::ckopt";
  let genSpecializedAttr = 0;
}
def Ckopt_ReduceAttr : EnumAttr<Ckopt_Dialect, Ckopt_Reduce, "reduce_kind">;

def Ckopt_Scatter : I32EnumAttr<"ScatterKind", "what a scatter does with the element that is there", [
    I32EnumAttrCase<"Set", 0, "set">, I32EnumAttrCase<"Add", 1, "add">,
    I32EnumAttrCase<"Mul", 2, "mul">, I32EnumAttrCase<"Max", 3, "max">,
    I32EnumAttrCase<"Min", 4, "min">]> {
  let cppNamespace = "::ckopt";
  let genSpecializedAttr = 0;
}
def Ckopt_ScatterAttr : EnumAttr<Ckopt_Dialect, Ckopt_Scatter, "scatter_kind">;

def Ckopt_Random : I32EnumAttr<"RandomKind", "distribution", [
    I32EnumAttrCase<"Uniform", 0, "uniform">, I32EnumAttrCase<"Normal", 1, "normal">]> {
  let cppNamespace = "::ckopt";
  let genSpecializedAttr = 0;
}
def Ckopt_RandomAttr : EnumAttr<Ckopt_Dialect, Ckopt_Random, "random_kind">;

#endif // CKOPT_DIALECT_CKOPT_ENUMS
