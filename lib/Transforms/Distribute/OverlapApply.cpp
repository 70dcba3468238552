//===- OverlapApply.cpp - starts and waits for collectives ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rewrites the calls of collectives to calls of kernels that start them and
// wait for them. Linear in the number of calls.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Distribute/Overlap.h"
#include "ckopt/MemoryPlan/MemoryPlan.h"

using namespace mlir;
using namespace ckopt;

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
