//===- ReductionOps.cpp - types of reductions and row ops ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "InferTypes.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace ckopt;

/// The type left after reducing `axes`, or null with an error.
static RankedTensorType reducedType(std::optional<Location> loc,
                                    RankedTensorType type,
                                    ArrayRef<int64_t> axes, bool keepdims) {
  SmallVector<bool> reduced(type.getRank());
  for (int64_t axis : axes) {
    if (axis < 0 || axis >= type.getRank() || reduced[axis]) {
      (void)emitOptionalError(loc, "axes must be distinct and lie in 0..",
                              type.getRank() - 1);
      return {};
    }
    reduced[axis] = true;
  }
  SmallVector<int64_t> shape;
  for (int64_t d = 0; d < type.getRank(); ++d) {
    if (!reduced[d])
      shape.push_back(type.getDimSize(d));
    else if (keepdims)
      shape.push_back(1);
  }
  return RankedTensorType::get(shape, type.getElementType());
}

CKOPT_INFER(ReduceOp) {
  ReduceOp::Adaptor adaptor(operands, attributes, properties, regions);
  auto type = reducedType(loc, tensorType(adaptor.getInput()),
                          adaptor.getAxes(), adaptor.getKeepdims());
  if (!type)
    return failure();
  results.push_back(type);
  return success();
}

OpFoldResult ReduceOp::fold(FoldAdaptor) {
  if (getInput().getType() == getType() && getAxes().empty())
    return getInput();
  return {};
}

CKOPT_INFER(MomentsOp) {
  MomentsOp::Adaptor adaptor(operands, attributes, properties, regions);
  auto type = reducedType(loc, tensorType(adaptor.getInput()),
                          adaptor.getAxes(), /*keepdims=*/false);
  if (!type)
    return failure();
  results.append(2, type);
  return success();
}

#define CKOPT_INFER_SAME(OP)                                                   \
  CKOPT_INFER(OP) {                                                            \
    OP::Adaptor adaptor(operands, attributes, properties, regions);            \
    auto type = tensorType(operands.front());                                  \
    if (failed(checkAxis(loc, adaptor.getAxis(), type)))                       \
      return failure();                                                        \
    if (!llvm::all_equal(llvm::map_range(operands, [](Value operand) {         \
          return withOrder(tensorType(operand), {});                           \
        })))                                                                   \
      return emitOptionalError(loc, "operands must have one type");            \
    results.push_back(type);                                                   \
    return success();                                                          \
  }

CKOPT_INFER_SAME(SoftmaxOp)
CKOPT_INFER_SAME(LogSoftmaxOp)
CKOPT_INFER_SAME(SoftmaxGradOp)
CKOPT_INFER_SAME(LogSoftmaxGradOp)

/// Returns whether scale or bias of a layer norm broadcasts to a row.
static bool fitsRow(RankedTensorType operand, ArrayRef<int64_t> row) {
  auto merged = broadcastShapes(row, operand.getShape());
  return merged && ArrayRef<int64_t>(*merged) == row;
}

/// Checks operands of the gradient of a norm of rows.
static LogicalResult checkRowGrad(std::optional<Location> loc, Value grad,
                                  Value input, ValueRange statistics,
                                  Value scale, int64_t axis) {
  auto type = tensorType(input);
  if (failed(checkAxis(loc, axis, type)))
    return failure();
  if (tensorType(grad).getShape() != type.getShape())
    return emitOptionalError(loc, "grad and input must have one shape, got ",
                             grad.getType(), " and ", type);
  for (Value statistic : statistics)
    if (tensorType(statistic).getShape() != type.getShape().take_front(axis))
      return emitOptionalError(
          loc, "statistics must have the dimensions before axis, got ",
          statistic.getType());
  if (scale && !fitsRow(tensorType(scale), type.getShape().drop_front(axis)))
    return emitOptionalError(
        loc, "scale must broadcast to the dimensions from axis on, got ",
        scale.getType());
  return success();
}

CKOPT_INFER(LayerNormGradOp) {
  LayerNormGradOp::Adaptor adaptor(operands, attributes, properties, regions);
  if (failed(checkRowGrad(loc, adaptor.getGrad(), adaptor.getInput(),
                          {adaptor.getMean(), adaptor.getRstd()},
                          adaptor.getScale(), adaptor.getAxis())))
    return failure();
  results.push_back(adaptor.getInput().getType());
  return success();
}

CKOPT_INFER(RmsNormGradOp) {
  RmsNormGradOp::Adaptor adaptor(operands, attributes, properties, regions);
  if (failed(checkRowGrad(loc, adaptor.getGrad(), adaptor.getInput(),
                          adaptor.getRstd(), adaptor.getScale(),
                          adaptor.getAxis())))
    return failure();
  results.push_back(adaptor.getInput().getType());
  return success();
}

CKOPT_INFER(RmsNormOp) {
  RmsNormOp::Adaptor adaptor(operands, attributes, properties, regions);
  auto type = tensorType(adaptor.getInput());
  int64_t axis = adaptor.getAxis();
  if (failed(checkAxis(loc, axis, type)))
    return failure();
  if (adaptor.getScale() && !fitsRow(tensorType(adaptor.getScale()),
                                     type.getShape().drop_front(axis)))
    return emitOptionalError(
        loc, "scale must broadcast to the dimensions from axis on, got ",
        adaptor.getScale().getType());
  Type element = type.getElementType();
  results.append(
      {type, RankedTensorType::get(
                 type.getShape().take_front(axis),
                 element.isF64() ? element : Float32Type::get(context))});
  return success();
}

CKOPT_INFER(LayerNormOp) {
  LayerNormOp::Adaptor adaptor(operands, attributes, properties, regions);
  auto type = tensorType(adaptor.getInput());
  int64_t axis = adaptor.getAxis();
  if (failed(checkAxis(loc, axis, type)))
    return failure();
  results.push_back(type);
  results.append(2, RankedTensorType::get(type.getShape().take_front(axis),
                                          type.getElementType()));
  return success();
}

LogicalResult LayerNormOp::verify() {
  // This runs before type inference, which reports a wrong axis.
  int64_t axis = getAxis();
  if (axis < 0 || axis >= tensorType(getInput()).getRank())
    return success();
  ArrayRef<int64_t> row =
      tensorType(getInput()).getShape().drop_front(getAxis());
  for (Value operand : {getScale(), getBias()}) {
    if (operand && !fitsRow(tensorType(operand), row))
      return emitOpError("scale and bias must broadcast to the dimensions "
                         "from axis on, got ")
             << operand.getType();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Losses and updates
//===----------------------------------------------------------------------===//

/// Checks the class axis: the logits' shape without it is the shape of the
/// targets, and it has as many elements as there are classes, or more.
static LogicalResult checkTargets(std::optional<Location> loc,
                                  RankedTensorType logits,
                                  RankedTensorType targets, int64_t axis,
                                  std::optional<uint64_t> classes) {
  SmallVector<int64_t> shape(logits.getShape());
  if (failed(checkAxis(loc, axis, logits)))
    return failure();
  if (classes && (*classes < 1 || *classes > uint64_t(shape[axis])))
    return emitOptionalError(loc, int64_t(*classes),
                             " classes do not fit logits ", logits,
                             " along dimension ", axis);
  shape.erase(shape.begin() + axis);
  if (ArrayRef<int64_t>(shape) != targets.getShape())
    return emitOptionalError(loc, "targets ", targets, " do not fit logits ",
                             logits, " with classes along dimension ", axis);
  return success();
}

CKOPT_INFER(CrossEntropyOp) {
  CrossEntropyOp::Adaptor adaptor(operands, attributes, properties, regions);
  auto logits = tensorType(adaptor.getLogits());
  auto targets = tensorType(adaptor.getTargets());
  if (failed(checkTargets(loc, logits, targets, adaptor.getAxis(),
                          adaptor.getClasses())))
    return failure();
  results.append(
      3, RankedTensorType::get(targets.getShape(), logits.getElementType()));
  return success();
}

CKOPT_INFER(CrossEntropyGradOp) {
  CrossEntropyGradOp::Adaptor adaptor(operands, attributes, properties,
                                      regions);
  auto logits = tensorType(adaptor.getLogits());
  if (failed(checkTargets(loc, logits, tensorType(adaptor.getTargets()),
                          adaptor.getAxis(), adaptor.getClasses())))
    return failure();
  for (Value row : {adaptor.getGrad(), adaptor.getLse(), adaptor.getLost()})
    if (tensorType(row).getShape() !=
        tensorType(adaptor.getTargets()).getShape())
      return emitOptionalError(loc,
                               "grad and lse must have the shape of the "
                               "targets, got ",
                               row.getType());
  results.push_back(logits);
  return success();
}

/// Checks that input, weight, targets and bias (unless null) of the op and of
/// its gradient fit together.
template <typename AdaptorT>
static LogicalResult checkLinearLoss(std::optional<Location> loc, AdaptorT op) {
  auto input = tensorType(op.getInput()), weight = tensorType(op.getWeight());
  auto targets = tensorType(op.getTargets());
  bool transpose = op.getTransposeWeight();
  if (input.getRank() != 2 || weight.getRank() != 2 || targets.getRank() != 1)
    return emitOptionalError(loc, "needs input and weight of rank 2, targets "
                                  "of rank 1");
  int64_t classes = weight.getDimSize(!transpose);
  if (input.getDimSize(1) != weight.getDimSize(transpose) ||
      input.getDimSize(0) != targets.getDimSize(0) ||
      input.getElementType() != weight.getElementType())
    return emitOptionalError(loc, "types do not fit: input ", input,
                             ", weight ", weight, ", targets ", targets);
  if (op.getBias()) {
    auto bias = tensorType(op.getBias());
    if (bias.getShape() != ArrayRef<int64_t>(classes) ||
        bias.getElementType() != weight.getElementType())
      return emitOptionalError(
          loc, "the bias must have one element a class, is ", bias);
  }
  if (op.getRows() < 1)
    return emitOptionalError(loc, "rows must be positive");
  return success();
}

/// The type of losses: of products of halves they are computed in f32.
static Type lossElement(RankedTensorType input) {
  Type element = input.getElementType();
  return element.getIntOrFloatBitWidth() < 32
             ? Float32Type::get(element.getContext())
             : element;
}

CKOPT_INFER(LinearCrossEntropyOp) {
  LinearCrossEntropyOp::Adaptor adaptor(operands, attributes, properties,
                                        regions);
  if (failed(checkLinearLoss(loc, adaptor)))
    return failure();
  results.push_back(
      RankedTensorType::get(tensorType(adaptor.getTargets()).getShape(),
                            lossElement(tensorType(adaptor.getInput()))));
  return success();
}

CKOPT_INFER(LinearCrossEntropyGradOp) {
  LinearCrossEntropyGradOp::Adaptor adaptor(operands, attributes, properties,
                                            regions);
  if (failed(checkLinearLoss(loc, adaptor)))
    return failure();
  auto input = tensorType(adaptor.getInput());
  auto targets = tensorType(adaptor.getTargets());
  if (tensorType(adaptor.getGrad()).getShape() != targets.getShape())
    return emitOptionalError(loc,
                             "grad must have the shape of the targets, "
                             "got ",
                             adaptor.getGrad().getType());
  results.push_back(
      RankedTensorType::get(targets.getShape(), lossElement(input)));
  results.append({input, tensorType(adaptor.getWeight())});
  if (adaptor.getBias())
    results.push_back(adaptor.getBias().getType());
  return success();
}

/// Checks that the operands of an update have the shape of the first one.
static LogicalResult checkUpdate(std::optional<Location> loc,
                                 ValueRange operands) {
  for (Value operand : operands)
    if (operand && tensorType(operand).getShape() !=
                       tensorType(operands.front()).getShape())
      return emitOptionalError(loc, "operands must have one shape, got ",
                               operands.front().getType(), " and ",
                               operand.getType());
  return success();
}

CKOPT_INFER(MovingAverageOp) {
  if (failed(checkUpdate(loc, operands)))
    return failure();
  results.push_back(operands.front().getType());
  return success();
}

CKOPT_INFER(AssignOp) {
  if (failed(checkUpdate(loc, operands)))
    return failure();
  results.push_back(operands.front().getType());
  return success();
}

CKOPT_INFER(AssignCodesOp) {
  AssignCodesOp::Adaptor adaptor(operands, attributes, properties, regions);
  auto codes = tensorType(adaptor.getCodes()),
       scales = tensorType(adaptor.getScales());
  if (failed(checkUpdate(loc, {adaptor.getCodes(), adaptor.getValue()})))
    return failure();
  if (codes.getRank() != 2 ||
      codes.getDimSize(1) > AssignCodesOp::kMostNumbers ||
      scales.getShape() != codes.getShape().take_front())
    return emitOptionalError(
        loc, "codes must be rows of at most ", AssignCodesOp::kMostNumbers,
        ", with a scale for each, got ", codes, " and ", scales);
  results.append({codes, scales});
  return success();
}

CKOPT_INFER(AccumulateOp) {
  if (failed(checkUpdate(loc, operands)))
    return failure();
  results.push_back(operands.front().getType());
  return success();
}

CKOPT_INFER(SgdOp) {
  SgdOp::Adaptor adaptor(operands, attributes, properties, regions);
  SmallVector<Value> states{adaptor.getParam(), adaptor.getGrad()};
  if (adaptor.getVelocity())
    states.push_back(adaptor.getVelocity());
  if (failed(checkUpdate(loc, states)))
    return failure();
  results.push_back(adaptor.getParam().getType());
  if (adaptor.getVelocity())
    results.push_back(adaptor.getVelocity().getType());
  return success();
}

CKOPT_INFER(AdamOp) {
  AdamOp::Adaptor adaptor(operands, attributes, properties, regions);
  if (failed(checkUpdate(loc, operands.take_front(4))))
    return failure();
  for (Value value : {adaptor.getParam(), adaptor.getM(), adaptor.getV()})
    results.push_back(value.getType());
  return success();
}
