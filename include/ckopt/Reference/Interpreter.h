//===- Interpreter.h - evaluates functions of ckopt ops ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The interpreter is the oracle of tests. It runs every op of the dialect in
// plain loops, found through ReferenceOpInterface. Arithmetic is in double.
// With `roundToType` each op's result is rounded once to its element type (sums
// at their end); without it the whole function is computed in double, which
// gives a reference for f32 code.
//
// Time: proportional to the operations of the function, some 10 ns each.
// Memory: the live values, 8 bytes an element.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_REFERENCE_INTERPRETER_H
#define CKOPT_REFERENCE_INTERPRETER_H

#include "ckopt/Reference/Tensor.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include <functional>

namespace mlir {
class DialectRegistry;
}

namespace ckopt::reference {

struct Options {
  /// Round each op's results to their element types.
  bool roundToType = true;
  /// Called after each op with its results, those inside kernels included.
  std::function<void(mlir::Operation *, llvm::ArrayRef<Tensor>)> observer;
};

/// Is called with the number of an element of the result, in row-major order,
/// and the operand and element that it comes from.
using ElementMove =
    llvm::function_ref<void(int64_t to, unsigned operand, int64_t from)>;

/// The context in which an op is evaluated.
struct Environment {
  const Options &options;
  /// Inside a kernel: the call's scalars (a dropout's site is an index into
  /// them).
  std::optional<llvm::ArrayRef<int64_t>> scalars;
};

/// Lets contexts made from `registry` interpret ckopt ops. (Call before the
/// ckopt dialect is loaded, or append to the context.)
void registerReferenceModels(mlir::DialectRegistry &registry);

/// Runs a function with one block on `args` (one for each argument, of its
/// shape; checked). Errors are diagnostics at the op that failed: no reference
/// semantics, an index or a label out of range.
llvm::LogicalResult evaluate(mlir::FunctionOpInterface function,
                             llvm::ArrayRef<Tensor> args,
                             llvm::SmallVectorImpl<Tensor> &results,
                             const Options &options = {});

/// Runs a function on several ranks in lockstep, like processes at the same
/// time: `args[r]` are those of rank r, and ops of several ranks (all_reduce)
/// see the operands of all. Refuses ops that were made for another number of
/// ranks than `args.size()`.
llvm::LogicalResult
evaluateWorld(mlir::FunctionOpInterface function,
              llvm::ArrayRef<llvm::SmallVector<Tensor>> args,
              llvm::SmallVectorImpl<llvm::SmallVector<Tensor>> &results,
              const Options &options = {});

/// Runs one op. `results` is replaced.
llvm::LogicalResult evaluateOp(mlir::Operation *op,
                               llvm::ArrayRef<const Tensor *> operands,
                               llvm::SmallVectorImpl<Tensor> &results,
                               const Options &options = {});
llvm::LogicalResult evaluateOp(mlir::Operation *op,
                               llvm::ArrayRef<const Tensor *> operands,
                               llvm::SmallVectorImpl<Tensor> &results,
                               const Environment &environment);

} // namespace ckopt::reference

#include "ckopt/Reference/ReferenceInterface.h.inc"

#endif // CKOPT_REFERENCE_INTERPRETER_H
