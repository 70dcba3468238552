//===- OptimizerBuilder.h - one step's optimizer in the making --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to lib/Transforms/Optimizers. Optimizer.cpp reads the settings and
// gives the step its arguments; Updates.cpp computes new values of them.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRANSFORMS_OPTIMIZERS_OPTIMIZERBUILDER_H
#define CKOPT_LIB_TRANSFORMS_OPTIMIZERS_OPTIMIZERBUILDER_H

#include "GradientScale.h"
#include "Optimizers.h"
#include "StateRounding.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Optimizers/Optimizers.h"

namespace ckopt::optimizer {

/// A parameter, its gradient and the arguments that its update needs.
struct Parameter {
  unsigned index; ///< number of the argument
  mlir::Value gradient;
  Hyper hyper;
  mlir::BlockArgument gradientSum; ///< with micro-batches only
  llvm::SmallVector<mlir::BlockArgument, 2> state;
  /// Of states that are codes.
  llvm::SmallVector<mlir::BlockArgument, 2> scales;
  mlir::BlockArgument average; ///< with an EMA only
};

/// Values that all parameters of equal hyperparameters and element type share.
struct Common {
  const Hyper *hyper;
  mlir::Type element;
  mlir::BlockArgument shared; ///< the rule's shared state, or null
  bool updatesShared;         ///< true for the first group with this state
  mlir::Value rate;           ///< 0-d, of learning_rate's type
  llvm::SmallVector<mlir::Value> scalars;
};

class OptimizerBuilder {
public:
  OptimizerBuilder(mlir::func::FuncOp function, const OptimizerOptions &options)
      : function(function), options(options),
        builder(function.getBody().front().getTerminator()) {}

  llvm::LogicalResult run();

private:
  llvm::LogicalResult checkOptions();
  llvm::LogicalResult collect();
  llvm::FailureOr<Hyper> hyperOf(unsigned argument);
  llvm::LogicalResult addArguments();
  mlir::BlockArgument addState(const Parameter &parameter,
                               llvm::StringRef suffix, mlir::Type element = {},
                               bool scales = false);
  mlir::Type elementOf(const Parameter &parameter);
  bool isNarrow(const Parameter &parameter);
  llvm::LogicalResult addStates(Parameter &parameter);
  mlir::Value seen(TensorBuilder &b, const Parameter &parameter,
                   mlir::Value value);
  llvm::SmallVector<mlir::Value> oldStates(TensorBuilder &b,
                                           const Parameter &parameter);
  void round(TensorBuilder &b, const Parameter &parameter,
             llvm::MutableArrayRef<mlir::Value> values);
  void shareSquares(TensorBuilder &b, llvm::MutableArrayRef<mlir::Value> sums,
                    llvm::ArrayRef<bool> shared);
  mlir::Value ownPart(TensorBuilder &b, const Parameter &parameter,
                      bool &shared);
  void splitMicroBatches();
  void clip(TensorBuilder &b);
  Common &commonOf(const Parameter &parameter);
  void addScalars(llvm::SmallVectorImpl<Result> &results);
  void update(const Parameter &parameter,
              llvm::SmallVectorImpl<Result> &results);
  void assign(const Parameter &parameter, llvm::ArrayRef<mlir::Value> values,
              llvm::ArrayRef<mlir::BlockArgument> targets,
              llvm::SmallVectorImpl<Result> &results);
  mlir::Location updateLoc(const Parameter &parameter);
  Result updateResult(mlir::Value value, mlir::BlockArgument argument);

  mlir::func::FuncOp function;
  const OptimizerOptions &options;
  mlir::OpBuilder builder;
  llvm::SmallVector<Parameter> parameters;
  llvm::SmallVector<Result> others; ///< the loss, then the forward's updates
  llvm::SmallVector<Common> commons;
  const OptimizerKind *kind = nullptr;
  const UpdateRule *rule = nullptr;
  mlir::Value learningRate, step, averageWeight;
  mlir::Value averageStarts; ///< with a scaled loss only
  GradientScale lossScale;
  bool rounds = false; ///< there are parameters or states of bf16
  std::optional<StateRounding> rounding;
};

} // namespace ckopt::optimizer

#endif // CKOPT_LIB_TRANSFORMS_OPTIMIZERS_OPTIMIZERBUILDER_H
