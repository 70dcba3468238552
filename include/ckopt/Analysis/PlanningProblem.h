//===- PlanningProblem.h - a function as a planning problem -----*- C++ -*-===//
//
// The bridge from IR to the planner: which op is which node, which value lies
// in which storage. Reads the IR, never changes it. Works on steps after `fuse`
// and on any function of one block over statically shaped tensors: ops that
// implement none of our interfaces get conservative answers.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_ANALYSIS_PLANNINGPROBLEM_H
#define CKOPT_ANALYSIS_PLANNINGPROBLEM_H

#include "ckopt/Analysis/CostModel.h"
#include "ckopt/Planner/Graph.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ckopt {

/// Every tensor of the arena starts at a multiple of it, in bytes.
inline constexpr int64_t kArenaAlignment = 64;

/// A planning problem and how it maps to the function.
struct PlanningProblem {
  planner::Graph graph;
  /// The op of each node, in the order of node ids. Views and constants are no
  /// nodes.
  llvm::SmallVector<mlir::Operation *> ops;
  /// The storage of each tensor value. Views have the storage of what they
  /// show, results of updates that of the argument whose bytes they replace.
  llvm::DenseMap<mlir::Value, planner::ValueId> storage;
  /// Storage of each function argument, by number; -1 for one that is no
  /// tensor.
  llvm::SmallVector<planner::ValueId> arguments;
  /// Bytes of all arguments, each rounded up to the alignment.
  int64_t argumentBytes = 0;
};

/// Builds the problem of a function. Failure: errors were emitted that name
/// everything that cannot be planned (several blocks, dynamic shapes, a state
/// read after its update).
mlir::FailureOr<PlanningProblem> buildProblem(mlir::func::FuncOp function,
                                              CostModel &costs);

/// Whether the op is a view: no code, its result shows its operand's bytes.
bool isView(mlir::Operation *op);
/// The value whose bytes `value` shows (itself if it is no view).
mlir::Value getViewBase(mlir::Value value);
/// Whether the op takes no part in planning: it is made at compile time or
/// costs neither time nor bytes of the arena (constants, tensor.empty).
bool isFree(mlir::Operation *op);

/// For a kernel call or another op: pairs (operand, result) of in-place reuse
/// and of updates.
llvm::SmallVector<std::pair<unsigned, unsigned>>
getReusePairs(mlir::Operation *op);
llvm::SmallVector<std::pair<unsigned, unsigned>>
getUpdatePairs(mlir::Operation *op);

/// For each function result with `ckopt.updates`: the argument that it
/// replaces.
struct StateUpdate {
  unsigned result, argument;
};
llvm::SmallVector<StateUpdate> getStateUpdates(mlir::func::FuncOp function);

/// A name for people: the source node that an op or value came from.
std::string getSourceName(mlir::Location loc);
std::string getValueName(mlir::Value value);

/// Bytes of a tensor type; 0 for everything else.
int64_t getStorageBytes(mlir::Type type);

/// Functions of a module that hold a step, not a kernel.
bool isStepFunction(mlir::func::FuncOp function);

} // namespace ckopt

#endif // CKOPT_ANALYSIS_PLANNINGPROBLEM_H
