//===- RankDraws.cpp - random numbers of a rank's samples -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: N processes must draw for each sample the numbers that one process
// draws for it, which are functions of the element's place in the whole batch.
// Method: where samples lie along dimension 0 and a rank's numbers are whole
// blocks of four, the rank's number goes into the upper half of the step that
// the op reads, and its elements count on from those of the ranks before.
// Elsewhere (in time steps that each hold all samples, too) the op draws for
// the whole batch, and the rank gathers its part: in a fused kernel only that
// part is ever computed. Draws that no sample enters
// are the same on all ranks. Guarantee: a draw that is none of these is an
// error. O(ops).
//
//===----------------------------------------------------------------------===//
#include "ckopt/Distribute/Distribution.h"

#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Dialect/Ckopt/Utils/RandomSite.h"
#include "ckopt/Dialect/Ckopt/Utils/SettingDiagnostic.h"
#include "ckopt/Dialect/Ckopt/Utils/TensorBuilder.h"

using namespace mlir;
using namespace ckopt;

namespace {
class RankDraws {
public:
  RankDraws(func::FuncOp function, const SampleAxes &axes, int64_t ranks)
      : function(function), axes(axes), ranks(ranks) {}

  LogicalResult run();

private:
  enum class Kind { Alike, Counted, Gathered };
  struct Draw {
    Kind kind = Kind::Alike;
    SampleAxis axis = SampleAxis(); ///< of Gathered
  };

  FailureOr<Draw> choose(Operation *op) const;
  void count(Operation *op);
  void gather(Operation *op, SampleAxis samples);
  Value rankNumber(OpBuilder &builder, Value like);

  func::FuncOp function;
  const SampleAxes &axes;
  int64_t ranks;
  llvm::DenseMap<Value, Value> counted; ///< step, with the rank's number
  /// Factors of a dropout's elements, by site and type.
  llvm::DenseMap<std::pair<int64_t, Type>, Value> factors;
};
} // namespace

/// The numbers that an op draws: one for each element, or each score.
static int64_t drawnNumbers(Operation *op) {
  if (!isa<AttentionOp, AttentionGradOp>(op))
    return tensorType(op->getResult(0)).getNumElements();
  int64_t count = tensorType(op->getOperand(1)).getShape().take_back(2)[0];
  for (int64_t size : tensorType(op->getOperand(0)).getShape().drop_back())
    count *= size;
  return count;
}

/// An op's gradient draws the same numbers as the op, which comes first.
FailureOr<RankDraws::Draw> RankDraws::choose(Operation *op) const {
  bool isRandom = isa<RandomOp>(op);
  SampleAxis axis = axes.of(isRandom ? op->getResult(0) : op->getOperand(0));
  for (Value operand : op->getOperands())
    if (axis.isSame() && !isRandom)
      axis = axes.of(operand);
  if (axis.isSame())
    return Draw{};
  if (isRandom && axis.isMixed())
    return op->emitError("draws random numbers of which it is not known "
                         "whether each sample has its own: how ranks share "
                         "them is not known");
  if (axis.isMixed() && axes.samples() == 1) // shapes tell nothing
    axis = SampleAxis::part(0);
  if (axis.isMixed())
    return op->emitError("draws random numbers for ")
           << op->getResult(0).getType() << ", of which it is not known where "
           << "the " << axes.samples() << " samples of a rank lie";
  bool isFirst = axis.axis == 0 && axis.groups == 1;
  if (isFirst && drawnNumbers(op) % 4 == 0)
    return Draw{Kind::Counted, axis};
  if (isa<DropoutOp, RandomOp>(op))
    return Draw{Kind::Gathered, axis};
  if (isFirst)
    return op->emitError("draws ")
           << drawnNumbers(op) << " numbers for a rank's samples, which come "
           << "in fours: choose another " + Setting("batch");
  return op->emitError("draws random numbers for ")
         << op->getResult(0).getType() << ", whose dimension 0 does not hold "
         << "the " << axes.samples() << " samples of a rank";
}

Value RankDraws::rankNumber(OpBuilder &builder, Value like) {
  return RankOp::create(builder, function.getLoc(), like.getType(), ranks);
}

/// Makes an op read the rank's number with the step.
void RankDraws::count(Operation *op) {
  Value step = isa<DropoutOp>(op)     ? cast<DropoutOp>(op).getStep()
               : isa<RandomOp>(op)    ? cast<RandomOp>(op).getStep()
               : isa<AttentionOp>(op) ? cast<AttentionOp>(op).getStep()
                                      : cast<AttentionGradOp>(op).getStep();
  Value &own = counted[step];
  if (!own) {
    OpBuilder builder(op);
    TensorBuilder b(builder, function.getLoc());
    own = b.add(step, b.mul(rankNumber(builder, step), 0x1p32));
  }
  for (OpOperand &operand : op->getOpOperands())
    if (operand.get() == step)
      operand.set(own);
}

/// Replaces an op by the rank's part of what it draws for the whole batch.
void RankDraws::gather(Operation *op, SampleAxis samples) {
  OpBuilder builder(op);
  TensorBuilder b(builder, op->getLoc());
  RankedTensorType type = tensorType(op->getResult(0));
  Value &part = factors[{*randomSite(op), type}];
  if (!part) {
    SmallVector<int64_t> shape(type.getShape());
    const size_t axis = size_t(samples.axis);
    const int64_t own = shape[axis], stretch = own / samples.groups;
    shape[axis] = own * ranks;
    RankedTensorType whole = type.clone(shape);
    Value drawn;
    if (auto random = dyn_cast<RandomOp>(op))
      drawn = RandomOp::create(builder, b.loc, whole, random.getKind(),
                               random.getSeed(), random.getStep(),
                               random.getSite());
    else
      drawn = DropoutOp::create(
          builder, b.loc, b.splat(whole, 1), cast<DropoutOp>(op).getSeed(),
          cast<DropoutOp>(op).getStep(), cast<DropoutOp>(op).getRatio(),
          cast<DropoutOp>(op).getSite());
    Type number = builder.getI64Type();
    Value rank = RankOp::create(builder, b.loc,
                                RankedTensorType::get({}, number), ranks);
    auto places = RankedTensorType::get({own}, number);
    Value offsets = IotaOp::create(builder, b.loc, places, /*axis=*/0,
                                   APFloat(0.0), APFloat(1.0));
    if (samples.groups > 1) { // other ranks' parts lie between the stretches
      Value group = b.div(offsets, b.number(offsets, double(stretch)));
      offsets = b.add(offsets, b.mul(group, double(stretch * (ranks - 1))));
    }
    part = b.make<GatherOp>(drawn, b.add(offsets, b.mul(rank, double(stretch))),
                            int64_t(axis));
  }
  Value result = isa<DropoutOp>(op) ? b.mul(op->getOperand(0), part) : part;
  op->getResult(0).replaceAllUsesWith(result);
  op->erase();
}

LogicalResult RankDraws::run() {
  llvm::DenseMap<int64_t, Draw> draws; // by site
  for (Operation &op : llvm::make_early_inc_range(function.front())) {
    std::optional<int64_t> site = randomSite(&op);
    if (!site)
      continue;
    auto [place, isFirst] = draws.try_emplace(*site);
    if (isFirst) {
      auto chosen = choose(&op);
      if (failed(chosen))
        return failure();
      place->second = *chosen;
    }
    Draw draw = place->second;
    if (draw.kind == Kind::Counted)
      count(&op);
    else if (draw.kind == Kind::Gathered)
      gather(&op, draw.axis);
  }
  return success();
}

LogicalResult ckopt::numberDraws(func::FuncOp function, const SampleAxes &axes,
                                 int64_t ranks) {
  return RankDraws(function, axes, ranks).run();
}
