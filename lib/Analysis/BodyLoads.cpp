//===- BodyLoads.cpp - bytes that bodies and callees need -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: an op with regions, or a call, is one node of the plan, but makes
// values of its own while it runs. Method: the workspace is the largest sum of
// live bytes over a body's ops in their order, including the workspaces of
// those ops. Results take over the bytes of operands where the planner would
// let them. Values that a loop carries, and those that a branch or a function
// returns, lie in the bytes of the op's results, which the op's own block
// counts. Bodies of several blocks count everything that they make. Where one
// of several regions runs, the largest one counts. Values of dynamic shape
// count by the upper bounds that ops' ValueBoundsOpInterface gives. Guarantee:
// no less than the bytes of all values that bufferization gives buffers of
// their own, except for what is reported as not counted: unknown types, memory
// that is allocated, unregistered and external code. Complexity: O(ops inside
// times their depth), once a callee.
//
//===----------------------------------------------------------------------===//
#include "BodyLoads.h"
#include "ckopt/Analysis/OpFacts.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptKernelOps.h"
#include "ckopt/Interfaces/Compat.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"

using namespace mlir;
using namespace ckopt;

static int64_t aligned(int64_t bytes) {
  return planner::alignTo(bytes, kArenaAlignment);
}

/// Sizes are capped here, so that sums of them cannot overflow; no real arena
/// is as large.
static constexpr int64_t absurd = int64_t(1) << 48;

static int64_t plus(int64_t a, int64_t b) { return std::min(a + b, absurd); }

BodyLoads::BodyLoads(FunctionOpInterface function,
                     const PlanningContext &context)
    : context(context), sizes(function, context.hooks) {
  running.insert(function);
}

//===----------------------------------------------------------------------===//
// Reports of uncounted memory
//===----------------------------------------------------------------------===//

void BodyLoads::note(Location where, const Twine &what, bool own) {
  auto [entry, isNew] = noted.try_emplace(what.str(), uncounted.size());
  if (isNew)
    uncounted.push_back({where, what.str(), 1, own});
  else
    ++uncounted[entry->second].count;
}

void BodyLoads::noteType(Type type, Location where) {
  if (sizes.isKnown(type))
    return;
  std::string text;
  llvm::raw_string_ostream(text) << type;
  note(where, "the bytes of values of type '" + text + "'");
}

void BodyLoads::noteResults(Operation *op) {
  if (isView(op) || isFree(op) || isa<tensor::ExtractSliceOp>(op))
    return;
  bool allocates = hasEffect<MemoryEffects::Allocate>(op);
  for (OpResult result : op->getResults()) {
    Type type = result.getType();
    if (sizes.isValue(type)) {
      if (valueBytes(result) == 0)
        noteType(type, op->getLoc());
    } else if (allocates) {
      note(op->getLoc(), "the bytes of what is allocated here");
    } else if (!isa<BaseMemRefType>(type)) {
      noteType(type, op->getLoc());
    } else if (compat::hasUnknownEffects(op) && op->isRegistered() &&
               !isa<CallOpInterface>(op)) {
      note(op->getLoc(), "the bytes of memory that '" +
                             op->getName().getStringRef() + "' gives");
    }
  }
}

//===----------------------------------------------------------------------===//
// Ops and callees
//===----------------------------------------------------------------------===//

int64_t BodyLoads::workspace(Operation *op) {
  if (auto call = dyn_cast<KernelCallOp>(op))
    return int64_t(call.getWorkspace());
  noteResults(op);
  if (auto stated = getStatedWorkspace(op, context.hooks))
    return *stated;
  if (!op->isRegistered() && !facts::isDescribed(op))
    note(op->getLoc(), "what the unregistered op '" +
                           op->getName().getStringRef() +
                           "' needs beside its operands and results");
  if (auto call = dyn_cast<CallOpInterface>(op))
    return ofCall(call);
  return ofRegions(op);
}

int64_t BodyLoads::ofRegions(Operation *op) {
  // Such ops run one region at a time; for other ops any regions may run
  // together.
  bool oneAtATime = isa<RegionBranchOpInterface, LoopLikeOpInterface>(op) ||
                    facts::runsOneRegion(op);
  int64_t bytes = 0;
  for (Region &region : op->getRegions()) {
    int64_t load = ofRegion(region, op);
    bytes = oneAtATime ? std::max(bytes, load) : plus(bytes, load);
  }
  if (bytes > 0 && op->hasTrait<OpTrait::HasParallelRegion>())
    note(op->getLoc(),
         "what iterations of '" + op->getName().getStringRef() +
             "' need that run at the same time as another; it counts one",
         /*own=*/false);
  return bytes;
}

int64_t BodyLoads::ofCall(CallOpInterface call) {
  bool givesMemory =
      llvm::any_of(call->getResultTypes(), llvm::IsaPred<BaseMemRefType>);
  auto callee = dyn_cast_or_null<FunctionOpInterface>(
      compat::resolveCallable(call, symbols));
  if (callee &&
      (!callee.isExternal() || getStatedWorkspace(callee, context.hooks)))
    return ofCallee(callee, call.getLoc());
  std::string name = callee ? "@" + callee.getName().str() : "";
  if (callee)
    note(call.getLoc(), "what " + name + " needs, which is external",
         /*own=*/false);
  else
    note(call.getLoc(), "what is called here needs: no callee is known",
         /*own=*/false);
  if (givesMemory)
    note(call.getLoc(), "the bytes of memory that " +
                            (callee ? name : "the callee") + " gives");
  return 0;
}

int64_t BodyLoads::ofCallee(FunctionOpInterface callee, Location where) {
  if (auto stated = getStatedWorkspace(callee, context.hooks))
    return *stated;
  if (context.hooks.callee)
    if (std::optional<int64_t> bytes = context.hooks.callee(callee))
      return *bytes;
  if (!context.mayReadCallees) {
    note(where, "what @" + callee.getName() +
                    " needs: a pass on one function must not read others; "
                    "builtin.module(remat{...}) counts it");
    return 0;
  }
  if (auto found = callees.find(callee); found != callees.end())
    return found->second;
  if (!running.insert(callee).second) {
    note(where, "what further calls of @" + callee.getName() +
                    " need, which calls itself (recursion)");
    return 0;
  }
  int64_t bytes = ofRegion(callee.getFunctionBody(), callee);
  running.erase(callee);
  return callees[callee] = bytes;
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

/// Returns the most that a dimension can be at run time, or failure where no
/// bound is known.
static FailureOr<int64_t> upperBound(Value value, int64_t dim) {
  FailureOr<int64_t> bound = ValueBoundsConstraintSet::computeConstantBound(
      presburger::BoundType::UB, {value, dim}, /*stopCondition=*/nullptr,
      /*closedUB=*/true);
  if (succeeded(bound))
    return *bound < 0 ? FailureOr<int64_t>() : bound;
  // Elementwise ops have no bounds of their own: the bound of any operand
  // holds.
  Operation *op = value.getDefiningOp();
  if (!op || !OpTrait::hasElementwiseMappableTraits(op))
    return failure();
  for (Value operand : op->getOperands())
    if (isa<RankedTensorType>(operand.getType()))
      if (FailureOr<int64_t> same = upperBound(operand, dim); succeeded(same))
        return same;
  return failure();
}

int64_t BodyLoads::valueBytes(Value value) {
  Type type = value.getType();
  if (!sizes.isValue(type))
    return 0;
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || tensor.hasStaticShape() || sizes.isKnown(type))
    return std::min(sizes.bytes(type), absurd);
  SmallVector<int64_t> shape(tensor.getShape());
  for (auto [dim, size] : llvm::enumerate(shape)) {
    if (!ShapedType::isDynamic(size))
      continue;
    FailureOr<int64_t> bound = upperBound(value, int64_t(dim));
    if (failed(bound))
      return 0;
    size = *bound;
  }
  return std::min(sizes.bytes(tensor.clone(shape)), absurd);
}

/// Returns the value whose bytes a value of a body shows. Slices at offsets
/// known only at run time count as views here, since nothing moves them.
static Value bodyBase(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isView(op) && !isa<tensor::ExtractSliceOp>(op))
      break;
    value = isView(op) ? getViewedOperand(op).get() : op->getOperand(0);
  }
  return value;
}

namespace {

/// Sums up the live bytes of one block over its ops.
class BlockTimeline {
public:
  explicit BlockTimeline(Block &block);

  /// Counts the bytes from step `first` on. With `outside`, the owner's block
  /// counts them instead.
  void open(Value value, int64_t bytes, int64_t first, bool outside);
  /// Gives the result the bytes of an operand whose last reader is this op.
  bool takeOver(OpOperand &operand, int64_t operandBytes, Value result,
                int64_t resultBytes, int64_t step);
  /// Marks the terminator's operands as lying in the bytes of the owner's
  /// results.
  void close(ArrayRef<int64_t> resultBytes);
  int64_t peak() const;

  std::vector<int64_t> work; ///< by step: bytes needed while it runs

private:
  struct Room {
    int64_t bytes, first, last;
    bool outside;
  };
  Room *find(Value value) {
    auto found = places.find(bodyBase(value));
    return found == places.end() ? nullptr : &rooms[found->second];
  }
  int64_t lastUse(Value value, int64_t from) const {
    auto found = uses.find(value);
    return found == uses.end() ? from : std::max(from, found->second);
  }

  Block &block;
  DenseMap<Value, int64_t> uses; ///< last step that reads a value
  DenseMap<Value, size_t> places;
  std::vector<Room> rooms;
};

} // namespace

BlockTimeline::BlockTimeline(Block &block) : block(block) {
  for (auto [step, op] : llvm::enumerate(block))
    for (Value read : getReads(&op))
      if (Value base = bodyBase(read); base.getParentBlock() == &block)
        uses[base] = int64_t(step);
  work.resize(size_t(std::distance(block.begin(), block.end())));
}

void BlockTimeline::open(Value value, int64_t bytes, int64_t first,
                         bool outside) {
  if (bytes == 0)
    return;
  places[value] = rooms.size();
  rooms.push_back({bytes, first, lastUse(value, first), outside});
}

bool BlockTimeline::takeOver(OpOperand &operand, int64_t operandBytes,
                             Value result, int64_t resultBytes, int64_t step) {
  Room *room = find(operand.get());
  if (!room || room->last > step || room->bytes < resultBytes ||
      operandBytes < room->bytes)
    return false;
  places[result] = size_t(room - rooms.data());
  room->last = lastUse(result, step);
  return true;
}

void BlockTimeline::close(ArrayRef<int64_t> resultBytes) {
  if (block.empty())
    return;
  for (auto [value, bytes] : llvm::zip(block.back().getOperands(), resultBytes))
    if (Room *room = find(value); room && room->bytes <= bytes)
      room->outside = true;
}

int64_t BlockTimeline::peak() const {
  std::vector<int64_t> change(work.size() + 1);
  for (const Room &room : rooms) {
    if (room.outside)
      continue;
    change[size_t(room.first)] += aligned(room.bytes);
    change[size_t(room.last) + 1] -= aligned(room.bytes);
  }
  int64_t most = 0, now = 0;
  for (size_t step = 0; step < work.size(); ++step) {
    now += change[step];
    most = std::max(most, plus(now, aligned(work[step])));
  }
  return most;
}

/// Returns whether the op's regions return their last values as the op's
/// results.
static bool returnsResults(Operation *owner) {
  if (isa<FunctionOpInterface>(owner))
    return true;
  auto branch = dyn_cast<RegionBranchOpInterface>(owner);
  return branch && !isa<LoopLikeOpInterface>(owner) && !branch.hasLoop();
}

int64_t BodyLoads::ofRegion(Region &region, Operation *owner) {
  if (region.empty())
    return 0;
  return region.hasOneBlock() ? ofBlock(region.front(), owner)
                              : ofBlocks(region, owner);
}

int64_t BodyLoads::ofBlock(Block &block, Operation *owner) {
  BlockTimeline timeline(block);
  auto loop = dyn_cast<LoopLikeOpInterface>(owner);
  // A function's arguments are counted by its caller, as operands.
  if (!isa<FunctionOpInterface>(owner))
    for (BlockArgument argument : block.getArguments())
      timeline.open(argument, valueBytes(argument), 0,
                    loop && loop.getTiedLoopResult(argument));
  for (auto [step, op] : llvm::enumerate(block)) {
    if (isView(&op) || isFree(&op) || isa<tensor::ExtractSliceOp>(op))
      continue;
    timeline.work[step] = workspace(&op);
    SmallVector<std::pair<unsigned, unsigned>> pairs =
        getReusePairs(&op, context.hooks);
    for (OpResult result : op.getResults()) {
      int64_t bytes = valueBytes(result);
      bool took = llvm::any_of(pairs, [&](std::pair<unsigned, unsigned> pair) {
        OpOperand &operand = op.getOpOperand(pair.first);
        return pair.second == result.getResultNumber() && bytes > 0 &&
               timeline.takeOver(operand, valueBytes(operand.get()), result,
                                 bytes, int64_t(step));
      });
      if (!took)
        timeline.open(result, bytes, int64_t(step), /*outside=*/false);
    }
  }
  if (returnsResults(owner)) {
    SmallVector<int64_t> results;
    if (isa<FunctionOpInterface>(owner))
      for (Value value : block.back().getOperands())
        results.push_back(valueBytes(value));
    else
      for (Value value : owner->getResults())
        results.push_back(valueBytes(value));
    timeline.close(results);
  }
  return timeline.peak();
}

/// With several blocks, any two values may be alive at the same time, so all of
/// them are added.
int64_t BodyLoads::ofBlocks(Region &region, Operation *owner) {
  int64_t sum = 0, work = 0;
  for (Block &block : region) {
    if (!block.isEntryBlock() || !isa<FunctionOpInterface>(owner))
      for (BlockArgument argument : block.getArguments())
        sum = plus(sum, aligned(valueBytes(argument)));
    for (Operation &op : block) {
      if (isView(&op) || isFree(&op) || isa<tensor::ExtractSliceOp>(op))
        continue;
      work = std::max(work, workspace(&op));
      for (OpResult result : op.getResults())
        sum = plus(sum, aligned(valueBytes(result)));
    }
  }
  return plus(sum, aligned(work));
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

std::vector<Uncounted> ckopt::findUncounted(FunctionOpInterface function,
                                            const PlanningContext &context) {
  BodyLoads loads(function, context);
  for (BlockArgument argument : function.getArguments())
    loads.noteType(argument.getType(), argument.getLoc());
  for (Operation &op : function.front().without_terminator())
    loads.workspace(&op);
  return loads.takeUncounted();
}
