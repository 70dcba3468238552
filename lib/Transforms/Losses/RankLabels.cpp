//===- RankLabels.cpp - what an evaluation asks of labels -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: an evaluation whose host compares scores with labels holds all
// scores, which of a language model are larger than its step. Method: the
// function computes at each place the cross entropy of the label, and how many
// classes come before it, which say accuracy, top-k and perplexity; scores are
// no result any more, so that they can exist block by block (tile-rows).
// Guarantee: of equal scores the first class counts, and a place with a NaN is
// right for no k, as on the host; the loss is summed in f32 at each place, and
// in double over places. Labels outside of the classes are the host's to skip
// or to refuse. Complexity: linear in scores.
//
//===----------------------------------------------------------------------===//
#include "LossBuilder.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Dialect/Ckopt/Utils/SettingDiagnostic.h"
#include "ckopt/Support/Error.h"

using namespace mlir;
using namespace ckopt;

namespace {
/// What the host reads of each place.
struct Places {
  Value loss, rank;
};
} // namespace

static Value reduceAlong(TensorBuilder &b, ReduceKind kind, Value value,
                         int64_t axis, bool keepsAxis) {
  return b.make<ReduceOp>(ReduceKindAttr::get(b.builder.getContext(), kind),
                          value, b.ints({axis}),
                          b.builder.getBoolAttr(keepsAxis));
}

/// Compares scores with the label at each place; `labels` keeps the axis.
static Places compare(TensorBuilder &b, Value scores, Value labels,
                      int64_t axis) {
  ArrayRef<int64_t> shape = tensorType(scores).getShape();
  Type element = getElementTypeOrSelf(scores);
  Value none = b.number(labels, 0), last = b.number(labels, shape[axis] - 1);
  Value label = b.make<MinimumOp>(b.make<MaximumOp>(labels, none), last);
  Value own = b.make<GatherElementsOp>(scores, label, axis);
  Value most = reduceAlong(b, ReduceKind::Max, scores, axis, true);
  Value sum = reduceAlong(b, ReduceKind::Sum,
                          b.make<ExpOp>(b.sub(scores, most)), axis, true);
  Value loss = b.add(b.make<LogOp>(sum), b.sub(most, own));

  SmallVector<int64_t> along(shape.size(), 1);
  along[axis] = shape[axis];
  Value number =
      IotaOp::create(b.builder, b.loc,
                     RankedTensorType::get(along, getElementTypeOrSelf(labels)),
                     axis, APFloat(0.0), APFloat(1.0));
  Value isBefore = b.make<OrOp>(
      b.compare(ComparePredicate::GT, scores, own),
      b.make<AndOp>(b.compare(ComparePredicate::EQ, scores, own),
                    b.compare(ComparePredicate::LT, number, label)));
  Value rank =
      reduceAlong(b, ReduceKind::Sum, b.cast(isBefore, element), axis, true);
  Value isNumber = b.compare(ComparePredicate::EQ, loss, loss);
  rank = b.select(isNumber, rank, b.number(rank, double(shape[axis])));
  return {loss, rank};
}

LogicalResult ckopt::rankLabels(func::FuncOp function, const LossOptions &given,
                                int64_t leastBytes) {
  if (failed(checkStraightLine(function)))
    return failure();
  LossOptions options = given;
  MessageText remark;
  if (llvm::Error error = resolveLoss(function, options.terms, remark))
    return function.emitError() << takeErrorText(std::move(error)).message;
  const LossTerm &term = options.terms.front();
  if (options.terms.size() != 1 || term.kind != "cross_entropy")
    return function.emitError("rank-labels needs one cross_entropy, got '")
           << formatLoss(options.terms) << "'";
  OpBuilder builder(function.getBody().front().getTerminator());
  TensorBuilder b(
      builder, NameLoc::get(builder.getStringAttr("loss"), function.getLoc()));
  SmallVector<Result> results = takeResults(function);
  Result *output = llvm::find_if(results, [&](const Result &result) {
    return result.get(attrs::kName) == builder.getStringAttr(term.output) &&
           !result.get(attrs::kUpdates);
  });
  Value scores = output->value;
  RankedTensorType type = tensorType(scores);
  if (getByteSize(type) < leastBytes) {
    setResults(function, results);
    return success();
  }
  if (type.getElementType().getIntOrFloatBitWidth() < 32)
    scores = b.cast(scores, builder.getF32Type());
  LossBuilder loss{function, b,           options,       scores,
                   type,     term.output, options.target};
  FailureOr<int64_t> axis = loss.classAxis();
  if (failed(axis))
    return failure();
  SmallVector<int64_t> shape(type.getShape()), kept(shape);
  shape.erase(shape.begin() + *axis);
  kept[*axis] = 1;
  Value labels = b.reshape(loss.labels(*axis, /*ignores=*/true), kept);
  Places places = compare(b, scores, labels, *axis);
  Result rank;
  rank.value = b.reshape(places.rank, shape);
  rank.set(builder, attrs::kName, builder.getStringAttr(kLabelRanks));
  output->value = b.reshape(places.loss, shape);
  output->set(builder, attrs::kName, builder.getStringAttr(kLabelLosses));
  results.push_back(std::move(rank));
  setResults(function, results);
  return success();
}
