//===- OpFacts.h - attributes that say what an op is ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Facts about ops that implement no interface, as attributes of them. People
// write them, or a table of descriptions does for as long as a plan is made
// (OpTable.h). `ckopt.cost` and `ckopt.workspace` (PlanningProblem.h) belong to
// them.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_ANALYSIS_OPFACTS_H
#define CKOPT_ANALYSIS_OPFACTS_H

#include "ckopt/Analysis/PlanningHooks.h"
#include "mlir/IR/Operation.h"

namespace ckopt::facts {

/// true (or no value): the op may run several times and nothing sees how often
/// or when, if the ops inside of it may, too. false: it runs once.
inline constexpr llvm::StringLiteral kPure = "ckopt.pure";
/// Number of the operand whose bytes the one result is, if all other operands
/// are constants.
inline constexpr llvm::StringLiteral kView = "ckopt.view";
/// The op is evaluated at compile time if its operands are.
inline constexpr llvm::StringLiteral kConstant = "ckopt.constant";
/// Pairs (operand, result) of in-place reuse, one after the other.
inline constexpr llvm::StringLiteral kReuse = "ckopt.reuse";
/// A dictionary of what one execution takes, in place of estimates: operations
/// (`vector`, `matmul`, `conv`), `bytes` that are touched, or `seconds`.
inline constexpr llvm::StringLiteral kWork = "ckopt.work";
/// "loop": the regions run an unknown number of times, perhaps for ever;
/// "branch": one of them runs.
inline constexpr llvm::StringLiteral kRegions = "ckopt.regions";
/// On an op that a table describes: the names of the attributes that it gave.
inline constexpr llvm::StringLiteral kDescribed = "ckopt.described";

/// Returns what `ckopt.pure` says of the op and of those inside of it; nothing
/// if it is not there, or if one inside may not run several times.
std::optional<bool> isPure(mlir::Operation *op);
bool isDescribed(mlir::Operation *op);
/// Returns the number of the operand that the op is a view of.
std::optional<unsigned> viewedOperand(mlir::Operation *op);
bool isConstant(mlir::Operation *op);
bool isLoop(mlir::Operation *op);
/// Returns whether no two regions of the op run together.
bool runsOneRegion(mlir::Operation *op);
std::optional<PlanningReusePairs> reusePairs(mlir::Operation *op);
/// Returns a number of `ckopt.work`.
std::optional<double> work(mlir::Operation *op, llvm::StringRef kind);

/// The kinds of work.
inline constexpr llvm::StringLiteral kWorkKinds[] = {"vector", "matmul", "conv",
                                                     "bytes", "seconds"};

/// Emits an error for an attribute that has the wrong form, or that contradicts
/// the op: a view of an operand with other bytes, an effect of an op that is
/// said to be pure.
mlir::LogicalResult check(mlir::Operation *op, const TypeSizes &sizes);

} // namespace ckopt::facts

#endif // CKOPT_ANALYSIS_OPFACTS_H
