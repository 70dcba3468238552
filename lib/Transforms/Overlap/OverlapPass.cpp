//===- OverlapPass.cpp - the pass overlap ---------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Splits the collectives of planned steps (ckopt/Distribute/Overlap.h decides
// where) within the budget that remat noted, and corrects the plan's figures of
// time.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Analysis/PlanningProblem.h"
#include "ckopt/Distribute/Overlap.h"
#include "ckopt/MemoryPlan/MemoryPlan.h"
#include "ckopt/Overlap/Passes.h"
#include "ckopt/Remat/Figures.h"
#include "ckopt/Target/PlannedRates.h"

using namespace mlir;
using namespace ckopt;

namespace ckopt {
#define GEN_PASS_DEF_OVERLAPPASS
#include "ckopt/Overlap/Passes.h.inc"
} // namespace ckopt

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
