//===- AttentionOps.cpp - types of attention and its gradient -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "InferTypes.h"

#include <cmath>

using namespace mlir;
using namespace ckopt;

/// Returns the type of numbers of a row (lse, bias) for operands of this one.
static Type rowType(Type element) {
  return element.getIntOrFloatBitWidth() == 16
             ? Type(Float32Type::get(element.getContext()))
             : element;
}

/// Checks the operands that make scores, and the attributes.
template <typename Adaptor>
static LogicalResult checkScores(std::optional<Location> loc, Adaptor op) {
  auto query = tensorType(op.getQuery()), key = tensorType(op.getKey());
  auto value = tensorType(op.getValue());
  int64_t rank = query.getRank();
  if (rank < 3 || rank > 4 || key.getRank() != rank || value.getRank() != rank)
    return emitOptionalError(loc, "attention needs query, key and value of "
                                  "rank 4, or all of rank 3");
  for (Value operand : {op.getKey(), op.getValue()})
    if (tensorType(operand).getElementType() != query.getElementType())
      return emitOptionalError(loc, "operands must have one element type, got ",
                               query, " and ", operand.getType());
  if (op.getBias() && tensorType(op.getBias()).getElementType() !=
                          rowType(query.getElementType()))
    return emitOptionalError(loc, "bias must have the element type of lse, ",
                             rowType(query.getElementType()), ", got ",
                             op.getBias().getType());
  auto q = query.getShape(), k = key.getShape(), v = value.getShape();
  bool grouped = k[rank - 3] > 0 && q[rank - 3] % k[rank - 3] == 0;
  if (!grouped || (rank == 4 && q[0] != k[0]) ||
      k.drop_back() != v.drop_back() || q.back() != k.back())
    return emitOptionalError(loc, "shapes do not fit: query ", query, ", key ",
                             key, ", value ", value);
  SmallVector<int64_t> scores(q.drop_back());
  scores.push_back(k[rank - 2]);
  for (Value operand : {op.getBias(), op.getMask()}) {
    if (!operand)
      continue;
    auto all = broadcastShapes(scores, tensorType(operand).getShape());
    if (!all || ArrayRef<int64_t>(*all) != ArrayRef<int64_t>(scores))
      return emitOptionalError(loc, operand.getType(),
                               " does not broadcast to the scores' shape");
  }
  if (Value segments = op.getSegments()) {
    auto numbers = tensorType(segments).getShape();
    if (numbers[1] != k[rank - 2] || numbers[1] != q[rank - 2] ||
        (numbers[0] != 1 && (rank == 3 || numbers[0] != q[0])))
      return emitOptionalError(loc,
                               "segments need one number for each of as "
                               "many keys as queries, got ",
                               segments.getType());
  }
  if ((op.getCausal() || op.getWindow() || op.getSegments()) && op.getFill())
    return emitOptionalError(loc, "causality, windows and segments fill with "
                                  "-inf; they take no fill");
  if (double cap = op.getSoftcap() ? op.getSoftcap()->convertToDouble() : 1;
      !(cap > 0 && std::isfinite(cap)))
    return emitOptionalError(loc, "softcap must be a positive number, got ",
                             cap);
  bool drops = op.getSeed() != nullptr;
  if (bool(op.getStep()) != drops || op.getRatio().has_value() != drops ||
      op.getSite().has_value() != drops)
    return emitOptionalError(
        loc, "a dropout needs seed and step, a ratio and a site");
  if (double ratio = drops ? op.getRatio()->convertToDouble() : 0;
      !(ratio >= 0 && ratio < 1))
    return emitOptionalError(loc, "ratio must lie in [0, 1), got ", ratio);
  return success();
}

/// The types of attention's results: [.., queries, columns of the value], and
/// two numbers for each row.
template <typename AdaptorT>
static std::pair<RankedTensorType, RankedTensorType> outputAndLse(AdaptorT op) {
  auto query = tensorType(op.getQuery());
  SmallVector<int64_t> shape(query.getShape().drop_back());
  shape.push_back(2);
  auto lse = RankedTensorType::get(shape, rowType(query.getElementType()));
  shape.back() = tensorType(op.getValue()).getShape().back();
  return {RankedTensorType::get(shape, query.getElementType()), lse};
}

CKOPT_INFER(AttentionOp) {
  AttentionOp::Adaptor adaptor(operands, attributes, properties, regions);
  if (failed(checkScores(loc, adaptor)))
    return failure();
  auto [output, lse] = outputAndLse(adaptor);
  results.append({output, lse});
  return success();
}

CKOPT_INFER(AttentionGradOp) {
  AttentionGradOp::Adaptor adaptor(operands, attributes, properties, regions);
  if (failed(checkScores(loc, adaptor)))
    return failure();
  auto [output, lse] = outputAndLse(adaptor);
  for (Value operand : {adaptor.getOutput(), adaptor.getGrad()})
    if (tensorType(operand).getShape() != output.getShape())
      return emitOptionalError(loc,
                               "output and its gradient must have the "
                               "shape of attention's result, got ",
                               operand.getType());
  for (Value operand : {adaptor.getOutput(), adaptor.getGrad()})
    if (tensorType(operand).getElementType() != output.getElementType())
      return emitOptionalError(loc, "operands must have one element type, got ",
                               output, " and ", operand.getType());
  if (tensorType(adaptor.getLse()).getShape() != lse.getShape() ||
      tensorType(adaptor.getLse()).getElementType() != lse.getElementType())
    return emitOptionalError(loc,
                             "lse must have two numbers for each row, got ",
                             adaptor.getLse().getType());
  for (Value operand :
       {adaptor.getQuery(), adaptor.getKey(), adaptor.getValue()})
    results.push_back(RankedTensorType::get(tensorType(operand).getShape(),
                                            output.getElementType()));
  return success();
}

/// Operations of `depths` and `widths` products of that many terms a score, for
/// the scores that causality and the window allow. Segments are not known.
template <typename Op>
static double scoreFlops(Op op, double depths, double widths) {
  ArrayRef<int64_t> q = tensorType(op.getQuery()).getShape();
  int64_t queries = q[q.size() - 2],
          keys = tensorType(op.getKey()).getShape()[q.size() - 2];
  double scores = double(queries) * double(keys);
  if (op.getCausal() || op.getWindow()) {
    scores = 0;
    for (int64_t row = 0; row < queries; ++row) {
      auto [first, end] = op.getKeysOfRow(row);
      scores += double(std::max<int64_t>(end - first, 0));
    }
  }
  double heads = 1;
  for (int64_t size : q.drop_back(2))
    heads *= double(size);
  return 2 * heads * scores *
         (depths * double(q.back()) +
          widths * double(tensorType(op.getValue()).getShape().back()));
}

double AttentionOp::getFlops() { return scoreFlops(*this, 1, 1); }
double AttentionGradOp::getFlops() { return scoreFlops(*this, 3, 2); }

bool AttentionOp::isFactor(unsigned index) { return index < 3; }
bool AttentionGradOp::isFactor(unsigned index) {
  Value operand = getOperand(index);
  return index < 3 || operand == getOutput() || operand == getGrad();
}

/// Heads are read and written in place where their rows have no gaps.
static bool suitsHeads(ArrayRef<int64_t> strides) {
  return ckopt::detail::suitsProduct(strides) && strides.back() == 1;
}

bool AttentionOp::acceptsStrides(bool isResult, unsigned index,
                                 ArrayRef<int64_t> strides) {
  return suitsHeads(strides) && (isResult ? index == 0 : index < 3);
}

bool AttentionGradOp::acceptsStrides(bool isResult, unsigned index,
                                     ArrayRef<int64_t> strides) {
  return suitsHeads(strides) && (isResult || isFactor(index));
}
