//===- SampleAxes.cpp - where the samples of a batch lie ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: what a rank's value is of one process's value, where both run the
// same ops on batches of other sizes. Method: samples are followed from the
// data on, op by op (AxisRelation.h says what ops read). An axis is kept while
// every element is made of samples of its own place along it; everything else
// is Mixed. Shapes do not tell the size of a batch from another that happens to
// be equal, so a value of no sample that has the batch's extent along the axis
// must be the same at every place of it. O(ops).
//
//===----------------------------------------------------------------------===//
#include "ckopt/Distribute/SampleAxes.h"

#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace ckopt;

namespace {
/// The axis that several values agree on.
class Agreement {
public:
  void add(SampleAxis given) {
    if (given.isMixed() || (given.isPart() && axis.isPart() && axis != given))
      mixed = true;
    if (given.isPart())
      axis = given;
  }
  SampleAxis result() const { return mixed ? SampleAxis::mixed() : axis; }
  bool isPart() const { return result().isPart(); }

private:
  SampleAxis axis;
  bool mixed = false;
};
} // namespace

/// The samples begin where as many elements lie before them. Where a rank has
/// one sample, several dimensions may do: the one that holds nothing else.
SampleAxis SampleAxes::reshaped(Value from, Value to) const {
  SampleAxis given = of(from);
  if (!given.isPart())
    return given;
  int64_t before = given.groups, passed = 1;
  for (int64_t size : shapeOf(from).take_front(size_t(given.axis)))
    before *= size;
  const int64_t own = shapeOf(from)[size_t(given.axis)] / given.groups;
  const int64_t samples = std::max<int64_t>(count, 1);
  SampleAxis best = SampleAxis::mixed();
  int bestRank = 0;
  for (auto [axis, size] : llvm::enumerate(shapeOf(to))) {
    int64_t groups = passed && before % passed == 0 ? before / passed : 0;
    int64_t stretch = groups && size % groups == 0 ? size / groups : 0;
    if (stretch && stretch % samples == 0 && own % samples == 0)
      if (int rank = 1 + 2 * (stretch == samples) + (groups == 1);
          rank > bestRank) {
        best = SampleAxis::part(int64_t(axis), groups);
        bestRank = rank;
      }
    passed *= size;
  }
  return best;
}

/// Stretches of operands that follow each other are stretches of the result.
static SampleAxis concatenated(const SampleAxes &axes, ConcatOp op) {
  SampleAxis result = axes.of(op.getInputs().front());
  if (!result.isPart() || result.axis != int64_t(op.getAxis()))
    return SampleAxis::mixed();
  result.groups = 0;
  int64_t stretch = 0;
  for (Value operand : op.getInputs()) {
    SampleAxis given = axes.of(operand);
    if (!given.isPart() || given.axis != result.axis)
      return SampleAxis::mixed();
    int64_t own = shapeOf(operand)[size_t(given.axis)] / given.groups;
    if (stretch && own != stretch)
      return SampleAxis::mixed();
    stretch = own;
    result.groups += given.groups;
  }
  return result;
}

/// A slice may take some of the stretches, in their order.
static SampleAxis sliced(SampleAxis given, SliceOp op) {
  size_t axis = size_t(given.axis);
  int64_t stretch = shapeOf(op.getInput())[axis] / given.groups;
  int64_t size = op.getSizes()[axis];
  if (op.getSteps()[axis] != 1 || stretch == 0 || size == 0 ||
      op.getStarts()[axis] % stretch || size % stretch)
    return SampleAxis::mixed();
  return SampleAxis::part(given.axis, size / stretch);
}

/// Whether every element of the result is made of those at the same place of
/// the samples' axis, `part` being the result's.
bool SampleAxes::keeps(Operation *op, SampleAxis part) const {
  const int64_t extent = shapeOf(op->getResult(0))[size_t(part.axis)];
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    SampleAxis given = of(operand);
    AxisRelation relation = relateAxis(op, unsigned(i), part.axis);
    if (relation.kind == AxisRelation::Kind::Whole && given.isSame())
      continue;
    if (!relation.follows() ||
        shapeOf(operand)[size_t(relation.axis)] != extent)
      return false;
    // What is no sample's but has the extent is a rank's part of the whole
    // only where it is the same for all samples.
    if (given.isSame() ? !isUniform(operand, relation.axis)
                       : given != SampleAxis::part(relation.axis, part.groups))
      return false;
  }
  return true;
}

SampleAxis SampleAxes::transfer(Operation *op) const {
  if (isa<RankOp>(op))
    return SampleAxis::mixed();
  if (isa<AllReduceOp>(op)) // all ranks get the same
    return SampleAxis::same();
  // Numbers of rows of all samples are Mixed, and their reader is not.
  if (SampleAxis rows = keptByRows(*this, op); rows.isPart())
    return rows;
  SampleAxis part;
  for (Value operand : op->getOperands()) {
    SampleAxis given = of(operand);
    if (given.isMixed())
      return given;
    if (given.isPart())
      part = given;
  }
  if (part.isSame())
    return part;
  Value result = op->getResult(0);
  if (isa<ReshapeOp>(op))
    return reshaped(op->getOperand(0), result);
  if (auto slice = dyn_cast<SliceOp>(op);
      slice && slice.getSizes()[size_t(part.axis)] !=
                   shapeOf(slice.getInput())[size_t(part.axis)])
    return sliced(part, slice);
  for (int64_t axis = 0; axis < rankOf(result); ++axis)
    if (SampleAxis kept = SampleAxis::part(axis, part.groups); keeps(op, kept))
      return kept;
  if (auto concat = dyn_cast<ConcatOp>(op))
    return concatenated(*this, concat);
  return SampleAxis::mixed();
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
                                     rankOf(operand),
                                 of(operand).groups);
    if (other.isSame()) { // no samples yet: ask further on
      if (depth == 0 || shapeOf(result) != shapeOf(drawn))
        continue;
      other = wanted(result, depth - 1);
      shared |= other.isSame();
      if (other.isPart())
        agreed.add(other);
      continue;
    }
    int64_t axis = other.axis - lacks;
    if (axis < 0 || (shapeOf(drawn)[size_t(axis)] == 1 && count > 1))
      shared = true; // one number for all samples
    else if (count == 1)
      return SampleAxis::mixed(); // one sample's, or one for all
    else
      agreed.add(SampleAxis::part(axis, other.groups));
  }
  bool unknown = shared ? agreed.isPart() : !agreed.isPart();
  return unknown ? SampleAxis::mixed() : agreed.result();
}

void SampleAxes::add(Operation *op) {
  SampleAxis axis = transfer(op);
  for (OpResult result : op->getResults())
    set(result, axis.isPart() && !hasAxisOfFirst(result, axis.axis)
                    ? SampleAxis::mixed()
                    : axis);
}

Operation *SampleAxes::firstMixing(Value value) const {
  if (!of(value).isMixed())
    return nullptr;
  Operation *op = value.getDefiningOp();
  llvm::SetVector<Operation *> made;
  if (op)
    made.insert(op);
  Operation *first = nullptr;
  for (size_t i = 0; i < made.size(); ++i) {
    bool mixes = true;
    for (Value operand : made[i]->getOperands()) {
      if (!of(operand).isMixed())
        continue;
      mixes = false;
      if (Operation *maker = operand.getDefiningOp())
        made.insert(maker);
    }
    if (mixes && (!first || made[i]->isBeforeInBlock(first)))
      first = made[i];
  }
  return first;
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
