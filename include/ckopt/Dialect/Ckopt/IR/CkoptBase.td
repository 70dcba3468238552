//===- CkoptBase.td - the ckopt dialect ---------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_DIALECT_CKOPT_BASE
#define CKOPT_DIALECT_CKOPT_BASE

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/TensorEncoding.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "ckopt/Interfaces/KernelInterface.td"
include "ckopt/Interfaces/StructureInterface.td"

def Ckopt_Dialect : Dialect {
  let name = "ckopt";
  let cppNamespace = "::ckopt";
  let summary = "Training graphs on tensors, from ONNX to planned kernels";
  let description = [{
    Ops work on ranked, statically shaped tensors and are pure: state (running
    statistics, parameters, optimizer state) enters as function arguments and
    leaves as results that carry `ckopt.updates`; random numbers are functions
    of (seed, step, site, element). Names follow ONNX and MLIR. Logical shapes
    never change; the physical order of a tensor's dimensions is its encoding,
    `#ckopt.layout<[...]>` (none: row-major).
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  // The pass alone is built without the ops of networks.
  let extraClassDeclaration = "void addNetworkOps();";
}

def Ckopt_LayoutAttr : AttrDef<Ckopt_Dialect, "Layout", [
    DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let mnemonic = "layout";
  let summary = "Physical order of a tensor's logical dimensions, outermost first";
  let description = [{
    `#ckopt.layout<[0, 2, 3, 1]>` on a tensor of logical shape NxCxHxW: lies in
    memory as NxHxWxC. The identity order is written as no encoding at all.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$order);
  let assemblyFormat = "`<` `[` $order `]` `>`";
  let genVerifyDecl = 1;
}

def Ckopt_Float : AnyTypeOf<[F64, F32, F16, BF16]>;
def Ckopt_Int : AnyTypeOf<[I64, I32, I16, I8, UI64, UI32, UI16, UI8]>;
def Ckopt_Element : AnyTypeOf<[F64, F32, F16, BF16, I64, I32, I16, I8, UI64, UI32, UI16, UI8, I1]>;
def Ckopt_Tensor : StaticShapeTensorOf<[Ckopt_Element]>;
def Ckopt_FloatTensor : StaticShapeTensorOf<[Ckopt_Float]>;
def Ckopt_BoolTensor : StaticShapeTensorOf<[I1]>;
def Ckopt_IntTensor : StaticShapeTensorOf<[Ckopt_Int]>;
def Ckopt_BitTensor : StaticShapeTensorOf<[I64, I32, I16, I8, UI64, UI32, UI16, UI8, I1]>;
def Ckopt_IndexTensor : StaticShapeTensorOf<[I64, I32]>;
def Ckopt_NumTensor : StaticShapeTensorOf<[F64, F32, F16, BF16, I64, I32, I16, I8, UI64, UI32, UI16, UI8]>;

// Methods of SampleAxisOpInterface: of ops whose operands broadcast to the result, of ops that work
// along `axis` alone, and of those with rules of their own (lib/Dialect/Ckopt/IR/SampleAxes.cpp).
class Ckopt_Broadcasts {
  string decl = [{
    ::ckopt::AxisRelation relateAxis(unsigned operand, int64_t axis) {
      return ::ckopt::detail::relateBroadcast(getOperation(), operand, axis);
    }
  }];
}
class Ckopt_AlongAxis {
  string decl = [{
    ::ckopt::AxisRelation relateAxis(unsigned, int64_t axis) {
      return ::ckopt::AxisRelation::apartFrom(int64_t(getAxis()), axis);
    }
  }];
}
class Ckopt_OwnRelation {
  string decl = "::ckopt::AxisRelation relateAxis(unsigned operand, int64_t axis);\n";
}

// Every op: pure, with an answer to what kind of kernel it is part of. Elementwise ones broadcast if
// they do not set another `relation`.
class Ckopt_Op<string mnemonic, string kind, list<Trait> traits = []>
    : Op<Ckopt_Dialect, mnemonic, traits # [Pure, KernelOpInterface]
        # !if(!eq(kind, "Elementwise"), [SampleAxisOpInterface], []<Trait>)> {
  string relation = !if(!eq(kind, "Elementwise"), Ckopt_Broadcasts<>.decl, "");
  string baseDecl = [{
    ::ckopt::KernelKind getKernelKind() { return ::ckopt::KernelKind::}] # kind # [{; }
  }] # relation;
  let extraClassDeclaration = baseDecl;
}

// Methods of KernelOpInterface for `extraClassDeclaration`.
class Ckopt_Flops<int perElement, int approximated = perElement> {
  string decl = "double getFlopsPerElement() { return " # perElement # "; }\n"
    # !if(!eq(approximated, perElement), "",
          "double getApproximatedShare() { return " # approximated # ". / " # perElement # "; }\n");
}
class Ckopt_Layout<string role> {
  string decl = "::ckopt::LayoutRole getLayoutRole() { return ::ckopt::LayoutRole::" # role # "; }\n";
}
class Ckopt_Storage<string storage> {
  string decl = "::ckopt::StorageClass getStorageClass() { return ::ckopt::StorageClass::" # storage # "; }\n";
}
class Ckopt_AnyLayout {
  string decl = [{
    static bool isCompatibleReturnTypes(::mlir::TypeRange l, ::mlir::TypeRange r) {
      return ::ckopt::detail::equalUpToLayout(l, r);
    }
  }];
}

// Kernels compute halves in f32, so these ops may store what they compute from
// f32 in a half, and what they compute from halves in f32.
class Ckopt_AnyWidth {
  string decl = [{
    static bool isCompatibleReturnTypes(::mlir::TypeRange l, ::mlir::TypeRange r) {
      return ::ckopt::detail::equalUpToWidth(l, r);
    }
    bool storesAnyWidth() { return true; }
  }];
}

// Result types that follow from operands and attributes; encodings (layouts)
// are free to differ from the inferred ones.
class Ckopt_InferOp<string mnemonic, string kind, list<Trait> traits = []>
    : Ckopt_Op<mnemonic, kind, traits # [
        DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let extraClassDeclaration = baseDecl # Ckopt_AnyLayout<>.decl;
}

#endif // CKOPT_DIALECT_CKOPT_BASE
