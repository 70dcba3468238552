//===- StateRounding.h - states and parameters in bf16 ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: a moment that decays by a thousandth a step stays where it is if it
// is rounded to nearest, since neighbors in bf16 are 1/256 to 1/128 apart.
// Method: a number goes to one of its two neighbors, with the probabilities
// that make the mean the number itself. Random bits are functions of (seed,
// step, names of states, element in the whole tensor), as those of dropout: two
// states share an element's 24 bits, so each has 12; a parameter has 24 of its
// own, since most of its changes are small beside it. Guarantee: what a number
// is rounded to depends on it and these bits alone, not on schedules, layouts
// or shards. O(states).
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRANSFORMS_OPTIMIZERS_STATEROUNDING_H
#define CKOPT_LIB_TRANSFORMS_OPTIMIZERS_STATEROUNDING_H

#include "ckopt/Dialect/Ckopt/Utils/TensorBuilder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ckopt {

class StateRounding {
public:
  /// Finds or adds the seed's argument. `step`: number of the step, from 1.
  StateRounding(mlir::func::FuncOp function, mlir::Value step);

  /// Replaces a parameter's new value, f32, by bf16. `name`: the parameter's.
  void round(TensorBuilder &b, mlir::BlockArgument parameter,
             mlir::Value &value, llvm::StringRef name);
  /// Replaces new states of a parameter, f32, by bf16. `names`: those of the
  /// states' arguments.
  void round(TensorBuilder &b, mlir::BlockArgument parameter,
             llvm::ArrayRef<mlir::Value *> states,
             llvm::ArrayRef<std::string> names);

private:
  mlir::Value draw(TensorBuilder &b, mlir::BlockArgument parameter,
                   llvm::ArrayRef<int64_t> shape, llvm::StringRef name);
  mlir::Value drawShard(TensorBuilder &b, mlir::RankedTensorType type,
                        int64_t shards, int64_t site);

  mlir::func::FuncOp function;
  mlir::Value seed, step;
  mlir::Value place; ///< of the rank among those that share a tensor, or null
};

} // namespace ckopt

#endif // CKOPT_LIB_TRANSFORMS_OPTIMIZERS_STATEROUNDING_H
