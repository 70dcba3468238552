//===- Updates.cpp - from gradients to new parameters and states ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// With K micro-batches, the function `accumulate` is the step without updates;
// it adds g / K to the sums. The step adds its own g / K, updates, and clears
// the sums (s + -s, an update like any other). Running statistics are updated
// by both.
//
// Clipping by the global norm adds the sums of squares of the gradients in
// argument order, so that the norm never depends on the schedule.
//
// Averaged parameters (EMA) are one more state, made from the new parameter in
// the same kernel.
//
// Where the loss is scaled by a state, updates may be skipped
// (GradientScale.h). States and parameters that are stored in bf16 are read as
// f32, and what an update makes of them is rounded in its kernel
// (StateRounding.h). States in codes are seen as rows, each with a scale.
//
//===----------------------------------------------------------------------===//
#include "OptimizerBuilder.h"
#include "ckopt/Distribute/Sharding.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::optimizer;

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
