//===- AttachLoss.cpp - the sum of terms that is trained ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Adds the training loss that the user asked for to an imported network. Each
// loss term gets an argument for its targets, and the sum of all terms becomes
// result 0. Losses of f16 and bf16 models are computed in f32.
//
//===----------------------------------------------------------------------===//
#include "LossBuilder.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Dialect/Ckopt/Utils/LabelRange.h"
#include "ckopt/Dialect/Ckopt/Utils/SettingDiagnostic.h"
#include "ckopt/Dialect/Ckopt/Utils/StopGradient.h"
#include "ckopt/Distribute/Distribution.h"
#include "ckopt/Support/Error.h"

using namespace mlir;
using namespace ckopt;

//===----------------------------------------------------------------------===//
// Helpers of the loss formulas
//===----------------------------------------------------------------------===//

static void setArgument(LossBuilder &l, BlockArgument argument, StringRef name,
                        Attribute value) {
  l.function.setArgAttr(argument.getArgNumber(), name, value);
}

static BlockArgument addTargets(LossBuilder &l, RankedTensorType type) {
  BlockArgument argument =
      addArgument(l.function, type, l.targetName, roles::kTarget);
  setArgument(l, argument, kTargetOfAttr,
              l.b.builder.getStringAttr(l.outputName));
  return argument;
}

Value LossBuilder::targetsLikeX() {
  return b.cast(addTargets(*this, targetType), getElementTypeOrSelf(x));
}

Value LossBuilder::signs() {
  BlockArgument argument = addTargets(*this, targetType);
  setArgument(*this, argument, kSignsAttr, b.builder.getUnitAttr());
  return b.cast(argument, getElementTypeOrSelf(x));
}

Value LossBuilder::probabilities(StringRef kind) {
  BlockArgument argument = addTargets(*this, targetType);
  setArgument(*this, argument, kProbabilitiesAttr,
              b.builder.getStringAttr(kind));
  return b.cast(argument, getElementTypeOrSelf(x));
}

Value LossBuilder::labels(int64_t axis, bool ignores) {
  SmallVector<int64_t> shape(this->shape());
  shape.erase(shape.begin() + axis);
  BlockArgument argument =
      addTargets(*this, RankedTensorType::get(shape, b.builder.getI64Type()));
  setArgument(*this, argument, kClassesAttr,
              b.builder.getI64IntegerAttr(this->shape()[axis]));
  if (ignores)
    setArgument(*this, argument, kIgnoreIndexAttr,
                b.builder.getI64IntegerAttr(options.ignoreIndex));
  return argument;
}

LogicalResult LossBuilder::checkApart(int64_t axis) {
  if (axis != 0 || options.ranks == 1)
    return success();
  return function.emitError("the loss reads '")
         << outputName << "' along axis 0, that of the samples, of which each "
         << "of " << options.ranks << " ranks has its part alone";
}

FailureOr<int64_t> LossBuilder::classAxis() {
  if (!options.classAxis) {
    auto axis = defaultClassAxis(shape(), options.softTargets);
    if (axis)
      return *axis;
    return function.emitError() << takeErrorText(axis.takeError()).message;
  }
  int64_t axis = *options.classAxis;
  if (axis < 0)
    axis += rank();
  if (rank() < 2)
    return function.emitError("classes need scores of rank 2 or more, got ")
           << x.getType();
  if (axis < 0 || axis >= rank())
    return function.emitError()
           << Setting("class-axis", Twine(*options.classAxis)) +
                  " is outside of scores "
           << x.getType();
  if (failed(checkApart(axis)))
    return failure();
  return axis;
}

FailureOr<Value> LossBuilder::along(ArrayRef<double> numbers, int64_t axis,
                                    const MessageText &flag) {
  auto element = cast<FloatType>(getElementTypeOrSelf(x));
  SmallVector<int64_t> wide;
  if (axis >= 0) {
    wide.assign(rank(), 1);
    wide[axis] = int64_t(numbers.size());
    if (shape()[axis] != wide[axis])
      return function.emitError()
             << flag << ": " << numbers.size() << " numbers for the "
             << shape()[axis] << " along axis " << axis << " of '" << outputName
             << "'";
  }
  SmallVector<Attribute> values;
  for (double number : numbers)
    values.push_back(b.builder.getFloatAttr(element, number));
  auto type = RankedTensorType::get(wide, element);
  return ConstantOp::create(
             b.builder, b.loc,
             cast<ElementsAttr>(DenseElementsAttr::get(type, values)))
      .getResult();
}

Value LossBuilder::constant(Value value) {
  auto pin = PinOp::create(b.builder, b.loc, value);
  pin->setAttr(kStopGradientAttr, b.builder.getUnitAttr());
  return pin;
}

Value LossBuilder::reduce(Value each) {
  if (options.reduction == Reduction::Sum)
    return b.sumAll(each);
  Value mean = b.make<ReduceOp>(
      ReduceKindAttr::get(b.builder.getContext(), ReduceKind::Mean), each,
      b.ints(
          llvm::to_vector(llvm::seq<int64_t>(0, tensorType(each).getRank()))),
      b.builder.getBoolAttr(false));
  return options.ranks == 1 ? mean : b.mul(mean, 1 / double(options.ranks));
}

Value LossBuilder::acrossRanks(Value count) {
  if (options.ranks == 1)
    return count;
  return AllReduceOp::create(b.builder, b.loc, count, options.ranks)
      .getResult(0);
}

//===----------------------------------------------------------------------===//
// The sum of the terms
//===----------------------------------------------------------------------===//

static LogicalResult checkReduction(func::FuncOp function,
                                    const LossOptions &options) {
  if (options.reduction != Reduction::BatchMean)
    return success();
  for (const LossTerm &term : options.terms) {
    const LossKind *kind = findLossKind(term.kind);
    if (term.attaches() && kind && !(kind->settings & LossKind::BatchMean))
      return function.emitError("unknown reduction 'batchmean' of ")
             << term.kind << "; expected mean or sum (of kl also batchmean)";
  }
  return success();
}

/// A term that the model computes, of several ranks this one's share of it.
static Value ownTerm(func::FuncOp function, const LossTerm &term,
                     const LossOptions &options, Value output) {
  if (options.ranks == 1)
    return output;
  auto share =
      shareOfLoss(output, term.output, SampleAxes(function), options.ranks);
  return failed(share) ? Value() : *share;
}

/// Builds one term's value without its weight, a scalar of f32 or f64.
static Value buildTerm(func::FuncOp function, TensorBuilder &b,
                       const LossTerm &term, const LossOptions &options,
                       Value output, bool several) {
  RankedTensorType type = tensorType(output);
  if (type.getElementType().getIntOrFloatBitWidth() < 32)
    output = b.cast(output, b.builder.getF32Type());
  if (!term.attaches()) {
    Value own = ownTerm(function, term, options, output);
    return own ? b.reshape(own, {}) : own;
  }
  LossBuilder builder{function,
                      b,
                      options,
                      output,
                      type,
                      term.output,
                      options.target + (several ? "." + term.output : "")};
  return buildLoss(term.kind, builder);
}

static Value addTerm(TensorBuilder &b, Value sum, Value term, double weight) {
  if (weight != 1)
    term = b.mul(term, weight);
  if (!sum)
    return term;
  Type wide = b.builder.getF32Type();
  for (Value value : {sum, term})
    if (getElementTypeOrSelf(value).isF64())
      wide = b.builder.getF64Type();
  return b.add(b.cast(sum, wide), b.cast(term, wide));
}

static unsigned outputNumber(func::FuncOp function, StringRef name) {
  unsigned i = 0;
  while (resultName(function, i) != name ||
         function.getResultAttr(i, attrs::kUpdates))
    ++i;
  return i;
}

/// Of several ranks, each computes the loss of its samples: the outputs must be
/// made of each sample alone.
static LogicalResult checkTerms(func::FuncOp function,
                                const LossOptions &options,
                                ArrayRef<Result> results) {
  if (options.ranks == 1)
    return success();
  SampleAxes axes(function);
  if (axes.samples() == 1) // shapes do not tell where the sample lies
    return success();
  for (const LossTerm &term : options.terms)
    if (term.attaches() &&
        failed(checkSamplesApart(
            results[outputNumber(function, term.output)].value, term.output,
            axes, options.ranks)))
      return failure();
  return success();
}

LogicalResult ckopt::attachLoss(func::FuncOp function,
                                const LossOptions &given) {
  if (failed(checkStraightLine(function)))
    return failure();
  LossOptions options = given;
  MessageText remark; // printed by the driver
  if (llvm::Error error = resolveLoss(function, options.terms, remark))
    return function.emitError() << takeErrorText(std::move(error)).message;
  if (options.ranks < 1)
    return function.emitError("the loss needs 1 rank or more, got ")
           << options.ranks;
  if (failed(checkReduction(function, options)))
    return failure();
  OpBuilder builder(function.getBody().front().getTerminator());
  Location loc = NameLoc::get(builder.getStringAttr("loss"), function.getLoc());
  TensorBuilder b(builder, loc);
  SmallVector<Result> results = takeResults(function);
  auto indexOf = [&](StringRef name) { return outputNumber(function, name); };
  bool several = llvm::count_if(options.terms, [](const LossTerm &term) {
                   return term.attaches();
                 }) > 1;
  if (failed(checkTerms(function, options, results)))
    return failure();
  Value sum;
  for (const LossTerm &term : options.terms) {
    Value value = buildTerm(function, b, term, options,
                            results[indexOf(term.output)].value, several);
    if (!value)
      return failure();
    sum = addTerm(b, sum, value, term.weight);
  }
  // An output that is the loss is not returned a second time as an output.
  const LossTerm &only = options.terms.front();
  if (options.terms.size() == 1 && !only.attaches() && only.weight == 1)
    results.erase(results.begin() + indexOf(only.output));
  // Outputs that are not the loss lose the role of one.
  for (Result &result : results) {
    llvm::erase_if(result.attrs, [](NamedAttribute attribute) {
      return attribute.getName() == attrs::kRole;
    });
    if (result.get(attrs::kName) == builder.getStringAttr("loss"))
      result.set(builder, attrs::kName, builder.getStringAttr("loss.output"));
  }
  Result first;
  first.value = sum;
  first.set(builder, attrs::kName, builder.getStringAttr("loss"));
  first.set(builder, attrs::kRole, builder.getStringAttr("loss"));
  results.insert(results.begin(), std::move(first));
  setResults(function, results);
  return success();
}
