//===- VerifyArena.cpp - checks a placement from the IR alone -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: no defect of planner, packing or pass may lead to a wrong number.
// Method: walk the calls in order with the set of live byte ranges, sorted by
// offset. A call's results must overlap nothing that is live, except operands
// that it may overwrite and that are at their last use. The verifier shares no
// code with the placement, except the definition of a view. Guarantee: a
// function that passes computes what its SSA form says, provided that kernels
// keep their reuse promises. Complexity: O(n log n).
//
//===----------------------------------------------------------------------===//
#include "VerifyFlights.h"
#include "ckopt/Analysis/PlanningProblem.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/MemoryPlan/MemoryPlan.h"

#include <map>

using namespace mlir;
using namespace ckopt;

namespace {

/// A live byte range.
struct Range {
  int64_t end;
  Value value;      ///< null for a workspace
  int64_t lastRead; ///< index of the last call that reads it
};

class ArenaVerifier {
public:
  explicit ArenaVerifier(func::FuncOp function) : function(function) {}
  LogicalResult run();

private:
  LogicalResult addArguments();
  LogicalResult visit(KernelCallOp call, int64_t at);
  LogicalResult add(Operation *op, const Twine &what, int64_t begin,
                    const Range &range, function_ref<bool(Value)> mayOverlap);
  LogicalResult checkReturn();
  int64_t lastReadOf(Value value, int64_t made);
  void expire(int64_t at);

  func::FuncOp function;
  int64_t arena = 0;
  int64_t end = 0;
  DenseMap<Operation *, int64_t> place;
  std::map<int64_t, Range> live;
  /// Offsets of live ranges, by the call that reads them last.
  SmallVector<SmallVector<int64_t, 2>> dies;
  /// Offset of each value in the arena, views included.
  DenseMap<Value, int64_t> offsetOf;
};

} // namespace

int64_t ArenaVerifier::lastReadOf(Value value, int64_t made) {
  int64_t last = made;
  for (Operation *user : value.getUsers()) {
    for (Value alias : getAliases(user, value))
      last = std::max(last, lastReadOf(alias, made));
    if (!isView(user))
      last = std::max(last, place.lookup(user));
  }
  return last;
}

LogicalResult ArenaVerifier::add(Operation *op, const Twine &what,
                                 int64_t begin, const Range &range,
                                 function_ref<bool(Value)> mayOverlap) {
  if (int64_t alignment = arenaAlignment(op); begin % alignment)
    return op->emitError() << what << " lies at byte " << begin
                           << ", which is not a multiple of " << alignment;
  if (begin < 0 || range.end > arena)
    return op->emitError() << what << " (bytes " << begin << " to " << range.end
                           << ") lies outside of the arena of " << arena
                           << " bytes";
  if (range.end == begin)
    return success();
  auto next = live.lower_bound(begin);
  if (next != live.begin() && std::prev(next)->second.end > begin)
    --next;
  while (next != live.end() && next->first < range.end) {
    const Range &other = next->second;
    if (!other.value || !mayOverlap(other.value))
      return op->emitError()
             << what << " (bytes " << begin << " to " << range.end
             << ") overlaps "
             << (other.value ? getValueName(other.value) : "a workspace")
             << " (bytes " << next->first << " to " << other.end
             << "), which is still needed";
    // The value is overwritten: from here on its bytes belong to the new value.
    next = live.erase(next);
  }
  live.emplace(begin, range);
  dies[range.lastRead].push_back(begin);
  return success();
}

LogicalResult ArenaVerifier::addArguments() {
  for (BlockArgument argument : function.getArguments()) {
    if (!isa<TensorType>(argument.getType()))
      continue;
    auto offset = function.getArgAttrOfType<IntegerAttr>(
        argument.getArgNumber(), attrs::kOffset);
    if (!offset)
      return emitError(function.getLoc())
             << "argument " << argument.getArgNumber() << " has no "
             << attrs::kOffset;
    int64_t begin = offset.getInt();
    offsetOf[argument] = begin;
    Range range{begin + getStorageBytes(argument.getType()), argument, end};
    if (failed(add(function, getValueName(argument), begin, range,
                   [](Value) { return false; })))
      return failure();
  }
  auto fed = function->getAttrOfType<DenseI64ArrayAttr>(attrs::kFed);
  if (!fed || fed.size() != 3)
    return success();
  return add(function, "the second place of what is fed", fed[0] + fed[2],
             Range{fed[1] + fed[2], Value(), end}, [](Value) { return false; });
}

/// Removes the ranges that no call after `at` reads.
void ArenaVerifier::expire(int64_t at) {
  for (int64_t begin : dies[at]) {
    auto found = live.find(begin);
    if (found != live.end() && found->second.lastRead <= at)
      live.erase(found);
  }
}

LogicalResult ArenaVerifier::visit(KernelCallOp call, int64_t at) {
  if (!call.getOffsets())
    return call.emitError("has no offsets; run plan-memory");
  // Collects the operands whose bytes a result may take over.
  for (auto [r, result] : llvm::enumerate(call.getOuts())) {
    int64_t begin = (*call.getOffsets())[r];
    if (isAlias(result)) {
      Value base = getViewBase(result);
      if (offsetOf.lookup(base) != begin ||
          getStorageBytes(base.getType()) < getStorageBytes(result.getType()))
        return call.emitError() << "result " << r << " lies at byte " << begin
                                << ", not in the bytes of "
                                << getValueName(base) << ", which it is";
      offsetOf[result] = begin;
      continue;
    }
    int64_t stop = begin + getStorageBytes(result.getType());
    auto mayOverlap = [&](Value other) {
      auto covers = [&](ArrayRef<std::pair<unsigned, unsigned>> pairs) {
        return llvm::any_of(pairs, [&](auto pair) {
          return pair.second == r &&
                 getViewBase(call.getArgs()[pair.first]) == other &&
                 offsetOf.lookup(other) == begin &&
                 getStorageBytes(other.getType()) >= stop - begin;
        });
      };
      bool isState = llvm::any_of(getStateUpdates(function), [&](auto update) {
        return function.front().getTerminator()->getOperand(update.result) ==
                   result &&
               other == function.getArgument(update.argument);
      });
      if (isa<BlockArgument>(other)) {
        // The old state must not be read later, nor by this call unless the
        // kernel may overwrite it while reading.
        int64_t last = lastReadOf(other, -1);
        return (covers(getUpdatePairs(call)) && last <= at) ||
               (isState && last < at);
      }
      return covers(getReusePairs(call)) && lastReadOf(other, -1) <= at;
    };
    offsetOf[result] = begin;
    Range range{stop, result, std::max(lastReadOf(result, at), at)};
    bool isState = llvm::any_of(getUpdatePairs(call),
                                [&](auto pair) { return pair.second == r; });
    if (isState || isa<BlockArgument>(getViewBase(result)))
      range.lastRead = end;
    if (failed(add(call, "result " + Twine(r), begin, range, mayOverlap)))
      return failure();
  }
  if (int64_t bytes = call.getWorkspace()) {
    if (!call.getWorkspaceOffset())
      return call.emitError("has a workspace without an offset");
    int64_t begin = *call.getWorkspaceOffset();
    if (failed(add(call, "workspace", begin, {begin + bytes, {}, at},
                   [](Value) { return false; })))
      return failure();
  }
  expire(at);
  return success();
}

LogicalResult ArenaVerifier::checkReturn() {
  Operation *terminator = function.front().getTerminator();
  for (StateUpdate update : getStateUpdates(function)) {
    Value value = terminator->getOperand(update.result);
    BlockArgument argument = function.getArgument(update.argument);
    if (offsetOf.lookup(getViewBase(value)) != offsetOf.lookup(argument))
      return terminator->emitError()
             << "result " << update.result << " does not lie in the bytes of "
             << getValueName(argument) << ", which it updates";
  }
  return success();
}

LogicalResult ArenaVerifier::run() {
  auto bytes = function->getAttrOfType<IntegerAttr>(attrs::kArenaBytes);
  if (!bytes)
    return emitError(function.getLoc()) << "has no " << attrs::kArenaBytes;
  arena = bytes.getInt();
  for (Operation &op : function.front())
    if (!isView(&op))
      place[&op] = end++;
  dies.resize(end + 1);
  if (failed(verifyFlights(function)))
    return failure();
  if (failed(addArguments()))
    return failure();
  for (Operation &op : function.front().without_terminator()) {
    if (isView(&op))
      continue;
    auto call = dyn_cast<KernelCallOp>(op);
    if (!call)
      return op.emitError("has no kernel, so no place in the arena");
    if (failed(visit(call, place.lookup(call))))
      return failure();
  }
  return checkReturn();
}

LogicalResult ckopt::verifyArena(func::FuncOp function) {
  return ArenaVerifier(function).run();
}
