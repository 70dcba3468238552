//===- Apply.cpp - a function rewritten to a plan -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: make the IR follow a sequence of (re)executions. Method: walk the
// plan's steps. An op's first run moves it, every further run clones it;
// operands are the copies that were made last; views are made again for each
// copy that is read through them. Clones of ckopt's kernel calls differ in
// `clone`. Clones of other ops read one operand through a barrier: no pattern
// looks through it, so that neither CSE nor canonicalization can merge the
// clone with its original; or they differ in an attribute alone. Destinations
// without contents (tensor.empty) are made just before each op that writes to
// them, also inside of bodies, so that a later allocation pass does not
// allocate them earlier than planned; where a result takes an elementwise
// input's bytes over, the input becomes the destination. Guarantee: every op
// reads the same bits as before, since clones are the same op on the same
// values. Complexity: O(steps and their operands).
//
//===----------------------------------------------------------------------===//
#include "Described.h"
#include "Planning.h"
#include "ckopt/Analysis/Arguments.h"
#include "ckopt/Analysis/OpFacts.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptKernelOps.h"
#include "ckopt/Interfaces/Compat.h"
#include "ckopt/Planner/Simulator.h"
#include "ckopt/Remat/Figures.h"
#include "ckopt/Remat/Remat.h"
#include "ckopt/Support/Debug.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;
using namespace ckopt;

namespace {

class PlanApplier {
public:
  PlanApplier(FunctionOpInterface function, const PlanningProblem &problem,
              const planner::Plan &found, StringRef apart)
      : function(function), problem(problem), found(found), apart(apart),
        block(&function.front()), builder(block->getTerminator()) {}
  void run();

private:
  /// Returns the copy of `value` (an original) that was made last.
  Value latest(Value value);
  /// Returns the original that `value` is a copy of, or `value`.
  Value original(Value value) const {
    auto found = originals.find(value);
    return found == originals.end() ? value : found->second;
  }
  void setOperands(Operation *op);
  void takeOver(Operation *op, size_t step);
  void addBarrier(Operation *clone, IntegerAttr number);
  Operation *addClone(Operation *op);
  void setOffsets(KernelCallOp call, size_t step);
  void moveFreeOpsUp();

  FunctionOpInterface function;
  const PlanningProblem &problem;
  const planner::Plan &found;
  StringRef apart; ///< as RematOptions::apart
  Block *block;
  OpBuilder builder;
  DenseMap<Value, Value> copies;    ///< original -> latest copy
  DenseMap<Value, Value> originals; ///< copy -> original
  /// For each view, the copy of its operand that it was last made for.
  DenseMap<Value, Value> viewedCopy;
  /// By step: the storages of a result and of the operand whose bytes it takes.
  std::vector<SmallVector<std::pair<planner::ValueId, planner::ValueId>, 1>>
      taken;
  int64_t clones = 0;
};

} // namespace

Value PlanApplier::latest(Value value) {
  value = original(value);
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != block || isFree(op))
    return value;
  if (isView(op)) {
    Value input = latest(getViewedOperand(op).get());
    Value &made = copies[value];
    if (!made || viewedCopy.lookup(value) != input) {
      Operation *view = builder.clone(*op);
      getViewedOperand(view).set(input);
      made = view->getResult(0);
      originals[made] = value;
      viewedCopy[value] = input;
    }
    return made;
  }
  Value copy = copies.lookup(value);
  return copy ? copy : value;
}

/// Returns the value whose buffer a value may lie in, as far as its block says.
static Value bufferRoot(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (isView(op))
      value = getViewedOperand(op).get();
    else if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
      value = slice.getSource();
    else if (auto style = dyn_cast<DestinationStyleOpInterface>(op);
             style && !isEmptyTensor(
                          style.getTiedOpOperand(cast<OpResult>(value))->get()))
      value = style.getTiedOpOperand(cast<OpResult>(value))->get();
    else
      break;
  }
  return value;
}

/// Returns whether a body passes two values on that may lie in one buffer. With
/// a destination inside, bufferization gives two results of a loop that buffer,
/// and the next iteration writes to one while the other is read.
static bool yieldsTwice(Operation *op) {
  for (Region &region : op->getRegions())
    for (Block &block : region) {
      llvm::SmallDenseSet<Value> roots;
      if (block.mightHaveTerminator())
        for (Value value : block.getTerminator()->getOperands())
          if (isa<TensorType>(value.getType()) &&
              !roots.insert(bufferRoot(value)).second)
            return true;
    }
  return false;
}

/// Returns the block in which the destination of a nested op is made: that of
/// the op in the body of a loop or branch, where the buffer lives no longer
/// than an iteration, else none.
static Block *destinationBlock(OpOperand &operand, Operation *outer) {
  Operation *op = operand.getOwner();
  auto style = dyn_cast<DestinationStyleOpInterface>(op);
  if (op == outer || !style || !style.isDpsInit(&operand) ||
      !isa<RegionBranchOpInterface, LoopLikeOpInterface>(op->getParentOp()))
    return nullptr;
  for (Operation *around = op->getParentOp();; around = around->getParentOp()) {
    if (yieldsTwice(around))
      return nullptr;
    if (around == outer)
      return op->getBlock();
  }
}

/// Points the operands (and those of nested ops) at the latest copies. Ops of a
/// body that shared a destination share one in the body.
void PlanApplier::setOperands(Operation *op) {
  DenseMap<std::pair<Block *, Value>, Value> destinations;
  op->walk([&](Operation *inner) {
    for (OpOperand &operand : inner->getOpOperands()) {
      if (operand.get().getParentBlock() != block)
        continue;
      if (!isEmptyTensor(operand.get())) {
        operand.set(latest(operand.get()));
        continue;
      }
      Operation *maker = operand.get().getDefiningOp();
      Block *body = destinationBlock(operand, op);
      Value &made = destinations[{body, operand.get()}];
      if (body && !made)
        made = OpBuilder(inner).clone(*maker)->getResult(0);
      else if (!made || inner == op)
        made = builder.clone(*maker)->getResult(0);
      operand.set(made);
    }
  });
}

/// Makes operands destinations whose bytes the plan gives to results.
void PlanApplier::takeOver(Operation *op, size_t step) {
  auto style = dyn_cast<linalg::LinalgOp>(op);
  if (!style || isa<PlanningOpInterface>(op) || taken[step].empty())
    return;
  Operation *source = problem.ops[found.steps[step]];
  for (auto [operand, result] : getReusePairs(op)) {
    Value input = op->getOperand(operand);
    OpOperand *init = style.getTiedOpOperand(op->getResult(result));
    std::pair<planner::ValueId, planner::ValueId> pair(
        problem.storage.lookup(source->getResult(result)),
        problem.storage.lookup(getViewBase(original(input))));
    if (isEmptyTensor(init->get()) && llvm::is_contained(taken[step], pair))
      init->set(input);
  }
}

/// Chooses the operand that a clone reads through a barrier: a computed tensor
/// or argument rather than a constant, which patterns may match, or a scalar.
static OpOperand &barrierOperand(Operation *clone) {
  auto rank = [](OpOperand &operand) {
    Operation *maker = operand.get().getDefiningOp();
    return (isa<TensorType>(operand.get().getType()) ? 2 : 0) +
           (maker && isFree(maker) ? 0 : 1);
  };
  OpOperand *best = &clone->getOpOperand(0);
  for (OpOperand &operand : clone->getOpOperands())
    if (rank(operand) > rank(*best))
      best = &operand;
  return *best;
}

bool ckopt::isClientsBarrier(Operation *op) {
  return op->hasAttr(attrs::kClone) && op->hasAttr(facts::kView) &&
         op->getNumOperands() == 1 &&
         op->getResultTypes() == op->getOperandTypes();
}

/// Lets a clone read one operand through a barrier.
void PlanApplier::addBarrier(Operation *clone, IntegerAttr number) {
  OpOperand &operand = barrierOperand(clone);
  Value value = operand.get();
  Operation *barrier;
  if (apart == "barrier") {
    barrier = compat::create<BarrierOp>(builder, clone->getLoc(),
                                        value.getType(), value, number);
  } else {
    OperationState state(clone->getLoc(), apart, value, value.getType());
    barrier = builder.create(state);
    barrier->setAttr(attrs::kClone, number);
    barrier->setAttr(facts::kView, builder.getI64IntegerAttr(0));
  }
  operand.set(barrier->getResult(0));
  // A later clone of this op must read the operand, not the barrier.
  originals[barrier->getResult(0)] = original(value);
}

Operation *PlanApplier::addClone(Operation *op) {
  int64_t number = ++clones;
  Operation *clone = op->clone();
  setOperands(clone);
  if (auto call = dyn_cast<KernelCallOp>(clone)) {
    call.setClone(number);
  } else {
    IntegerAttr attr = builder.getI64IntegerAttr(number);
    clone->setAttr(attrs::kClone, attr);
    if (clone->getNumOperands() && apart != "attribute")
      addBarrier(clone, attr);
  }
  builder.insert(clone);
  for (auto [copy, value] : llvm::zip(clone->getResults(), op->getResults())) {
    copies[value] = copy;
    originals[copy] = value;
  }
  return clone;
}

/// Sets the offsets that the planner assigned, counted from the first byte
/// above the arguments.
void PlanApplier::setOffsets(KernelCallOp call, size_t step) {
  const planner::Node &node = problem.graph.nodes[found.steps[step]];
  ArrayRef<int64_t> packed = found.offsets[step];
  Operation *source = problem.ops[found.steps[step]];
  SmallVector<int64_t> offsets;
  for (Value result : source->getResults()) {
    // A new state lies in its argument's bytes; plan-memory sets its offset.
    planner::ValueId storage = problem.storage.lookup(result);
    const auto *output = llvm::find(ArrayRef(node.outputs), storage);
    size_t index = output - ArrayRef(node.outputs).begin();
    offsets.push_back(index < node.outputs.size() ? packed[index] : 0);
  }
  call.setOffsets(offsets);
  if (node.workspace)
    call.setWorkspaceOffset(packed.back());
}

/// Moves constants to the front, in their order; they are not part of the plan.
void PlanApplier::moveFreeOpsUp() {
  Operation *last = nullptr;
  for (Operation &op : llvm::make_early_inc_range(block->without_terminator()))
    if (isFree(&op)) {
      if (last)
        op.moveAfter(last);
      else
        op.moveBefore(block, block->begin());
      last = &op;
    }
}

void PlanApplier::run() {
  moveFreeOpsUp();
  SmallVector<Operation *> oldViews;
  for (Operation &op : *block)
    if (isView(&op))
      oldViews.push_back(&op);
  bool allCalls = llvm::all_of(
      problem.ops, [](Operation *op) { return isa<KernelCallOp>(op); });
  bool packed = allCalls && found.offsets.size() == found.steps.size();
  planner::Simulation simulation =
      planner::simulate(problem.graph, found.steps);
  taken.resize(found.steps.size());
  for (const planner::Copy &copy : simulation.copies)
    if (copy.taken >= 0 && copy.made >= 0)
      taken[size_t(copy.made)].emplace_back(
          copy.value, simulation.copies[size_t(copy.taken)].value);
  SmallVector<bool> ran(problem.ops.size());
  SmallVector<unsigned> again(problem.ops.size());
  for (auto [step, node] : llvm::enumerate(found.steps)) {
    Operation *op = problem.ops[node];
    if (!ran[node]) {
      ran[node] = true;
      setOperands(op);
      op->moveBefore(block->getTerminator());
    } else {
      ++again[node];
      // Gives the original and its clones the same number, for --verify-remat.
      op->setAttr(attrs::kNode, builder.getI64IntegerAttr(node));
      op = addClone(op);
    }
    takeOver(op, step);
    if (packed)
      setOffsets(cast<KernelCallOp>(op), step);
  }
  setOperands(block->getTerminator());
  for (Operation *view : llvm::reverse(oldViews))
    if (view->use_empty())
      view->erase();
  for (Operation &op : llvm::make_early_inc_range(*block))
    if (isa<tensor::EmptyOp>(op) && op.use_empty())
      op.erase();
  if (packed)
    function->setAttr(kPackedBytes, builder.getI64IntegerAttr(found.arena));
}

void ckopt::applySteps(FunctionOpInterface function,
                       const PlanningProblem &problem,
                       const planner::Plan &found, StringRef apart) {
  PlanApplier(function, problem, found, apart).run();
}

void ckopt::applyRemat(FunctionOpInterface function, const RematPlan &plan) {
  function->getContext()->getOrLoadDialect<CkoptDialect>(); // as planRemat does
  debug::count(debug::Counter::PlannedFunctions);
  if (!plan.unchanged) {
    std::optional<Described> described;
    if (plan.ops)
      described.emplace(function, *plan.ops);
    debug::count(debug::Counter::RecomputedOps, plan.recomputedSteps());
    applySteps(function, plan.problem, plan.result.plan, plan.apart);
  }
  function->setAttr(kPlanAttr,
                    toAttribute(getFigures(plan), function.getContext()));
}
