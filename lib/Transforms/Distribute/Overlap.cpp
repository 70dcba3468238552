//===- Overlap.cpp - where collectives start and end ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: messages of a collective take long, and kernels between the end of
// its operands and the first use of its results need not wait for them; but
// all bytes in flight stay alive meanwhile, within the budget. Method: the
// planned order and its packing are taken as they are. Collectives, one after
// the other, get the widest window in which their bytes are free where they
// lie, or somewhere else; where none is, a window of half the width is tried,
// and at last none. Updates of states stand right behind their
// sums, since that takes fewest bytes; they move on behind as many kernels as
// the messages need. Guarantee: nothing but these, starts and waits moves;
// collectives start in the order that they had; the packing
// stays within its limit. O(collectives * log(calls) * values^2) at most.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Distribute/Overlap.h"

#include "ckopt/Analysis/PlanningProblem.h"
#include "ckopt/Planner/Packing.h"

using namespace mlir;
using namespace ckopt;

Operation *ckopt::getCollective(KernelCallOp call) {
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      call, call.getCalleeAttr());
  if (!callee || callee.isDeclaration())
    return nullptr;
  Operation *op = &callee.front().front();
  auto collective = dyn_cast<CollectiveOpInterface>(op);
  return collective && collective.getRounds() && collective.getGroup().size > 1
             ? op
             : nullptr;
}

namespace {

/// Bytes that are alive from one time to another, both included: call i runs at
/// time 2 i + 1, and gap i is time 2 i.
struct Buffer {
  int64_t offset = -1, bytes = 0, first = 0, last = 0;
};

class FlightPlanner {
public:
  FlightPlanner(func::FuncOp function, CostModel &costs, int64_t limit);
  FlightPlan run();
  int64_t packedBytes() const;
  void collectMoved(SmallVectorImpl<std::pair<Value, int64_t>> &moved) const;

private:
  void addBuffers();
  int64_t lastUse(Value value, int64_t from) const;
  int64_t firstUse(Value value, bool leaves) const;
  bool isLeaf(Operation *op) const;
  int64_t gapBehind(int64_t from, double seconds);
  bool delay(const Flight &flight);
  int64_t firstWrite(BlockArgument argument);
  bool isPlain(KernelCallOp call) const;
  bool mayLieInPlace(KernelCallOp call, unsigned tensor) const;
  bool findWindow(Flight &flight);
  bool fits(const Flight &flight);
  bool extend(size_t buffer, int64_t first, int64_t last);
  bool isFree(size_t except, int64_t offset, int64_t bytes, int64_t first,
              int64_t last) const;
  bool place(size_t buffer);

  func::FuncOp function;
  CostModel &costs;
  const int64_t limit; ///< negative: none
  SmallVector<KernelCallOp> calls;
  DenseMap<Operation *, int64_t> placeOf;
  llvm::SmallDenseSet<Value> states; ///< results that lie in arguments' bytes
  std::vector<Buffer> buffers;
  DenseMap<Value, size_t> bufferOf; ///< of results
  DenseMap<Operation *, size_t> workspaceOf;
  DenseMap<Operation *, int64_t> waits;   ///< gaps of the calls that were split
  DenseMap<Operation *, int64_t> delayed; ///< gaps of updates that moved
  int64_t earliest = 0; ///< gap in front of which no collective may start
};

} // namespace

FlightPlanner::FlightPlanner(func::FuncOp function, CostModel &costs,
                             int64_t limit)
    : function(function), costs(costs), limit(limit) {
  for (KernelCallOp call : function.getOps<KernelCallOp>()) {
    placeOf[call] = int64_t(calls.size());
    calls.push_back(call);
  }
  for (StateUpdate update : getStateUpdates(function))
    states.insert(getViewBase(
        function.front().getTerminator()->getOperand(update.result)));
  for (KernelCallOp call : calls)
    for (auto [operand, result] : getUpdatePairs(call))
      states.insert(call.getResult(result));
  if (limit >= 0)
    addBuffers();
}

/// Returns the call that reads the value or a view of it last; the number of
/// calls if it is returned.
int64_t FlightPlanner::lastUse(Value value, int64_t from) const {
  int64_t last = from;
  for (Operation *user : value.getUsers()) {
    if (user->hasTrait<OpTrait::IsTerminator>())
      return int64_t(calls.size());
    last = std::max(last, isView(user) ? lastUse(user->getResult(0), from)
                                       : placeOf.lookup(user));
  }
  return last;
}

/// Returns whether a call does nothing but update states that no call reads.
bool FlightPlanner::isLeaf(Operation *op) const {
  return llvm::all_of(op->getResults(), [&](Value result) {
    return states.contains(result) &&
           llvm::all_of(result.getUsers(), [](Operation *user) {
             return user->hasTrait<OpTrait::IsTerminator>();
           });
  });
}

/// Returns the first place where leaves, or other calls, read a value.
int64_t FlightPlanner::firstUse(Value value, bool leaves) const {
  int64_t first = int64_t(calls.size());
  for (Operation *user : value.getUsers()) {
    if (isView(user)) {
      first = std::min(first, firstUse(user->getResult(0), leaves));
    } else if (!user->hasTrait<OpTrait::IsTerminator>() &&
               isLeaf(user) == leaves) {
      auto moved = delayed.find(user);
      first = std::min(first, moved != delayed.end() ? moved->second
                                                     : placeOf.lookup(user));
    }
  }
  return first;
}

/// Returns the gap behind as many kernels as take these seconds.
int64_t FlightPlanner::gapBehind(int64_t from, double seconds) {
  int64_t gap = from;
  for (; gap < int64_t(calls.size()) && seconds > 0; ++gap)
    if (!getCollective(calls[size_t(gap)]) && !isLeaf(calls[size_t(gap)]))
      seconds -= costs.seconds(calls[size_t(gap)]);
  return gap;
}

/// Moves updates that read the flight's results behind its wait; what they read
/// stays alive until then.
bool FlightPlanner::delay(const Flight &flight) {
  KernelCallOp call = flight.call;
  SmallVector<Value> left(call.getOuts());
  while (!left.empty()) {
    Value value = left.pop_back_val();
    for (Operation *user : value.getUsers()) {
      if (isView(user)) {
        left.push_back(user->getResult(0));
        continue;
      }
      if (user->hasTrait<OpTrait::IsTerminator>() || !isLeaf(user))
        continue;
      auto moved = delayed.find(user);
      int64_t now =
          moved != delayed.end() ? moved->second : placeOf.lookup(user);
      if (now >= flight.wait)
        continue;
      delayed[user] = flight.wait;
      int64_t time = 2 * flight.wait;
      if (limit < 0)
        continue;
      for (Value operand : user->getOperands())
        if (auto found = bufferOf.find(getViewBase(operand));
            found != bufferOf.end() && !extend(found->second, time, time))
          return false;
      if (auto found = workspaceOf.find(user);
          found != workspaceOf.end() && !extend(found->second, time, time))
        return false;
    }
  }
  return true;
}

/// Returns the call that writes an argument's new value; the number of calls if
/// none does.
int64_t FlightPlanner::firstWrite(BlockArgument argument) {
  int64_t first = int64_t(calls.size());
  for (KernelCallOp call : calls)
    for (auto [operand, result] : getUpdatePairs(call))
      if (getViewBase(call.getArgs()[operand]) == argument)
        first = std::min(first, placeOf.lookup(call));
  for (StateUpdate update : getStateUpdates(function))
    if (update.argument == argument.getArgNumber())
      if (Operation *maker =
              getViewBase(
                  function.front().getTerminator()->getOperand(update.result))
                  .getDefiningOp())
        first = std::min(first, placeOf.lookup(maker));
  return first;
}

void FlightPlanner::addBuffers() {
  const int64_t alignment = arenaAlignment(function);
  for (auto [i, call] : llvm::enumerate(calls)) {
    int64_t at = 2 * int64_t(i) + 1;
    for (auto [r, result] : llvm::enumerate(call.getOuts())) {
      if (states.contains(result))
        continue;
      bufferOf[result] = buffers.size();
      int64_t bytes =
          planner::alignTo(getStorageBytes(result.getType()), alignment);
      buffers.push_back({(*call.getOffsets())[r], bytes, at,
                         2 * lastUse(result, int64_t(i)) + 1});
    }
    if (int64_t bytes = call.getWorkspace()) {
      workspaceOf[call] = buffers.size();
      buffers.push_back({int64_t(call.getWorkspaceOffset().value_or(0)),
                         planner::alignTo(bytes, alignment), at, at});
    }
  }
}

int64_t FlightPlanner::packedBytes() const {
  int64_t end = 0;
  for (const Buffer &buffer : buffers)
    end = std::max(end, buffer.offset + buffer.bytes);
  return end;
}

void FlightPlanner::collectMoved(
    SmallVectorImpl<std::pair<Value, int64_t>> &moved) const {
  for (KernelCallOp call : calls)
    for (auto [r, result] : llvm::enumerate(call.getOuts()))
      if (auto found = bufferOf.find(result); found != bufferOf.end())
        if (int64_t offset = buffers[found->second].offset;
            call.getOffsets() && offset != (*call.getOffsets())[r])
          moved.emplace_back(result, offset);
}

/// New values of states lie in their arguments' bytes, which is the business of
/// the calls that make them.
bool FlightPlanner::isPlain(KernelCallOp call) const {
  // A tensor that is summed for several results is one operand: such a call
  // blocks.
  return call.getUpdates().empty() && call.getScalars().empty() &&
         call.getArgs().size() == call.getNumResults() &&
         llvm::none_of(call.getOuts(),
                       [&](Value result) { return states.contains(result); });
}

/// A sum may lie where its operand does, which nothing else reads.
bool FlightPlanner::mayLieInPlace(KernelCallOp call, unsigned tensor) const {
  if (!llvm::is_contained(getReusePairs(call), std::pair(tensor, tensor)))
    return false;
  Value base = getViewBase(call.getArgs()[tensor]);
  Value result = call.getResult(tensor);
  auto maker = base.getDefiningOp<KernelCallOp>();
  if (!maker || states.contains(base) ||
      getStorageBytes(base.getType()) != getStorageBytes(result.getType()))
    return false;
  SmallVector<Value> left{base};
  while (!left.empty()) {
    Value value = left.pop_back_val();
    for (Operation *user : value.getUsers())
      if (isView(user))
        left.push_back(user->getResult(0));
      else if (user != call.getOperation())
        return false;
  }
  if (limit < 0)
    return true;
  return buffers[bufferOf.lookup(base)].offset ==
         buffers[bufferOf.lookup(result)].offset;
}

/// Finds the widest window; false: it is that of the call itself.
bool FlightPlanner::findWindow(Flight &flight) {
  KernelCallOp call = flight.call;
  int64_t begin = earliest, end = int64_t(calls.size());
  for (auto [i, operand] : llvm::enumerate(call.getArgs())) {
    Value base = getViewBase(operand);
    if (auto argument = dyn_cast<BlockArgument>(base)) {
      end = std::min(end, firstWrite(argument));
      continue;
    }
    Operation *maker = base.getDefiningOp();
    auto split = waits.find(maker);
    begin = std::max(begin, split != waits.end() ? split->second
                                                 : placeOf.lookup(maker) + 1);
  }
  if (call->use_empty()) // nothing but its messages is of use
    end = flight.place + 1;
  int64_t updates = int64_t(calls.size());
  for (Value result : call.getOuts()) {
    end = std::min(end, firstUse(result, /*leaves=*/false));
    updates = std::min(updates, firstUse(result, /*leaves=*/true));
  }
  if (updates < end)
    end = std::clamp(gapBehind(flight.place + 1, 1.25 * costs.seconds(call)),
                     updates, end);
  Operation *op = getCollective(call);
  if (isa<AllGatherOp, BroadcastOp>(op)) {
    // Results take bytes from the start on, so it is no earlier than it pays.
    double seconds = 1.25 * costs.seconds(call);
    int64_t from = flight.place;
    while (from > begin && seconds > 0) {
      --from;
      if (!getCollective(calls[size_t(from)]))
        seconds -= costs.seconds(calls[size_t(from)]);
    }
    begin = from;
  }
  flight.start = std::min(begin, flight.place);
  flight.wait = std::max(end, flight.place + 1);
  return flight.start < flight.place || flight.wait > flight.place + 1;
}

bool FlightPlanner::isFree(size_t except, int64_t offset, int64_t bytes,
                           int64_t first, int64_t last) const {
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer &other = buffers[i];
    if (i != except && other.bytes > 0 && other.offset < offset + bytes &&
        offset < other.offset + other.bytes && other.first <= last &&
        first <= other.last)
      return false;
  }
  return true;
}

/// Looks for the lowest place that is free all the time.
bool FlightPlanner::place(size_t buffer) {
  Buffer &own = buffers[buffer];
  std::vector<int64_t> offsets{0};
  for (const Buffer &other : buffers)
    if (&other != &own && other.bytes > 0 && other.first <= own.last &&
        own.first <= other.last)
      offsets.push_back(other.offset + other.bytes);
  llvm::sort(offsets);
  for (int64_t offset : offsets)
    if (offset + own.bytes <= limit &&
        isFree(buffer, offset, own.bytes, own.first, own.last)) {
      own.offset = offset;
      return true;
    }
  return false;
}

/// Lets a buffer be alive longer, where it is or elsewhere.
bool FlightPlanner::extend(size_t buffer, int64_t first, int64_t last) {
  Buffer &own = buffers[buffer];
  if (own.bytes == 0)
    return true;
  Buffer before = own;
  own.first = std::min(own.first, first);
  own.last = std::max(own.last, last);
  bool stays =
      (own.first == before.first ||
       isFree(buffer, own.offset, own.bytes, own.first, before.first - 1)) &&
      (own.last == before.last ||
       isFree(buffer, own.offset, own.bytes, before.last + 1, own.last));
  return stays || place(buffer);
}

/// Gives the bytes in flight their places for the flight's window.
bool FlightPlanner::fits(const Flight &flight) {
  KernelCallOp call = flight.call;
  int64_t start = 2 * flight.start, wait = 2 * flight.wait;
  for (auto [i, inPlace] : llvm::enumerate(flight.inPlace)) {
    Value result = call.getResult(unsigned(i));
    Value base = getViewBase(call.getArgs()[i]);
    size_t own = bufferOf.lookup(result);
    if (inPlace) { // one buffer from here on
      size_t joined = bufferOf.lookup(base);
      buffers[joined].last = std::max(buffers[joined].last, buffers[own].last);
      buffers[own].bytes = 0;
      bufferOf[result] = joined;
      if (!extend(joined, wait, wait)) // of results that nothing reads
        return false;
      continue;
    }
    if (!extend(own, start, wait))
      return false;
    if (auto found = bufferOf.find(base); found != bufferOf.end())
      if (!extend(found->second, wait, wait))
        return false;
  }
  auto workspace = workspaceOf.find(call);
  return (workspace == workspaceOf.end() ||
          extend(workspace->second, start, wait)) &&
         delay(flight);
}

FlightPlan FlightPlanner::run() {
  FlightPlan plan;
  std::vector<Flight> &flights = plan.flights;
  for (auto [i, call] : llvm::enumerate(calls)) {
    if (!getCollective(call))
      continue;
    Flight flight;
    flight.call = call;
    flight.place = int64_t(i);
    bool found = isPlain(call) && findWindow(flight);
    for (unsigned t = 0; found && t < call.getNumResults(); ++t)
      flight.inPlace.push_back(mayLieInPlace(call, t));
    if (found && limit >= 0) {
      int64_t before = flight.place - flight.start;
      int64_t after = flight.wait - flight.place - 1;
      for (;; before /= 2, after /= 2) {
        found = before > 0 || after > 0;
        if (!found)
          break;
        flight.start = flight.place - before;
        flight.wait = flight.place + 1 + after;
        auto savedBuffers = buffers;
        auto savedMap = bufferOf;
        auto savedDelays = delayed;
        if (fits(flight))
          break;
        buffers = std::move(savedBuffers);
        bufferOf = std::move(savedMap);
        delayed = std::move(savedDelays);
      }
    }
    if (found && limit < 0)
      delay(flight);
    earliest = found ? flight.start : int64_t(i) + 1;
    if (!found)
      continue;
    waits[call] = flight.wait;
    flights.push_back(std::move(flight));
  }
  for (Flight &flight : flights) {
    for (Value result : flight.call.getOuts())
      flight.offsets.push_back(
          limit < 0 ? -1 : buffers[bufferOf.lookup(result)].offset);
    if (auto found = workspaceOf.find(flight.call); found != workspaceOf.end())
      flight.workspaceOffset = buffers[found->second].offset;
  }
  for (KernelCallOp call : calls)
    if (auto found = delayed.find(call); found != delayed.end())
      plan.delayed.emplace_back(call, found->second);
  if (limit >= 0) {
    plan.packed = packedBytes();
    collectMoved(plan.moved);
  }
  return plan;
}

FlightPlan ckopt::planFlights(func::FuncOp function, CostModel &costs,
                              int64_t packedLimit) {
  return FlightPlanner(function, costs, packedLimit).run();
}
