//===- AttachLoss.cpp - a loss and its target for a model without one -----===//
//
// cross_entropy is the mean over the targets that count: the op gives the
// losses, 0 where ignored, their sum is divided by how many counted (as
// PyTorch; all ignored gives NaN, which stops training with a message). mse is
// the mean over all elements. Losses of f16 and bf16 models are taken in f32.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Autodiff/Autodiff.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Dialect/Ckopt/Utils/TensorBuilder.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::autodiff;

/// Index of the result to take the loss of.
static FailureOr<unsigned> chooseOutput(func::FuncOp function, StringRef name) {
  std::string names;
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    if (function.getResultAttr(i, attrs::kUpdates))
      continue;
    if (name.empty() || resultName(function, i) == name)
      return i;
    names += (names.empty() ? "" : ", ") + resultName(function, i);
  }
  if (name.empty())
    return function.emitError("no output to take the loss of");
  return function.emitError("no output is named '")
         << name << "'; outputs are " << names;
}

static FailureOr<int64_t> chooseClassAxis(func::FuncOp function,
                                          RankedTensorType type,
                                          const LossOptions &options) {
  int64_t rank = type.getRank();
  if (rank < 2)
    return function.emitError("cross_entropy needs logits of rank 2 or more "
                              "([N, C], [B, T, V], [N, C, ...]), got ")
           << type;
  int64_t axis = options.classAxis.value_or(rank == 3 ? 2 : 1);
  if (axis < 0 || axis >= rank)
    return function.emitError("class axis ")
           << axis << " is outside of logits " << type;
  return axis;
}

static FailureOr<Value> buildCrossEntropy(func::FuncOp function,
                                          TensorBuilder &b, Value logits,
                                          const LossOptions &options) {
  RankedTensorType type = tensorType(logits);
  FailureOr<int64_t> axis = chooseClassAxis(function, type, options);
  if (failed(axis))
    return failure();
  SmallVector<int64_t> shape(type.getShape());
  shape.erase(shape.begin() + *axis);
  Value targets = addArgument(
      function, RankedTensorType::get(shape, b.builder.getI64Type()),
      options.target, roles::kTarget);
  auto losses = CrossEntropyOp::create(b.builder, b.loc, logits, targets, *axis,
                                       options.ignoreIndex);
  Value counted =
      b.compare(ComparePredicate::NE, targets,
                b.splat(RankedTensorType::get({}, b.builder.getI64Type()),
                        double(options.ignoreIndex)));
  Value count = b.sumAll(b.cast(counted, type.getElementType()));
  return b.div(b.sumAll(losses.getLoss()), count);
}

static FailureOr<Value> buildMse(func::FuncOp function, TensorBuilder &b,
                                 Value output, RankedTensorType targetType,
                                 const LossOptions &options) {
  Value targets =
      addArgument(function, targetType, options.target, roles::kTarget);
  Value difference =
      b.sub(output, b.cast(targets, getElementTypeOrSelf(output)));
  auto axes =
      llvm::to_vector(llvm::seq<int64_t>(0, tensorType(output).getRank()));
  return b.make<ReduceOp>(
      ReduceKindAttr::get(b.builder.getContext(), ReduceKind::Mean),
      b.mul(difference, difference), b.ints(axes),
      b.builder.getBoolAttr(false));
}

LogicalResult autodiff::attachLoss(func::FuncOp function,
                                   const LossOptions &options) {
  if (failed(checkStraightLine(function)))
    return failure();
  if (findLoss(function))
    return function.emitError("'")
           << function.getSymName()
           << "' ends in a loss already: do not attach another (no --loss)";
  if (options.kind != "cross_entropy" && options.kind != "mse")
    return function.emitError("unknown loss '")
           << options.kind << "'; expected cross_entropy or mse";
  FailureOr<unsigned> index = chooseOutput(function, options.output);
  if (failed(index))
    return failure();
  OpBuilder builder(function.getBody().front().getTerminator());
  SmallVector<Result> results = takeResults(function);
  Value output = results[*index].value;
  auto type = dyn_cast<RankedTensorType>(output.getType());
  if (!type || !isa<FloatType>(type.getElementType()))
    return function.emitError("the loss needs a floating-point output, but '")
           << resultName(function, *index) << "' is " << output.getType();
  Location loc = NameLoc::get(builder.getStringAttr("loss"), function.getLoc());
  TensorBuilder b(builder, loc);
  if (type.getElementType().getIntOrFloatBitWidth() < 32)
    output = b.cast(output, builder.getF32Type());
  FailureOr<Value> loss = options.kind == "mse"
                              ? buildMse(function, b, output, type, options)
                              : buildCrossEntropy(function, b, output, options);
  if (failed(loss))
    return failure();
  Result first;
  first.value = *loss;
  first.set(builder, attrs::kName, builder.getStringAttr("loss"));
  first.set(builder, attrs::kRole, builder.getStringAttr("loss"));
  results.insert(results.begin(), std::move(first));
  setResults(function, results);
  return success();
}
