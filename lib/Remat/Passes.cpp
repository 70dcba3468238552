//===- Passes.cpp - order and recomputation as passes ---------------------===//
#include "ckopt/Remat/Passes.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Remat/Remat.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/Report.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace ckopt;

namespace ckopt {
#define GEN_PASS_DEF_REMATPASS
#define GEN_PASS_DEF_STRIPBARRIERSPASS
#include "ckopt/Remat/Passes.h.inc"
} // namespace ckopt

namespace {

struct RematPass : ckopt::impl::RematPassBase<RematPass> {
  using RematPassBase::RematPassBase;

  /// The budget that the options ask for.
  llvm::Expected<MemoryBudget> parseBudget() {
    int given =
        !budget.empty() + !budgetRatio.empty() + !activationRatio.empty();
    if (given > 1)
      return usageError("give one of budget, budget-ratio and "
                        "activation-ratio");
    if (!budget.empty())
      return parseMemoryBudget(budget);
    if (!budgetRatio.empty())
      return parseBudgetRatio(budgetRatio, MemoryBudget::Kind::Ratio,
                              "budget-ratio");
    if (!activationRatio.empty())
      return parseBudgetRatio(activationRatio,
                              MemoryBudget::Kind::ActivationRatio,
                              "activation-ratio");
    return MemoryBudget();
  }

  /// Brings a function with ops of other dialects to the form that later
  /// canonicalization keeps.
  LogicalResult canonicalize(func::FuncOp function) {
    bool foreign =
        llvm::any_of(function.front().without_terminator(), [](Operation &op) {
          return !isa<KernelCallOp, ReshapeOp>(op);
        });
    if (!foreign)
      return success();
    OpPassManager pipeline(func::FuncOp::getOperationName());
    pipeline.addPass(createCSEPass());
    pipeline.addPass(createCanonicalizerPass());
    pipeline.addPass(createCSEPass());
    pipeline.addPass(createCanonicalizerPass());
    return runPipeline(pipeline, function);
  }

  LogicalResult writeReport(ArrayRef<func::FuncOp> wanted,
                            ArrayRef<RematPlan> plans) {
    if (report.empty())
      return success();
    llvm::Error error = writeJsonFile(report, [&](llvm::json::OStream &json) {
      json.object([&] {
        json.attribute("format", "ckopt-remat-report/1");
        json.attributeArray("functions", [&] {
          for (auto [function, plan] : llvm::zip(wanted, plans))
            json.object([&, &function = function, &plan = plan] {
              json.attribute("name", func::FuncOp(function).getSymName());
              writePlanFigures(json, plan);
            });
        });
      });
    });
    if (error)
      return emitError(getOperation().getLoc())
             << takeErrorText(std::move(error)).text;
    return success();
  }

  void runOnOperation() override {
    llvm::Expected<MemoryBudget> parsed = parseBudget();
    if (!parsed) {
      emitError(getOperation().getLoc())
          << "remat: " << takeErrorText(parsed.takeError()).text;
      return signalPassFailure();
    }
    if (!llvm::is_contained(planner::strategyNames(), strategy)) {
      emitError(getOperation().getLoc())
          << "remat: unknown strategy '" << strategy << "'; known are "
          << llvm::join(planner::strategyNames(), ", ");
      return signalPassFailure();
    }
    SmallVector<func::FuncOp> wanted;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (isStepFunction(function) &&
          (functions.empty() ||
           llvm::is_contained(functions, function.getSymName().str())))
        wanted.push_back(function);
    for (func::FuncOp function : wanted)
      if (failed(canonicalize(function)))
        return signalPassFailure();
    RematOptions options;
    options.budget = *parsed;
    options.strategy = strategy;
    options.timeLimitSeconds = timeLimit;
    options.effort = effort;
    std::vector<RematPlan> plans;
    ExitCode code = runRemat(wanted, options, remarks, plans);
    // Drivers tell an infeasible budget from bad input by this.
    if (code != ExitOk)
      getOperation()->setAttr(
          "ckopt.exit_code",
          IntegerAttr::get(IntegerType::get(&getContext(), 64), code));
    if (code != ExitOk || failed(writeReport(wanted, plans)))
      signalPassFailure();
  }
};

struct StripBarriersPass
    : ckopt::impl::StripBarriersPassBase<StripBarriersPass> {
  using StripBarriersPassBase::StripBarriersPassBase;

  void runOnOperation() override {
    getOperation()->walk([](BarrierOp op) {
      op.getOutput().replaceAllUsesWith(op.getInput());
      op.erase();
    });
  }
};

} // namespace
