//===- RankClock.cpp - what plans take on a rank --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: the planner compares plans by seconds, and what collectives add
// depends on the windows that the pass `overlap` will find for them. Method: a
// copy of the function takes the plan's order and offsets, the pass's own code
// finds the windows and follows the two clocks, and the copy is dropped.
// Guarantee: the seconds are those that the pass notes later. Complexity: a
// copy of the function, and that of planFlights().
//
//===----------------------------------------------------------------------===//
#include "ckopt/Remat/RankClock.h"
#include "../Remat/Planning.h"
#include "ckopt/Distribute/Overlap.h"
#include "ckopt/MemoryPlan/MemoryPlan.h"
#include "ckopt/Overlap/Passes.h"
#include "ckopt/Target/PlannedRates.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace ckopt;

namespace {

class RankClock : public planner::MessageClock {
public:
  RankClock(func::FuncOp function, const PlanningProblem &problem,
            SmallVector<char> isMessage);

  bool mayHide() const override { return true; }
  const std::vector<char> &messages() const override { return isMessage; }
  planner::StepTime follow(const planner::Plan &plan, int64_t budget) override;

private:
  /// Returns the problem in terms of a copy of what it was made for.
  static PlanningProblem copied(const PlanningProblem &problem,
                                const IRMapping &map);

  std::vector<char> isMessage;
  OwningOpRef<ModuleOp> module; ///< the function, and kernels of collectives
  func::FuncOp pristine;
  PlanningProblem problem; ///< of `pristine`
};

/// Of collectives that block their rank.
class BlockingClock : public planner::MessageClock {
public:
  BlockingClock(const planner::Graph &graph, ArrayRef<char> messages)
      : isMessage(messages.begin(), messages.end()) {
    for (const planner::Node &node : graph.nodes)
      costs.push_back(node.cost);
  }

  bool mayHide() const override { return false; }
  const std::vector<char> &messages() const override { return isMessage; }
  planner::StepTime follow(const planner::Plan &plan, int64_t) override {
    planner::StepTime time;
    for (planner::NodeId node : plan.steps)
      (isMessage[size_t(node)] ? time.messages : time.kernels) +=
          costs[size_t(node)];
    time.exposed = time.messages;
    return time;
  }

private:
  std::vector<char> isMessage;
  std::vector<double> costs;
};

} // namespace

PlanningProblem RankClock::copied(const PlanningProblem &problem,
                                  const IRMapping &map) {
  PlanningProblem result;
  result.graph = problem.graph;
  result.argumentBytes = problem.argumentBytes;
  for (Operation *op : problem.ops)
    result.ops.push_back(map.lookup(op));
  for (auto [value, storage] : problem.storage)
    if (Value copy = map.lookupOrNull(value))
      result.storage[copy] = storage;
  return result;
}

RankClock::RankClock(func::FuncOp function, const PlanningProblem &given,
                     SmallVector<char> messages)
    : isMessage(messages.begin(), messages.end()),
      module(ModuleOp::create(function.getLoc())) {
  if (auto parent = function->getParentOfType<ModuleOp>())
    (*module)->setAttrs(parent->getAttrDictionary());
  IRMapping map;
  pristine = cast<func::FuncOp>(function->clone(map));
  llvm::SmallDenseSet<Operation *> kernels;
  for (auto [op, message] : llvm::zip_equal(given.ops, messages)) {
    if (!message)
      continue;
    auto call = cast<KernelCallOp>(op);
    auto kernel = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
        call, call.getCalleeAttr());
    if (kernels.insert(kernel).second)
      module->push_back(kernel->clone());
  }
  module->push_back(pristine);
  problem = copied(given, map);
  // Kernels are not here, so that calls have to know what they take.
  for (auto [node, op] : llvm::zip_equal(problem.graph.nodes, problem.ops))
    cast<KernelCallOp>(op).setCost(APFloat(node.cost));
}

planner::StepTime RankClock::follow(const planner::Plan &plan, int64_t budget) {
  IRMapping map;
  auto function = cast<func::FuncOp>(pristine->clone(map));
  module->push_back(function);
  applySteps(function, copied(problem, map), plan, "barrier");
  auto packed = function->getAttrOfType<IntegerAttr>(kPackedBytes);
  CostModel costs(ratesOf(function));
  FlightPlan flights = planFlights(
      function, costs,
      packed ? flightLimit(packed.getInt(), budget, problem.argumentBytes)
             : -1);
  planner::StepTime time = followEvents(orderEvents(function, flights), costs);
  function.erase();
  return time;
}

namespace {
struct RankClocks : RankClockInterface {
  using RankClockInterface::RankClockInterface;
  std::shared_ptr<planner::MessageClock>
  makeClock(FunctionOpInterface function, const PlanningProblem &problem,
            const RematOptions &options) const override;
};
} // namespace

std::shared_ptr<planner::MessageClock>
RankClocks::makeClock(FunctionOpInterface function,
                      const PlanningProblem &problem,
                      const RematOptions &options) const {
  auto step = dyn_cast<func::FuncOp>(function.getOperation());
  if (!options.mayReadCallees || !step)
    return nullptr;
  SmallVector<char> messages;
  for (Operation *op : problem.ops) {
    auto call = dyn_cast<KernelCallOp>(op);
    if (!call)
      return nullptr;
    messages.push_back(getCollective(call) != nullptr);
  }
  if (!llvm::is_contained(messages, char(1)))
    return nullptr;
  if (!options.overlap)
    return std::make_shared<BlockingClock>(problem.graph, messages);
  return std::make_shared<RankClock>(step, problem, std::move(messages));
}

void ckopt::registerRankClock(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *, CkoptDialect *dialect) {
    dialect->addInterfaces<RankClocks>();
  });
}
