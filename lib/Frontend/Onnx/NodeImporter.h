//===- NodeImporter.h - what a handler works with ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gives handlers the operands, attributes and constants of one node, and
// functions that build ops without ever aborting: each op's types are inferred
// and verified first, and a failure becomes a diagnostic at the node and a null
// value. Null values pass through all functions, so a handler need not check
// each step; only one that looks at a type must.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_FRONTEND_ONNX_NODEIMPORTER_H
#define CKOPT_LIB_FRONTEND_ONNX_NODEIMPORTER_H

#include "GraphImporter.h"

namespace ckopt::onnx_frontend {

using Shape = llvm::SmallVector<int64_t>;
using NamedAttrs = llvm::ArrayRef<mlir::NamedAttribute>;

class NodeImporter {
public:
  NodeImporter(GraphImporter &graph, const Node &node, mlir::Location loc);

  GraphImporter &graph;
  const Node &node;
  const mlir::Location loc;
  const int64_t opset;
  mlir::OpBuilder &b;

  /// Reports that the node is wrong.
  mlir::InFlightDiagnostic error();
  /// Reports that the node needs something that ckopt does not support.
  mlir::InFlightDiagnostic unsupported();
  bool hasFailed() const { return failed; }
  /// Fails without a message, because the cause has been reported elsewhere.
  void fail() { failed = true; }

  //===--------------------------------------------------------------------===//
  // Operands and results
  //===--------------------------------------------------------------------===//

  size_t numInputs() const { return node.inputs.size(); }
  size_t numOutputs() const { return node.outputs.size(); }
  bool has(size_t i) const;
  /// Returns operand `i`; an error if it is missing.
  mlir::Value in(size_t i);
  /// Returns operand `i` or null, without an error.
  mlir::Value optional(size_t i);
  /// Returns all operands from `first` on.
  llvm::SmallVector<mlir::Value> inputsFrom(size_t first);
  bool wants(size_t i) const; ///< result `i` is named and used
  void set(size_t i, mlir::Value value);
  mlir::Value result(size_t i) const { return results[i]; }
  bool isSequence(size_t i) const {
    return has(i) && graph.findSequence(node.inputs[i]);
  }
  /// Returns operand `i`, a sequence; null after an error.
  const Sequence *sequence(size_t i);
  void setSequence(size_t i, Sequence sequence);
  const Sequence *sequenceResult(size_t i) const {
    return sequences[i] ? &*sequences[i] : nullptr;
  }

  //===--------------------------------------------------------------------===//
  // Attributes: the functions return the default if absent, and report one of
  // another kind
  //===--------------------------------------------------------------------===//

  bool hasAttr(llvm::StringRef name) const { return find(name); }
  int64_t attrInt(llvm::StringRef name, int64_t missing);
  double attrFloat(llvm::StringRef name, double missing);
  std::string attrString(llvm::StringRef name, llvm::StringRef missing);
  Shape attrInts(llvm::StringRef name, llvm::ArrayRef<int64_t> missing = {});
  std::vector<double> attrFloats(llvm::StringRef name);
  std::vector<std::string> attrStrings(llvm::StringRef name);
  /// Returns the element type that a number of TensorProto.DataType names; null
  /// after an error.
  mlir::Type attrType(llvm::StringRef name);
  const NodeAttribute *find(llvm::StringRef name) const;

  //===--------------------------------------------------------------------===//
  // Constants
  //===--------------------------------------------------------------------===//

  /// Returns the constant that `value` folded to, or null.
  static mlir::DenseElementsAttr constantOf(mlir::Value value);
  /// Returns whether `value` folded to a constant.
  static bool isConstant(mlir::Value value);
  /// Returns the elements of operand `i`, an integer constant; an error
  /// otherwise.
  std::optional<Shape> constInts(size_t i);
  std::optional<Shape> intsOf(mlir::Value value, llvm::StringRef what);
  /// Returns the elements of a constant of numbers; an error for others.
  std::optional<std::vector<double>> doublesOf(mlir::Value value,
                                               llvm::StringRef what);
  /// Returns the one element of a constant; nothing (and no error) for others.
  static std::optional<double> scalarOf(mlir::Value value);
  /// Reports that `value` must be known at compile time, and names the graph
  /// inputs that determine it. `what` is, for example, "operand 1 ('axes')".
  void needConstant(mlir::Value value, llvm::StringRef what);
  /// Returns operand `i` as one number; an error if it is not a constant.
  std::optional<double> constScalar(size_t i);
  /// Returns axes from the attribute or, if there is none, from operand `i`;
  /// normalized to 0..rank-1 and sorted. Returns nothing if neither is given.
  std::optional<Shape> axes(size_t i, int64_t rank);
  /// Normalizes `axis` from -rank..rank-1 to 0..rank-1; an error outside.
  std::optional<int64_t> normalAxis(int64_t axis, int64_t rank);

  //===--------------------------------------------------------------------===//
  // Types
  //===--------------------------------------------------------------------===//

  static mlir::RankedTensorType type(mlir::Value value);
  static llvm::ArrayRef<int64_t> shape(mlir::Value value);
  static int64_t rank(mlir::Value value) { return type(value).getRank(); }
  static mlir::Type element(mlir::Value value);
  static bool isFloat(mlir::Value value);
  mlir::RankedTensorType tensor(llvm::ArrayRef<int64_t> shape, mlir::Type t);

  //===--------------------------------------------------------------------===//
  // Ops
  //===--------------------------------------------------------------------===//

  mlir::NamedAttribute named(llvm::StringRef name, mlir::Attribute value);
  mlir::NamedAttribute named(llvm::StringRef name, int64_t value);
  mlir::NamedAttribute named(llvm::StringRef name,
                             llvm::ArrayRef<int64_t> value);
  mlir::NamedAttribute namedF(llvm::StringRef name, double value);
  mlir::NamedAttribute flag(llvm::StringRef name);

  /// Creates the op, or the values that it folds to; empty after an error.
  /// `types` is for ops that do not infer their types.
  llvm::SmallVector<mlir::Value> build(llvm::StringRef name,
                                       mlir::ValueRange operands,
                                       NamedAttrs attrs, mlir::TypeRange types);
  template <typename Op>
  llvm::SmallVector<mlir::Value> makeAll(mlir::ValueRange operands,
                                         NamedAttrs attrs = {},
                                         mlir::TypeRange types = {}) {
    return build(Op::getOperationName(), operands, attrs, types);
  }
  template <typename Op>
  mlir::Value make(mlir::ValueRange operands, NamedAttrs attrs = {},
                   mlir::TypeRange types = {}) {
    auto all = makeAll<Op>(operands, attrs, types);
    return all.empty() ? mlir::Value() : all.front();
  }

  /// The ops broadcast as numpy does; these functions first resize operands
  /// that still have the file's batch.
  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value sub(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, mlir::Value y);
  mlir::Value div(mlir::Value x, mlir::Value y);
  mlir::Value compare(ComparePredicate predicate, mlir::Value x, mlir::Value y);
  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y);
  template <typename Op>
  mlir::Value broadcast(llvm::SmallVector<mlir::Value> operands,
                        NamedAttrs attrs = {}) {
    if (!alignBatch(operands))
      return {};
    return make<Op>(operands, attrs);
  }
  /// Reports an error if the node takes a part of (or adds to) the dimension of
  /// an operand that holds a scaled batch.
  bool cutsBatch(int64_t axis, size_t operand = 0);
  /// Aligns operands, see BatchScaling::align.
  bool alignBatch(llvm::MutableArrayRef<mlir::Value> operands);

  /// Returns a rank-0 constant of the element type of `like`.
  mlir::Value scalar(double value, mlir::Value like);
  mlir::Value scalarOfType(double value, mlir::Type element);
  mlir::Value splat(double value, mlir::RankedTensorType type);
  mlir::Value intConstant(llvm::ArrayRef<int64_t> values);
  /// Returns a constant of a float or integer type, each value rounded to it.
  mlir::Value constant(llvm::ArrayRef<double> values,
                       llvm::ArrayRef<int64_t> shape, mlir::Type element);
  mlir::Value reshape(mlir::Value x, llvm::ArrayRef<int64_t> shape);
  mlir::Value transpose(mlir::Value x, llvm::ArrayRef<int64_t> permutation);
  mlir::Value slice(mlir::Value x, llvm::ArrayRef<int64_t> starts,
                    llvm::ArrayRef<int64_t> sizes,
                    llvm::ArrayRef<int64_t> steps = {});
  /// Returns `size` entries from `start` on along `axis`.
  mlir::Value sliceAxis(mlir::Value x, int64_t axis, int64_t start,
                        int64_t size);
  mlir::Value concat(llvm::SmallVector<mlir::Value> inputs, int64_t axis);
  mlir::Value expand(mlir::Value x, llvm::ArrayRef<int64_t> shape);
  mlir::Value cast(mlir::Value x, mlir::Type element);
  mlir::Value reduce(ReduceKind kind, mlir::Value x,
                     llvm::ArrayRef<int64_t> axes, bool keepdims);
  mlir::Value matmul(mlir::Value x, mlir::Value y, bool transposeX = false,
                     bool transposeY = false);
  mlir::Value clip(mlir::Value x, double lo, double hi);
  mlir::Value iota(llvm::ArrayRef<int64_t> shape, mlir::Type element,
                   int64_t axis, double start = 0, double delta = 1);
  /// Adds [C] to the channels (dimension 1) of `x`; returns `x` if the bias is
  /// null.
  mlir::Value addChannelBias(mlir::Value x, mlir::Value bias);

private:
  bool failed = false;
  llvm::SmallVector<mlir::Value> results;
  llvm::SmallVector<std::optional<Sequence>> sequences;
};

/// A handler is valid from opset `since` on.
using Handler = mlir::LogicalResult (*)(NodeImporter &);
struct HandlerEntry {
  const char *op;
  int64_t since;
  Handler handler;
  const char *domain = "";
};

/// Returns the handlers of each category; Registry.cpp joins them.
llvm::ArrayRef<HandlerEntry> elementwiseHandlers();
llvm::ArrayRef<HandlerEntry> activationHandlers();
llvm::ArrayRef<HandlerEntry> shapeHandlers();
llvm::ArrayRef<HandlerEntry> indexingHandlers();
llvm::ArrayRef<HandlerEntry> constantHandlers();
llvm::ArrayRef<HandlerEntry> reductionHandlers();
llvm::ArrayRef<HandlerEntry> matmulHandlers();
llvm::ArrayRef<HandlerEntry> windowHandlers();
llvm::ArrayRef<HandlerEntry> normalizationHandlers();
llvm::ArrayRef<HandlerEntry> recurrentHandlers();
llvm::ArrayRef<HandlerEntry> lossHandlers();
llvm::ArrayRef<HandlerEntry> resizeHandlers();
llvm::ArrayRef<HandlerEntry> einsumHandlers();
llvm::ArrayRef<HandlerEntry> attentionHandlers();
llvm::ArrayRef<HandlerEntry> padHandlers();
llvm::ArrayRef<HandlerEntry> samplingHandlers();
llvm::ArrayRef<HandlerEntry> poolHandlers();
llvm::ArrayRef<HandlerEntry> rearrangeHandlers();
llvm::ArrayRef<HandlerEntry> quantizeHandlers();
llvm::ArrayRef<HandlerEntry> signalHandlers();
llvm::ArrayRef<HandlerEntry> roiHandlers();
llvm::ArrayRef<HandlerEntry> stateSpaceHandlers();
llvm::ArrayRef<HandlerEntry> elementHandlers();
llvm::ArrayRef<HandlerEntry> sequenceHandlers();
llvm::ArrayRef<HandlerEntry> controlHandlers();
llvm::ArrayRef<HandlerEntry> orderHandlers();
llvm::ArrayRef<HandlerEntry> selectionHandlers();
llvm::ArrayRef<HandlerEntry> randomHandlers();
llvm::ArrayRef<HandlerEntry> trigonometricHandlers();
llvm::ArrayRef<HandlerEntry> previewHandlers();
llvm::ArrayRef<HandlerEntry> legacyHandlers();

/// Returns the handler for an operator in an opset, or null.
Handler findHandler(llvm::StringRef domain, llvm::StringRef op, int64_t opset);
/// Returns whether any opset has the operator.
bool isKnownOperator(llvm::StringRef domain, llvm::StringRef op);

/// Handles an operator that corresponds to one op with one operand.
template <typename Op> mlir::LogicalResult unary(NodeImporter &n) {
  n.set(0, n.make<Op>({n.in(0)}));
  return mlir::success();
}

} // namespace ckopt::onnx_frontend

#endif // CKOPT_LIB_FRONTEND_ONNX_NODEIMPORTER_H
