//===- StructureInterface.td - how results are made of operands -*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_INTERFACES_STRUCTUREINTERFACE
#define CKOPT_INTERFACES_STRUCTUREINTERFACE

include "mlir/IR/OpBase.td"

//===----------------------------------------------------------------------===//
// Traits (StructureInterface.h says what they promise)
//===----------------------------------------------------------------------===//

class Ckopt_StructureTrait<string name> : NativeOpTrait<name> {
  let cppNamespace = "::ckopt::traits";
}
def Ckopt_Linear : Ckopt_StructureTrait<"Linear">;
def Ckopt_KeepsElements : Ckopt_StructureTrait<"KeepsElements">;
def Ckopt_NonNegative : Ckopt_StructureTrait<"NonNegative">;
def Ckopt_KeepsPoles : Ckopt_StructureTrait<"KeepsPoles">;
def Ckopt_ReadsPlace : Ckopt_StructureTrait<"ReadsPlace">;
def Ckopt_ReadsPart : Ckopt_StructureTrait<"ReadsPart">;

//===----------------------------------------------------------------------===//
// Interfaces
//===----------------------------------------------------------------------===//

def SampleAxisOpInterface : OpInterface<"SampleAxisOpInterface"> {
  let cppNamespace = "::ckopt";
  let description = [{
    An op that says what the elements at one place along an axis of its results
    read. From it follows whether an op keeps samples apart, so that ranks which
    each have a part of them can run it, and whether slices are equal. Where
    ranks need samples apart, an op without the interface is refused by name.
  }];
  let methods = [
    InterfaceMethod<[{
        How an axis of result 0 runs along an operand; other() where samples
        along it could mix. No answer is safe and right for all, so there is no
        default: an op that has the interface answers.
      }],
      "::ckopt::AxisRelation", "relateAxis",
      (ins "unsigned":$operand, "int64_t":$axis)>,
    InterfaceMethod<[{
        Whether the result has the axis of result 0. Default: it has as many
        dimensions, and this one as long.
      }],
      "bool", "hasAxisOfFirst", (ins "unsigned":$result, "int64_t":$axis), "",
      /*defaultImplementation=*/[{
        return ::ckopt::detail::haveEqualAxis($_op.getOperation(), result, axis);
      }]>,
  ];
}

def ContractionOpInterface : OpInterface<"ContractionOpInterface"> {
  let cppNamespace = "::ckopt";
  let description = [{
    An op of kind Library whose time is that of sums of products. With mixed
    precision its factors are halves, sums are f32.
  }];
  let methods = [
    InterfaceMethod<"Whose rates and whose code it has.",
      "::ckopt::ContractionKind", "getContractionKind">,
    InterfaceMethod<"Whether it is the gradient of one, with products and rates of its own.",
      "bool", "isGradient", (ins), "", /*defaultImplementation=*/"return false;">,
    InterfaceMethod<[{
        Whether operand `index` is multiplied; others are added, or choose what
        is.
      }],
      "bool", "isFactor", (ins "unsigned":$index), "",
      /*defaultImplementation=*/"return true;">,
    InterfaceMethod<[{
        The smallest dimension that blocks of the product run along: where it is
        small, the peak rate is out of reach. Default: of the last two of all
        operands, of a convolution's channels, or the width of heads.
      }],
      "int64_t", "getSmallestDimension", (ins), "",
      /*defaultImplementation=*/[{
        return ::ckopt::detail::smallestDimension($_op.getOperation(), $_op.getContractionKind());
      }]>,
    InterfaceMethod<[{
        Of a convolution: its two activations, then the weight, operands or
        results.
      }],
      "::std::array<::mlir::Value, 3>", "getConvolved", (ins), "",
      /*defaultImplementation=*/"return {};">,
  ];
}

def IndexingOpInterface : OpInterface<"IndexingOpInterface"> {
  let cppNamespace = "::ckopt";
  let description = [{
    An op that reads or writes, along `axis` of a table, what numbers name.
  }];
  let methods = [
    InterfaceMethod<"The tensor that the numbers count along.", "::mlir::Value", "getTable">,
    InterfaceMethod<"The numbers.", "::mlir::Value", "getIndices">,
    InterfaceMethod<"The dimension of the table.", "uint64_t", "getAxis">,
    InterfaceMethod<"What is put into the table; null: the op reads.",
      "::mlir::Value", "getUpdates", (ins), "", /*defaultImplementation=*/"return {};">,
    InterfaceMethod<[{
        Whether a number names one element, in numbers of the table's rank;
        else all that lies at one place along `axis`.
      }],
      "bool", "namesElements", (ins), "", /*defaultImplementation=*/"return false;">,
  ];
}

def CollectiveOpInterface : OpInterface<"CollectiveOpInterface"> {
  let cppNamespace = "::ckopt";
  let description = [{
    An op whose results depend on the rank that runs it, or on tensors of other
    ranks: it moves numbers and computes nothing but their sums.
  }];
  let methods = [
    InterfaceMethod<"The ranks that it is for.", "::ckopt::RankGroup", "getGroup">,
    InterfaceMethod<"What it does, or begins: \"all_reduce\", ...",
      "::llvm::StringRef", "getCollective", (ins), "",
      /*defaultImplementation=*/"return $_op->getName().stripDialect();">,
    InterfaceMethod<[{
        How many times messages pass each link, from every rank to every other;
        0: none do, or what splits the op knows when.
      }],
      "int64_t", "getRounds", (ins), "", /*defaultImplementation=*/"return 0;">,
    InterfaceMethod<"Whether a message is one rank's share of the whole tensors.",
      "bool", "sendsShares", (ins), "", /*defaultImplementation=*/"return true;">,
    InterfaceMethod<"The tensors, operands or results, that are whole.",
      "::mlir::ValueRange", "getWholeTensors", (ins), "",
      /*defaultImplementation=*/"return $_op->getOperands();">,
    InterfaceMethod<"The member of the group that others hear.",
      "uint64_t", "getRoot", (ins), "", /*defaultImplementation=*/"return 0;">,
  ];
}

#endif // CKOPT_INTERFACES_STRUCTUREINTERFACE
