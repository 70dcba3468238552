//===- RuleBuilder.h - what gradient rules are written with -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A rule is a function of an op and a RuleBuilder: it reads the incoming
// gradients, builds ops, and sets the gradients of the operands that are
// needed. `set` sums over broadcast dimensions, so that rules of elementwise
// ops read like their formulas. Ops fold while they are built.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRANSFORMS_AUTODIFF_RULEBUILDER_H
#define CKOPT_LIB_TRANSFORMS_AUTODIFF_RULEBUILDER_H

#include "ckopt/Dialect/Ckopt/Utils/TensorBuilder.h"
#include "ckopt/Interfaces/DifferentiableInterface.h"

namespace ckopt::autodiff {

/// Builds tensor ops and holds the gradients of one op.
class RuleBuilder : public TensorBuilder {
public:
  RuleBuilder(mlir::OpBuilder &builder, mlir::Operation *op,
              llvm::ArrayRef<mlir::Value> outputGrads,
              llvm::ArrayRef<bool> needed,
              llvm::MutableArrayRef<mlir::Value> operandGrads);

  /// Returns the gradient of a result; null where it is zero (never for the
  /// only result).
  mlir::Value grad(unsigned result = 0) const { return outputGrads[result]; }
  bool needs(unsigned operand) const { return needed[operand]; }
  /// Returns `gradient`, a product of grad() and a derivative that can be
  /// infinite or NaN, with 0 wherever grad() is 0 (see Bounds.h).
  mlir::Value guarded(mlir::Value gradient) {
    return where(compare(ComparePredicate::NE, grad(), 0), gradient);
  }
  /// Guards the gradient only if `needed`.
  mlir::Value guardedIf(bool needed, mlir::Value gradient) {
    return needed ? guarded(gradient) : gradient;
  }
  /// Sets the operand's gradient, summed to the operand's shape; adds to a
  /// gradient that was set before.
  void set(unsigned operand, mlir::Value gradient);

private:
  mlir::Operation *op;
  llvm::ArrayRef<mlir::Value> outputGrads;
  llvm::ArrayRef<bool> needed;
  llvm::MutableArrayRef<mlir::Value> operandGrads;
};

/// The external model that forwards to a stateless lambda `void(OpT,
/// RuleBuilder &)`.
template <typename OpT, typename Fn>
struct RuleModel
    : DifferentiableOpInterface::ExternalModel<RuleModel<OpT, Fn>, OpT> {
  llvm::LogicalResult
  buildGradient(mlir::Operation *op, mlir::OpBuilder &builder,
                llvm::ArrayRef<mlir::Value> outputGrads,
                llvm::ArrayRef<bool> needed,
                llvm::MutableArrayRef<mlir::Value> operandGrads) const {
    RuleBuilder rule(builder, op, outputGrads, needed, operandGrads);
    Fn{}(llvm::cast<OpT>(op), rule);
    return llvm::success();
  }
};

/// Attaches a rule, which sets the gradients of needed operands only.
template <typename OpT, typename Fn>
void addRule(mlir::MLIRContext *context, Fn) {
  OpT::template attachInterface<RuleModel<OpT, Fn>>(*context);
}

/// Attaches a rule that compares operands with results: `compares` is a
/// stateless lambda `bool(OpT, unsigned operand)`, see comparesOperand.
template <typename OpT, typename Fn, typename Compares>
struct ComparingRuleModel : DifferentiableOpInterface::ExternalModel<
                                ComparingRuleModel<OpT, Fn, Compares>, OpT> {
  llvm::LogicalResult
  buildGradient(mlir::Operation *op, mlir::OpBuilder &builder,
                llvm::ArrayRef<mlir::Value> outputGrads,
                llvm::ArrayRef<bool> needed,
                llvm::MutableArrayRef<mlir::Value> operandGrads) const {
    return RuleModel<OpT, Fn>().buildGradient(op, builder, outputGrads, needed,
                                              operandGrads);
  }
  bool comparesOperand(mlir::Operation *op, unsigned operand) const {
    return Compares{}(llvm::cast<OpT>(op), operand);
  }
};
template <typename OpT, typename Fn, typename Compares>
void addComparingRule(mlir::MLIRContext *context, Fn, Compares) {
  OpT::template attachInterface<ComparingRuleModel<OpT, Fn, Compares>>(
      *context);
}

/// Attaches a rule to ops whose derivative is zero wherever it exists.
template <typename... OpT> void addZeroRules(mlir::MLIRContext *context) {
  (addRule<OpT>(context, [](OpT, RuleBuilder &) {}), ...);
}

// Each function attaches the rules of one category, in the file of its name.
void addElementwiseRules(mlir::MLIRContext *context);
void addBinaryRules(mlir::MLIRContext *context);
void addShapeRules(mlir::MLIRContext *context);
void addIndexRules(mlir::MLIRContext *context);
void addReductionRules(mlir::MLIRContext *context);
void addNNRules(mlir::MLIRContext *context);
void addAttentionRules(mlir::MLIRContext *context);
void addNormalizationRules(mlir::MLIRContext *context);
void addLossRules(mlir::MLIRContext *context);
void addCollectiveRules(mlir::MLIRContext *context);

} // namespace ckopt::autodiff

#endif // CKOPT_LIB_TRANSFORMS_AUTODIFF_RULEBUILDER_H
