//===- PlanningProblem.h - a function as a planning problem -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A planning problem maps ops of a function to nodes of a planning graph, and
// values to storages (buffers that views share). Building one reads the IR and
// never changes it. It works on steps after `fuse` and on any function of one
// block over statically shaped tensors: ops that implement none of our
// interfaces get conservative answers.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_ANALYSIS_PLANNINGPROBLEM_H
#define CKOPT_ANALYSIS_PLANNINGPROBLEM_H

#include "ckopt/Analysis/CostModel.h"
#include "ckopt/Analysis/PlanningHooks.h"
#include "ckopt/Planner/Graph.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace ckopt {

/// Every tensor of the arena starts at a multiple of this number of bytes, or
/// of the attribute attrs::kAlignment.
inline constexpr int64_t kArenaAlignment = 64;

/// Returns the alignment of tensors and workspaces in the arena of a function.
int64_t arenaAlignment(mlir::Operation *op);

/// Bytes that a function needs but a plan does not count.
struct Uncounted {
  mlir::Location where;
  /// "the bytes of values of type '!other.tensor'".
  std::string what;
  /// How many ops need such bytes.
  int64_t count = 1;
  /// True: the function itself needs the bytes, so no budget can be promised.
  /// False: other functions or threads need them.
  bool own = true;
};

/// Facts about a function that its IR does not contain.
struct PlanningContext {
  PlanningHooks hooks;
  /// Whether bodies of called functions may be read; false where other threads
  /// may change them.
  bool mayReadCallees = true;
};

/// A planning problem and how it maps to the function.
struct PlanningProblem {
  planner::Graph graph;
  /// The op of each node, in the order of node ids. Views and constants are no
  /// nodes.
  llvm::SmallVector<mlir::Operation *> ops;
  /// The storage of each tensor value. A view has the storage of its base, the
  /// result of an update that of the argument whose bytes it replaces.
  llvm::DenseMap<mlir::Value, planner::ValueId> storage;
  /// Storage of each function argument, by number; -1 for one that is no
  /// tensor.
  llvm::SmallVector<planner::ValueId> arguments;
  /// Bytes of all arguments, each rounded up to the alignment.
  int64_t argumentBytes = 0;
  /// Where the nodes' costs come from.
  CostUse costs;
  /// By node: why it runs only once ("side effects"); empty: it may run again.
  std::vector<std::string> once;
  /// Bytes that the plan does not count, in the order of the function.
  std::vector<Uncounted> uncounted;
};

/// Builds the problem of a function. On failure it has emitted errors that name
/// everything that cannot be planned (several blocks, dynamic shapes, a state
/// read after its update, a cost that is no number).
mlir::FailureOr<PlanningProblem>
buildProblem(mlir::FunctionOpInterface function, CostModel &costs,
             const PlanningContext &context = {});

/// Finds a reason why a function cannot be planned at all: several blocks, or
/// tensors of unknown size. Returns empty text if there is none. `where`
/// (optional) receives the location.
std::string findUnsupported(mlir::FunctionOpInterface function,
                            mlir::Location *where = nullptr,
                            const PlanningHooks &hooks = {});

/// Lists the bytes that a plan of the function would not count, one entry for
/// each kind: values of unknown types, memory that ops allocate, memory of
/// unregistered ops and of callees.
std::vector<Uncounted> findUncounted(mlir::FunctionOpInterface function,
                                     const PlanningContext &context = {});

/// Tells whether the op is a view: it has no code, its result has the bytes of
/// one operand, and other operands are constants.
bool isView(mlir::Operation *op);
/// Returns that operand.
mlir::OpOperand &getViewedOperand(mlir::Operation *view);
/// Returns the value whose bytes `value` is a view of (itself if it is none).
/// The results of kernel calls that are their operands' bytes count as views.
mlir::Value getViewBase(mlir::Value value);
/// Returns the results of a user of `value` that share its bytes: a view's
/// results, or those in a kernel call's `aliases`.
llvm::SmallVector<mlir::Value, 1> getAliases(mlir::Operation *user,
                                             mlir::Value value);
/// Tells whether a result of a kernel call shares an operand's bytes.
bool isAlias(mlir::Value value);
/// Tells whether the op takes no part in planning, because it is evaluated at
/// compile time or costs neither time nor bytes (constants, tensor.empty).
bool isFree(mlir::Operation *op);

/// Returns the pairs (operand, result) of an op whose result may take the
/// operand's bytes, and the pairs of its updates.
llvm::SmallVector<std::pair<unsigned, unsigned>>
getReusePairs(mlir::Operation *op, const PlanningHooks &hooks = {});
llvm::SmallVector<std::pair<unsigned, unsigned>>
getUpdatePairs(mlir::Operation *op);

/// A function result with `ckopt.updates`, and the argument that it replaces.
struct StateUpdate {
  unsigned result, argument;
};
llvm::SmallVector<StateUpdate>
getStateUpdates(mlir::FunctionOpInterface function);

/// Returns the function's name after the names of its modules, without the
/// outermost: "f", "inner::f".
std::string getFunctionPath(mlir::FunctionOpInterface function);

/// Returns a name for messages: the source node of an op or value.
std::string getSourceName(mlir::Location loc);
std::string getValueName(mlir::Value value);

/// Returns the bytes of a type as TypeSizes does without hooks and data layout,
/// which is right for ckopt's own IR.
int64_t getStorageBytes(mlir::Type type);
std::string describeUnsized(mlir::Type type);

/// Returns the values of the op's block that it or its regions read, each once.
llvm::SmallVector<mlir::Value> getReads(mlir::Operation *op);
/// Tells whether the value is a tensor.empty: a destination without contents.
bool isEmptyTensor(mlir::Value value);

/// The attribute `ckopt.cost` of an op (seconds): a number from 0 to 1e9.
inline constexpr llvm::StringLiteral kCostAttr = "ckopt.cost";
std::optional<double> getCostAttribute(mlir::Operation *op);

/// The attribute `ckopt.workspace` of an op or of a function that is called:
/// bytes that it needs in addition to its operands and results while it runs.
inline constexpr llvm::StringLiteral kWorkspaceAttr = "ckopt.workspace";
/// A larger number of bytes for one op is refused as a mistake.
inline constexpr int64_t kMaxStatedBytes = int64_t(1) << 56;
/// Returns the attribute's value, else the answer of the client's callback,
/// else that of the op's interface.
std::optional<int64_t> getStatedWorkspace(mlir::Operation *op,
                                          const PlanningHooks &hooks);

/// Returns the repeated block that a source name belongs to: its path up to the
/// last component that ends in `.N` or `_N` ("/encoder/layers.3/attn/MatMul"
/// gives "/encoder/layers.3"); empty if there is none.
std::string getRepeatedBlock(llvm::StringRef sourceName);

/// Tells whether a function is a step rather than a kernel: it has a body and,
/// if it is no func.func, tensors or values of unknown size in it.
bool isStepFunction(mlir::FunctionOpInterface function);

} // namespace ckopt

#endif // CKOPT_ANALYSIS_PLANNINGPROBLEM_H
