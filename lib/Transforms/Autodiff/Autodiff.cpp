//===- Autodiff.cpp - reverse-mode differentiation of a function ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The problem: the gradient of a scalar loss with respect to some arguments of
// a straight-line function of tensor ops.
//
// The method: one sweep over the block from the loss up. Each op on a path from
// such an argument to the loss hands the gradients of its results to its rule
// (DifferentiableOpInterface), which builds those of its operands. Several
// gradients of one value add up in reverse program order (GradientSums.h), a
// fixed order: equal input gives equal code and equal bits.
//
// The guarantee: either every needed gradient is built, or the module is
// unchanged but for diagnostics that name every op without a rule. The function
// stays pure: the rules read forward values, they change none (values that a
// rule compares with a result are pinned: stored once, for both to read).
//
// Complexity: linear in ops and operands; at most a small constant of new ops
// an operand.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Autodiff/Autodiff.h"
#include "Activity.h"
#include "GradientSums.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Dialect/Ckopt/Utils/SettingDiagnostic.h"
#include "ckopt/Dialect/Ckopt/Utils/StopGradient.h"
#include "ckopt/Dialect/Ckopt/Utils/TensorBuilder.h"
#include "ckopt/Interfaces/DifferentiableInterface.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

#include <cmath>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::autodiff;

namespace {
class Differentiator {
public:
  Differentiator(func::FuncOp function, const AutodiffOptions &options)
      : function(function), options(options), block(function.getBody().front()),
        builder(block.getTerminator()), gradients(builder) {}

  LogicalResult run();

private:
  LogicalResult chooseLoss();
  LogicalResult chooseArguments();
  LogicalResult checkRules(const Activity &activity);
  bool pinCompared(const Activity &activity);
  LogicalResult chooseScale();
  Value seed();
  Value unscaled(Value gradient);
  LogicalResult sweep(const Activity &activity);
  LogicalResult differentiateOp(Operation &op, const Activity &activity);
  void finish();

  func::FuncOp function;
  const AutodiffOptions &options;
  Block &block;
  OpBuilder builder;
  unsigned lossIndex = 0;
  Value loss;
  SmallVector<unsigned> wrt;
  GradientSums gradients;
  BlockArgument scale; ///< null: a number, AutodiffOptions::lossScale
};
} // namespace

std::optional<unsigned> autodiff::findLoss(func::FuncOp function) {
  for (StringRef attr : {attrs::kRole, attrs::kName})
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      if (auto text = function.getResultAttrOfType<StringAttr>(i, attr);
          text && text == "loss" &&
          // Called networks may use the same role for several results, but a
          // loss is one number.
          (attr == attrs::kRole ||
           cast<ShapedType>(function.getResultTypes()[i]).getNumElements() ==
               1))
        return i;
  return std::nullopt;
}

/// Updates are not outputs, so they never stand for the loss.
LogicalResult Differentiator::chooseLoss() {
  if (function.getNumResults() == 0)
    return function.emitError("cannot differentiate '")
           << function.getSymName() << "': it has no results";
  lossIndex = findLoss(function).value_or(0);
  loss = block.getTerminator()->getOperand(lossIndex);
  auto type = dyn_cast<RankedTensorType>(loss.getType());
  if (type && isa<FloatType>(type.getElementType()) &&
      type.getNumElements() == 1 &&
      !function.getResultAttr(lossIndex, attrs::kUpdates))
    return success();
  return function.emitError("cannot differentiate '")
         << function.getSymName() << "': the loss must be a floating-point "
         << "scalar, but result '" << resultName(function, lossIndex) << "' is "
         << loss.getType()
         << "; attach a loss to it (" + Setting("loss", "cross_entropy") +
                ", " + Setting("loss", "mse") + ", ...)";
}

LogicalResult Differentiator::chooseArguments() {
  unsigned count = function.getNumArguments();
  SmallVector<std::string> unknown;
  SmallVector<bool> chosen(count);
  for (const std::string &name : options.wrt) {
    if (auto index = findArgument(function, name))
      chosen[*index] = true;
    else
      unknown.push_back(name);
  }
  if (!unknown.empty())
    return function.emitError("no argument is named ")
           << llvm::join(unknown, ", ");
  for (unsigned i = 0; i < count; ++i) {
    bool isParameter = argumentRole(function, i) == roles::kParameter;
    if (options.wrt.empty())
      chosen[i] = isParameter || function.getArgAttr(i, kGradAttr);
    if (!chosen[i])
      continue;
    auto type = dyn_cast<RankedTensorType>(function.getArgumentTypes()[i]);
    if (!type || !isa<FloatType>(type.getElementType()))
      return function.emitError("cannot differentiate by argument '")
             << argumentName(function, i) << "' of type "
             << function.getArgumentTypes()[i]
             << ": it must be a floating-point tensor";
    wrt.push_back(i);
  }
  if (wrt.empty())
    return function.emitError("nothing to differentiate by: every argument of "
                              "'")
           << function.getSymName()
           << "' is an input, a constant or frozen (" + Setting("freeze") +
                  ", " + Setting("train") + ")";
  return success();
}

/// Reports all ops without a rule in one diagnostic, with the arguments that
/// need them.
LogicalResult Differentiator::checkRules(const Activity &activity) {
  ArrayRef<Operation *> missing = activity.getMissing();
  if (missing.empty())
    return success();
  InFlightDiagnostic error = function.emitError()
                             << missing.size()
                             << " operation(s) cannot be differentiated";
  for (Operation *op : missing) {
    Diagnostic &note = error.attachNote(op->getLoc());
    note << "'" << op->getName() << "' has no gradient rule";
    if (StringRef node = nodeName(op->getLoc()); !node.empty())
      note << " (node '" << node << "')";
    SmallVector<unsigned> needing = activity.dependencies(op);
    note << "; needed for the gradient of ";
    for (auto [i, index] : llvm::enumerate(ArrayRef(needing).take_front(3)))
      note << (i ? ", '" : "'") << argumentName(function, index) << "'";
    if (needing.size() > 3)
      note << " and " << needing.size() - 3 << " more";
  }
  return error;
}

/// Pins the values that rules compare with results, so that the op and its
/// gradient read the same bits. One pin serves all ops that read a value.
bool Differentiator::pinCompared(const Activity &activity) {
  DenseMap<Value, Value> pins;
  for (Operation &op : block.without_terminator()) {
    auto rule = dyn_cast<DifferentiableOpInterface>(op);
    if (!rule)
      continue;
    for (OpOperand &operand : op.getOpOperands()) {
      Value value = operand.get();
      if (!activity.isNeeded(operand) || isa<BlockArgument>(value) ||
          isa<PinOp>(value.getDefiningOp()) ||
          !rule.comparesOperand(operand.getOperandNumber()))
        continue;
      Value &pin = pins[value];
      if (!pin) {
        OpBuilder before(&op);
        pin = PinOp::create(before, value.getLoc(), value);
      }
      operand.set(pin);
    }
  }
  return !pins.empty();
}

LogicalResult Differentiator::differentiateOp(Operation &op,
                                              const Activity &activity) {
  SmallVector<Value> outputGrads, operandGrads(op.getNumOperands());
  SmallVector<bool> needed;
  for (Value result : op.getResults())
    outputGrads.push_back(gradients.get(result));
  for (OpOperand &operand : op.getOpOperands())
    needed.push_back(activity.isNeeded(operand));
  if (llvm::none_of(outputGrads, [](Value grad) { return bool(grad); }) ||
      !llvm::is_contained(needed, true))
    return success();
  auto rule = cast<DifferentiableOpInterface>(op);
  if (failed(rule.buildGradient(builder, outputGrads, needed, operandGrads)))
    return failure();
  for (auto [operand, gradient, wanted] :
       llvm::zip(op.getOperands(), operandGrads, needed)) {
    if (!gradient || !wanted)
      continue;
    if (gradient.getType() != operand.getType())
      return op.emitError("internal error: the gradient rule made ")
             << gradient.getType() << " for an operand of type "
             << operand.getType();
    // A gradient that is passed on, or given to several operands, must not be
    // changed by one of them.
    bool owned = !llvm::is_contained(outputGrads, gradient) &&
                 llvm::count(operandGrads, gradient) == 1;
    gradients.add(operand, gradient, owned);
  }
  return success();
}

bool autodiff::isLossScale(double scale) {
  int exponent;
  return std::isnormal(scale) && std::frexp(scale, &exponent) == 0.5 &&
         std::abs(exponent - 1) <= kMaxScaleExponent;
}

/// Powers of two scale f32 exactly.
LogicalResult Differentiator::chooseScale() {
  if (!isLossScale(options.lossScale))
    return function.emitError("autodiff: the loss's scale must be a power of "
                              "two between 2^-")
           << kMaxScaleExponent << " and 2^" << kMaxScaleExponent << ", got "
           << options.lossScale;
  if (!options.lossScaleState)
    return success();
  scale = addArgument(function, RankedTensorType::get({}, builder.getF32Type()),
                      kLossScaleName, roles::kOptimizerState);
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.17g", options.lossScale);
  function.setArgAttr(scale.getArgNumber(), attrs::kInit,
                      builder.getStringAttr(text));
  return success();
}

/// The gradient of the loss.
Value Differentiator::seed() {
  auto type = cast<RankedTensorType>(loss.getType());
  TensorBuilder b(builder, loss.getLoc());
  if (scale)
    return b.expand(b.reshape(b.cast(scale, type.getElementType()),
                              SmallVector<int64_t>(type.getRank(), 1)),
                    type.getShape());
  Attribute one =
      builder.getFloatAttr(type.getElementType(), options.lossScale);
  return ConstantOp::create(
      builder, loss.getLoc(),
      cast<ElementsAttr>(DenseElementsAttr::get(type, one)));
}

Value Differentiator::unscaled(Value gradient) {
  TensorBuilder b(builder, loss.getLoc());
  if (scale)
    return b.mul(gradient, b.cast(b.make<ReciprocalOp>(scale),
                                  getElementTypeOrSelf(gradient)));
  return options.lossScale == 1 ? gradient
                                : b.mul(gradient, 1 / options.lossScale);
}

LogicalResult Differentiator::sweep(const Activity &activity) {
  SmallVector<Operation *> ops;
  for (Operation &op : block.without_terminator())
    ops.push_back(&op);
  gradients.add(loss, seed(), /*owned=*/!scale);
  for (Operation *op : llvm::reverse(ops))
    if (failed(differentiateOp(*op, activity)))
      return failure();
  return success();
}

/// Returns a gradient as it was before it became as narrow as its parameter is
/// stored: updates are computed in more bits than weights are kept in.
static Value beforeRounding(Value gradient) {
  auto cast = gradient.getDefiningOp<CastOp>();
  if (!cast)
    return gradient;
  auto narrow = dyn_cast<FloatType>(getElementTypeOrSelf(gradient));
  auto wide = dyn_cast<FloatType>(getElementTypeOrSelf(cast.getInput()));
  return narrow && wide && narrow.getWidth() < wide.getWidth() ? cast.getInput()
                                                               : gradient;
}

/// Returns the loss, the gradients in argument order, and the forward's
/// updates.
void Differentiator::finish() {
  SmallVector<Result> results, old = takeResults(function);
  results.push_back(old[lossIndex]);
  results.back().set(builder, attrs::kName, builder.getStringAttr("loss"));
  SmallVector<std::string> without;
  for (unsigned index : wrt) {
    Value gradient = gradients.get(function.getArgument(index));
    if (!gradient) {
      without.push_back("'" + argumentName(function, index) + "'");
      continue;
    }
    Result &result = results.emplace_back();
    result.value = unscaled(beforeRounding(gradient));
    result.set(builder, attrs::kName,
               builder.getStringAttr("grad/" + argumentName(function, index)));
    result.set(builder, kGradientAttr, builder.getI64IntegerAttr(index));
  }
  for (Result &result : old)
    if (result.get(attrs::kUpdates))
      results.push_back(result);
  setResults(function, results);
  removeStops(block);
  eraseDeadOps(function);
  if (!without.empty())
    function.emitWarning("the loss does not depend on ")
        << llvm::join(without, ", ") << ": no gradient, and never updated";
  function.setSymName(options.result);
}

LogicalResult Differentiator::run() {
  if (failed(chooseLoss()) || failed(chooseArguments()) ||
      failed(chooseScale()))
    return failure();
  for (Operation &op : block)
    for (Value result : op.getResults())
      if (auto type = dyn_cast<RankedTensorType>(result.getType());
          type && type.getEncoding())
        return op.emitError("differentiate before layouts are chosen: ")
               << type;
  Operation *clash = SymbolTable::lookupNearestSymbolFrom(
      function, builder.getStringAttr(options.result));
  if (clash && clash != function)
    return function.emitError("the module has a '")
           << options.result << "' already";
  Activity activity(function, loss, wrt);
  if (failed(checkRules(activity)))
    return failure();
  if (pinCompared(activity))
    activity = Activity(function, loss, wrt);
  if (failed(sweep(activity)))
    return failure();
  finish();
  return success();
}

LogicalResult autodiff::differentiate(func::FuncOp function,
                                      const AutodiffOptions &options) {
  if (failed(checkStraightLine(function)))
    return failure();
  return Differentiator(function, options).run();
}
