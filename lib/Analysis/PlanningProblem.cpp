//===- PlanningProblem.cpp - a function as a planning problem -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: state a function's ops and tensors in the planner's terms. Method:
// each tensor has a storage; a view shares the storage of its base. Arguments
// are persistent (the arena holds them all the time), results are outputs,
// except that a result which replaces an argument is written to the argument's
// bytes: its maker mutates them. Nodes stand in program order, except that
// makers of new states come after the last reader of the old one. Ops with side
// effects, and ops that are not known to be pure, run once, in order. An op
// that reads memory through a tensor (MemoryReads.h) stays between the side
// effects that surround it, and runs again only if none follows. Guarantee: the
// graph is valid for the planner; node order is deterministic. Complexity:
// O(ops and operands).
//
//===----------------------------------------------------------------------===//
#include "ckopt/Analysis/PlanningProblem.h"
#include "BodyLoads.h"
#include "Callees.h"
#include "Loops.h"
#include "MemoryReads.h"
#include "ckopt/Analysis/OpFacts.h"
#include "ckopt/Base/MessageText.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptKernelOps.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace ckopt;

int64_t ckopt::arenaAlignment(Operation *op) {
  for (; op; op = op->getParentOp())
    if (auto given = op->getAttrOfType<IntegerAttr>(attrs::kAlignment))
      if (llvm::isPowerOf2_64(uint64_t(given.getInt())))
        return std::max(given.getInt(), kArenaAlignment);
  return kArenaAlignment;
}

namespace {

class ProblemBuilder {
public:
  ProblemBuilder(FunctionOpInterface function, CostModel &costs,
                 const PlanningContext &context)
      : function(function), costs(costs), context(context),
        sizes(function, context.hooks), loads(function, context),
        memory(sizes) {}
  FailureOr<PlanningProblem> run();

private:
  LogicalResult collect();
  LogicalResult findUpdates();
  LogicalResult order();
  void addArguments();
  void addNode(Operation *op);
  void restrict(Operation *op, planner::Node &node, planner::NodeId id,
                bool guessed);
  void runOnce(planner::NodeId id, StringRef why);
  LogicalResult checkCosts();
  void addOutputs();
  planner::ValueId addValue(Value value, planner::ValueKind kind);
  /// Returns the number of the argument that a value replaces, or -1.
  int64_t replaces(Value value) const {
    auto found = newStates.find(value);
    return found == newStates.end() ? -1 : found->second;
  }

  FunctionOpInterface function;
  CostModel &costs;
  const PlanningContext &context;
  TypeSizes sizes;
  BodyLoads loads;
  PlanningProblem problem;
  /// Nodes in program order, before makers of states are moved.
  SmallVector<Operation *> program;
  DenseMap<Operation *, int64_t> place;
  /// Values that replace an argument's bytes.
  llvm::MapVector<Value, int64_t> newStates;
  /// The last node with side effects so far.
  planner::NodeId lastEffect = -1;
  /// Nodes after it that read memory through tensors.
  std::vector<planner::NodeId> memoryReaders;
  /// Nodes after it that may not end: a later side effect may never happen.
  std::vector<planner::NodeId> endless;
  MemoryReads memory;
  Callees callees{context, sizes, costs};
};

} // namespace

std::string ckopt::findUnsupported(FunctionOpInterface function,
                                   Location *where,
                                   const PlanningHooks &hooks) {
  auto report = [&](Location loc, std::string what) {
    if (where)
      *where = loc;
    return what;
  };
  if (!function.getFunctionBody().hasOneBlock())
    return report(function.getLoc(),
                  "planning needs a function of one block; inline or outline "
                  "its control flow first (for example with " +
                      foreignFlag("lift-cf-to-scf") + ")");
  if (!function.front().mightHaveTerminator())
    return report(function.getLoc(),
                  "planning needs a function that ends with an op that returns "
                  "its results");
  TypeSizes sizes(function, hooks);
  for (BlockArgument argument : function.getArguments())
    if (std::string what = sizes.describeUnsized(argument.getType());
        !what.empty())
      return report(argument.getLoc(), what);
  for (Operation &op : function.front().without_terminator())
    for (Type type : op.getResultTypes())
      if (std::string what = sizes.describeUnsized(type); !what.empty())
        return report(op.getLoc(), what);
  return "";
}

/// Checks that attributes which state numbers hold numbers.
static LogicalResult checkStated(Operation *op) {
  if (op->hasAttr(kCostAttr) && !getCostAttribute(op))
    return op->emitError() << kCostAttr
                           << " must be a finite number of seconds, not "
                              "negative, up to 1e9";
  Attribute attr = op->getAttr(kWorkspaceAttr);
  auto bytes = dyn_cast_or_null<IntegerAttr>(attr);
  if (attr && (!bytes || bytes.getValue().getSignificantBits() > 64 ||
               bytes.getInt() < 0 || bytes.getInt() > kMaxStatedBytes))
    return op->emitError() << kWorkspaceAttr
                           << " must be a number of bytes, not negative, up "
                              "to 2^56";
  return success();
}

LogicalResult ProblemBuilder::collect() {
  Location where = function.getLoc();
  if (std::string what = findUnsupported(function, &where, context.hooks);
      !what.empty())
    return emitError(where) << what;
  for (Operation &op : function.front().without_terminator()) {
    if (failed(checkStated(&op)) ||
        op.walk([&](Operation *inner) {
            return failed(facts::check(inner, sizes)) ? WalkResult::interrupt()
                                                      : WalkResult::advance();
          }).wasInterrupted())
      return failure();
    if (isView(&op) || isFree(&op))
      continue;
    place[&op] = program.size();
    program.push_back(&op);
  }
  return success();
}

LogicalResult ProblemBuilder::findUpdates() {
  // Ops that declare their own update pairs (calls) come first.
  for (Operation *op : program)
    for (auto [operand, result] : getUpdatePairs(op)) {
      auto argument =
          dyn_cast<BlockArgument>(getViewBase(op->getOperand(operand)));
      if (!argument)
        return op->emitError("updates a value that is no argument; only "
                             "arguments hold state");
      newStates[op->getResult(result)] = argument.getArgNumber();
    }
  LogicalResult status = success();
  Operation *terminator = function.front().getTerminator();
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (Attribute attr = function.getResultAttr(i, attrs::kUpdates);
        attr && !isa<IntegerAttr>(attr))
      return emitError(function.getLoc())
             << "result " << i << ": " << attrs::kUpdates
             << " must be the number of an argument";
  for (StateUpdate update : getStateUpdates(function)) {
    if (update.result >= terminator->getNumOperands())
      return emitError(terminator->getLoc())
             << "result " << update.result << " has " << attrs::kUpdates
             << ", but is not returned here";
    Value value = terminator->getOperand(update.result);
    if (update.argument >= function.getNumArguments())
      return emitError(function.getLoc())
             << "result " << update.result << " updates argument "
             << int64_t(int32_t(update.argument)) << ", which does not exist";
    BlockArgument argument = function.getArgument(update.argument);
    if (value == argument ||
        replaces(getViewBase(value)) == int64_t(update.argument))
      continue;
    Operation *maker = value.getDefiningOp();
    bool readsOld = maker && llvm::any_of(getReads(maker), [&](Value read) {
                      return getViewBase(read) == argument;
                    });
    if (!maker || isView(maker) || isFree(maker) || readsOld ||
        replaces(value) >= 0) {
      status = emitError(maker ? maker->getLoc() : function.getLoc())
               << "result " << update.result << " cannot be written to the "
               << "bytes of argument " << update.argument << " ("
               << getValueName(argument)
               << ") that it updates; it needs a kernel of its own that does "
                  "not read it, or an update op";
      continue;
    }
    newStates[value] = update.argument;
  }
  // The old bytes are overwritten when the function returns.
  llvm::SmallDenseSet<int64_t> updated;
  for (auto [value, argument] : newStates)
    updated.insert(argument);
  for (OpOperand &result : terminator->getOpOperands()) {
    auto argument = dyn_cast<BlockArgument>(getViewBase(result.get()));
    if (argument && updated.contains(argument.getArgNumber()))
      status = emitError(terminator->getLoc())
               << "result " << result.getOperandNumber()
               << " returns the old value of " << getValueName(argument)
               << ", which is updated in place; return its new value or a copy";
  }
  return status;
}

/// Places makers of new states after the last reader of the old one.
LogicalResult ProblemBuilder::order() {
  // Positions are spread by this factor, so that makers which wait for other
  // makers fit between two ops.
  constexpr int64_t room = 1024;
  DenseMap<Operation *, int64_t> key;
  for (Operation *op : program)
    key[op] = room * place.lookup(op);
  for (bool changed = true; changed;) {
    changed = false;
    // The last reader of each argument's old value.
    DenseMap<int64_t, int64_t> lastRead;
    for (Operation *op : program)
      for (Value read : getReads(op))
        if (auto argument = dyn_cast<BlockArgument>(getViewBase(read))) {
          int64_t &last = lastRead[argument.getArgNumber()];
          last = std::max(last, key.lookup(op));
        }
    for (Operation *op : program)
      for (Value result : op->getResults())
        if (int64_t argument = replaces(result);
            argument >= 0 && lastRead.lookup(argument) > key.lookup(op)) {
          key[op] = lastRead.lookup(argument) + 1;
          if (key[op] % room == 0)
            return op->emitError("states are read and updated in a circle; "
                                 "the updates cannot be done in place");
          changed = true;
        }
  }
  problem.ops.assign(program.begin(), program.end());
  llvm::sort(problem.ops, [&](Operation *a, Operation *b) {
    return std::pair(key.lookup(a), place.lookup(a)) <
           std::pair(key.lookup(b), place.lookup(b));
  });
  LogicalResult status = success();
  for (Operation *op : program)
    for (Value read : getReads(op)) {
      Operation *maker = getViewBase(read).getDefiningOp();
      if (maker && key.contains(maker) && key.lookup(maker) >= key.lookup(op))
        status = op->emitError()
                 << "reads a new state whose old value is read later; the "
                    "update cannot be done in place";
    }
  return status;
}

planner::ValueId ProblemBuilder::addValue(Value value,
                                          planner::ValueKind kind) {
  planner::Value entry;
  // A reference to memory that is not an argument shows bytes that belong to
  // someone else.
  bool counts =
      kind == planner::ValueKind::Persistent || sizes.isValue(value.getType());
  entry.bytes = counts ? sizes.bytes(value.getType()) : 0;
  entry.kind = kind;
  entry.name = getValueName(value);
  planner::ValueId id = problem.graph.values.size();
  problem.graph.values.push_back(std::move(entry));
  problem.storage[value] = id;
  return id;
}

void ProblemBuilder::addArguments() {
  for (BlockArgument argument : function.getArguments()) {
    loads.noteType(argument.getType(), argument.getLoc());
    if (!isa<TensorType>(argument.getType()) &&
        sizes.bytes(argument.getType()) == 0) {
      problem.arguments.push_back(-1);
      continue;
    }
    problem.arguments.push_back(
        addValue(argument, planner::ValueKind::Persistent));
    problem.argumentBytes += planner::alignTo(sizes.bytes(argument.getType()),
                                              problem.graph.alignment);
  }
}

void ProblemBuilder::runOnce(planner::NodeId id, StringRef why) {
  planner::Node &node = problem.graph.nodes[size_t(id)];
  // The first reason found is the one that is reported.
  if (node.recompute)
    problem.once[size_t(id)] = why.str();
  node.recompute = false;
}

/// Describes why an op with effects runs once.
static StringRef describeEffects(Operation *op) {
  if (op->hasAttr(facts::kPure))
    return "unknown effects inside";
  if (!op->isRegistered())
    return "unknown effects (unregistered)";
  if (isa<CallOpInterface>(op))
    return "unknown effects (a call)";
  if (std::optional<SmallVector<MemoryEffects::EffectInstance>> effects =
          getEffectsRecursively(op);
      !effects)
    return "unknown effects";
  return isMemoryEffectFree(op) ? "writes to memory through a tensor"
                                : "side effects";
}

/// Adds the constraints on order and repetition that follow from the op itself.
void ProblemBuilder::restrict(Operation *op, planner::Node &node,
                              planner::NodeId id, bool guessed) {
  if (!node.mutates.empty() || !getUpdatePairs(op).empty())
    runOnce(id, "a state that it updates");
  std::optional<bool> stated = isRematerializable(op, context.hooks);
  if (stated == false)
    runOnce(id, "a word of its own, or the client's, that it does");
  MemoryReads::Access access = memory.visit(op);
  // If the client states that running the op is not observable, its effects are
  // not looked at.
  if (stated == true)
    access = {};
  bool effects = stated != true &&
                 (access.writes || (!isMemoryEffectFree(op) &&
                                    (access.reads || !callees.isPureCall(op))));
  // What is said of an op does not say that its loops end.
  bool waits = (stated != true || op->hasAttr(facts::kPure)) && mayNotEnd(op);
  // An op that may have undefined behaviour stays after the side effects that
  // guard it.
  if ((effects || access.reads || waits ||
       (stated != true && !isSpeculatable(op))) &&
      lastEffect >= 0)
    node.after.push_back(lastEffect);
  if (effects) {
    runOnce(id, describeEffects(op));
    lastEffect = id;
    for (planner::NodeId reader : memoryReaders) {
      runOnce(reader, "memory reads before a later write");
      node.after.push_back(reader);
    }
    // An op that may never end stays before later side effects.
    for (planner::NodeId loop : endless)
      if (!llvm::is_contained(node.after, loop))
        node.after.push_back(loop);
    memoryReaders.clear();
    endless.clear();
  } else if (access.reads) {
    memoryReaders.push_back(id);
  }
  if (waits && !effects)
    endless.push_back(id);
  // Results that are neither tensors nor numbers (memory references, tokens)
  // may not be made twice.
  if (stated != true && llvm::any_of(op->getResultTypes(), [&](Type type) {
        return !sizes.isValue(type);
      }))
    runOnce(id, "a reference or a value of unknown type as result");
  if (guessed)
    runOnce(id, "a loop of unknown length that no ckopt.cost prices");
}

void ProblemBuilder::addNode(Operation *op) {
  planner::Node node;
  node.name = getSourceName(op->getLoc());
  node.group = getRepeatedBlock(node.name);
  auto call = dyn_cast<KernelCallOp>(op);
  if (node.name.empty())
    node.name =
        call ? call.getCallee().str() : op->getName().getStringRef().str();
  CostSource source;
  node.cost = callees.seconds(op, source);
  problem.costs.add(source);
  node.workspace = loads.workspace(op);
  planner::NodeId id = problem.graph.nodes.size();
  for (Value read : getReads(op)) {
    auto found = problem.storage.find(getViewBase(read));
    if (found != problem.storage.end() &&
        !llvm::is_contained(node.inputs, found->second))
      node.inputs.push_back(found->second);
  }
  for (Value result : op->getResults()) {
    if (int64_t argument = replaces(result); argument >= 0) {
      planner::ValueId state = problem.arguments[argument];
      problem.storage[result] = state;
      node.mutates.push_back(state);
      continue;
    }
    if (isAlias(result)) {
      problem.storage[result] = problem.storage.lookup(getViewBase(result));
      continue;
    }
    node.outputs.push_back(addValue(result, planner::ValueKind::Temp));
  }
  auto style = dyn_cast<DestinationStyleOpInterface>(op);
  for (auto [operand, result] : getReusePairs(op, context.hooks)) {
    // An op that reads memory must not make a destination of it.
    if (style && style.isDpsInput(&op->getOpOperand(operand)) &&
        memory.isMemory(op->getOperand(operand)))
      continue;
    auto from = problem.storage.find(getViewBase(op->getOperand(operand)));
    if (from != problem.storage.end() && replaces(op->getResult(result)) < 0)
      node.reuse.emplace_back(from->second,
                              problem.storage.lookup(op->getResult(result)));
  }
  problem.graph.nodes.push_back(std::move(node));
  problem.once.emplace_back();
  restrict(op, problem.graph.nodes.back(), id, source == CostSource::Guess);
}

/// If costs come from attributes alone, every op must have one.
LogicalResult ProblemBuilder::checkCosts() {
  if (!costs.getOptions().attributesOnly ||
      problem.costs.attribute == int64_t(problem.ops.size()))
    return success();
  for (Operation *op : problem.ops)
    if (!getCostAttribute(op))
      return op->emitError()
             << "has no " << kCostAttr << "; with cost-model=attribute every "
             << "op needs one ("
             << int64_t(problem.ops.size()) - problem.costs.attribute << " of "
             << problem.ops.size() << " have none)";
  return success();
}

void ProblemBuilder::addOutputs() {
  for (Value result : function.front().getTerminator()->getOperands()) {
    auto found = problem.storage.find(getViewBase(result));
    if (found == problem.storage.end())
      continue;
    planner::Value &value = problem.graph.values[found->second];
    if (value.kind == planner::ValueKind::Temp)
      value.kind = planner::ValueKind::Output;
  }
}

FailureOr<PlanningProblem> ProblemBuilder::run() {
  if (failed(collect()) || failed(findUpdates()) || failed(order()))
    return failure();
  problem.graph.name = getFunctionPath(function);
  costs.setHooks(context.hooks, function);
  problem.graph.alignment = arenaAlignment(function);
  addArguments();
  for (Operation *op : problem.ops)
    addNode(op);
  addOutputs();
  if (failed(checkCosts()))
    return failure();
  if (auto &profile = costs.getOptions().profile)
    problem.costs.unused = profile->unused();
  problem.graph.costModel = problem.costs.describe();
  problem.uncounted = loads.takeUncounted();
  if (std::string wrong = planner::validate(problem.graph); !wrong.empty())
    return emitError(function.getLoc(),
                     "internal error: the planning problem is not "
                     "valid: ")
           << wrong;
  return std::move(problem);
}

FailureOr<PlanningProblem> ckopt::buildProblem(FunctionOpInterface function,
                                               CostModel &costs,
                                               const PlanningContext &context) {
  return ProblemBuilder(function, costs, context).run();
}
