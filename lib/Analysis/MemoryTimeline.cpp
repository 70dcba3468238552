//===- MemoryTimeline.cpp - live bytes by step and kind -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Computes live bytes by step and kind with a difference array over the steps,
// from each storage's first to its last step. A result that takes an operand's
// bytes over (it has the same offset) counts from the next step on. O(steps +
// values).
//
//===----------------------------------------------------------------------===//
#include "ckopt/Analysis/MemoryTimeline.h"
#include "ckopt/Analysis/PlanningProblem.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptKernelOps.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace ckopt;

static MemoryKind kindOfRole(StringRef role) {
  return llvm::StringSwitch<MemoryKind>(role)
      .Cases({roles::kParameter, roles::kFrozen, roles::kState},
             MemoryKind::Parameters)
      .Cases({roles::kOptimizerState, roles::kCopy}, MemoryKind::OptimizerState)
      .Cases({roles::kInput, roles::kTarget}, MemoryKind::Data)
      .Default(MemoryKind::Other);
}

/// Returns whether an update reads the value beside its state, as it does a
/// gradient.
static bool isGradient(Value value) {
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (isView(user)) {
      if (isGradient(user->getResult(0)))
        return true;
      continue;
    }
    auto updates = getUpdatePairs(user);
    if (!updates.empty() && llvm::none_of(updates, [&](auto pair) {
          return pair.first == use.getOperandNumber();
        }))
      return true;
  }
  return false;
}

static MemoryKind kindOfResult(Value value) {
  Operation *op = value.getDefiningOp();
  auto call = dyn_cast<KernelCallOp>(op);
  if ((call && call.getClone()) || op->hasAttr(attrs::kClone))
    return MemoryKind::Recomputed;
  return isGradient(value) ? MemoryKind::Gradients : MemoryKind::Activations;
}

/// Returns the last step that reads `value` or a view of it; `end` if it is
/// returned.
static int64_t lastUse(Value value, const DenseMap<Operation *, int64_t> &step,
                       int64_t from, int64_t end) {
  int64_t last = from;
  for (Operation *user : value.getUsers()) {
    if (user->hasTrait<OpTrait::IsTerminator>())
      return end;
    Operation *top = value.getParentBlock()->findAncestorOpInBlock(*user);
    for (Value alias : getAliases(top, value))
      last = std::max(last, lastUse(alias, step, from, end));
    if (!isView(top))
      last = std::max(last, step.lookup(top));
  }
  return last;
}

/// Returns the operand whose bytes a result took over, judged by equal offsets.
static Value takenOver(KernelCallOp call, unsigned result) {
  if (!call.getOffsets())
    return {};
  for (auto [operand, r] : getReusePairs(call)) {
    if (r != result)
      continue;
    Value base = getViewBase(call.getArgs()[operand]);
    auto maker = base.getDefiningOp<KernelCallOp>();
    if (maker && maker.getOffsets() &&
        (*maker.getOffsets())[cast<OpResult>(base).getResultNumber()] ==
            (*call.getOffsets())[result])
      return base;
  }
  return {};
}

/// The kernel calls of a function: what takes time.
static SmallVector<Operation *> getSteps(func::FuncOp function) {
  SmallVector<Operation *> ops;
  for (Operation &op : function.front().without_terminator())
    if (!isView(&op) && !isFree(&op))
      ops.push_back(&op);
  return ops;
}

/// Returns all bytes of a function with the steps between which they are live.
static std::vector<LiveBytes> getLifetimes(func::FuncOp function,
                                           ArrayRef<Operation *> ops) {
  DenseMap<Operation *, int64_t> step;
  for (auto [i, op] : llvm::enumerate(ops))
    step[op] = int64_t(i);
  int64_t end = ops.size();
  std::vector<LiveBytes> live;
  auto add = [&](Operation *maker, int64_t first, int64_t last, MemoryKind kind,
                 int64_t bytes) {
    if (bytes != 0 && first <= last && first < end)
      live.push_back({maker, first, std::min(last, end - 1), kind, bytes});
  };
  int64_t alignment = arenaAlignment(function);
  auto aligned = [&](Type type) {
    return planner::alignTo(getStorageBytes(type), alignment);
  };
  for (BlockArgument argument : function.getArguments()) {
    auto role = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                      attrs::kRole);
    add(nullptr, 0, end, role ? kindOfRole(role) : MemoryKind::Other,
        aligned(argument.getType()));
  }
  if (auto fed = function->getAttrOfType<DenseI64ArrayAttr>(attrs::kFed))
    add(nullptr, 0, end, MemoryKind::Data,
        planner::alignTo(fed[1] - fed[0], alignment));
  llvm::SmallDenseSet<Value> inPlace;
  for (StateUpdate update : getStateUpdates(function))
    inPlace.insert(function.front().getTerminator()->getOperand(update.result));
  for (auto [i, op] : llvm::enumerate(ops)) {
    auto call = dyn_cast<KernelCallOp>(op);
    for (auto [operand, result] : getUpdatePairs(op))
      inPlace.insert(op->getResult(result));
    for (OpResult result : op->getResults()) {
      if (inPlace.contains(result) || isAlias(result))
        continue;
      bool took = call && takenOver(call, result.getResultNumber());
      add(op, i + took, lastUse(result, step, i, end), kindOfResult(result),
          aligned(result.getType()));
    }
    if (call)
      add(op, i, i, MemoryKind::Workspace, call.getWorkspace());
  }
  return live;
}

TimelinePanel ckopt::buildTimeline(func::FuncOp function, StringRef title,
                                   int64_t budget, CostModel &costs) {
  TimelinePanel panel;
  panel.title = title.str();
  panel.budget = budget;
  if (auto bytes = function->getAttrOfType<IntegerAttr>(attrs::kArenaBytes))
    panel.plannedPeak = bytes.getInt();
  SmallVector<Operation *> ops = getSteps(function);
  for (Operation *op : ops) {
    TimelineStep entry;
    entry.name = getSourceName(op->getLoc());
    auto call = dyn_cast<KernelCallOp>(op);
    if (entry.name.empty())
      entry.name =
          call ? call.getCallee().str() : op->getName().getStringRef().str();
    entry.seconds = costs.seconds(op);
    entry.recomputed = (call && call.getClone()) || op->hasAttr(attrs::kClone);
    panel.steps.push_back(std::move(entry));
  }
  std::vector<std::array<int64_t, numMemoryKinds>> change(ops.size() + 1);
  for (const LiveBytes &live : getLifetimes(function, ops)) {
    change[live.first][size_t(live.kind)] += live.bytes;
    change[live.last + 1][size_t(live.kind)] -= live.bytes;
  }
  std::array<int64_t, numMemoryKinds> now{};
  for (size_t i = 0; i < ops.size(); ++i) {
    for (size_t kind = 0; kind < numMemoryKinds; ++kind)
      now[kind] += change[i][kind];
    panel.steps[i].bytes = now;
  }
  return panel;
}

std::vector<LiveBytes> ckopt::getLiveAtPeak(func::FuncOp function) {
  SmallVector<Operation *> ops = getSteps(function);
  std::vector<LiveBytes> live = getLifetimes(function, ops);
  std::vector<int64_t> change(ops.size() + 1);
  for (const LiveBytes &bytes : live) {
    change[bytes.first] += bytes.bytes;
    change[bytes.last + 1] -= bytes.bytes;
  }
  int64_t peak = 0, now = 0, most = -1;
  for (size_t i = 0; i < ops.size(); ++i)
    if ((now += change[i]) > most) {
      most = now;
      peak = int64_t(i);
    }
  llvm::erase_if(live, [&](const LiveBytes &bytes) {
    return bytes.first > peak || bytes.last < peak;
  });
  return live;
}
