//===- ReferenceInterface.td - what an op means, in plain loops -*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_REFERENCE_REFERENCEINTERFACE
#define CKOPT_REFERENCE_REFERENCEINTERFACE

include "mlir/IR/OpBase.td"

def ReferenceOpInterface : OpInterface<"ReferenceOpInterface"> {
  let cppNamespace = "::ckopt::reference";
  let description = [{
    An op that says what it computes, element by element, as obviously as can
    be: the oracle of tests and the constant folder. Attached as external
    models (lib/Reference/*Models.cpp), so that other dialects can join.
  }];
  let methods = [
    InterfaceMethod<[{
        Computes the results, which come sized to the result types and filled
        with zeros. The interpreter rounds them to their element types
        afterwards. Failure: an error has been emitted.
      }],
      "::llvm::LogicalResult", "interpret",
      (ins "::llvm::ArrayRef<const ::ckopt::reference::Tensor *>":$operands,
           "::llvm::MutableArrayRef<::ckopt::reference::Tensor>":$results,
           "const ::ckopt::reference::Environment &":$environment)>,
    InterfaceMethod<[{
        Whether constants may take the op's place: not where it is random, a
        state update, or a call.
      }],
      "bool", "isFoldable", (ins), "", /*defaultImplementation=*/"return true;">,
    InterfaceMethod<[{
        Calls `move` with each element of the only result that is an element of
        an operand, whatever that holds; other elements are constants. Operands
        that are moved may be null here. Failure: elements are computed, or a
        null operand tells which they are.
      }],
      "::llvm::LogicalResult", "traceElements",
      (ins "::llvm::ArrayRef<const ::ckopt::reference::Tensor *>":$operands,
           "::ckopt::reference::ElementMove":$move), "",
      /*defaultImplementation=*/"return ::llvm::failure();">,
  ];
}

#endif // CKOPT_REFERENCE_REFERENCEINTERFACE
