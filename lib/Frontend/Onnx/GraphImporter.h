//===- GraphImporter.h - one pass from an ONNX graph to IR ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_FRONTEND_ONNX_GRAPHIMPORTER_H
#define CKOPT_LIB_FRONTEND_ONNX_GRAPHIMPORTER_H

#include "BatchScaling.h"
#include "Reader/OnnxModel.h"
#include "WeightRoles.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/Utils/WholeBatch.h"
#include "ckopt/Frontend/Onnx/Onnx.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include <set>

namespace ckopt {
class TensorBuilder;
}

namespace ckopt::onnx_frontend {

class NodeImporter;
using Sequence = llvm::SmallVector<mlir::Value>;
using ConstantsByName = llvm::StringMap<mlir::DenseElementsAttr>;

/// A data input with its shape fixed.
struct DataInput {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
};

/// The decisions that are made before the graph is imported.
struct ImportPlan {
  std::vector<DataInput> inputs;
  llvm::StringMap<WeightRole> weights; ///< by name, without data inputs
  std::vector<std::string> weightOrder;
  bool trainMode = true;
  /// Set if the file was exported in training mode, as a norm or a dropout
  /// shows.
  bool trainingForm = false;
  bool f64 = false;
  bool hasOpenSize = false; ///< ImportOptions::hasOpenSize
};

/// Builds @forward from one graph. Diagnostics go to the context's handler,
/// located at the node; after a node fails the import continues, so that a user
/// sees all errors at once.
class GraphImporter {
public:
  GraphImporter(const Model &model, const ImportPlan &plan,
                mlir::MLIRContext &context, ImportedModel &result,
                BatchScaling *scaling = nullptr);

  mlir::LogicalResult run();

  /// Shapes of all values by ONNX name, filled in by `run`.
  llvm::StringMap<llvm::SmallVector<int64_t>> shapes;
  /// Values of all constants by ONNX name, filled in by `run`.
  ConstantsByName constants;
  /// Those with the whole batch, if this one is a part of it (not owned).
  const ConstantsByName *wholeConstants = nullptr;
  /// Set if some node needs an unsupported feature (rather than being wrong).
  bool sawUnsupported = false;
  /// Graph inputs whose values nodes need at compile time.
  std::set<std::string> neededConstants;

  //===--------------------------------------------------------------------===//
  // Functions for handlers of nodes
  //===--------------------------------------------------------------------===//

  mlir::OpBuilder &getBuilder() { return builder; }
  BatchScaling *getScaling() { return scaling; }
  bool trainMode() const { return plan.trainMode; }
  bool isTrainingForm() const { return plan.trainingForm; }
  /// Returns whether one of PyTorch's exporters wrote the file.
  bool isFromPyTorch() const { return model.producer == "pytorch"; }
  /// Returns the value of an initializer of the file, or null.
  const HostTensor *initializer(llvm::StringRef name) const {
    const Tensor *tensor = initializers.lookup(name);
    return tensor && !tensor->nibbles ? &tensor->value : nullptr;
  }
  /// Returns what an initializer of nibbles is, or null.
  const Nibbles *nibblesOf(llvm::StringRef name) const {
    const Tensor *tensor = initializers.lookup(name);
    return tensor && tensor->nibbles ? &*tensor->nibbles : nullptr;
  }
  /// Returns the bytes of an initializer of nibbles.
  mlir::Value bytesOf(llvm::StringRef name);
  /// Lets an initializer of integers be an argument, as it is stored, even if
  /// it is small enough to be folded; tiny ones stay constants.
  void keepStored(llvm::StringRef name);
  /// Notes an initializer that becomes a constant, if it is large.
  void noteConstant(llvm::StringRef name);
  bool isUsed(llvm::StringRef name) const { return used.contains(name); }
  /// Returns the value of that name; null if there is none or its node failed.
  mlir::Value lookup(llvm::StringRef name);
  bool isDefined(llvm::StringRef name) const;
  void bind(llvm::StringRef name, mlir::Value value);
  /// Returns the sequence `name`, or null if it is not one. A sequence is not a
  /// value of the IR but a list of values that is known at import time.
  const Sequence *findSequence(llvm::StringRef name) const;
  void bindSequence(llvm::StringRef name, Sequence sequence);
  /// Adds to the count of ops that unrolling makes; fails, with a diagnostic,
  /// if the model's loops would make more than a compiler can hold.
  mlir::LogicalResult chargeUnrolled(NodeImporter &owner, int64_t count);
  /// The same without adding, for who knows the count before the first op.
  mlir::LogicalResult checkUnrolled(NodeImporter &owner, int64_t count);
  /// Imports the nodes of `graph` in place, with the values named `arguments`
  /// as its inputs and names that start with `prefix`. Returns the names of its
  /// outputs; failure after a diagnostic.
  mlir::FailureOr<std::vector<std::string>>
  importBody(NodeImporter &owner, const Graph &graph,
             llvm::ArrayRef<std::string> arguments, llvm::StringRef prefix);
  /// New values of states so far; each branch has its own.
  using Updates = llvm::MapVector<mlir::Value, mlir::Value>;
  Updates &stateUpdates() { return updates; }

  mlir::Type elementType(DType dtype);
  /// Makes a constant op, or an argument of role "constant" if it is large.
  mlir::Value constant(mlir::Location loc, const HostTensor &value,
                       llvm::StringRef name);
  /// Adds an argument at the end.
  mlir::Value addArgument(mlir::RankedTensorType type, llvm::StringRef name,
                          llvm::StringRef role, llvm::StringRef init = "");
  /// Return the scalars that random numbers are made from, added on first use.
  mlir::Value seed();
  mlir::Value step();
  int64_t nextDropoutSite() { return dropoutSites++; }
  /// Records the new value that a state, an argument, has at the end of the
  /// step.
  void updateState(mlir::Value argument, mlir::Value value);
  /// Returns the newest value of a state (the argument itself before any
  /// update).
  mlir::Value currentState(mlir::Value argument);
  /// Reports a remark to the user.
  void remark(const MessageText &text) { result.remarks.push_back(text); }
  /// Reports a remark once, for all nodes that it applies to.
  void remarkOnce(const MessageText &text) {
    if (!llvm::is_contained(result.remarks, text))
      remark(text);
  }
  /// Records that `value` is a loss.
  void markLoss(mlir::Value value) { losses.insert(value); }
  /// Returns the data inputs that `value` is computed from, and records them as
  /// needed constants, because a node must know the value at compile time.
  /// Linear in the ops that compute it.
  std::string noteNeeded(mlir::Value value);
  /// Returns the name of `value` if it is an argument, else "".
  llvm::StringRef argumentName(mlir::Value value) const;
  void setArgumentRole(mlir::Value argument, llvm::StringRef role);

private:
  struct Argument {
    std::string name;
    llvm::SmallVector<mlir::NamedAttribute> attrs;
    bool removable = false;
    bool isMade = false; ///< ops make what it holds
  };

  void createArguments();
  bool importNode(const Node &node);
  bool importPlainNode(const Node &node);
  bool areOperandsReady(NodeImporter &importer);
  void use(const Node &node);
  void recordShapes();
  void recordDifference(const Node &node);
  void noteOpenValues();
  /// In WholeBatch.cpp: numbers that depend on the batch's size.
  void recordConstants();
  mlir::LogicalResult addWholeNumbers();
  using Bindings = llvm::SmallVector<std::pair<std::string, mlir::Value>>;
  Bindings pinOperands(const Node &node);
  mlir::Value pinOf(mlir::Value number, mlir::DenseElementsAttr whole);
  mlir::LogicalResult collectResults();
  void setDictionaries();
  /// In Finish.cpp: dead code, large constants, unused weights.
  void settleUpdates();
  void removeDeadOps();
  void outlineLargeConstants();
  /// The most bytes of a constant that is part of the step.
  int64_t smallConstant() const {
    return plan.hasOpenSize ? kFewBytes : 4 << 10;
  }
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
  /// With an open size: what comparisons of known integers compare.
  llvm::StringMap<llvm::SmallVector<int64_t>> differences;
  llvm::StringMap<Sequence> sequences;
  llvm::DenseMap<mlir::Value, mlir::Value> pins; ///< of real numbers
  llvm::StringMap<const Tensor *> initializers;
  llvm::StringMap<mlir::Value> nibbleBytes; ///< by name of the initializer
  llvm::StringSet<> used;
  Updates updates;
  int64_t unrolled = 0;                     ///< ops that unrolling made so far
  llvm::SmallPtrSet<mlir::Value, 2> losses; ///< membership only
  mlir::Value seedArgument, stepArgument;
  int64_t dropoutSites = 0;
  llvm::SmallVector<std::pair<std::string, mlir::Value>> results;
  bool failed = false;
};

/// Returns the nibbles of bytes as i32. With a shape whose last extent is even,
/// the result has that extent in two dimensions, pairs last: all ops between
/// the bytes and it are elementwise. Defined in Nibbles.cpp.
mlir::Value unpackPairs(TensorBuilder &b, mlir::Value bytes,
                        llvm::ArrayRef<int64_t> shape, bool isSigned);
/// Returns the nibbles in their own shape, as i8 or u8.
mlir::Value unpackNibbles(TensorBuilder &b, mlir::Value bytes,
                          const Nibbles &nibbles);

/// Replaces x * 0.5 * (1 + erf(x / sqrt 2)) and its tanh approximation, in any
/// form, by ckopt.gelu. Defined in FuseGelu.cpp.
void fuseGelu(mlir::func::FuncOp func);
/// Replaces (x - mean) / sqrt(variance + epsilon), scaled and shifted, by
/// ckopt.layer_norm, and x / sqrt(mean(x^2) + epsilon), scaled, by
/// ckopt.rms_norm. Defined in FuseRowNorms.cpp.
void fuseRowNorms(mlir::func::FuncOp func);

/// On a loss, until then: all its labels count, whatever its ignore_index.
inline constexpr llvm::StringLiteral kAllCountAttr = "ckopt.all_count";

} // namespace ckopt::onnx_frontend

#endif // CKOPT_LIB_FRONTEND_ONNX_GRAPHIMPORTER_H
