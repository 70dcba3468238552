//===- UnlessWorse.cpp - changes that cost no bytes -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: a change that is made before planning may cost bytes that no plan
// gets back: what CSE merges lives longer. Method: the bytes of the function
// are compared, as lowered or else by the rules of plans, and a copy from
// before the change comes back if it needs less. Guarantee: by that count, the
// function needs no more than before. Complexity: two lowerings where ops
// changed.
//
//===----------------------------------------------------------------------===//
#include "Lowering.h"
#include "ckopt/Planner/Simulator.h"

#include <numeric>

using namespace mlir;
using namespace ckopt;

/// Moves all ops of a block to another one with the same arguments.
static void moveOps(Block &from, Block &to) {
  for (auto [before, now] : llvm::zip(from.getArguments(), to.getArguments()))
    before.replaceAllUsesWith(now);
  to.getOperations().splice(to.end(), from.getOperations());
}

/// Swaps the ops of two blocks. Other threads may look at the functions, so the
/// blocks themselves stay.
static void swapOps(Block &a, Block &b) {
  Block spare;
  for (BlockArgument argument : a.getArguments())
    spare.addArgument(argument.getType(), argument.getLoc());
  moveOps(a, spare);
  moveOps(b, a);
  moveOps(spare, b);
}

/// Returns the largest load of the function as it stands, by the rules of
/// plans; nothing if it cannot be planned.
static std::optional<int64_t> ruledBytes(FunctionOpInterface function,
                                         const RematOptions &options) {
  Location where = function.getLoc();
  if (!findUnsupported(function, &where, options.hooks).empty())
    return std::nullopt;
  Silence silence(function.getContext());
  CostModel costs;
  FailureOr<PlanningProblem> problem =
      buildProblem(function, costs, planningContext(options));
  if (failed(problem))
    return std::nullopt;
  countAlignedArguments(problem->graph);
  std::vector<planner::NodeId> steps(problem->graph.nodes.size());
  std::iota(steps.begin(), steps.end(), 0);
  return planner::simulate(problem->graph, steps).peak;
}

LogicalResult
ckopt::changeUnlessWorse(FunctionOpInterface function,
                         const RematOptions &options,
                         llvm::function_ref<LogicalResult()> change) {
  if (!mayLower(function) || !function.getFunctionBody().hasOneBlock())
    return change();
  OwningOpRef<Operation *> former = function->clone();
  if (failed(change()))
    return failure();
  if (OperationEquivalence::isEquivalentTo(
          *former, function, OperationEquivalence::IgnoreLocations))
    return success();
  Block &block = function.front(), &other = (*former)->getRegion(0).front();
  using Bytes = std::optional<int64_t>;
  Bytes now = loweredBytes(function, nullptr, options),
        nowRuled = ruledBytes(function, options);
  swapOps(block, other);
  Bytes before = loweredBytes(function, nullptr, options),
        beforeRuled = ruledBytes(function, options);
  bool worse = now && before
                   ? *now > *before
                   : nowRuled && beforeRuled && *nowRuled > *beforeRuled;
  if (!worse)
    swapOps(block, other);
  return success();
}
