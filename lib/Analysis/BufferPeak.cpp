//===- BufferPeak.cpp - the bytes that bufferized code has alive ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: bufferization decides which tensors get buffers, and deallocation
// when these end, partly by conditions that are evaluated at run time (who owns
// the buffer that a loop or a branch yields). Method: the code is run without
// its data: memory references are the buffers that they show, and scalars that
// follow from constants and from the identity of buffers are folded. Where a
// branch depends on data, both ways are run, each from the start; a loop runs
// until each value that it carries has been passed on once to each other one,
// which is when its buffers repeat. Guarantee: every peak that is found is one
// of a run that control flow allows; in loops whose iterations differ, or with
// more than three tests of data at one op, others may need more. Complexity:
// the ops that run, at most maxSteps.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Analysis/BufferPeak.h"
#include "BufferRun.h"
#include "ckopt/Interfaces/Compat.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace ckopt;

/// Ops and runs after which the code counts as not followed.
static constexpr int64_t maxSteps = 4000000;
static constexpr int maxRuns = 512;

bool BufferRun::choose(Operation *op, Value condition) {
  if (condition)
    if (std::optional<int64_t> known = integer(condition))
      return *known != 0;
  bool taken = false;
  if (int &times = chosen[op]; times++ < 3) {
    if (nextChoice == choices.size())
      choices.push_back({op, false});
    taken = choices[nextChoice++].taken;
  } else {
    taken = times % 2;
  }
  // The same condition is decided once.
  if (condition)
    scalar[condition] = BoolAttr::get(op->getContext(), taken);
  return taken;
}

LogicalResult BufferRun::runFor(scf::ForOp loop) {
  std::optional<int64_t> from = integer(loop.getLowerBound()),
                         to = integer(loop.getUpperBound()),
                         by = integer(loop.getStep());
  bool known = from && to && by && *by > 0;
  // So often that every buffer has been in every place.
  int64_t enough = 3 + 2 * int64_t(loop.getInitArgs().size()), count = enough;
  // Loops that carry no buffers compare lists of them.
  if (llvm::none_of(loop.getInitArgs().getTypes(),
                    llvm::IsaPred<BaseMemRefType>))
    enough = 1024;
  int64_t all = known && *to > *from ? llvm::divideCeil(*to - *from, *by) : 0;
  if (known)
    count = std::min(enough, all);
  else if (!choose(loop, {}))
    count = 0;
  copy(loop.getInitArgs(), loop.getRegionIterArgs());
  for (int64_t i = 0; i < count; ++i) {
    forget(loop.getInductionVar());
    if (known) // the last iteration that runs is the last one
      scalar[loop.getInductionVar()] =
          IntegerAttr::get(loop.getInductionVar().getType(),
                           *from + (i + 1 == count ? all - 1 : i) * *by);
    if (failed(runBlock(*loop.getBody())))
      return failure();
    copy(loop.getBody()->getTerminator()->getOperands(),
         loop.getRegionIterArgs());
  }
  copy(loop.getRegionIterArgs(), loop.getResults());
  return success();
}

LogicalResult BufferRun::runWhile(scf::WhileOp loop) {
  int64_t enough = 3 + 2 * int64_t(loop.getInits().size());
  copy(loop.getInits(), loop.getBeforeArguments());
  for (int64_t i = 0;; ++i) {
    if (failed(runBlock(*loop.getBeforeBody())))
      return failure();
    scf::ConditionOp condition = loop.getConditionOp();
    if (i == enough || !choose(condition, condition.getCondition())) {
      copy(condition.getArgs(), loop.getResults());
      return success();
    }
    copy(condition.getArgs(), loop.getAfterArguments());
    if (failed(runBlock(*loop.getAfterBody())))
      return failure();
    copy(loop.getYieldOp()->getOperands(), loop.getBeforeArguments());
  }
}

LogicalResult BufferRun::runIf(scf::IfOp op) {
  Block *block =
      choose(op, op.getCondition()) ? op.thenBlock() : op.elseBlock();
  if (!block)
    return success();
  if (failed(runBlock(*block)))
    return failure();
  copy(block->getTerminator()->getOperands(), op.getResults());
  return success();
}

/// Runs one iteration of a loop whose iterations may run together.
LogicalResult BufferRun::runParallel(Operation *op) {
  if (op->getNumResults())
    return failure();
  forget(op->getRegion(0).getArguments());
  return runBlock(op->getRegion(0).front());
}

LogicalResult BufferRun::runCall(func::CallOp call) {
  auto callee =
      dyn_cast_or_null<func::FuncOp>(compat::resolveCallable(call, symbols));
  if (!callee)
    return failure();
  forget(call.getResults());
  if (callee.isExternal()) {
    for (Value result : call.getResults())
      if (auto type = dyn_cast<MemRefType>(result.getType()))
        if (!type.hasStaticShape() || failed(allocate(result, {})))
          return failure();
    return success();
  }
  if (!callee.getBody().hasOneBlock() || !running.insert(callee).second)
    return failure();
  Block &body = callee.getBody().front();
  copy(call.getOperands(), body.getArguments());
  if (failed(runBlock(body)))
    return failure();
  copy(body.getTerminator()->getOperands(), call.getResults());
  running.erase(callee);
  return success();
}

/// Returns whether ops inside, which are not followed, may allocate or call.
static bool mayAllocateInside(Operation *op) {
  return op
      ->walk([&](Operation *inner) {
        return inner != op && (hasEffect<MemoryEffects::Allocate>(inner) ||
                               isa<CallOpInterface>(inner))
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

LogicalResult BufferRun::runOp(Operation *op) {
  if (++steps > maxSteps)
    return failure();
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return runFor(loop);
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return runWhile(loop);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return runIf(branch);
  if (isa<scf::ForallOp, scf::ParallelOp>(op))
    return runParallel(op);
  if (auto call = dyn_cast<func::CallOp>(op))
    return runCall(call);
  if (isa<memref::AllocOp, memref::AllocaOp, memref::GetGlobalOp,
          memref::DeallocOp, memref::LoadOp, memref::StoreOp,
          memref::ExtractAlignedPointerAsIndexOp, bufferization::CloneOp>(op))
    return runMemory(op);
  if (auto view = dyn_cast<ViewLikeOpInterface>(op)) {
    copy(view.getViewSource(), op->getResult(0));
    return success();
  }
  if (auto select = dyn_cast<arith::SelectOp>(op);
      select && isa<BaseMemRefType>(select.getType())) {
    copy(ValueRange(choose(op, select.getCondition()) ? select.getTrueValue()
                                                      : select.getFalseValue()),
         ValueRange(select.getResult()));
    return success();
  }
  if (auto dim = dyn_cast<memref::DimOp>(op)) {
    fold(op);
    Buffer *buffer = whole(dim.getSource());
    std::optional<int64_t> number = integer(dim.getIndex());
    if (!scalar.contains(dim) && buffer && number &&
        *number < int64_t(buffer->shape.size()))
      scalar[dim] = Builder(op->getContext())
                        .getIndexAttr(buffer->shape[size_t(*number)]);
    return success();
  }
  if (auto metadata = dyn_cast<memref::ExtractStridedMetadataOp>(op)) {
    forget(op->getResults());
    copy(metadata.getSource(), metadata.getBaseBuffer());
    return success();
  }
  if (llvm::any_of(op->getResultTypes(), llvm::IsaPred<BaseMemRefType>) ||
      (op->getNumRegions() && mayAllocateInside(op)))
    return failure();
  fold(op);
  return success();
}

LogicalResult BufferRun::runBlock(Block &block) {
  for (Operation &op : block.without_terminator())
    if (failed(runOp(&op)))
      return failure();
  return success();
}

FailureOr<int64_t> BufferRun::run(func::FuncOp function) {
  running.insert(function);
  for (BlockArgument argument : function.getArguments())
    if (isa<BaseMemRefType>(argument.getType())) {
      give(argument, int(buffers.size()));
      buffers.emplace_back();
    }
  if (failed(runBlock(function.getBody().front())))
    return failure();
  return peak;
}

std::optional<int64_t> ckopt::bufferPeak(func::FuncOp function,
                                         int64_t alignment) {
  if (function.isExternal() || !function.getBody().hasOneBlock())
    return std::nullopt;
  std::vector<BufferChoice> choices;
  int64_t peak = 0, steps = 0;
  for (int runs = 0; runs < maxRuns; ++runs) {
    FailureOr<int64_t> found =
        BufferRun(choices, alignment, steps).run(function);
    if (failed(found))
      return std::nullopt;
    peak = std::max(peak, *found);
    // The next way: the last choice that was not turned yet.
    while (!choices.empty() && choices.back().taken)
      choices.pop_back();
    if (choices.empty())
      return peak;
    choices.back().taken = true;
  }
  return std::nullopt;
}
