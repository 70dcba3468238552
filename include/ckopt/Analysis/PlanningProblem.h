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
#include "ckopt/Analysis/PlanningHooks.h"
#include "ckopt/Planner/Graph.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace ckopt {

/// Every tensor of the arena starts at a multiple of it, in bytes.
inline constexpr int64_t kArenaAlignment = 64;

/// Bytes that a function needs and that no plan counts.
struct Uncounted {
  mlir::Location where;
  /// "the bytes of values of type '!other.tensor'".
  std::string what;
  /// How many ops need such bytes.
  int64_t count = 1;
  /// The function itself needs them: a budget cannot be held. Else they are
  /// what other functions or threads need.
  bool own = true;
};

/// What is known beside the IR of one function when it is planned.
struct PlanningContext {
  PlanningHooks hooks;
  /// Whether bodies of functions that this one calls may be read: not where
  /// other threads may change them.
  bool mayReadCallees = true;
};

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
  /// Where the nodes' costs come from.
  CostUse costs;
  /// By node: why it runs only once ("side effects"); empty: it may run again.
  std::vector<std::string> once;
  /// What is not counted, in the order of the function.
  std::vector<Uncounted> uncounted;
};

/// Builds the problem of a function. Failure: errors were emitted that name
/// everything that cannot be planned (several blocks, dynamic shapes, a state
/// read after its update, a cost that is no number).
mlir::FailureOr<PlanningProblem>
buildProblem(mlir::FunctionOpInterface function, CostModel &costs,
             const PlanningContext &context = {});

/// Why functions like this one cannot be planned at all: several blocks,
/// tensors whose size is unknown. Empty: none of that. `where` (optional)
/// receives the place.
std::string findUnsupported(mlir::FunctionOpInterface function,
                            mlir::Location *where = nullptr,
                            const PlanningHooks &hooks = {});

/// What a plan of the function would not count: values of unknown types, memory
/// that ops allocate, what unregistered ops and callees need. One entry a kind.
std::vector<Uncounted> findUncounted(mlir::FunctionOpInterface function,
                                     const PlanningContext &context = {});

/// Whether the op is a view: no code, its result shows the bytes of its first
/// operand; other operands are constants.
bool isView(mlir::Operation *op);
/// The value whose bytes `value` shows (itself if it is no view).
mlir::Value getViewBase(mlir::Value value);
/// Whether the op takes no part in planning: it is made at compile time or
/// costs neither time nor bytes of the arena (constants, tensor.empty).
bool isFree(mlir::Operation *op);

/// For a kernel call or another op: pairs (operand, result) of in-place reuse
/// and of updates.
llvm::SmallVector<std::pair<unsigned, unsigned>>
getReusePairs(mlir::Operation *op, const PlanningHooks &hooks = {});
llvm::SmallVector<std::pair<unsigned, unsigned>>
getUpdatePairs(mlir::Operation *op);

/// For each function result with `ckopt.updates`: the argument that it
/// replaces.
struct StateUpdate {
  unsigned result, argument;
};
llvm::SmallVector<StateUpdate>
getStateUpdates(mlir::FunctionOpInterface function);

/// The function's name behind those of the modules that it lies in, the
/// outermost left out: "f", "inner::f".
std::string getFunctionPath(mlir::FunctionOpInterface function);

/// A name for people: the source node that an op or value came from.
std::string getSourceName(mlir::Location loc);
std::string getValueName(mlir::Value value);

/// TypeSizes without hooks and data layout: what ckopt's own IR takes.
int64_t getStorageBytes(mlir::Type type);
std::string describeUnsized(mlir::Type type);

/// Values of the op's block that it or its regions read, each once.
llvm::SmallVector<mlir::Value> getReads(mlir::Operation *op);
/// Whether the value is a tensor.empty: a destination without contents.
bool isEmptyTensor(mlir::Value value);

/// The attribute `ckopt.cost` of an op (seconds): a number from 0 to 1e9.
inline constexpr llvm::StringLiteral kCostAttr = "ckopt.cost";
std::optional<double> getCostAttribute(mlir::Operation *op);

/// The attribute `ckopt.workspace` of an op or of a function that is called:
/// bytes that it needs beside its operands and results, while it runs.
inline constexpr llvm::StringLiteral kWorkspaceAttr = "ckopt.workspace";
/// More bytes for one op are taken for a mistake.
inline constexpr int64_t kMaxStatedBytes = int64_t(1) << 56;
/// The attribute, else what the client or the op's interface say.
std::optional<int64_t> getStatedWorkspace(mlir::Operation *op,
                                          const PlanningHooks &hooks);

/// The repeated block that a source name belongs to: its path up to the last
/// component that ends in `.N` or `_N` ("/encoder/layers.3/attn/MatMul" gives
/// "/encoder/layers.3"); empty if there is none.
std::string getRepeatedBlock(llvm::StringRef sourceName);

/// Functions of a module that hold a step, not a kernel: with a body, and, if
/// they are no func.func, with tensors or values of unknown size in it.
bool isStepFunction(mlir::FunctionOpInterface function);

} // namespace ckopt

#endif // CKOPT_ANALYSIS_PLANNINGPROBLEM_H
