//===- Optimizer.cpp - parameter updates in place of gradients ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each gradient result of a step becomes an update op of its parameter, at the
// end of the function: the planner moves it up to where the gradient is
// complete and the parameter has been read for the last time. The step's
// arguments gain the optimizer's state, the learning rate and the step number.
//
// Clipping by the global norm adds the sums of squares of the gradients in
// argument order, so that the norm never depends on the schedule.
//
// With K micro-batches, the function `accumulate` is the step without updates;
// it adds g / K to the sums. The step adds its own g / K, updates, and clears
// the sums (s + -s, an update like any other). Running statistics are updated
// by both.
//
// Averaged parameters (EMA) are one more state, made from the new parameter in
// the same kernel.
//
// Where the loss is scaled by a state, updates may be skipped
// (GradientScale.h). States and parameters that are stored in bf16 are read as
// f32, and what an update makes of them is rounded in its kernel
// (StateRounding.h).
//
//===----------------------------------------------------------------------===//
#include "GradientScale.h"
#include "Optimizers.h"
#include "StateRounding.h"
#include "ckopt/Autodiff/Autodiff.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Dialect/Ckopt/Utils/SettingDiagnostic.h"
#include "ckopt/Distribute/Sharding.h"
#include "ckopt/Optimizers/Optimizers.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;
using namespace ckopt;

namespace {
/// A parameter, its gradient and the arguments that its update needs.
struct Parameter {
  unsigned index; ///< number of the argument
  Value gradient;
  Hyper hyper;
  BlockArgument gradientSum; ///< with micro-batches only
  SmallVector<BlockArgument, 2> state;
  SmallVector<BlockArgument, 2> scales; ///< of states that are codes
  BlockArgument average;                ///< with an EMA only
};

/// Values that all parameters of equal hyperparameters and element type share.
struct Common {
  const Hyper *hyper;
  Type element;
  BlockArgument shared; ///< the rule's shared state, or null
  bool updatesShared;   ///< true for the first group with this state
  Value rate;           ///< 0-d, of learning_rate's type
  SmallVector<Value> scalars;
};

class OptimizerBuilder {
public:
  OptimizerBuilder(func::FuncOp function, const OptimizerOptions &options)
      : function(function), options(options),
        builder(function.getBody().front().getTerminator()) {}

  LogicalResult run();

private:
  LogicalResult checkOptions();
  LogicalResult collect();
  FailureOr<Hyper> hyperOf(unsigned argument);
  LogicalResult addArguments();
  BlockArgument addState(const Parameter &parameter, StringRef suffix,
                         Type element = {}, bool scales = false);
  Type elementOf(const Parameter &parameter);
  bool isNarrow(const Parameter &parameter);
  LogicalResult addStates(Parameter &parameter);
  Value seen(TensorBuilder &b, const Parameter &parameter, Value value);
  SmallVector<Value> oldStates(TensorBuilder &b, const Parameter &parameter);
  void round(TensorBuilder &b, const Parameter &parameter,
             MutableArrayRef<Value> values);
  void shareSquares(TensorBuilder &b, MutableArrayRef<Value> sums,
                    ArrayRef<bool> shared);
  Value ownPart(TensorBuilder &b, const Parameter &parameter, bool &shared);
  void splitMicroBatches();
  void clip(TensorBuilder &b);
  Common &commonOf(const Parameter &parameter);
  void addScalars(SmallVectorImpl<Result> &results);
  void update(const Parameter &parameter, SmallVectorImpl<Result> &results);
  void assign(const Parameter &parameter, ArrayRef<Value> values,
              ArrayRef<BlockArgument> targets,
              SmallVectorImpl<Result> &results);
  Location updateLoc(const Parameter &parameter);
  Result updateResult(Value value, BlockArgument argument);

  func::FuncOp function;
  const OptimizerOptions &options;
  OpBuilder builder;
  SmallVector<Parameter> parameters;
  SmallVector<Result> others; ///< the loss, then the forward's updates
  SmallVector<Common> commons;
  const OptimizerKind *kind = nullptr;
  const UpdateRule *rule = nullptr;
  Value learningRate, step, averageWeight;
  Value averageStarts; ///< with a scaled loss only
  GradientScale lossScale;
  bool rounds = false; ///< there are parameters or states of bf16
  std::optional<StateRounding> rounding;
};
} // namespace

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

Location OptimizerBuilder::updateLoc(const Parameter &parameter) {
  return NameLoc::get(builder.getStringAttr(
      "update/" + argumentName(function, parameter.index)));
}

Result OptimizerBuilder::updateResult(Value value, BlockArgument argument) {
  Result result;
  result.value = value;
  result.set(
      builder, attrs::kName,
      builder.getStringAttr(argumentName(function, argument.getArgNumber())));
  result.set(builder, attrs::kUpdates,
             builder.getI64IntegerAttr(argument.getArgNumber()));
  return result;
}

/// Replaces an accumulation by an assignment of zeros.
static Operation *clearedSum(Operation *sum, TensorBuilder &b) {
  Value old = sum->getOperand(0);
  Operation *cleared =
      AssignOp::create(b.builder, b.loc, old, b.splat(tensorType(old), 0));
  sum->replaceAllUsesWith(cleared);
  sum->erase();
  return cleared;
}

/// Clones the function as `accumulate`, which adds its gradients to the sums;
/// in the step, the sums are added to the gradients.
void OptimizerBuilder::splitMicroBatches() {
  double share = 1.0 / double(options.accumulate);
  for (Parameter &parameter : parameters) {
    TensorBuilder b(builder, updateLoc(parameter));
    parameter.gradient = b.mul(parameter.gradient, share);
  }
  SmallVector<Result> results(others);
  for (Parameter &parameter : parameters) {
    Value sum = AccumulateOp::create(builder, updateLoc(parameter),
                                     parameter.gradientSum, parameter.gradient);
    results.push_back(updateResult(sum, parameter.gradientSum));
  }
  setResults(function, results);
  func::FuncOp micro = function.clone();
  micro.setSymName("accumulate");
  eraseDeadOps(micro);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(function);
  builder.insert(micro);
  for (Parameter &parameter : parameters) {
    Operation *sum = *parameter.gradientSum.user_begin();
    TensorBuilder b(builder, updateLoc(parameter));
    builder.setInsertionPoint(sum);
    parameter.gradient = b.add(seen(b, parameter, parameter.gradientSum),
                               seen(b, parameter, parameter.gradient));
    // A sum that is not finite has no negative that clears it.
    if (lossScale)
      sum = clearedSum(sum, b);
    else
      sum->setOperand(1, b.neg(parameter.gradientSum));
    others.push_back(updateResult(sum->getResult(0), parameter.gradientSum));
  }
}

/// Returns the part of a gradient whose squares a rank adds. Ranks share the
/// work as fully sharded ones have to, so that both add in one order.
Value OptimizerBuilder::ownPart(TensorBuilder &b, const Parameter &parameter,
                                bool &shared) {
  shared = bool(function.getArgAttr(parameter.index, attrs::kShards));
  auto ranks = function->getAttrOfType<IntegerAttr>(attrs::kRanks);
  if (shared || !ranks)
    return parameter.gradient;
  Sharing sharing =
      sharingOf(function.getArgument(parameter.index), {ranks.getInt(), 1, 1});
  if (sharing.form == ShardForm::Whole)
    return parameter.gradient;
  shared = true;
  Value whole = b.reshape(parameter.gradient, sharing.whole.getShape());
  return OwnRowsOp::create(b.builder, b.loc, sharing.toRows(b, whole),
                           ranks.getInt())
      .getResult(0);
}

/// Adds the sums of ranks' parts, of all parameters in one message.
void OptimizerBuilder::shareSquares(TensorBuilder &b,
                                    MutableArrayRef<Value> sums,
                                    ArrayRef<bool> shared) {
  SmallVector<Value> parts;
  for (auto [sum, isShared] : llvm::zip_equal(sums, shared))
    if (isShared)
      parts.push_back(sum);
  if (parts.empty())
    return;
  int64_t ranks = 1, groups = 1;
  if (auto all = function->getAttrOfType<IntegerAttr>(attrs::kRanks))
    ranks = all.getInt();
  for (const Parameter &parameter : parameters)
    if (auto shards = function.getArgAttrOfType<IntegerAttr>(parameter.index,
                                                             attrs::kShards)) {
      groups = ranks / shards.getInt();
      ranks = shards.getInt();
      break;
    }
  auto total = AllReduceOp::create(b.builder, b.loc, parts, ranks, groups);
  auto next = total.getOutputs().begin();
  for (auto [sum, isShared] : llvm::zip_equal(sums, shared))
    if (isShared)
      sum = *next++;
}

/// Scales all gradients as torch.nn.utils.clip_grad_norm_ does.
void OptimizerBuilder::clip(TensorBuilder &b) {
  Type type = getElementTypeOrSelf(learningRate);
  SmallVector<Value> parts;
  SmallVector<bool> shared(parameters.size());
  for (auto [parameter, isShared] : llvm::zip_equal(parameters, shared)) {
    Value own = ownPart(b, parameter, isShared);
    parts.push_back(b.cast(b.sumAll(b.mul(own, own)), type));
  }
  shareSquares(b, parts, shared);
  Value total;
  for (Value part : parts)
    total = total ? b.add(total, part) : part;
  Value length = b.make<SqrtOp>(total);
  // An infinite norm makes all gradients 0: the norm is a result so that the
  // caller can see it.
  Result &result = others.emplace_back();
  result.value = length;
  result.set(builder, attrs::kName, builder.getStringAttr("gradient_norm"));
  Value norm = b.add(length, 1e-6);
  Value ratio = b.div(b.number(norm, options.clipNorm), norm);
  Value factor = b.make<MinimumOp>(ratio, b.number(ratio, 1));
  for (Parameter &parameter : parameters)
    parameter.gradient =
        b.mul(seen(b, parameter, parameter.gradient),
              b.cast(factor, getElementTypeOrSelf(parameter.gradient)));
}

/// Computes the scalars that are equal for all elements, in f64 as PyTorch
/// does, then casts them to the parameters' type.
void OptimizerBuilder::addScalars(SmallVectorImpl<Result> &results) {
  TensorBuilder b(builder, NameLoc::get(builder.getStringAttr("update")));
  Type f64 = builder.getF64Type();
  Value t = b.cast(step, f64);
  Value isOne = b.cast(b.compare(ComparePredicate::EQ, step, 1), f64);
  for (Common &common : commons) {
    const Hyper &h = *common.hyper;
    common.rate =
        h.rateScale == 1 ? learningRate : b.mul(learningRate, h.rateScale);
    Value rate = b.mul(b.cast(learningRate, f64), h.rateScale);
    ScalarBuilder scalars{b, h, rate, t, isOne, common.shared};
    for (Value scalar : rule->scalars(scalars))
      common.scalars.push_back(b.cast(scalar, common.element));
    if (common.updatesShared)
      results.push_back(updateResult(
          AssignOp::create(builder, b.loc, common.shared,
                           lossScale.settled(b, scalars.shared, common.shared)),
          common.shared));
  }
  if (options.ema <= 0)
    return;
  // The average starts as the parameters after the first step, or after
  // that which made the first update.
  Value later = b.number(t, 1 - options.ema);
  if (lossScale) {
    averageStarts = lossScale.isFirst(b);
    averageWeight = b.where(lossScale.isMade(), later);
  } else {
    averageWeight = b.select(b.compare(ComparePredicate::NE, isOne, 0),
                             b.number(t, 1), later);
  }
}

/// Rounds the new parameter and its states to what they are stored in.
void OptimizerBuilder::round(TensorBuilder &b, const Parameter &parameter,
                             MutableArrayRef<Value> values) {
  BlockArgument stored = function.getArgument(parameter.index);
  if (getElementTypeOrSelf(stored).isBF16())
    rounding->round(b, stored, values.front(),
                    argumentName(function, parameter.index));
  if (!isNarrow(parameter) || !parameter.scales.empty())
    return;
  SmallVector<Value *> rounded;
  SmallVector<std::string> names;
  for (auto [value, argument] :
       llvm::zip_equal(values.drop_front(), parameter.state)) {
    rounded.push_back(&value);
    names.push_back(argumentName(function, argument.getArgNumber()));
  }
  rounding->round(b, stored, rounded, names);
}

/// Returns the value as rows of blocks, where these have scales: so the update
/// sees all of the parameter.
Value OptimizerBuilder::seen(TensorBuilder &b, const Parameter &parameter,
                             Value value) {
  int64_t elements = tensorType(value).getNumElements();
  return parameter.scales.empty()
             ? value
             : b.reshape(value, {elements / kCodeBlock, kCodeBlock});
}

/// Returns the states, of the type that updates are computed in.
SmallVector<Value> OptimizerBuilder::oldStates(TensorBuilder &b,
                                               const Parameter &parameter) {
  SmallVector<Value> values;
  auto names = rule->states(parameter.hyper);
  for (auto [i, stored] : llvm::enumerate(parameter.state)) {
    if (parameter.scales.empty()) {
      values.push_back(b.cast(stored, elementOf(parameter)));
      continue;
    }
    BlockArgument scales = parameter.scales[i];
    Value numbers =
        b.make<DecodeDynamicOp>(seen(b, parameter, stored), names[i].hasSign);
    int64_t blocks = tensorType(scales).getNumElements();
    values.push_back(b.mul(numbers, b.reshape(scales, {blocks, 1})));
  }
  return values;
}

void OptimizerBuilder::update(const Parameter &parameter,
                              SmallVectorImpl<Result> &results) {
  BlockArgument stored = function.getArgument(parameter.index);
  TensorBuilder b(builder, updateLoc(parameter));
  const Common &common = commonOf(parameter);
  Type element = elementOf(parameter);
  Value value = seen(b, parameter, stored);
  SmallVector<Value> state = oldStates(b, parameter);
  UpdateBuilder u{b,
                  parameter.hyper,
                  b.cast(value, element),
                  seen(b, parameter, parameter.gradient),
                  common.rate,
                  step,
                  common.scalars,
                  state,
                  bool(lossScale)};
  SmallVector<Value> values = rule->build(u);
  round(b, parameter, values);
  SmallVector<BlockArgument> targets{stored};
  llvm::append_range(targets, parameter.state);
  if (parameter.average) {
    Value average = seen(b, parameter, parameter.average);
    Value weight = b.cast(averageWeight, element);
    Value now = b.cast(lossScale.settled(b, values[0], value), element);
    Value change = b.mul(b.sub(now, average), weight);
    average = b.add(average, change);
    values.push_back(averageStarts ? b.select(averageStarts, now, average)
                                   : average);
    targets.push_back(parameter.average);
  }
  assign(parameter, values, targets, results);
}

/// Makes new values of arguments updates of them; what is an update already
/// stays. Adjacent assignments become one kernel.
void OptimizerBuilder::assign(const Parameter &parameter,
                              ArrayRef<Value> values,
                              ArrayRef<BlockArgument> targets,
                              SmallVectorImpl<Result> &results) {
  TensorBuilder b(builder, updateLoc(parameter));
  SmallVector<Value> settled, olds;
  auto isUpdate = [](Value value) {
    auto maker = value.getDefiningOp<KernelOpInterface>();
    return maker && maker.getKernelKind() == KernelKind::Update;
  };
  auto isCoded = [&](BlockArgument target) {
    return !parameter.scales.empty() &&
           llvm::is_contained(parameter.state, target);
  };
  for (auto [value, target] : llvm::zip_equal(values, targets)) {
    olds.push_back(b.reshape(target, tensorType(value).getShape()));
    bool decided =
        isUpdate(value) || isCoded(target) || target == parameter.average;
    settled.push_back(decided ? value
                              : lossScale.settled(b, value, olds.back()));
  }
  auto names = rule->states(parameter.hyper);
  SmallVector<Value> newScales;
  for (auto [value, old, target] : llvm::zip_equal(settled, olds, targets)) {
    if (isCoded(target)) {
      size_t i = newScales.size();
      auto codes = AssignCodesOp::create(
          builder, b.loc, old.getType(), parameter.scales[i].getType(), old,
          parameter.scales[i], value, lossScale.isMade(), names[i].hasSign);
      value = codes.getNewCodes();
      newScales.push_back(codes.getNewScales());
    } else if (!isUpdate(value)) {
      value = AssignOp::create(builder, b.loc, old, value).getOutput();
    }
  }
  for (auto [value, target] : llvm::zip_equal(settled, targets))
    results.push_back(
        updateResult(b.reshape(value, tensorType(target).getShape()), target));
  for (auto [value, target] : llvm::zip_equal(newScales, parameter.scales))
    results.push_back(updateResult(value, target));
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
