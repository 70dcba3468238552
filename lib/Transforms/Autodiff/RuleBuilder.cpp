//===- RuleBuilder.cpp - what gradient rules are written with -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "RuleBuilder.h"
#include "ckopt/Autodiff/Autodiff.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::autodiff;

RuleBuilder::RuleBuilder(OpBuilder &builder, Operation *op,
                         ArrayRef<Value> outputGrads, ArrayRef<bool> needed,
                         MutableArrayRef<Value> operandGrads)
    : TensorBuilder(builder, op->getLoc()), op(op), outputGrads(outputGrads),
      needed(needed), operandGrads(operandGrads) {
  // Gradient ops take the name of their forward op, marked as a gradient.
  if (auto name = dyn_cast<NameLoc>(op->getLoc()))
    loc =
        NameLoc::get(builder.getStringAttr("grad/" + name.getName().getValue()),
                     name.getChildLoc());
}

void RuleBuilder::set(unsigned operand, Value gradient) {
  Value summed =
      sumTo(gradient, tensorType(op->getOperand(operand)).getShape());
  Value &slot = operandGrads[operand];
  slot = slot ? add(slot, summed) : summed;
}

void ckopt::registerAutodiffRules(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, CkoptDialect *) {
    addElementwiseRules(context);
    addBinaryRules(context);
    addShapeRules(context);
    addIndexRules(context);
    addReductionRules(context);
    addNNRules(context);
    addAttentionRules(context);
    addNormalizationRules(context);
    addLossRules(context);
    addCollectiveRules(context);
  });
}
