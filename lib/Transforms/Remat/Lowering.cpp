//===- Lowering.cpp - a copy of a function, lowered on trial --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: which tensors share a buffer, and when buffers end, is decided by
// one-shot bufferization and buffer deallocation, not by the plan: they copy
// what loops carry, keep results of calls, and overwrite arguments. Method: the
// very passes that docs/remat-pass.md names run on a copy of the function, with
// copies of what it refers to, and bufferPeak() follows the outcome. Guarantee:
// the function itself stays as it is, and errors of the trial are not reported.
// Complexity: that of the passes.
//
//===----------------------------------------------------------------------===//
#include "Lowering.h"
#include "ckopt/Analysis/BufferPeak.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptKernelOps.h"
#include "ckopt/Interfaces/Compat.h"
#include "mlir/Dialect/Arith/Transforms/BufferDeallocationOpInterfaceImpl.h"
#include "mlir/Dialect/Arith/Transforms/BufferViewFlowOpInterfaceImpl.h"
#include "mlir/Dialect/Arith/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Bufferization/Transforms/FuncBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Linalg/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/AllocationOpInterfaceImpl.h"
#include "mlir/Dialect/MemRef/Transforms/BufferViewFlowOpInterfaceImpl.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/BufferDeallocationOpInterfaceImpl.h"
#include "mlir/Dialect/SCF/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace ckopt;

/// The most ops of a function that is lowered on trial: the time of one-shot
/// bufferization rises with their cube where they all share buffers (0.5 s
/// here).
static constexpr int64_t maxOps = 256;

/// Adds the passes of docs/remat-pass.md that follow `remat`.
static void addLowering(OpPassManager &passes) {
  passes.addPass(createConvertElementwiseToLinalgPass());
  compat::addOneShotBufferize(passes);
  bufferization::buildBufferDeallocationPipeline(passes, {});
  passes.addNestedPass<func::FuncOp>(compat::createAllocationLivenessPass());
}

void ckopt::registerLowering(DialectRegistry &registry) {
  registerBarrierBufferization(registry);
  arith::registerBufferizableOpInterfaceExternalModels(registry);
  arith::registerBufferDeallocationOpInterfaceExternalModels(registry);
  arith::registerBufferViewFlowOpInterfaceExternalModels(registry);
  memref::registerBufferViewFlowOpInterfaceExternalModels(registry);
  bufferization::func_ext::registerBufferizableOpInterfaceExternalModels(
      registry);
  linalg::registerBufferizableOpInterfaceExternalModels(registry);
  memref::registerAllocationOpInterfaceExternalModels(registry);
  scf::registerBufferizableOpInterfaceExternalModels(registry);
  scf::registerBufferDeallocationOpInterfaceExternalModels(registry);
  tensor::registerBufferizableOpInterfaceExternalModels(registry);
  OpPassManager passes(ModuleOp::getOperationName());
  addLowering(passes);
  passes.getDependentDialects(registry);
}

namespace {

/// A module of copies of a function and of what it refers to.
class TrialModule {
public:
  TrialModule(FunctionOpInterface function, const RematOptions &options)
      : options(options), module(ModuleOp::create(function.getLoc())) {
    if (auto parent = function->getParentOfType<ModuleOp>())
      module->getOperation()->setDiscardableAttrs(
          parent->getDiscardableAttrDictionary());
  }
  /// Adds a copy of the function, changed to the plan, and of its callees.
  /// Failure: something that it refers to cannot be copied.
  LogicalResult add(func::FuncOp function, const RematPlan *plan);
  ModuleOp get() { return *module; }

private:
  LogicalResult addReferences(Operation *user);
  LogicalResult addCallee(func::CallOp call, func::FuncOp callee);

  const RematOptions &options;
  OwningOpRef<ModuleOp> module;
  llvm::StringSet<> added;
};

} // namespace

/// Returns a copy of the function, changed to the plan.
static func::FuncOp copyOf(func::FuncOp function, const RematPlan *plan,
                           StringRef apart) {
  IRMapping map;
  auto copy = cast<func::FuncOp>(function->clone(map));
  if (!plan || plan->unchanged || !plan->result.hasPlan())
    return copy;
  PlanningProblem problem = plan->problem;
  for (Operation *&op : problem.ops)
    op = map.lookup(op);
  problem.storage.clear();
  for (auto [value, storage] : plan->problem.storage)
    problem.storage[map.lookupOrDefault(value)] = storage;
  // An op that `apart` names may not be bufferized, but is a barrier, too.
  applySteps(copy, problem, plan->result.plan,
             apart == "attribute" ? "attribute" : "barrier");
  return copy;
}

LogicalResult TrialModule::add(func::FuncOp function, const RematPlan *plan) {
  added.insert(function.getName());
  module->push_back(copyOf(function, plan, options.apart));
  return addReferences(function);
}

LogicalResult TrialModule::addCallee(func::CallOp call, func::FuncOp callee) {
  if (options.mayReadCallees && !callee.isExternal())
    return add(callee,
               options.calleePlan ? options.calleePlan(callee) : nullptr);
  if (callee.isExternal() &&
      (getStatedWorkspace(callee, options.hooks) ||
       (options.hooks.callee && options.hooks.callee(callee))))
    return failure();
  // Another thread may change the callee now: all that is known is the call.
  auto stranger = func::FuncOp::create(call.getLoc(), call.getCallee(),
                                       call.getCalleeType());
  stranger.setPrivate();
  module->push_back(stranger);
  return success();
}

LogicalResult TrialModule::addReferences(Operation *user) {
  std::optional<SymbolTable::UseRange> uses =
      SymbolTable::getSymbolUses(&user->getRegion(0));
  if (!uses)
    return failure();
  for (SymbolTable::SymbolUse use : *uses) {
    auto name = dyn_cast<FlatSymbolRefAttr>(use.getSymbolRef());
    if (!name)
      return failure();
    if (!added.insert(name.getValue()).second)
      continue;
    Operation *symbol =
        SymbolTable::lookupNearestSymbolFrom(use.getUser(), name);
    auto callee = dyn_cast_or_null<func::FuncOp>(symbol);
    auto call = dyn_cast<func::CallOp>(use.getUser());
    if (callee && call) {
      if (failed(addCallee(call, callee)))
        return failure();
    } else if (auto global = dyn_cast_or_null<memref::GlobalOp>(symbol)) {
      module->push_back(global->clone());
    } else {
      return failure();
    }
  }
  return success();
}

bool ckopt::isLarge(FunctionOpInterface function) {
  int64_t ops = 0;
  function->walk<WalkOrder::PreOrder>([&](Operation *op) {
    ++ops;
    // Scalars inside have no buffers.
    return isa<linalg::LinalgOp>(op) ? WalkResult::skip()
                                     : WalkResult::advance();
  });
  return ops > maxOps;
}

/// Returns whether the client states what ops or callees need, which no
/// lowering shows.
static bool hasStatedBytes(FunctionOpInterface function,
                           const RematOptions &options) {
  return function
      ->walk([&](Operation *op) {
        return op != function && getStatedWorkspace(op, options.hooks)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

std::optional<int64_t> ckopt::loweredBytes(FunctionOpInterface function,
                                           const RematPlan *plan,
                                           const RematOptions &options) {
  auto own = dyn_cast<func::FuncOp>(*function);
  if (!own || isLarge(function) || hasStatedBytes(function, options))
    return std::nullopt;
  MLIRContext *context = function.getContext();
  Silence silence(context);
  TrialModule trial(function, options);
  if (failed(trial.add(own, plan)))
    return std::nullopt;
  PassManager passes(context);
  passes.enableVerifier(false);
  addLowering(passes);
  if (failed(passes.run(trial.get())))
    return std::nullopt;
  return bufferPeak(trial.get().lookupSymbol<func::FuncOp>(own.getName()),
                    arenaAlignment(function));
}
