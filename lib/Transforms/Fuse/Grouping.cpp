//===- Grouping.cpp - which op becomes part of which kernel ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: choose which values are stored between kernels. Each stored value
// costs bandwidth and memory; each value that is not stored is computed again
// inside every kernel that reads it.
//
// Method: walk the program backward, so that all readers of a value are known
// as units when the value is decided. A value with one reading unit is computed
// inside of it. A value with several is computed inside each of them where that
// is cheap and keeps no more bytes alive, which holds in two cases: all
// operands but one are small (a batch norm's result, for example, is computed
// again from its input, which is kept for the backward pass anyway), or all but
// two are small and the readers stand close together. Everything else is stored
// and becomes the root of a unit.
//
// Guarantees: what is stored depends on the program alone, never on a memory
// budget. Every unit's inputs are made by units of lower places. Bodies have at
// most maxOps ops and maxPointers operands and results, except where a single
// op has more; no op is computed at more than maxPoints indices for one
// element, so that shifted sums of shifted sums do not grow exponentially.
//
// Complexity: O(ops and operands); the look upward from a value is bounded.
//
//===----------------------------------------------------------------------===//
#include "Grouping.h"
#include "OpKinds.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::fuse;

/// The most ops that worthComputingAgain looks at above a value.
static constexpr unsigned maxLook = 32;
/// The most operations an element that are cheaper than a store and a load.
static constexpr double cheapFlops = 24;
/// The most operations an element that a row kernel, which reads its input in
/// several passes, may repeat in each pass.
static constexpr double cheapRowFlops = 12;
/// A value is small if it has this many times fewer elements than the kernel
/// that reads it computes. It is stored rather than computed for each element,
/// and keeping it costs almost no memory.
static constexpr int64_t smallFactor = 8;

Value Grouping::base(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (kindOf(op) != KernelKind::View)
      break;
    value = op->getOperand(0);
  }
  return value;
}

bool Grouping::isStored(Value value) const {
  Operation *op = value.getDefiningOp();
  return !op || maker.contains(value) || forced.contains(value);
}

bool Grouping::libraryBetween(int64_t first, int64_t last) const {
  if (first > last)
    std::swap(first, last);
  first = std::max<int64_t>(first, 0);
  last = std::min<int64_t>(last, int64_t(libraryOps.size()) - 1);
  return last > first && libraryOps[last] != libraryOps[first];
}

unsigned Grouping::find(unsigned unit) const {
  while (parent[unit] != unit)
    unit = parent[unit] = parent[parent[unit]];
  return unit;
}

void Grouping::createUnit(Operation *op, UnitKind kind) {
  Unit unit;
  unit.kind = kind;
  unit.roots.push_back(op);
  unit.points[op] = {0};
  unit.place = place.lookup(op);
  unit.inputs.insert(op->operand_begin(), op->operand_end());
  unit.domain = tensorType(op->getResult(0));
  if (kind == UnitKind::Reduction) {
    unit.domain = tensorType(op->getOperand(0));
    unit.axes = isa<ReduceOp>(op) ? cast<ReduceOp>(op).getAxes()
                                  : cast<MomentsOp>(op).getAxes();
  } else if (kind == UnitKind::Row) {
    for (Value operand : op->getOperands())
      if (tensorType(operand).getNumElements() > unit.domain.getNumElements())
        unit.domain = tensorType(operand);
  }
  unit.alone = kind == UnitKind::Library || kind == UnitKind::Structured ||
               (kind == UnitKind::Elementwise &&
                kindOf(op) == KernelKind::Indexed && !isPointwise(op));
  unsigned id = units.size();
  for (Value input : unit.inputs)
    readers[input].push_back(id);
  for (Value result : op->getResults())
    maker[result] = id;
  units.push_back(std::move(unit));
  parent.push_back(id);
}

static bool isAssignment(Operation *op) {
  return cast<KernelOpInterface>(op).isAssignment();
}

/// Adjacent assignments at the end of an optimizer's formulas read the same
/// values, so that one kernel computes them once. O(1).
bool Grouping::joinAssignment(Operation *op) {
  if (!options.group || !isAssignment(op) || units.empty())
    return false;
  Unit &unit = units.back();
  unsigned id = units.size() - 1;
  // Elements may be stored in other types.
  RankedTensorType type =
      tensorType(op->getResult(0)).clone(unit.domain.getElementType());
  size_t pointers =
      unit.inputs.size() + op->getNumOperands() + op->getNumResults();
  for (Operation *root : unit.roots)
    pointers += root->getNumResults();
  if (unit.kind != UnitKind::Update || !isAssignment(unit.roots.front()) ||
      unit.domain != type ||
      place.lookup(unit.roots.front()) != place.lookup(op) + 1 ||
      llvm::any_of(
          op->getResults(),
          [&](Value result) { return unit.inputs.contains(result); }) ||
      unit.ops >= options.maxOps || pointers > options.maxPointers)
    return false;
  unit.roots.insert(unit.roots.begin(), op);
  for (Value operand : op->getOperands())
    if (unit.inputs.insert(operand))
      readers[operand].push_back(id);
  for (Value result : op->getResults())
    maker[result] = id;
  ++unit.ops;
  return true;
}

bool Grouping::canAbsorb(const Unit &unit, Operation *op) {
  if (kindOf(op) == KernelKind::Constant)
    return unit.kind != UnitKind::Library;
  if (unit.kind == UnitKind::Library || unit.kind == UnitKind::Structured ||
      unit.alone || !isPointwise(op) || op->getNumResults() != 1)
    return false;
  Value result = op->getResult(0);
  if (unit.ops + 1 > options.maxOps ||
      unit.inputs.size() + op->getNumOperands() + unit.roots.size() >
          options.maxPointers)
    return false;
  if (isTrivial(op))
    return true;
  if (pointTable.readsOf(op, unit.points).size() > maxPoints)
    return false;
  if (unit.domain.getNumElements() >
      smallFactor * tensorType(result).getNumElements())
    return false;
  // An update computes fused values only if they have its own size (a scaled
  // gradient, for example). Of a padded gradient it reads what comes first.
  if (unit.kind == UnitKind::Update)
    return (kindOf(op) == KernelKind::Elementwise || isPrefix(op)) &&
           tensorType(result).getShape() == unit.domain.getShape();
  if (unit.kind == UnitKind::Row)
    return flopsPerElement(op) <= cheapRowFlops && !isa<TransposeOp>(op);
  // A layout other than the loop's would prevent vector loads.
  if (unit.kind == UnitKind::Elementwise || unit.kind == UnitKind::Reduction)
    return tensorType(result).getEncoding() == unit.domain.getEncoding() ||
           tensorType(result).getShape() != unit.domain.getShape();
  return true;
}

void Grouping::absorb(unsigned id, Operation *op) {
  Unit &unit = units[id];
  unit.points[op] = pointTable.readsOf(op, unit.points);
  for (Value result : op->getResults()) {
    unit.inputs.remove(result);
    llvm::erase(readers[result], id);
  }
  for (Value operand : op->getOperands())
    if (unit.inputs.insert(operand))
      readers[operand].push_back(id);
  ++unit.ops;
}

bool Grouping::worthComputingAgain(Operation *op,
                                   ArrayRef<unsigned> needers) const {
  // Counts the elements that would be read for the value if everything cheap
  // above it is computed again too.
  int64_t elements = tensorType(op->getResult(0)).getNumElements();
  // A state is in memory already, and what an update reads of it lives on.
  bool updates = llvm::any_of(
      needers, [&](unsigned id) { return units[id].kind == UnitKind::Update; });
  SmallVector<Value> work(op->getOperands());
  llvm::SmallDenseSet<Value> seen;
  double flops = flopsPerElement(op);
  unsigned looked = 0, large = 0;
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    Operation *maker = value.getDefiningOp();
    bool small = tensorType(value).getNumElements() * smallFactor <= elements;
    if (!isStored(value) && !needed.contains(value) && isPointwise(maker) &&
        (isTrivial(maker) || !small)) {
      if (++looked > maxLook)
        return false;
      if (!isTrivial(maker))
        flops += flopsPerElement(maker);
      llvm::append_range(work, maker->getOperands());
    } else if (2 * tensorType(value).getNumElements() > elements &&
               !(updates && isa<BlockArgument>(base(value)))) {
      ++large;
    }
  }
  if (flops > cheapFlops)
    return false;
  if (large <= 1)
    return true;
  if (large > 2)
    return false;
  // Several reductions over one domain count once: they will share a kernel.
  SmallVector<unsigned> kernels;
  int64_t first = units[needers[0]].place, last = first;
  for (unsigned id : needers) {
    first = std::min(first, units[id].place);
    last = std::max(last, units[id].place);
    if (llvm::none_of(kernels, [&](unsigned other) {
          const Unit &a = units[id], &b = units[other];
          return a.kind == UnitKind::Reduction && b.kind == a.kind &&
                 a.domain == b.domain && a.axes == b.axes;
        }))
      kernels.push_back(id);
  }
  return kernels.size() <= 2 && !libraryBetween(first, last);
}

/// A reshape of unit dimensions is part of the units that can compute it; for
/// all other readers, and like all other views, the step makes it.
void Grouping::decideView(Operation *op) {
  Value result = op->getResult(0);
  SmallVector<unsigned, 4> needers = readers.lookup(result);
  bool isView = needed.contains(result);
  for (unsigned id : needers)
    if (isUnitReshape(op) && canAbsorb(units[id], op))
      absorb(id, op);
    else
      isView = true;
  if (isView) {
    needed.insert(op->getOperand(0));
    views[base(result)].push_back(result);
  }
}

void Grouping::decideOp(Operation *op) {
  SmallVector<unsigned, 4> needers;
  bool isNeeded = false;
  for (Value result : op->getResults()) {
    isNeeded |= needed.contains(result);
    for (unsigned id : readers.lookup(result))
      if (!llvm::is_contained(needers, id))
        needers.push_back(id);
  }
  if (needers.empty() && !isNeeded)
    return;
  switch (kindOf(op)) {
  case KernelKind::View:
    return decideView(op);
  case KernelKind::Reduction:
    return createUnit(op, UnitKind::Reduction);
  case KernelKind::RowWise:
    return createUnit(op, UnitKind::Row);
  case KernelKind::Structured:
    return createUnit(op, UnitKind::Structured);
  case KernelKind::Library:
    return createUnit(op, UnitKind::Library);
  case KernelKind::Update:
    if (joinAssignment(op))
      return;
    return createUnit(op, UnitKind::Update);
  case KernelKind::Constant:
  case KernelKind::Elementwise:
  case KernelKind::Indexed:
    break;
  }
  bool trivial = isTrivial(op);
  bool store = isNeeded;
  for (unsigned id : needers)
    store |= !canAbsorb(units[id], op);
  if (!store && !trivial)
    store = !options.group ||
            (needers.size() > 1 && !worthComputingAgain(op, needers));
  if (!store || trivial)
    for (unsigned id : needers)
      if (canAbsorb(units[id], op))
        absorb(id, op);
  if (store)
    createUnit(op, UnitKind::Elementwise);
}

void Grouping::decide() {
  for (Operation &op : function.front().without_terminator()) {
    place[&op] = ops.size();
    ops.push_back(&op);
    libraryOps.push_back((libraryOps.empty() ? 0 : libraryOps.back()) +
                         (kindOf(&op) == KernelKind::Library));
    bool isRoot = kindOf(&op) != KernelKind::View && !isPointwise(&op);
    for (Value result : op.getResults()) {
      if (isRoot)
        forced.insert(result);
      for (OpOperand &use : result.getUses())
        if (use.getOwner()->hasTrait<OpTrait::IsTerminator>() ||
            needsStoredOperand(use.getOwner(), use.getOperandNumber()))
          forced.insert(result);
    }
  }
  for (Value result : function.front().getTerminator()->getOperands()) {
    needed.insert(result);
  }
  for (Operation *op : llvm::reverse(ops))
    decideOp(op);
}

SmallVector<Operation *> Grouping::body(const Unit &unit) const {
  SmallVector<Operation *> work(unit.roots.begin(), unit.roots.end()), found;
  llvm::SmallDenseSet<Operation *> seen(work.begin(), work.end());
  while (!work.empty()) {
    Operation *op = work.pop_back_val();
    found.push_back(op);
    for (Value operand : op->getOperands())
      if (!unit.inputs.contains(operand) &&
          seen.insert(operand.getDefiningOp()).second)
        work.push_back(operand.getDefiningOp());
  }
  llvm::sort(found, [&](Operation *a, Operation *b) {
    return place.lookup(a) < place.lookup(b);
  });
  return found;
}

SmallVector<Value> Grouping::outputs(const Unit &unit) const {
  SmallVector<Value> result;
  for (Operation *root : unit.roots)
    for (Value value : root->getResults()) {
      auto found = readers.find(value);
      // A library primitive writes all of its results.
      if (unit.kind == UnitKind::Library || needed.contains(value) ||
          (found != readers.end() && !found->second.empty()))
        result.push_back(value);
    }
  return result;
}

SmallVector<Unit *> Grouping::schedule() {
  SmallVector<Unit *> order;
  for (Unit &unit : units)
    if (!unit.merged)
      order.push_back(&unit);
  llvm::sort(order, [](Unit *a, Unit *b) { return a->place < b->place; });
  return order;
}
