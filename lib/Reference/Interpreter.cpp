//===- Interpreter.cpp - evaluates functions of ckopt ops -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Computes a function op by op: walks its block once and keeps each value until
// its last reader has run.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Reference/Interpreter.h"
#include "Collectives.h"
#include "Models.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/DialectRegistry.h"

#include "ckopt/Reference/ReferenceInterface.cpp.inc"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::reference;

/// Returns whether the type has a static shape of numbers that fits into
/// memory.
static bool canHold(RankedTensorType type) {
  if (!type.hasStaticShape() || !type.getElementType().isIntOrFloat())
    return false;
  if (llvm::is_contained(type.getShape(), 0))
    return true;
  int64_t room = int64_t(1) << 31;
  for (int64_t size : type.getShape())
    room /= size;
  return room > 0;
}

LogicalResult reference::evaluateOp(Operation *op, Operands operands,
                                    SmallVectorImpl<Tensor> &results,
                                    const Environment &environment) {
  auto model = dyn_cast<ReferenceOpInterface>(op);
  if (!model)
    return op->emitOpError("has no reference semantics; attach a "
                           "ReferenceOpInterface model to interpret it");
  results.clear();
  for (Type type : op->getResultTypes()) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !canHold(tensor))
      return op->emitOpError("cannot be interpreted: its result type ")
             << type
             << " is not a statically shaped tensor of numbers with less than "
                "2^31 elements";
    results.emplace_back(tensor);
  }
  if (failed(model.interpret(operands, results, environment)))
    return failure();
  for (Tensor &result : results)
    if (environment.options.roundToType || !result.isFloat())
      result.roundToType();
  if (environment.options.observer)
    environment.options.observer(op, results);
  return success();
}

LogicalResult reference::evaluateOp(Operation *op, Operands operands,
                                    SmallVectorImpl<Tensor> &results,
                                    const Options &options) {
  return evaluateOp(op, operands, results, Environment{options, std::nullopt});
}

/// Checks that arguments have the shapes and element kinds of the function's.
static LogicalResult checkArguments(FunctionOpInterface function,
                                    ArrayRef<Tensor> args) {
  if (function.isExternal() ||
      !llvm::hasSingleElement(function.getFunctionBody()))
    return function.emitError("needs a body of one block to be interpreted");
  if (args.size() != function.getNumArguments())
    return function.emitError("takes ")
           << function.getNumArguments() << " arguments, got " << args.size();
  for (auto [i, arg] : llvm::enumerate(args)) {
    auto type = dyn_cast<RankedTensorType>(function.getArgumentTypes()[i]);
    if (!type || !canHold(type) || !arg || arg.getShape() != type.getShape() ||
        arg.isFloat() != isa<FloatType>(type.getElementType())) {
      auto diagnostic = function.emitError("argument ")
                        << i << " needs a " << function.getArgumentTypes()[i];
      if (arg)
        diagnostic << ", got a " << arg.getType();
      return diagnostic;
    }
  }
  return success();
}

namespace {
/// The live values of a function, each held until its last reader has run.
class Frame {
public:
  void define(Value value, Tensor tensor) {
    int64_t uses = std::distance(value.use_begin(), value.use_end());
    if (uses > 0)
      values[value] = {std::move(tensor), uses};
  }
  const Tensor *lookup(Value value) {
    return &values.find(value)->second.tensor;
  }
  void release(Value value) {
    auto entry = values.find(value);
    if (--entry->second.uses == 0)
      values.erase(entry);
  }

private:
  struct Held {
    Tensor tensor;
    int64_t uses;
  };
  // Values by their IR value. Looked up only, never iterated. Pointers into it
  // hold until the next define or release.
  llvm::DenseMap<Value, Held> values;
};
} // namespace

/// Defines the arguments of a function in its frame.
static LogicalResult enter(Frame &frame, FunctionOpInterface function,
                           ArrayRef<Tensor> args,
                           const Environment &environment) {
  if (failed(checkArguments(function, args)))
    return failure();
  Block &block = function.getFunctionBody().front();
  for (auto [value, arg] : llvm::zip(block.getArguments(), args)) {
    Tensor tensor = arg.withType(cast<RankedTensorType>(value.getType()));
    if (environment.options.roundToType || !tensor.isFloat())
      tensor.roundToType();
    frame.define(value, std::move(tensor));
  }
  return success();
}

static LogicalResult evaluateIn(FunctionOpInterface function,
                                ArrayRef<Tensor> args,
                                SmallVectorImpl<Tensor> &results,
                                const Environment &environment) {
  Frame frame;
  if (failed(enter(frame, function, args, environment)))
    return failure();
  for (Operation &op : function.getFunctionBody().front()) {
    SmallVector<const Tensor *> operands;
    for (Value operand : op.getOperands())
      operands.push_back(frame.lookup(operand));
    if (op.hasTrait<OpTrait::IsTerminator>()) {
      results.clear();
      for (const Tensor *operand : operands)
        results.push_back(*operand);
      return success();
    }
    SmallVector<Tensor> values;
    if (failed(evaluateOp(&op, operands, values, environment)))
      return failure();
    for (Value operand : op.getOperands())
      frame.release(operand);
    for (auto [value, tensor] : llvm::zip(op.getResults(), values))
      frame.define(value, std::move(tensor));
  }
  return function.emitError("has no terminator");
}

LogicalResult reference::evaluate(FunctionOpInterface function,
                                  ArrayRef<Tensor> args,
                                  SmallVectorImpl<Tensor> &results,
                                  const Options &options) {
  return evaluateIn(function, args, results,
                    Environment{options, std::nullopt});
}

//===----------------------------------------------------------------------===//
// Several ranks
//===----------------------------------------------------------------------===//

/// Returns the function that the op calls if an op of several ranks is in it.
static FunctionOpInterface findSharedCallee(Operation *op) {
  FlatSymbolRefAttr symbol;
  if (auto call = dyn_cast<KernelCallOp>(op))
    symbol = call.getCalleeAttr();
  else if (auto call = dyn_cast<func::CallOp>(op))
    symbol = call.getCalleeAttr();
  if (!symbol)
    return {};
  auto callee =
      SymbolTable::lookupNearestSymbolFrom<FunctionOpInterface>(op, symbol);
  bool shares = callee && callee
                              ->walk([](Operation *op) {
                                return isa<CollectiveOpInterface>(op)
                                           ? WalkResult::interrupt()
                                           : WalkResult::advance();
                              })
                              .wasInterrupted();
  return shares ? callee : FunctionOpInterface();
}

static LogicalResult evaluateRanks(FunctionOpInterface function,
                                   ArrayRef<SmallVector<Tensor>> args,
                                   World &results,
                                   const Environment &environment);

/// Runs one op on all ranks.
static LogicalResult runOnRanks(Operation *op,
                                ArrayRef<SmallVector<const Tensor *>> operands,
                                World &results,
                                const Environment &environment) {
  if (isa<CollectiveOpInterface>(op))
    return runTogether(op, operands, results, environment.options);
  if (FunctionOpInterface callee = findSharedCallee(op)) {
    World args(operands.size());
    for (auto [rank, own] : llvm::enumerate(operands))
      for (const Tensor *operand : own)
        args[rank].push_back(*operand);
    Environment inside{environment.options, std::nullopt};
    if (auto call = dyn_cast<KernelCallOp>(op))
      inside.scalars = call.getScalars();
    if (failed(evaluateRanks(callee, args, results, inside)))
      return failure();
    for (SmallVector<Tensor> &own : results)
      for (auto [value, type] : llvm::zip_equal(own, op->getResultTypes()))
        value = value.withType(cast<RankedTensorType>(type));
    return success();
  }
  results.resize(operands.size());
  for (auto [own, values] : llvm::zip_equal(operands, results))
    if (failed(evaluateOp(op, own, values, environment)))
      return failure();
  return success();
}

static LogicalResult evaluateRanks(FunctionOpInterface function,
                                   ArrayRef<SmallVector<Tensor>> args,
                                   World &results,
                                   const Environment &environment) {
  std::vector<Frame> frames(args.size());
  for (auto [frame, own] : llvm::zip_equal(frames, args))
    if (failed(enter(frame, function, own, environment)))
      return failure();
  for (Operation &op : function.getFunctionBody().front()) {
    SmallVector<SmallVector<const Tensor *>> operands(args.size());
    for (auto [frame, own] : llvm::zip_equal(frames, operands))
      for (Value operand : op.getOperands())
        own.push_back(frame.lookup(operand));
    if (op.hasTrait<OpTrait::IsTerminator>()) {
      results.assign(args.size(), {});
      for (auto [values, own] : llvm::zip_equal(results, operands))
        for (const Tensor *operand : own)
          values.push_back(*operand);
      return success();
    }
    World values;
    if (failed(runOnRanks(&op, operands, values, environment)))
      return failure();
    for (auto [frame, own] : llvm::zip_equal(frames, values)) {
      for (Value operand : op.getOperands())
        frame.release(operand);
      for (auto [value, tensor] : llvm::zip_equal(op.getResults(), own))
        frame.define(value, std::move(tensor));
    }
  }
  return function.emitError("has no terminator");
}

LogicalResult reference::evaluateWorld(
    FunctionOpInterface function, ArrayRef<SmallVector<Tensor>> args,
    SmallVectorImpl<SmallVector<Tensor>> &results, const Options &options) {
  World values;
  if (failed(evaluateRanks(function, args, values,
                           Environment{options, std::nullopt})))
    return failure();
  results.assign(values.begin(), values.end());
  return success();
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// Runs the function `symbol` on copies of the operands.
static LogicalResult call(Operation *op, FlatSymbolRefAttr symbol,
                          Operands operands, Results results,
                          const Environment &environment) {
  auto callee =
      SymbolTable::lookupNearestSymbolFrom<FunctionOpInterface>(op, symbol);
  if (!callee)
    return op->emitOpError("calls an unknown function ") << symbol;
  SmallVector<Tensor> args, values;
  for (const Tensor *operand : operands)
    args.push_back(*operand);
  if (failed(evaluateIn(callee, args, values, environment)))
    return failure();
  for (auto [result, value] : llvm::zip_equal(results, values))
    result = value.withType(result.getType());
  return success();
}

static LogicalResult interpretKernelCall(KernelCallOp op, Operands in,
                                         Results out,
                                         const Environment &environment) {
  ArrayRef<int64_t> scalars = op.getScalars();
  return call(op, op.getCalleeAttr(), in, out,
              Environment{environment.options, scalars});
}

static LogicalResult interpretCall(func::CallOp op, Operands in, Results out,
                                   const Environment &environment) {
  return call(op, op.getCalleeAttr(), in, out, environment);
}

static LogicalResult interpretBarrier(BarrierOp, Operands in, Results out,
                                      const Environment &) {
  out[0] = *in[0];
  return success();
}

void reference::attachKernelModels(MLIRContext *context) {
  attachModel<KernelCallOp, interpretKernelCall, /*foldable=*/false>(context);
  attachModel<BarrierOp, interpretBarrier, /*foldable=*/false>(context);
}

void reference::registerReferenceModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, CkoptDialect *) {
    attachElementwiseModels(context);
    attachShapeModels(context);
    attachIndexModels(context);
    attachReductionModels(context);
    attachNNModels(context);
    attachAttentionModels(context);
    attachPoolModels(context);
    attachNormModels(context);
    attachCodeModels(context);
    attachTrainingModels(context);
    attachKernelModels(context);
    attachCollectiveModels(context);
  });
  registry.addExtension(+[](MLIRContext *context, func::FuncDialect *) {
    attachModel<func::CallOp, interpretCall, /*foldable=*/false>(context);
  });
}
