//===- JoinUpdates.cpp - updates of many parameters as one call -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: a step updates a hundred parameters, most of them small, and each
// launch costs a GPU more than such an update. Planned as one call they would
// keep all gradients alive until the last is there.
//
// Method: after planning, when every tensor has its place. An update waits for
// others of the same form (FlatParts.h) until a call comes that would overwrite
// what it reads, or needs what it writes; then all that wait become one call of
// a kernel with the parts of all. Waiting as long as possible and then running
// all gives the fewest groups.
//
// Guarantee: no tensor moves, so the arena stays as it is; calls change places
// only where their bytes do not meet, so no bit changes; the result is
// verified. Complexity: calls times waiting updates.
//
//===----------------------------------------------------------------------===//
#include "LateUpdates.h"
#include "ckopt/Analysis/FlatParts.h"
#include "ckopt/Analysis/PlanningProblem.h"
#include "ckopt/Base/KernelNames.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/MemoryPlan/MemoryPlan.h"
#include "ckopt/MemoryPlan/Passes.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace ckopt;

namespace ckopt {
#define GEN_PASS_DEF_JOINUPDATESPASS
#include "ckopt/MemoryPlan/Passes.h.inc"
} // namespace ckopt

namespace {

/// Bytes of the arena that a call reads and writes.
struct Touched {
  using Range = std::pair<int64_t, int64_t>; ///< begin, end
  SmallVector<Range> reads, writes;

  explicit Touched(KernelCallOp call);
  /// Returns whether the two must keep their order.
  bool meets(const Touched &other) const {
    return overlap(writes, other.writes) || overlap(writes, other.reads) ||
           overlap(reads, other.writes);
  }

private:
  static bool overlap(ArrayRef<Range> some, ArrayRef<Range> others) {
    return llvm::any_of(some, [&](Range a) {
      return llvm::any_of(others, [&](Range b) {
        return a.first < b.second && b.first < a.second;
      });
    });
  }
};

/// An update that waits for others.
struct Waiting {
  KernelCallOp call;
  Touched touched;
  std::string form;
  size_t place; ///< in the order of calls
};

/// Joins the updates of one function.
class Joiner {
public:
  Joiner(func::FuncOp function, SymbolTable &symbols, unsigned mostTensors)
      : function(function), symbols(symbols), mostTensors(mostTensors) {}
  void run();

private:
  std::string formOf(KernelCallOp call);
  void flush();
  void joinSome(ArrayRef<Waiting *> some);

  func::FuncOp function;
  SymbolTable &symbols;
  unsigned mostTensors;
  llvm::DenseMap<Operation *, SmallVector<FlatPart>> partsOf; ///< of kernels
  std::vector<Waiting> waiting;
  SmallVector<Operation *> order; ///< of calls; null: one that was joined
  SmallVector<Operation *> joined;
};

} // namespace

Touched::Touched(KernelCallOp call) {
  auto add = [](SmallVector<Range> &to, int64_t at, int64_t bytes) {
    if (bytes > 0)
      to.push_back({at, at + bytes});
  };
  for (Value value : call.getArgs())
    add(reads, getArenaOffset(value), getStorageBytes(value.getType()));
  for (auto [result, offset] : llvm::zip(call.getOuts(), *call.getOffsets()))
    add(writes, offset, getStorageBytes(result.getType()));
  add(writes, call.getWorkspaceOffset().value_or(0), call.getWorkspace());
}

/// Returns whether a part overwrites what another one reads: a thread that does
/// all of them may, blocks that do one each may not.
static bool partsMeet(KernelCallOp call, ArrayRef<FlatPart> parts) {
  auto meet = [&](const FlatPart &reader, const FlatPart &writer) {
    return llvm::any_of(reader.arguments, [&](unsigned a) {
      Value read = call.getArgs()[a];
      int64_t from = getArenaOffset(read),
              to = from + getStorageBytes(read.getType());
      return llvm::any_of(writer.results, [&](unsigned r) {
        int64_t at = (*call.getOffsets())[r];
        return at < to &&
               from < at + getStorageBytes(call.getOuts()[r].getType());
      });
    });
  };
  for (const FlatPart &reader : parts)
    for (const FlatPart &writer : parts)
      if (&reader != &writer && meet(reader, writer))
        return true;
  return false;
}

/// Returns what the call computes, if it is an update that may be joined.
std::string Joiner::formOf(KernelCallOp call) {
  if (call.getUpdates().empty() || call.getWorkspace() ||
      !call.getScalars().empty() || !call.getAliases().empty())
    return "";
  int64_t bytes = 0;
  for (Value value : call.getArgs())
    bytes += getStorageBytes(value.getType());
  auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
  auto [known, isNew] = partsOf.try_emplace(kernel);
  SmallVector<FlatPart> &parts = known->second;
  if (isNew && isJoinable(kernel))
    parts = findFlatParts(kernel);
  if (bytes > kMostUpdateBytes || parts.empty() || partsMeet(call, parts))
    return "";
  return parts.front().form;
}

/// Makes one kernel of the bodies of several calls', and one call of it.
void Joiner::joinSome(ArrayRef<Waiting *> some) {
  MLIRContext *context = function.getContext();
  SmallVector<Value> operands, results;
  SmallVector<Location> locations;
  SmallVector<int64_t> offsets, reuse, updates;
  double cost = 0;
  llvm::SmallMapVector<Value, unsigned, 16> numbers;
  for (Waiting *one : some) {
    KernelCallOp call = one->call;
    for (Value value : call.getArgs())
      numbers.insert({value, unsigned(numbers.size())});
    auto shifted = [&](ArrayRef<int64_t> pairs, SmallVector<int64_t> &to) {
      for (size_t i = 0; i < pairs.size(); i += 2) {
        to.push_back(numbers.lookup(call.getArgs()[size_t(pairs[i])]));
        to.push_back(int64_t(results.size()) + pairs[i + 1]);
      }
    };
    shifted(call.getReuse(), reuse);
    shifted(call.getUpdates(), updates);
    llvm::append_range(results, call.getOuts());
    llvm::append_range(offsets, *call.getOffsets());
    locations.push_back(call.getLoc());
    cost += call.getCost().convertToDouble();
  }
  for (auto &[value, number] : numbers)
    operands.push_back(value);
  Location loc = FusedLoc::get(context, locations);
  OpBuilder builder(context);
  builder.setInsertionPoint(
      symbols.lookup<func::FuncOp>(some.front()->call.getCallee()));
  auto type = builder.getFunctionType(TypeRange(ValueRange(operands)),
                                      TypeRange(ValueRange(results)));
  auto kernel = func::FuncOp::create(
      builder, loc, (kJoinedKernel + llvm::Twine(0)).str(), type);
  kernel.setPrivate();
  kernel->setAttr(attrs::kKernel, builder.getStringAttr("joined"));
  kernel->setAttr(attrs::kLaunches, builder.getI64IntegerAttr(1));
  symbols.insert(kernel);
  Block *body = kernel.addEntryBlock();
  builder.setInsertionPointToStart(body);
  SmallVector<Value> made;
  for (Waiting *one : some) {
    auto from = symbols.lookup<func::FuncOp>(one->call.getCallee());
    IRMapping mapping;
    for (auto [argument, value] :
         llvm::zip(from.getArguments(), one->call.getArgs()))
      mapping.map(argument, body->getArgument(numbers.lookup(value)));
    for (Operation &op : from.front().without_terminator())
      builder.clone(op, mapping);
    for (Value value : from.front().getTerminator()->getOperands())
      made.push_back(mapping.lookup(value));
  }
  func::ReturnOp::create(builder, loc, made);

  builder.setInsertionPoint(function.front().getTerminator());
  auto call = KernelCallOp::create(
      builder, loc, type.getResults(), kernel.getSymName(), operands,
      llvm::APFloat(cost), /*workspace=*/0, reuse, updates, ArrayRef<int64_t>(),
      ArrayRef<int64_t>(), builder.getDenseI64ArrayAttr(offsets), IntegerAttr(),
      IntegerAttr());
  for (auto [before, after] : llvm::zip(results, call.getOuts()))
    before.replaceAllUsesWith(after);
  for (Waiting *one : some) {
    order[one->place] = nullptr;
    joined.push_back(one->call);
  }
  order.push_back(call);
}

/// Runs all that wait, here; what is alone stays where it was.
void Joiner::flush() {
  llvm::MapVector<StringRef, SmallVector<Waiting *>> groups;
  for (Waiting &one : waiting)
    groups[one.form].push_back(&one);
  for (auto &[form, group] : groups) {
    for (ArrayRef<Waiting *> rest = group; rest.size() > 1;) {
      llvm::SmallDenseSet<Value> operands;
      unsigned results = 0;
      auto fits = [&](Waiting *one) {
        operands.insert_range(one->call.getArgs());
        results += one->call.getNumResults();
        return operands.size() + results <= mostTensors;
      };
      ArrayRef<Waiting *> some = rest.take_while(fits);
      if (some.size() > 1)
        joinSome(some);
      rest = rest.drop_front(std::max<size_t>(some.size(), 1));
    }
  }
  waiting.clear();
}

void Joiner::run() {
  SmallVector<KernelCallOp> calls(function.front().getOps<KernelCallOp>());
  for (KernelCallOp call : calls) {
    Touched touched(call);
    if (!call.getAliases().empty() ||
        llvm::any_of(waiting, [&](const Waiting &w) {
          return w.touched.meets(touched);
        }))
      flush();
    order.push_back(call);
    std::string form = formOf(call);
    if (!form.empty())
      waiting.push_back({call, touched, std::move(form), order.size() - 1});
  }
  flush();
  if (joined.empty())
    return;
  llvm::erase(order, nullptr);
  orderCalls(function, order);
  for (Operation *call : joined)
    call->erase();
}

namespace {

struct JoinUpdatesPass : ckopt::impl::JoinUpdatesPassBase<JoinUpdatesPass> {
  using JoinUpdatesPassBase::JoinUpdatesPassBase;

  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    auto functions = llvm::to_vector(getOperation().getOps<func::FuncOp>());
    llvm::StringSet<> used;
    for (func::FuncOp function : functions) {
      if (!function->hasAttr(attrs::kArenaBytes))
        continue;
      Joiner(function, symbols, mostTensors).run();
      if (failed(verifyArena(function)))
        return signalPassFailure();
      function.walk([&](KernelCallOp call) { used.insert(call.getCallee()); });
    }
    for (func::FuncOp kernel : functions)
      if (kernel->hasAttr(attrs::kKernel) && !used.contains(kernel.getName()))
        symbols.erase(kernel);
  }
};

} // namespace
