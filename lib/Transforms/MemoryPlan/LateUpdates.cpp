//===- LateUpdates.cpp - updates that wait for others ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "LateUpdates.h"
#include "ckopt/Analysis/PlanningProblem.h"

using namespace mlir;
using namespace ckopt;

namespace {

/// Moves the updates of one function.
class Postponer {
public:
  explicit Postponer(ArrayRef<Operation *> calls) : calls(calls) {
    for (auto [i, call] : llvm::enumerate(calls))
      place[call] = int64_t(i);
    countAlive();
  }
  SmallVector<Operation *> run(int64_t bytes);

private:
  int64_t lastReadOf(Value value);
  void countAlive();
  int64_t bytesHeldBy(KernelCallOp update);
  bool needsWaiting(Operation *call);

  ArrayRef<Operation *> calls;
  llvm::DenseMap<Operation *, int64_t> place;
  llvm::DenseMap<Value, int64_t> lastRead; ///< of calls' results
  SmallVector<int64_t> alive;              ///< bytes while each call runs
  llvm::SmallSetVector<Operation *, 16> waiting;
};

} // namespace

int64_t Postponer::lastReadOf(Value value) {
  int64_t last = -1;
  for (Operation *user : value.getUsers()) {
    for (Value alias : getAliases(user, value))
      last = std::max(last, lastReadOf(alias));
    if (isView(user))
      continue;
    auto found = place.find(user);
    last = std::max(last, found == place.end() ? int64_t(calls.size()) - 1
                                               : found->second);
  }
  return last;
}

/// Counts what is alive at each call. Results in the place of operands count
/// twice, so that there is rather less room than more.
void Postponer::countAlive() {
  alive.assign(calls.size(), 0);
  SmallVector<int64_t> change(calls.size() + 1, 0);
  for (auto [i, op] : llvm::enumerate(calls)) {
    auto call = cast<KernelCallOp>(op);
    alive[i] += call.getWorkspace();
    for (auto [r, result] : llvm::enumerate(call.getOuts())) {
      bool isState = llvm::any_of(getUpdatePairs(call), [r = r](auto pair) {
        return pair.second == r;
      });
      if (isState || isAlias(result))
        continue;
      int64_t bytes = getStorageBytes(result.getType()),
              last = std::max(lastReadOf(result), int64_t(i));
      lastRead[result] = last;
      change[i] += bytes;
      change[size_t(last) + 1] -= bytes;
    }
  }
  int64_t sum = 0;
  for (auto [bytes, more] : llvm::zip(alive, change))
    bytes += sum += more;
}

/// Returns the bytes that are alive only as long as the update waits.
int64_t Postponer::bytesHeldBy(KernelCallOp update) {
  int64_t bytes = 0;
  llvm::SmallDenseSet<Value> seen;
  for (Value operand : update.getArgs()) {
    Value base = getViewBase(operand);
    auto found = lastRead.find(base);
    if (found != lastRead.end() && seen.insert(base).second)
      bytes += getStorageBytes(base.getType());
  }
  return bytes;
}

/// Returns whether the call reads what an update that waits makes.
bool Postponer::needsWaiting(Operation *call) {
  return llvm::any_of(call->getOperands(), [&](Value operand) {
    Operation *maker = getViewBase(operand).getDefiningOp();
    return maker && waiting.contains(maker);
  });
}

SmallVector<Operation *> Postponer::run(int64_t bytes) {
  SmallVector<Operation *> order;
  int64_t held = 0;
  auto flush = [&] {
    llvm::append_range(order, waiting);
    waiting.clear();
    held = 0;
  };
  for (auto [i, op] : llvm::enumerate(calls)) {
    auto call = cast<KernelCallOp>(op);
    if (alive[i] + held > bytes || needsWaiting(call))
      flush();
    int64_t operands = 0;
    for (Value value : call.getArgs())
      operands += getStorageBytes(value.getType());
    // Results that are no states would have to wait, too.
    bool isUpdate = call.getUpdates().size() == 2 * call.getNumResults() &&
                    !call.getWorkspace() && call.getAliases().empty() &&
                    operands <= kMostUpdateBytes;
    if (!isUpdate) {
      order.push_back(call);
      continue;
    }
    waiting.insert(call);
    held += bytesHeldBy(call);
  }
  flush();
  return order;
}

SmallVector<Operation *> ckopt::postponeUpdates(ArrayRef<Operation *> calls,
                                                int64_t bytes) {
  return Postponer(calls).run(bytes);
}
