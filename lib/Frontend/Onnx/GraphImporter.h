//===- GraphImporter.h - one pass from an ONNX graph to IR ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_FRONTEND_ONNX_GRAPHIMPORTER_H
#define CKOPT_LIB_FRONTEND_ONNX_GRAPHIMPORTER_H

#include "BatchScaling.h"
#include "OnnxModel.h"
#include "WeightRoles.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Frontend/Onnx/Onnx.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include <set>

namespace ckopt::onnx_frontend {

class NodeImporter;
using Sequence = llvm::SmallVector<mlir::Value>;

/// A data input with its shape fixed.
struct DataInput {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
};

/// Everything decided before the graph is walked.
struct ImportPlan {
  std::vector<DataInput> inputs;
  llvm::StringMap<WeightRole> weights; ///< by name, for those not data
  std::vector<std::string> weightOrder;
  bool trainMode = true;
  /// The file was exported in training mode: a norm or a dropout says so.
  bool trainingForm = false;
  bool f64 = false;
};

/// Builds @forward from one graph. Diagnostics go to the context's handler,
/// located at the node; a node that fails does not stop the others, so that a
/// user sees all errors at once.
class GraphImporter {
public:
  GraphImporter(const Model &model, const ImportPlan &plan,
                mlir::MLIRContext &context, ImportedModel &result,
                BatchScaling *scaling = nullptr);

  mlir::LogicalResult run();

  /// Shapes of all values by ONNX name, after `run`.
  llvm::StringMap<llvm::SmallVector<int64_t>> shapes;
  /// Some node needs what ckopt does not have (rather than being wrong).
  bool sawUnsupported = false;
  /// Graph inputs that nodes would have to know when compiling.
  std::set<std::string> neededConstants;

  //===--------------------------------------------------------------------===//
  // For nodes
  //===--------------------------------------------------------------------===//

  mlir::OpBuilder &getBuilder() { return builder; }
  BatchScaling *getScaling() { return scaling; }
  bool trainMode() const { return plan.trainMode; }
  bool isTrainingForm() const { return plan.trainingForm; }
  /// Whether one of PyTorch's exporters wrote the file.
  bool isFromPyTorch() const { return model.producer == "pytorch"; }
  /// The value of an initializer of the file, or null.
  const HostTensor *initializer(llvm::StringRef name) const {
    return initializers.lookup(name);
  }
  bool isUsed(llvm::StringRef name) const { return used.contains(name); }
  /// The value of that name; null where there is none or its node failed.
  mlir::Value lookup(llvm::StringRef name);
  bool isDefined(llvm::StringRef name) const;
  void bind(llvm::StringRef name, mlir::Value value);
  /// A sequence is no value of the IR but a list of them that is known while
  /// importing. Null where `name` is none.
  const Sequence *findSequence(llvm::StringRef name) const;
  void bindSequence(llvm::StringRef name, Sequence sequence);
  /// Counts so many more ops that unrolling makes; failure, after a diagnostic,
  /// where the model's loops make more than a compiler can hold.
  mlir::LogicalResult chargeUnrolled(NodeImporter &owner, int64_t count);
  /// Imports the nodes of `graph` in place, with the values named `arguments`
  /// as its inputs and names that start with `prefix`. Returns the names of its
  /// outputs; failure after a diagnostic.
  mlir::FailureOr<std::vector<std::string>>
  importBody(NodeImporter &owner, const Graph &graph,
             llvm::ArrayRef<std::string> arguments, llvm::StringRef prefix);
  /// New values of states so far; a branch has them for itself.
  using Updates = llvm::MapVector<mlir::Value, mlir::Value>;
  Updates &stateUpdates() { return updates; }

  mlir::Type elementType(DType dtype);
  /// A constant op, or an argument of role "constant" where it is large.
  mlir::Value constant(mlir::Location loc, const HostTensor &value,
                       llvm::StringRef name);
  /// A new argument at the end.
  mlir::Value addArgument(mlir::RankedTensorType type, llvm::StringRef name,
                          llvm::StringRef role, llvm::StringRef init = "");
  /// The scalars that random numbers are made from, added on first use.
  mlir::Value seed();
  mlir::Value step();
  int64_t nextDropoutSite() { return dropoutSites++; }
  /// Notes that `argument`, a state, has a new value at the end of the step.
  void updateState(mlir::Value argument, mlir::Value value);
  /// The newest value of a state (itself before any update).
  mlir::Value currentState(mlir::Value argument);
  /// Says something to the user that is no error.
  void remark(const llvm::Twine &text) { result.remarks.push_back(text.str()); }
  /// The same, once for all nodes that it is about.
  void remarkOnce(const std::string &text) {
    if (!llvm::is_contained(result.remarks, text))
      remark(text);
  }
  /// Notes that `value` is the loss.
  void markLoss(mlir::Value value) { losses.insert(value); }
  /// The data inputs that `value` is computed from, also noted as needed
  /// constants: what a node must know is not known. Linear in the ops behind.
  std::string noteNeeded(mlir::Value value);
  /// The name under which `value`, an argument, is known; "" for others.
  llvm::StringRef argumentName(mlir::Value value) const;
  void setArgumentRole(mlir::Value argument, llvm::StringRef role);

private:
  struct Argument {
    std::string name;
    llvm::SmallVector<mlir::NamedAttribute> attrs;
    bool removable = false;
  };

  void createArguments();
  bool importNode(const Node &node);
  bool areOperandsReady(NodeImporter &importer);
  void use(const Node &node);
  void recordShapes();
  mlir::LogicalResult collectResults();
  void setDictionaries();
  /// Finish.cpp: dead code, large constants, unused weights.
  void settleUpdates();
  void removeDeadOps();
  void outlineLargeConstants();
  void removeUnusedArguments();

  const Model &model;
  const ImportPlan &plan;
  ImportedModel &result;
  BatchScaling *scaling;
  mlir::OpBuilder builder;
  mlir::func::FuncOp func;
  mlir::Block *body = nullptr;
  std::vector<Argument> arguments;
  llvm::StringMap<mlir::Value> values;
  llvm::StringMap<Sequence> sequences;
  llvm::StringMap<const HostTensor *> initializers;
  llvm::StringSet<> used;
  Updates updates;
  int64_t unrolled = 0;                     ///< ops that unrolling made so far
  llvm::SmallPtrSet<mlir::Value, 2> losses; ///< membership only
  mlir::Value seedArgument, stepArgument;
  int64_t dropoutSites = 0;
  llvm::SmallVector<std::pair<std::string, mlir::Value>> results;
  bool failed = false;
};

/// x * 0.5 * (1 + erf(x / sqrt 2)) and its tanh approximation, however they
/// are spelled, become ckopt.gelu. FuseGelu.cpp.
void fuseGelu(mlir::func::FuncOp func);
/// (x - mean) / sqrt(variance + epsilon), scaled and shifted, becomes
/// ckopt.layer_norm. FuseLayerNorm.cpp.
void fuseLayerNorm(mlir::func::FuncOp func);

/// Notes on arguments which labels and indices losses and lookups take of them
/// (Dialect/Ckopt/Utils/LabelRange.h).
void noteDataLimits(mlir::func::FuncOp function);

} // namespace ckopt::onnx_frontend

#endif // CKOPT_LIB_FRONTEND_ONNX_GRAPHIMPORTER_H
