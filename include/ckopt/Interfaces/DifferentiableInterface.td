//===- DifferentiableInterface.td - reverse mode by op ------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_INTERFACES_DIFFERENTIABLEINTERFACE
#define CKOPT_INTERFACES_DIFFERENTIABLEINTERFACE

include "mlir/IR/OpBase.td"

def DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::ckopt";
  let description = [{
    An op that says how a gradient flows back through it (reverse mode).

    Rules are attached as external models (lib/Transforms/Autodiff/*Rules.cpp), so that the
    dialect does not depend on autodiff and other dialects can join. A rule
    builds new ops at the builder's insertion point; it may read the op's
    operands and results (which then become residuals that are kept or
    recomputed), and must build nothing for operands that nobody needs.
  }];
  let methods = [
    InterfaceMethod<[{
        Builds the gradients of the operands.
        `outputGrads[i]`: gradient with respect to result i, null if it is zero.
        At least one is not null. `needed[i]`: whether operand i's gradient is
        wanted. `operandGrads[i]` (sized by the caller, all null): the rule sets
        it for needed operands, in the operand's own shape and element type;
        null stays for a gradient that is zero. Failure: the rule has emitted
        an error that names what is not supported.
      }],
      "::llvm::LogicalResult", "buildGradient",
      (ins "::mlir::OpBuilder &":$builder,
           "::llvm::ArrayRef<::mlir::Value>":$outputGrads,
           "::llvm::ArrayRef<bool>":$needed,
           "::llvm::MutableArrayRef<::mlir::Value>":$operandGrads)>,
    InterfaceMethod<[{
        Whether a gradient can flow from results to operand `index` at all.
        Integer operands (indices, targets) never have one. Conservative answer: true for
        floating-point operands.
      }],
      "bool", "isDifferentiableIn", (ins "unsigned":$index), "",
      /*defaultImplementation=*/[{
        auto type = ::llvm::dyn_cast<::mlir::ShapedType>(
            $_op->getOperand(index).getType());
        return type && ::llvm::isa<::mlir::FloatType>(type.getElementType());
      }]>,
    InterfaceMethod<[{
        Whether the rule compares operand `index` with what the op chose from it
        (a maximum). Autodiff then pins the operand, so that the op and its
        gradient read the same stored bits, and no gradient is lost to a value
        that another kernel computed again.
      }],
      "bool", "comparesOperand", (ins "unsigned":$index), "",
      /*defaultImplementation=*/"return false;">,
  ];
}

#endif // CKOPT_INTERFACES_DIFFERENTIABLEINTERFACE
