//===- Optimizer.cpp - parameter updates in place of gradients ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each gradient result of a step becomes an update op of its parameter, at the
// end of the function: the planner moves it up to where the gradient is
// complete and the parameter has been read for the last time. The step's
// arguments gain the optimizer's state, the learning rate and the step number.
// Updates.cpp computes what becomes of them.
//
//===----------------------------------------------------------------------===//
#include "OptimizerBuilder.h"
#include "ckopt/Autodiff/Autodiff.h"
#include "ckopt/Dialect/Ckopt/Utils/SettingDiagnostic.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::optimizer;

LogicalResult OptimizerBuilder::checkOptions() {
  auto reject = [&](const char *what, double value) {
    return function.emitError("optimizer: ") << what << ", got " << value;
  };
  kind = findOptimizer(options.kind);
  if (!kind)
    return function.emitError("unknown optimizer '")
           << options.kind << "'; expected " << optimizerNames();
  rule = &updateRule(options.kind);
  if (llvm::Error error = checkHyperValues(*kind, options.values))
    return function.emitError("optimizer: ") << toString(std::move(error));
  if (!(options.clipNorm >= 0))
    return reject("the clipping norm must not be negative", options.clipNorm);
  if (options.accumulate < 1)
    return reject("micro-batches must be 1 or more",
                  double(options.accumulate));
  if (options.lossScaleGrowth < 0)
    return reject("the loss's scale grows after 0 (never) or more updates",
                  double(options.lossScaleGrowth));
  if (!(options.ema >= 0 && options.ema < 1))
    return reject("the decay of averaged parameters must lie in [0, 1)",
                  options.ema);
  return success();
}

/// Returns the optimizer's settings, overridden by the parameter's attribute.
FailureOr<Hyper> OptimizerBuilder::hyperOf(unsigned argument) {
  Hyper hyper{kind, options.values};
  hyper.rounds = rounds;
  auto own =
      function.getArgAttrOfType<DictionaryAttr>(argument, kOptimizerAttr);
  if (!own)
    return hyper;
  auto fail = [&]() {
    return function.emitError("optimizer: parameter '")
           << argumentName(function, argument) << "': ";
  };
  for (NamedAttribute entry : own) {
    auto number = dyn_cast<FloatAttr>(entry.getValue());
    if (!number)
      return fail() << kOptimizerAttr << "." << entry.getName().strref()
                    << " must be a floating-point number";
    if (entry.getName() == "lr_scale")
      hyper.rateScale = number.getValueAsDouble();
    else
      hyper.values[entry.getName().str()] = number.getValueAsDouble();
  }
  if (!(hyper.rateScale >= 0))
    return fail() << "lr_scale must not be negative";
  if (llvm::Error error = checkHyperValues(*kind, hyper.values))
    return fail() << toString(std::move(error));
  return hyper;
}

LogicalResult OptimizerBuilder::collect() {
  rounds = options.stateType != StateType::F32 ||
           llvm::any_of(function.getArguments(), [&](BlockArgument argument) {
             return argumentRole(function, argument.getArgNumber()) ==
                        roles::kParameter &&
                    getElementTypeOrSelf(argument).isBF16();
           });
  for (Result &result : takeResults(function)) {
    auto index = dyn_cast_or_null<IntegerAttr>(result.get(kGradientAttr));
    if (!index) {
      others.push_back(result);
      continue;
    }
    if (index.getInt() < 0 || index.getInt() >= function.getNumArguments())
      return function.emitError("optimizer: ")
             << kGradientAttr << " names argument " << index.getInt()
             << ", which does not exist";
    unsigned argument = unsigned(index.getInt());
    Type type = getElementTypeOrSelf(function.getArgumentTypes()[argument]);
    if (!type.isF32() && !type.isF64() && !type.isBF16())
      return function.emitError("optimizer: parameter '")
             << argumentName(function, argument) << "' has element type "
             << type << "; updates need parameters of f32, f64 or bf16";
    FailureOr<Hyper> hyper = hyperOf(argument);
    if (failed(hyper))
      return failure();
    if (options.stateType != StateType::F32 && type.isF64())
      return function.emitError("optimizer: states of parameter '")
             << argumentName(function, argument) << "' are f64: state-type "
             << nameOf(options.stateType) << " is for f32";
    Parameter parameter;
    parameter.index = argument;
    parameter.gradient = result.value;
    parameter.hyper = std::move(*hyper);
    if (getElementTypeOrSelf(result.value) != elementOf(parameter)) {
      TensorBuilder b(builder, updateLoc(parameter));
      parameter.gradient = b.cast(result.value, elementOf(parameter));
    }
    parameters.push_back(std::move(parameter));
  }
  if (parameters.empty())
    return function.emitError("optimizer: '")
           << function.getSymName()
           << "' has no gradients: its loss depends on no parameter that "
              "is trained, or autodiff did not run";
  return success();
}

/// Returns what a parameter's update is computed in.
Type OptimizerBuilder::elementOf(const Parameter &parameter) {
  Type stored =
      getElementTypeOrSelf(function.getArgumentTypes()[parameter.index]);
  return stored.isF64() ? stored : Type(builder.getF32Type());
}

/// Adds a state of the parameter's shape, of which a rank keeps what it keeps
/// of the parameter; of the type that updates are computed in, unless one is
/// given. `scales`: of blocks of such a state.
BlockArgument OptimizerBuilder::addState(const Parameter &parameter,
                                         StringRef suffix, Type element,
                                         bool scales) {
  std::string name = argumentName(function, parameter.index) + suffix.str();
  auto typed = [&](Type type) -> Type {
    auto stored = cast<RankedTensorType>(type).clone(
        element ? element : elementOf(parameter));
    return scales ? stored.clone({stored.getNumElements() / kCodeBlock})
                  : stored;
  };
  BlockArgument state =
      addArgument(function, typed(function.getArgumentTypes()[parameter.index]),
                  name, roles::kOptimizerState);
  for (StringRef key : {attrs::kWhole, attrs::kShards})
    if (Attribute value = function.getArgAttr(parameter.index, key)) {
      if (auto whole = dyn_cast<TypeAttr>(value))
        value = TypeAttr::get(typed(whole.getValue()));
      function.setArgAttr(state.getArgNumber(), key, value);
    }
  return state;
}

/// Tells whether the parameter's states are not f32: codes need whole blocks.
/// Ranks that share it decide as one that has it whole.
bool OptimizerBuilder::isNarrow(const Parameter &parameter) {
  Type type = function.getArgumentTypes()[parameter.index];
  if (auto whole =
          function.getArgAttrOfType<TypeAttr>(parameter.index, attrs::kWhole))
    type = whole.getValue();
  int64_t elements = cast<RankedTensorType>(type).getNumElements();
  return options.stateType != StateType::F32 &&
         elements >= kLeastNarrowElements &&
         (options.stateType != StateType::INT8 || elements % kCodeBlock == 0);
}

LogicalResult OptimizerBuilder::addStates(Parameter &parameter) {
  bool isNarrow = this->isNarrow(parameter);
  bool isCoded = isNarrow && options.stateType == StateType::INT8;
  auto type =
      cast<RankedTensorType>(function.getArgumentTypes()[parameter.index]);
  if (isCoded && type.getNumElements() % kCodeBlock)
    return function.emitError("optimizer: ")
           << "a rank's part of '" << argumentName(function, parameter.index)
           << "' has " << type.getNumElements()
           << " numbers, no whole blocks of " << kCodeBlock << ": "
           << Setting("state-type", "int8") +
                  " is for other numbers of ranks, or for those that do not "
                  "share weights";
  Type stored = isCoded    ? Type(builder.getIntegerType(8, /*isSigned=*/false))
                : isNarrow ? Type(builder.getBF16Type())
                           : Type();
  for (StateName state : rule->states(parameter.hyper)) {
    parameter.state.push_back(addState(parameter, state.suffix, stored));
    if (isCoded)
      parameter.scales.push_back(
          addState(parameter, (state.suffix + "_scale").str(), {}, true));
  }
  return success();
}

LogicalResult OptimizerBuilder::addArguments() {
  bool anyF64 = false, anyNarrow = false;
  for (Parameter &parameter : parameters) {
    Type type = function.getArgumentTypes()[parameter.index];
    anyF64 |= getElementTypeOrSelf(type).isF64();
    if (failed(addStates(parameter)))
      return failure();
    anyNarrow |= isNarrow(parameter) && !parameter.state.empty();
    if (options.accumulate > 1)
      parameter.gradientSum = addState(parameter, autodiff::kGradientSumSuffix);
    if (options.ema > 0)
      parameter.average = addState(parameter, "/ema");
    commonOf(parameter);
  }
  if (options.stateType != StateType::F32 && !anyNarrow)
    function.emitWarning() << Setting("state-type", nameOf(options.stateType)) +
                                  ": the optimizer has no state of "
                           << kLeastNarrowElements << " numbers or more"
                           << (options.stateType == StateType::INT8
                                   ? " in whole blocks of 256, and others"
                                   : ", and smaller ones")
                           << " are f32";
  Type rate = anyF64 ? Type(builder.getF64Type()) : builder.getF32Type();
  learningRate = addArgument(function, RankedTensorType::get({}, rate),
                             "learning_rate", roles::kLearningRate);
  step = findOrAddNumber(function, "step", roles::kStep);
  if (rounds)
    rounding.emplace(function, step);
  lossScale.addArguments(function);
  return success();
}

/// Returns the shared values, which are made for the first parameter that needs
/// them; an argument is added for the shared state.
Common &OptimizerBuilder::commonOf(const Parameter &parameter) {
  Type element = elementOf(parameter);
  const Common *alike = nullptr;
  for (Common &common : commons) {
    if (common.hyper->values != parameter.hyper.values ||
        common.hyper->rateScale != parameter.hyper.rateScale)
      continue;
    if (common.element == element)
      return common;
    alike = &common;
  }
  Common common{&parameter.hyper, element, {}, false, {}, {}};
  if (alike)
    common.shared = alike->shared;
  if (StringRef name = rule->sharedState(); !name.empty() && !alike) {
    std::string full = ("optimizer/" + name).str();
    if (!commons.empty())
      full += "/" + std::to_string(commons.size());
    common.shared =
        addArgument(function, RankedTensorType::get({}, builder.getF64Type()),
                    full, roles::kOptimizerState);
    common.updatesShared = true;
  }
  commons.push_back(common);
  return commons.back();
}

LogicalResult OptimizerBuilder::run() {
  if (failed(checkOptions()) || failed(collect()))
    return failure();
  if (options.accumulate > 1 &&
      SymbolTable::lookupNearestSymbolFrom(function,
                                           builder.getStringAttr("accumulate")))
    return function.emitError("the module has an 'accumulate' already");
  if (failed(addArguments()))
    return failure();
  if (options.accumulate > 1)
    splitMicroBatches();
  if (lossScale) {
    TensorBuilder b(builder, NameLoc::get(builder.getStringAttr("loss_scale")));
    SmallVector<Value> gradients = llvm::map_to_vector(
        parameters, [](const Parameter &p) { return p.gradient; });
    step = lossScale.judge(b, gradients, step);
  }
  if (options.clipNorm > 0) {
    TensorBuilder b(builder, NameLoc::get(builder.getStringAttr("clip_norm")));
    clip(b);
  }
  // The results are the loss, the forward's updates (and cleared sums), then
  // the parameters.
  SmallVector<Result> results(others);
  addScalars(results);
  if (lossScale) {
    TensorBuilder b(builder, NameLoc::get(builder.getStringAttr("loss_scale")));
    for (auto [state, value] : lossScale.newStates(b, options.lossScaleGrowth))
      results.push_back(
          updateResult(AssignOp::create(builder, b.loc, state, value), state));
  }
  for (const Parameter &parameter : parameters)
    update(parameter, results);
  setResults(function, results);
  eraseDeadOps(function);
  return success();
}

LogicalResult ckopt::addOptimizer(func::FuncOp function,
                                  const OptimizerOptions &options) {
  if (failed(checkStraightLine(function)))
    return failure();
  return OptimizerBuilder(function, options).run();
}
