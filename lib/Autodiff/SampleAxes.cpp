//===- SampleAxes.cpp - where the samples of a batch lie ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: what a rank's value is of one process's value, where both run the
// same ops on batches of other sizes. Method: samples are followed from the
// data on, op by op. An axis is kept while every element is made of samples of
// its own place along it; everything else is Mixed. Shapes do not tell the size
// of a batch from another that happens to be equal, so a value of no sample
// that has the batch's extent along the axis must be the same at every place of
// it. O(ops).
//
//===----------------------------------------------------------------------===//
#include "SampleAxes.h"

#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::autodiff;

static ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

static int64_t rankOf(Value value) { return int64_t(shapeOf(value).size()); }

/// Whether all slices of the value along the axis are equal.
static bool isUniform(Value value, int64_t axis, int depth = 4) {
  if (axis < 0 || shapeOf(value)[size_t(axis)] == 1)
    return true;
  Operation *op = value.getDefiningOp();
  if (!op || depth == 0)
    return false;
  if (auto constant = dyn_cast<ConstantOp>(op))
    return cast<ElementsAttr>(constant.getValue()).isSplat();
  bool aligned = isa<ExpandOp>(op);
  if (auto kernel = dyn_cast<KernelOpInterface>(op))
    aligned |= kernel.getKernelKind() == KernelKind::Elementwise &&
               !isa<RandomOp, DropoutOp, BatchNormInferenceOp>(op);
  return aligned && llvm::all_of(op->getOperands(), [&](Value operand) {
           return isUniform(operand, axis - rankOf(value) + rankOf(operand),
                            depth - 1);
         });
}

namespace {
/// The axis that the operands of one op agree on.
class Agreement {
public:
  /// The operand's axis `from` becomes `to`; `extent`: the result's there.
  void add(SampleAxis given, int64_t to) {
    if (given.isMixed() || (given.isPart() && axis >= 0 && axis != to))
      mixed = true;
    if (given.isPart())
      axis = to;
  }
  void fail() { mixed = true; }
  SampleAxis result() const {
    return mixed      ? SampleAxis::mixed()
           : axis < 0 ? SampleAxis::same()
                      : SampleAxis::part(axis);
  }
  bool isPart() const { return result().isPart(); }
  int64_t axis = -1;

private:
  bool mixed = false;
};
} // namespace

/// Operands broadcast to the result: dimensions agree from the last one on.
static SampleAxis broadcastOperands(const SampleAxes &axes,
                                    OperandRange operands, Value result) {
  Agreement agreed;
  const int64_t rank = rankOf(result);
  for (Value operand : operands) {
    SampleAxis given = axes.of(operand);
    agreed.add(given, given.axis + rank - rankOf(operand));
  }
  if (!agreed.isPart())
    return agreed.result();
  int64_t extent = shapeOf(result)[size_t(agreed.axis)];
  for (Value operand : operands) {
    int64_t at = agreed.axis - rank + rankOf(operand);
    // One sample beside many places would be broadcast along them.
    if (axes.of(operand).isPart() ? shapeOf(operand)[size_t(at)] != extent
                                  : !isUniform(operand, at))
      agreed.fail();
  }
  return agreed.result();
}

/// The samples begin where as many elements lie before them.
static SampleAxis reshaped(SampleAxis given, ArrayRef<int64_t> from,
                           ArrayRef<int64_t> to, int64_t samples) {
  if (!given.isPart())
    return given;
  int64_t before = 1, passed = 1;
  for (int64_t size : from.take_front(size_t(given.axis)))
    before *= size;
  for (auto [axis, size] : llvm::enumerate(to)) {
    if (passed == before && size % samples == 0 &&
        (size != 0 && from[size_t(given.axis)] % samples == 0))
      return SampleAxis::part(int64_t(axis));
    passed *= size;
  }
  return SampleAxis::mixed();
}

static SampleAxis reduced(SampleAxis given, ArrayRef<int64_t> axes,
                          bool keepsDims) {
  if (!given.isPart())
    return given;
  if (llvm::is_contained(axes, given.axis))
    return SampleAxis::mixed();
  int64_t gone = keepsDims ? 0 : llvm::count_if(axes, [&](int64_t axis) {
    return axis < given.axis;
  });
  return SampleAxis::part(given.axis - gone);
}

static SampleAxis multiplied(const SampleAxes &axes, Value lhs, Value rhs,
                             bool transposeLhs, bool transposeRhs,
                             Value result) {
  Agreement agreed;
  const int64_t rank = rankOf(result);
  for (auto [operand, transposed, isLhs] :
       {std::tuple(lhs, transposeLhs, true), {rhs, transposeRhs, false}}) {
    SampleAxis given = axes.of(operand);
    int64_t fromEnd = rankOf(operand) - given.axis; // 1: the last one
    if (given.isPart() && fromEnd <= 2 && rankOf(operand) >= 2) {
      // Rows of lhs and columns of rhs remain, the others are summed over.
      bool isRow = (fromEnd == 2) != transposed;
      if (isRow != isLhs)
        agreed.fail();
      agreed.add(given, rank - (isLhs ? 2 : 1));
    } else {
      agreed.add(given, rank - fromEnd);
    }
  }
  if (!agreed.isPart() || agreed.axis >= rank - 2)
    return agreed.result();
  // Matrices of each sample; beside them such that are the same for all.
  for (Value operand : {lhs, rhs})
    if (axes.of(operand).isSame() &&
        !isUniform(operand, agreed.axis - rank + rankOf(operand)))
      agreed.fail();
  return agreed.result();
}

static SampleAxis gathered(const SampleAxes &axes, GatherOp op) {
  SampleAxis data = axes.of(op.getData()), indices = axes.of(op.getIndices());
  int64_t axis = int64_t(op.getAxis());
  Agreement agreed;
  if (data.isPart() && data.axis == axis)
    return SampleAxis::mixed();
  agreed.add(data, data.axis < axis ? data.axis
                                    : data.axis + rankOf(op.getIndices()) - 1);
  agreed.add(indices, axis + indices.axis);
  // Rows of one sample by the numbers of another one's.
  if (data.isPart() && indices.isPart())
    agreed.fail();
  return agreed.result();
}

static SampleAxis sliced(SampleAxis given, int64_t from, int64_t to) {
  return given.isPart() && from != to ? SampleAxis::mixed() : given;
}

/// Ops that work along one axis, each place beside it for itself.
static SampleAxis alongAxis(const SampleAxes &axes, OperandRange operands,
                            int64_t axis) {
  Agreement agreed;
  for (Value operand : operands) {
    SampleAxis given = axes.of(operand);
    agreed.add(given, given.axis);
    if (given.isPart() && given.axis == axis)
      agreed.fail();
  }
  if (agreed.isPart())
    for (Value operand : operands)
      if (axes.of(operand).isSame() && rankOf(operand) > agreed.axis &&
          !isUniform(operand, agreed.axis))
        agreed.fail();
  return agreed.result();
}

/// The first operand has samples along its first dimension, the others none.
static SampleAxis firstOfFirst(const SampleAxes &axes, Operation *op) {
  for (Value operand : op->getOperands().drop_front())
    if (!axes.of(operand).isSame())
      return SampleAxis::mixed();
  SampleAxis given = axes.of(op->getOperand(0));
  return given.isPart() && given.axis != 0 ? SampleAxis::mixed() : given;
}

static SampleAxis attended(const SampleAxes &axes, AttentionOp op) {
  Agreement agreed;
  const int64_t rank = rankOf(op.getOutput());
  for (Value operand : {op.getQuery(), op.getKey(), op.getValue(), op.getBias(),
                        op.getMask()}) {
    if (!operand)
      continue;
    SampleAxis given = axes.of(operand);
    agreed.add(given, given.axis + rank - rankOf(operand));
  }
  if (agreed.isPart() && agreed.axis >= rank - 2)
    agreed.fail();
  return agreed.result();
}

SampleAxis SampleAxes::transfer(Operation *op) const {
  if (isa<RankOp>(op))
    return SampleAxis::mixed();
  if (isa<AllReduceOp>(op)) // all ranks get the same
    return SampleAxis::same();
  if (llvm::all_of(op->getOperands(),
                   [&](Value operand) { return of(operand).isSame(); }))
    return SampleAxis::same();
  Value result = op->getResult(0);
  if (auto gather = dyn_cast<GatherOp>(op))
    return gathered(*this, gather);
  if (auto reduce = dyn_cast<ReduceOp>(op))
    return reduced(of(reduce.getInput()), reduce.getAxes(),
                   reduce.getKeepdims());
  if (auto moments = dyn_cast<MomentsOp>(op))
    return reduced(of(moments.getInput()), moments.getAxes(), false);
  if (auto transpose = dyn_cast<TransposeOp>(op)) {
    SampleAxis given = of(transpose.getInput());
    auto place = llvm::find(transpose.getPermutation(), given.axis);
    return given.isPart()
               ? SampleAxis::part(place - transpose.getPermutation().begin())
               : given;
  }
  if (isa<ReshapeOp>(op))
    return reshaped(of(op->getOperand(0)), shapeOf(op->getOperand(0)),
                    shapeOf(result), std::max<int64_t>(count, 1));
  if (auto product = dyn_cast<MatMulOp>(op))
    return multiplied(*this, product.getLhs(), product.getRhs(),
                      product.getTransposeLhs(), product.getTransposeRhs(),
                      result);
  if (auto attention = dyn_cast<AttentionOp>(op))
    return attended(*this, attention);
  if (isa<ConvOp, MaxPoolOp, AvgPoolOp, BatchNormOp, BatchNormInferenceOp>(op))
    return firstOfFirst(*this, op);
  if (auto norm = dyn_cast<LayerNormOp>(op)) {
    SampleAxis given = of(norm.getInput());
    for (Value operand : op->getOperands().drop_front())
      if (!of(operand).isSame())
        return SampleAxis::mixed();
    return given.isPart() && given.axis >= int64_t(norm.getAxis())
               ? SampleAxis::mixed()
               : given;
  }
  if (auto loss = dyn_cast<CrossEntropyOp>(op)) {
    SampleAxis logits = of(loss.getLogits()), targets = of(loss.getTargets());
    int64_t axis = int64_t(loss.getAxis());
    Agreement agreed;
    agreed.add(logits, logits.axis - (logits.axis > axis));
    agreed.add(targets, targets.axis);
    if ((logits.isPart() && logits.axis == axis) || logits.isSame() ||
        targets.isSame())
      agreed.fail();
    return agreed.result();
  }
  for (auto along : {op->getAttrOfType<IntegerAttr>("axis")})
    if (along && isa<SoftmaxOp, LogSoftmaxOp, CumulativeSumOp, TopKOp,
                     GatherElementsOp, ConcatOp>(op))
      return alongAxis(*this, op->getOperands(), along.getInt());
  if (isa<SliceOp, PadOp>(op)) {
    SampleAxis given = of(op->getOperand(0));
    if (!given.isPart())
      return given;
    auto extent = [&](Value value) {
      return shapeOf(value)[size_t(given.axis)];
    };
    bool padded = false;
    if (auto pad = dyn_cast<PadOp>(op))
      padded =
          pad.getLow()[size_t(given.axis)] || pad.getHigh()[size_t(given.axis)];
    if (auto slice = dyn_cast<SliceOp>(op)) // not backwards, either
      padded = slice.getSteps()[size_t(given.axis)] != 1;
    return padded ? SampleAxis::mixed()
                  : sliced(given, extent(op->getOperand(0)), extent(result));
  }
  auto kernel = dyn_cast<KernelOpInterface>(op);
  bool isPointwise =
      isa<ExpandOp, PinOp>(op) ||
      (kernel && kernel.getKernelKind() == KernelKind::Elementwise);
  return isPointwise ? broadcastOperands(*this, op->getOperands(), result)
                     : SampleAxis::mixed();
}

/// Returns what random numbers are by the values that they meet point by point;
/// Mixed: that is not known. What they made Mixed themselves tells nothing.
SampleAxis SampleAxes::wanted(Value drawn, int depth) const {
  Agreement agreed;
  bool shared = false;
  for (Operation *user : drawn.getUsers()) {
    auto kernel = dyn_cast<KernelOpInterface>(user);
    if (!kernel || kernel.getKernelKind() != KernelKind::Elementwise)
      continue;
    Value result = user->getResult(0);
    const int64_t lacks = rankOf(result) - rankOf(drawn);
    SampleAxis other; // of the result, by its other operands
    for (Value operand : user->getOperands())
      if (operand != drawn && of(operand).isPart())
        other = SampleAxis::part(of(operand).axis + rankOf(result) -
                                 rankOf(operand));
    if (other.isSame()) { // no samples yet: ask further on
      if (depth == 0 || shapeOf(result) != shapeOf(drawn))
        continue;
      other = wanted(result, depth - 1);
      shared |= other.isSame();
      if (other.isPart())
        agreed.add(other, other.axis);
      continue;
    }
    int64_t axis = other.axis - lacks;
    if (axis < 0 || (shapeOf(drawn)[size_t(axis)] == 1 && count > 1))
      shared = true; // one number for all samples
    else if (count == 1)
      return SampleAxis::mixed(); // one sample's, or one for all
    else
      agreed.add(SampleAxis::part(axis), axis);
  }
  bool unknown = shared ? agreed.isPart() : !agreed.isPart();
  return unknown ? SampleAxis::mixed() : agreed.result();
}

void SampleAxes::add(Operation *op) {
  SampleAxis axis = transfer(op);
  for (auto [i, result] : llvm::enumerate(op->getResults())) {
    // Statistics of a batch norm are of all its samples.
    bool statistic = isa<BatchNormOp>(op) && i > 0;
    set(result, statistic && !axis.isSame() ? SampleAxis::mixed() : axis);
  }
}

SampleAxis SampleAxes::of(Value value) const {
  auto found = known.find(value);
  return found == known.end() ? SampleAxis::same() : found->second;
}

void SampleAxes::set(Value value, SampleAxis axis) {
  if (axis.isSame())
    known.erase(value);
  else
    known[value] = axis;
}

SampleAxes::SampleAxes(func::FuncOp function) : function(function) {
  SmallVector<BlockArgument> data;
  for (BlockArgument argument : function.getArguments()) {
    StringRef role = argumentRole(function, argument.getArgNumber());
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type || (role != roles::kInput && role != roles::kTarget))
      continue;
    data.push_back(argument);
    if (!count && role == roles::kInput && type.getRank())
      count = type.getDimSize(0);
  }
  // Data of another extent are one array for all samples, the same everywhere.
  for (BlockArgument argument : data)
    if (rankOf(argument) && shapeOf(argument).front() == count)
      known[argument] = SampleAxis::part(0);
  auto follow = [&](auto begin) {
    for (Operation &op : llvm::make_range(begin, function.front().end()))
      if (op.getNumResults() && !isa<RandomOp>(op))
        add(&op);
  };
  follow(function.front().begin());
  for (auto random : function.front().getOps<RandomOp>()) {
    set(random.getOutput(), wanted(random.getOutput(), /*depth=*/6));
    if (!of(random.getOutput()).isSame())
      follow(std::next(random->getIterator()));
  }
}
