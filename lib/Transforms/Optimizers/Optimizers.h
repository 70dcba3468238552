//===- Optimizers.h - what optimizers keep and compute ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to lib/Transforms/Autodiff. A rule writes one optimizer's formulas in
// ckopt ops; Optimizer.cpp finds the parameters, adds the state's arguments and
// makes the new values updates of them. A new optimizer is an entry in
// lib/Support/Optimizers.cpp and a rule here.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRANSFORMS_OPTIMIZERS_OPTIMIZERS_H
#define CKOPT_LIB_TRANSFORMS_OPTIMIZERS_OPTIMIZERS_H

#include "ckopt/Dialect/Ckopt/Utils/TensorBuilder.h"
#include "ckopt/Support/Optimizers.h"

namespace ckopt {

/// Hyperparameters of one parameter.
struct Hyper {
  const OptimizerKind *kind;
  HyperValues values;
  double rateScale = 1; ///< factor of the learning rate
  /// What is new may be an operand of ops that round it, so no op updates it.
  bool rounds = false;

  double operator[](llvm::StringRef name) const {
    return hyperValue(*kind, values, name);
  }
};

/// Builds the scalars that an update uses for every element, in f64, as PyTorch
/// computes them in Python's numbers.
struct ScalarBuilder {
  TensorBuilder &b;
  const Hyper &h;
  mlir::Value rate;  ///< the learning rate times rateScale
  mlir::Value t;     ///< the step's number, from 1
  mlir::Value isOne; ///< 1 in the first step, else 0
  /// Value of sharedState(): the old one, then the one after this step.
  mlir::Value shared;

  /// Returns base^t.
  mlir::Value powerOfStep(double base) {
    return b.make<PowOp>(b.number(t, base), t);
  }
  /// Returns 1 - beta^t.
  mlir::Value correction(llvm::StringRef beta) {
    return b.sub(1, powerOfStep(h[beta]));
  }
  /// Returns 1 - rate * weight_decay.
  mlir::Value shrinking() { return b.sub(1, b.mul(rate, h["weight_decay"])); }
};

/// Builds one parameter's update.
struct UpdateBuilder {
  TensorBuilder &b;
  const Hyper &h;
  mlir::Value param, grad; ///< of the type that the update is computed in
  mlir::Value rate;        ///< 0-d, f32 or f64
  mlir::Value step;        ///< 0-d, i64
  llvm::ArrayRef<mlir::Value> scalars; ///< of that type, too
  llvm::ArrayRef<mlir::Value> state;   ///< old values, as states() names them
  bool skips = false;                  ///< step 0: the update is not made

  mlir::UnitAttr skipping() {
    return skips ? b.builder.getUnitAttr() : mlir::UnitAttr();
  }
  /// Returns old * decay + value * (1 - decay).
  mlir::Value average(mlir::Value old, mlir::Value value, double decay) {
    return b.add(b.mul(old, decay), b.mul(value, 1 - decay));
  }
  mlir::Value square(mlir::Value x) { return b.mul(x, x); }
  mlir::Value sqrt(mlir::Value x) { return b.make<SqrtOp>(x); }
  /// Returns the gradient plus weight decay times the parameter.
  mlir::Value decayed() {
    double decay = h["weight_decay"];
    return decay == 0 ? grad : b.add(grad, b.mul(param, decay));
  }
};

/// A state of a parameter: the suffix of its name, and whether it can be below
/// 0.
struct StateName {
  StateName(const char *suffix, bool hasSign = true)
      : suffix(suffix), hasSign(hasSign) {}
  llvm::StringRef suffix;
  bool hasSign;
};

class UpdateRule {
public:
  virtual ~UpdateRule();
  /// Names the states that have the parameter's shape.
  virtual llvm::SmallVector<StateName> states(const Hyper &) const = 0;
  /// Names one f64 scalar that all parameters of equal hyperparameters share,
  /// zero at first; "" for none.
  virtual llvm::StringRef sharedState() const { return ""; }
  virtual llvm::SmallVector<mlir::Value> scalars(ScalarBuilder &) const {
    return {};
  }
  /// Returns the new parameter, then the new states.
  virtual llvm::SmallVector<mlir::Value> build(UpdateBuilder &) const = 0;
};

/// Returns the rule of a kind that Support/Optimizers.h lists.
const UpdateRule &updateRule(llvm::StringRef kind);

} // namespace ckopt

#endif // CKOPT_LIB_TRANSFORMS_OPTIMIZERS_OPTIMIZERS_H
