//===- OverlapApply.cpp - starts and waits for collectives ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rewrites the calls of collectives to calls of kernels that start them and
// wait for them, and notes what the step then takes. Linear in the number of
// calls.
//
//===----------------------------------------------------------------------===//
#include "Overlap.h"
#include "ckopt/Analysis/PlanningProblem.h"
#include "ckopt/MemoryPlan/MemoryPlan.h"
#include "ckopt/Planner/Packing.h"
#include "ckopt/Remat/Figures.h"
#include "ckopt/Remat/Passes.h"
#include "ckopt/Target/TargetRegistry.h"

using namespace mlir;
using namespace ckopt;

namespace ckopt {
#define GEN_PASS_DEF_OVERLAPPASS
#include "ckopt/Remat/Passes.h.inc"
} // namespace ckopt

namespace {

class FlightApplier {
public:
  FlightApplier(func::FuncOp function)
      : function(function), symbols(function->getParentOp()),
        builder(function.getContext()) {}
  void run(FlightPlan &plan);

private:
  func::FuncOp makeKernel(func::FuncOp callee, StringRef suffix,
                          FunctionType type, Block *&body);
  func::FuncOp startKernel(Flight &flight, RankedTensorType scratch);
  func::FuncOp waitKernel(Flight &flight, KernelCallOp start,
                          ArrayRef<Value> kept);
  void split(Flight &flight);

  func::FuncOp function;
  SymbolTable symbols;
  OpBuilder builder;
  /// By the collective's kernel and their own type; looked up only.
  DenseMap<std::pair<Operation *, Type>, func::FuncOp> kernels;
};

} // namespace

/// Makes an empty kernel beside another one; it has that one's attributes.
/// `body` stays null where a call of the same kernel made it before.
func::FuncOp FlightApplier::makeKernel(func::FuncOp callee, StringRef suffix,
                                       FunctionType type, Block *&body) {
  func::FuncOp &known = kernels[{callee, type}];
  if (known)
    return known;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfter(callee);
  auto kernel = func::FuncOp::create(builder, callee.getLoc(),
                                     (callee.getName() + suffix).str(), type);
  for (NamedAttribute attr : callee->getDiscardableAttrs())
    kernel->setDiscardableAttr(attr.getName(), attr.getValue());
  kernel.setPrivate();
  symbols.insert(kernel); // may choose another name
  body = kernel.addEntryBlock();
  return known = kernel;
}

func::FuncOp FlightApplier::startKernel(Flight &flight,
                                        RankedTensorType scratch) {
  auto callee = symbols.lookup<func::FuncOp>(flight.call.getCallee());
  Operation *op = &callee.front().front();
  SmallVector<Type> results(callee.getResultTypes());
  results.push_back(scratch);
  Block *block = nullptr;
  func::FuncOp kernel = makeKernel(
      callee, "_start",
      builder.getFunctionType(callee.getArgumentTypes(), results), block);
  if (!block)
    return kernel;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(block);
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(
        block->getArgument(cast<BlockArgument>(operand).getArgNumber()));
  SmallVector<NamedAttribute> attributes{builder.getNamedAttr(
      "collective", builder.getStringAttr(op->getName().stripDialect()))};
  for (StringRef name : {"ranks", "groups", "stride", "root"})
    if (Attribute attr = op->getAttr(name))
      attributes.push_back(builder.getNamedAttr(name, attr));
  auto start = CollectiveStartOp::create(builder, op->getLoc(), results,
                                         operands, attributes);
  func::ReturnOp::create(builder, op->getLoc(), start.getOutputs());
  return kernel;
}

func::FuncOp FlightApplier::waitKernel(Flight &flight, KernelCallOp start,
                                       ArrayRef<Value> kept) {
  auto callee = symbols.lookup<func::FuncOp>(flight.call.getCallee());
  Operation *op = &callee.front().front();
  SmallVector<Type> inputs(start.getResultTypes());
  llvm::append_range(inputs, ValueRange(kept).getTypes());
  Block *block = nullptr;
  func::FuncOp kernel = makeKernel(
      callee, "_wait", builder.getFunctionType(inputs, callee.getResultTypes()),
      block);
  if (!block)
    return kernel;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(block);
  SmallVector<NamedAttribute> attributes;
  for (StringRef name : {"ranks", "groups", "stride"})
    if (Attribute attr = op->getAttr(name))
      attributes.push_back(builder.getNamedAttr(name, attr));
  auto wait =
      CollectiveWaitOp::create(builder, op->getLoc(), callee.getResultTypes(),
                               block->getArguments(), attributes);
  func::ReturnOp::create(builder, op->getLoc(), wait.getOutputs());
  return kernel;
}

/// Makes the two calls, in place of the one.
void FlightApplier::split(Flight &flight) {
  KernelCallOp call = flight.call;
  builder.setInsertionPoint(call);
  auto bytes = RankedTensorType::get({int64_t(call.getWorkspace())},
                                     builder.getIntegerType(8, false));
  func::FuncOp starts = startKernel(flight, bytes);
  auto start = KernelCallOp::create(
      builder, call.getLoc(), starts.getResultTypes(), call.getArgs(),
      {{"callee", FlatSymbolRefAttr::get(starts.getSymNameAttr())}});
  SmallVector<int64_t> startPairs, waitPairs;
  SmallVector<Value> kept;
  for (auto [i, inPlace] : llvm::enumerate(flight.inPlace)) {
    waitPairs.append({int64_t(i), int64_t(i)});
    if (inPlace)
      startPairs.append({int64_t(i), int64_t(i)});
    else if (!llvm::is_contained(kept, call.getArgs()[i]))
      kept.push_back(call.getArgs()[i]);
  }
  start.setAliases(startPairs);
  func::FuncOp waits = waitKernel(flight, start, kept);
  SmallVector<Value> operands(start.getResults());
  llvm::append_range(operands, kept);
  auto wait = KernelCallOp::create(
      builder, call.getLoc(), waits.getResultTypes(), operands,
      {{"callee", FlatSymbolRefAttr::get(waits.getSymNameAttr())}});
  wait.setAliases(waitPairs);
  if (auto clone = call.getCloneAttr())
    wait.setCloneAttr(clone);
  if (Attribute node = call->getDiscardableAttr(attrs::kNode))
    wait->setDiscardableAttr(attrs::kNode, node);
  if (call.getOffsets()) {
    wait.setOffsets(flight.offsets);
    SmallVector<int64_t> offsets(ArrayRef<int64_t>(flight.offsets));
    offsets.push_back(std::max<int64_t>(flight.workspaceOffset, 0));
    start.setOffsets(offsets);
  }
  call.getResults().replaceAllUsesWith(wait.getResults());
  flight.started = start;
  flight.waited = wait;
}

void FlightApplier::run(FlightPlan &plan) {
  std::vector<FlightEvent> events = orderEvents(function, plan);
  for (Flight &flight : plan.flights)
    split(flight);
  SmallVector<Operation *> order;
  for (const FlightEvent &event : events)
    order.push_back(event.kind == FlightEvent::Start  ? event.flight->started
                    : event.kind == FlightEvent::Wait ? event.flight->waited
                                                      : event.call);
  for (Flight &flight : plan.flights)
    flight.call->erase();
  orderCalls(function, order);
}

void ckopt::applyFlights(func::FuncOp function, FlightPlan &plan) {
  FlightApplier(function).run(plan);
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Cost of a call that only begins something: less than any kernel's.
static constexpr double kStartSeconds = 1e-9;

/// Corrects what the plan's figures say of time.
static void noteFigures(func::FuncOp function, const planner::StepTime &step,
                        int64_t packed) {
  auto attr = function->getAttrOfType<DictionaryAttr>(kPlanAttr);
  if (!attr || step.messages <= 0)
    return;
  RematFigures figures = figuresFromAttribute(attr);
  if (figures.exposed >= figures.communication) // planned as if they blocked
    figures.baseSeconds =
        std::max(0.0, figures.baseSeconds - step.messages + step.exposed);
  figures.noteTime(step);
  if (packed >= 0)
    figures.arena = figures.argumentBytes + packed;
  function->setAttr(kPlanAttr, toAttribute(figures, function.getContext()));
}

namespace {

struct OverlapPass : ckopt::impl::OverlapPassBase<OverlapPass> {
  using OverlapPassBase::OverlapPassBase;
  explicit OverlapPass(const CostOptions &given) : settled(given) {
    costModel = given.source;
  }

  void runOnOperation() override {
    if (!settled) {
      llvm::Expected<CostOptions> parsed = parseCostModel(costModel);
      if (!parsed) {
        emitError(UnknownLoc::get(&getContext()))
            << llvm::toString(parsed.takeError());
        return signalPassFailure();
      }
      settled = std::move(*parsed);
    }
    for (auto function : llvm::to_vector(getOperation().getOps<func::FuncOp>()))
      if (isStepFunction(function))
        runOn(function);
  }

private:
  /// Returns the bytes for results and workspaces; negative: as many as it
  /// takes.
  int64_t limitOf(func::FuncOp function) const {
    auto packed = function->getAttrOfType<IntegerAttr>(kPackedBytes);
    if (!packed)
      return -1;
    int64_t bytes = budget, arguments = 0;
    if (auto attr = function->getAttrOfType<DictionaryAttr>(kPlanAttr)) {
      RematFigures figures = figuresFromAttribute(attr);
      arguments = figures.argumentBytes;
      if (bytes < 0)
        bytes = figures.budget;
    }
    return flightLimit(packed.getInt(), bytes, arguments);
  }

  void runOn(func::FuncOp function) {
    CostModel costs(*settled, ratesOf(function));
    int64_t limit = limitOf(function);
    FlightPlan plan = planFlights(function, costs, limit);
    DenseMap<const Flight *, double> exposed;
    planner::StepTime time =
        followEvents(orderEvents(function, plan), costs, &exposed);
    if (!plan.flights.empty())
      rewrite(function, plan, limit, exposed);
    noteFigures(function, time, plan.flights.empty() ? -1 : plan.packed);
  }

  static void rewrite(func::FuncOp function, FlightPlan &plan, int64_t limit,
                      const DenseMap<const Flight *, double> &exposed) {
    Builder builder(function.getContext());
    for (auto [value, offset] : plan.moved) {
      auto call = value.getDefiningOp<KernelCallOp>();
      SmallVector<int64_t> offsets(*call.getOffsets());
      offsets[cast<OpResult>(value).getResultNumber()] = offset;
      call.setOffsets(offsets);
    }
    applyFlights(function, plan);
    for (Flight &flight : plan.flights) {
      flight.started.setCost(APFloat(kStartSeconds));
      flight.waited.setCost(
          APFloat(std::max(exposed.lookup(&flight), kStartSeconds)));
    }
    if (limit >= 0) {
      function->setAttr(kPackedBytes, builder.getI64IntegerAttr(plan.packed));
      return;
    }
    function->removeAttr(kPackedBytes);
    for (KernelCallOp call : function.getOps<KernelCallOp>()) {
      call.removeOffsetsAttr();
      call.removeWorkspaceOffsetAttr();
    }
  }

  std::optional<CostOptions> settled;
};

} // namespace

std::unique_ptr<Pass> ckopt::createOverlapPass(const CostOptions &costs) {
  return std::make_unique<OverlapPass>(costs);
}
