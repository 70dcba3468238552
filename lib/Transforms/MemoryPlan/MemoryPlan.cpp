//===- MemoryPlan.cpp - one planned arena ---------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: give each tensor of one or several functions an offset in one arena
// as small as possible.
// Method: arguments, which all functions share and which are always alive, lie
// at the bottom, sorted by role, so that the functions see the same parameters;
// above it, each function's results and workspaces are packed by the planner,
// or keep the places that `remat` found when it held the arena within the
// budget. Guarantee: verifyArena holds, or an error is emitted. Deterministic.
// Complexity: that of packing; the rest is linear.
//
//===----------------------------------------------------------------------===//
#include "ckopt/MemoryPlan/MemoryPlan.h"
#include "LateUpdates.h"
#include "ckopt/Analysis/PlanningProblem.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Planner/Packing.h"
#include "ckopt/Support/Debug.h"

using namespace mlir;
using namespace ckopt;

namespace {

/// Places the results and workspaces of one function above the arguments.
class FunctionPlacer {
public:
  FunctionPlacer(func::FuncOp function, ArrayRef<int64_t> argumentOffsets,
                 int64_t argumentBytes)
      : function(function), argumentOffsets(argumentOffsets),
        argumentBytes(argumentBytes) {}
  /// Returns the first byte above all tensors and workspaces.
  FailureOr<int64_t> run(bool lateUpdates);

private:
  LogicalResult check();
  LogicalResult build();
  void pack(bool keepPlaces);
  int64_t packedBytes() const;
  void postpone();
  int64_t setOffsets();

  func::FuncOp function;
  ArrayRef<int64_t> argumentOffsets;
  int64_t argumentBytes;
  PlanningProblem problem;
  /// Offset of each storage from the first byte above the arguments.
  SmallVector<int64_t> offset;
  SmallVector<int64_t> workspaceOffset;
};

} // namespace

/// Reports every op that a planned step must not contain.
LogicalResult FunctionPlacer::check() {
  LogicalResult result = success();
  for (Operation &op : function.front().without_terminator()) {
    if (isa<KernelCallOp>(op) || (isView(&op) && !isa<BarrierOp>(op)))
      continue;
    result = op.emitError() << "has no kernel; plan-memory places kernel "
                               "calls and views only (run fuse first)";
  }
  return result;
}

/// Finds offset and workspaceOffset.
void FunctionPlacer::pack(bool keepPlaces) {
  size_t numNodes = problem.ops.size();
  offset.assign(problem.graph.values.size(), 0);
  workspaceOffset.assign(numNodes, 0);
  auto packed = function->getAttrOfType<IntegerAttr>(kPackedBytes);
  bool kept =
      keepPlaces && packed && llvm::all_of(problem.ops, [](Operation *op) {
        return bool(cast<KernelCallOp>(op).getOffsets());
      });
  if (kept) {
    for (auto [i, op] : llvm::enumerate(problem.ops)) {
      auto call = cast<KernelCallOp>(op);
      for (auto [r, result] : llvm::enumerate(call.getOuts()))
        offset[problem.storage.lookup(result)] = (*call.getOffsets())[r];
      workspaceOffset[i] = call.getWorkspaceOffset().value_or(0);
    }
    return;
  }
  planner::Plan plan;
  for (size_t i = 0; i < numNodes; ++i)
    plan.steps.push_back(planner::NodeId(i));
  planner::packPlan(problem.graph, plan, /*holdsAll=*/false);
  for (size_t i = 0; i < numNodes; ++i) {
    const planner::Node &node = problem.graph.nodes[i];
    for (auto [k, value] : llvm::enumerate(node.outputs))
      offset[value] = plan.offsets[i][k];
    if (node.workspace)
      workspaceOffset[i] = plan.offsets[i].back();
  }
}

/// Returns the bytes that hold all results and workspaces.
int64_t FunctionPlacer::packedBytes() const {
  llvm::SmallDenseSet<planner::ValueId> arguments(problem.arguments.begin(),
                                                  problem.arguments.end());
  int64_t end = 0;
  for (auto [i, op] : llvm::enumerate(problem.ops)) {
    auto call = cast<KernelCallOp>(op);
    for (Value result : call.getOuts()) {
      planner::ValueId storage = problem.storage.lookup(result);
      if (!arguments.contains(storage))
        end =
            std::max(end, offset[storage] + getStorageBytes(result.getType()));
    }
    if (call.getWorkspace())
      end = std::max(end, workspaceOffset[i] + int64_t(call.getWorkspace()));
  }
  return end;
}

/// Lets updates wait for each other where that takes no more bytes. Sums of
/// what is alive do not tell how well it can be packed, so a few are tried.
void FunctionPlacer::postpone() {
  SmallVector<Operation *> before(problem.ops);
  int64_t most = packedBytes();
  for (double share : {1.0, 0.97, 0.9}) {
    SmallVector<Operation *> order =
        postponeUpdates(before, int64_t(share * double(most)));
    if (order == before)
      continue;
    orderCalls(function, order);
    FunctionPlacer late(function, argumentOffsets, argumentBytes);
    if (succeeded(late.build())) {
      late.pack(/*keepPlaces=*/false);
      debug::log(debug::Part::MemoryPlan, [&](llvm::raw_ostream &os) {
        os << "@" << function.getSymName() << ": updates later take "
           << late.packedBytes() << " bytes instead of " << most;
      });
      if (late.packedBytes() <= most) {
        problem = std::move(late.problem);
        offset = std::move(late.offset);
        workspaceOffset = std::move(late.workspaceOffset);
        return;
      }
    }
    orderCalls(function, before);
  }
}

/// Writes the offsets to the IR; returns the first byte above all of them.
int64_t FunctionPlacer::setOffsets() {
  int64_t end = 0;
  auto extend = [&](int64_t offset, int64_t bytes) {
    end = std::max(end, offset + bytes);
  };
  Builder builder(function.getContext());
  for (auto [i, at] : llvm::enumerate(argumentOffsets))
    if (at >= 0)
      function.setArgAttr(i, attrs::kOffset, builder.getI64IntegerAttr(at));
  // Numbers of the arguments' storages.
  DenseMap<planner::ValueId, int64_t> argumentAt;
  for (auto [i, storage] : llvm::enumerate(problem.arguments))
    if (storage >= 0)
      argumentAt[storage] = argumentOffsets[i];
  for (auto [i, op] : llvm::enumerate(problem.ops)) {
    auto call = cast<KernelCallOp>(op);
    SmallVector<int64_t> offsets;
    for (Value result : call.getOuts()) {
      planner::ValueId storage = problem.storage.lookup(result);
      auto argument = argumentAt.find(storage);
      offsets.push_back(argument != argumentAt.end()
                            ? argument->second
                            : argumentBytes + offset[storage]);
      extend(offsets.back(), getStorageBytes(result.getType()));
    }
    call.setOffsets(offsets);
    if (call.getWorkspace())
      call.setWorkspaceOffset(argumentBytes + workspaceOffset[i]);
    else
      call.removeWorkspaceOffsetAttr();
    if (call.getWorkspace())
      extend(argumentBytes + workspaceOffset[i], call.getWorkspace());
  }
  function->removeAttr(kPackedBytes);
  return end;
}

void ckopt::orderCalls(func::FuncOp function, ArrayRef<Operation *> order) {
  Block &block = function.front();
  Operation *terminator = block.getTerminator();
  llvm::SmallDenseSet<Operation *> placed;
  auto placeViews = [&](auto &&self, Operation *op) -> void {
    for (Value operand : op->getOperands())
      if (Operation *view = operand.getDefiningOp();
          view && isView(view) && placed.insert(view).second) {
        self(self, view);
        view->moveBefore(terminator);
      }
  };
  for (Operation *op : order) {
    placeViews(placeViews, op);
    op->moveBefore(terminator);
  }
  placeViews(placeViews, terminator);
  // Views that nobody reads stay at the front.
  for (Operation &op : llvm::make_early_inc_range(block))
    if (isView(&op) && op.use_empty())
      op.erase();
}

LogicalResult FunctionPlacer::build() {
  CostModel costs;
  FailureOr<PlanningProblem> built = buildProblem(function, costs);
  if (failed(built))
    return failure();
  problem = std::move(*built);
  orderCalls(function, problem.ops);
  return success();
}

FailureOr<int64_t> FunctionPlacer::run(bool lateUpdates) {
  if (failed(check()) || failed(build()))
    return failure();
  pack(/*keepPlaces=*/true);
  if (lateUpdates)
    postpone();
  debug::count(debug::Counter::PlacedFunctions);
  debug::log(debug::Part::MemoryPlan, [&](llvm::raw_ostream &os) {
    os << "@" << function.getSymName() << ": results and workspaces of "
       << problem.ops.size() << " calls in " << packedBytes() << " bytes above "
       << argumentBytes << " of arguments";
  });
  return setOffsets();
}

LogicalResult ckopt::planMemory(ArrayRef<func::FuncOp> functions,
                                bool lateUpdates) {
  FailureOr<ArgumentRegion> region = placeArguments(
      SmallVector<FunctionOpInterface>(functions.begin(), functions.end()));
  if (failed(region))
    return failure();
  // The size is not rounded up, so that it ends with the last byte in use.
  int64_t arena = region->end;
  for (auto [function, offsets] : llvm::zip(functions, region->offsets)) {
    FailureOr<int64_t> end =
        FunctionPlacer(function, offsets, region->bytes).run(lateUpdates);
    if (failed(end))
      return failure();
    arena = std::max(arena, *end);
  }
  for (func::FuncOp function : functions) {
    if (region->fedShift)
      function->setAttr(
          attrs::kFed, DenseI64ArrayAttr::get(function.getContext(),
                                              {region->fedBegin, region->fedEnd,
                                               region->fedShift}));
    function->setAttr(
        attrs::kArenaBytes,
        IntegerAttr::get(IntegerType::get(function.getContext(), 64), arena));
    if (failed(verifyArena(function)))
      return failure();
  }
  return success();
}

int64_t ckopt::getArenaOffset(Value value) {
  value = getViewBase(value);
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
    auto offset = function.getArgAttrOfType<IntegerAttr>(
        argument.getArgNumber(), attrs::kOffset);
    assert(offset && "function is not placed");
    return offset.getInt();
  }
  auto call = cast<KernelCallOp>(value.getDefiningOp());
  assert(call.getOffsets() && "function is not placed");
  return (*call.getOffsets())[cast<OpResult>(value).getResultNumber()];
}
