//===- Passes.cpp - order and recomputation as passes ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Remat/Passes.h"
#include "Described.h"
#include "Lowering.h"
#include "PlanSink.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptKernelOps.h"
#include "ckopt/Dialect/Ckopt/Utils/ExitDiagnostic.h"
#include "ckopt/Dialect/Ckopt/Utils/SettingDiagnostic.h"
#include "ckopt/Interfaces/Compat.h"
#include "ckopt/Interfaces/KernelInterface.h"
#include "ckopt/Planner/SearchOptions.h"
#include "ckopt/Remat/Remat.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/OutputFiles.h"
#include "ckopt/Support/Report.h"
#include "mlir/Dialect/Affine/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Arith/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Linalg/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/SCF/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

#include <map>

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
  RematPass(RematOptions options, RematResult *result,
            const RematPassOptions &which)
      : RematPassBase(stating(options, which)), search(*this, &options.search),
        settled(std::make_shared<RematOptions>(std::move(options))),
        sink(std::make_shared<PlanSink>(result)), isTyped(true) {}
  /// Copies the pass; MLIR copies the options' values afterwards.
  RematPass(const RematPass &other)
      : RematPassBase(other), settled(other.settled), sink(other.sink),
        isTyped(other.isTyped) {}

  /// Returns the textual options of a pass that gets these.
  static RematPassOptions stating(const RematOptions &options,
                                  const RematPassOptions &which) {
    RematPassOptions all = printedOptions(options);
    all.functions = which.functions;
    all.skipUnsupported = which.skipUnsupported;
    all.canonicalizeFirst = which.canonicalizeFirst;
    return all;
  }

  /// The pass runs on modules, and on functions of any dialect.
  bool canScheduleOn(RegisteredOperationName name) const override {
    return name.getStringRef() == ModuleOp::getOperationName() ||
           name.hasInterface<FunctionOpInterface>();
  }

  void getDependentDialects(DialectRegistry &registry) const override {
    RematPassBase::getDependentDialects(registry);
    registerLowering(registry);
    // Needed for upper bounds of dynamic shapes inside of loops.
    affine::registerValueBoundsOpInterfaceExternalModels(registry);
    arith::registerValueBoundsOpInterfaceExternalModels(registry);
    linalg::registerValueBoundsOpInterfaceExternalModels(registry);
    scf::registerValueBoundsOpInterfaceExternalModels(registry);
    tensor::registerValueBoundsOpInterfaceExternalModels(registry);
  }

  /// Returns the textual options as the struct that C++ clients use.
  RematPassOptions stated() const {
    RematPassOptions all;
    all.budget = budget;
    all.budgetRatio = budgetRatio;
    all.activationRatio = activationRatio;
    all.costModel = costModel;
    all.policy = policy;
    all.save = save;
    all.recompute = recompute;
    all.automatic = automatic;
    all.checkpoint = checkpoint;
    all.planFile = planFile;
    all.planHint = planHint;
    all.compare = compare;
    all.remarks = remarks;
    all.allowUncounted = allowUncounted;
    all.overlap = overlap;
    all.apart = apart;
    std::vector<std::string> tables(rematOps.begin(), rematOps.end());
    compat::addTo(all.rematOps, tables);
    std::vector<std::string> names(optional.begin(), optional.end());
    compat::addTo(all.optional, names);
    return all;
  }

  /// Reads the options, and the files that they name, once for all functions,
  /// so that mistakes in them are reported once.
  LogicalResult initialize(MLIRContext *context) override {
    if (isTyped) {
      sink->clear();
      return success();
    }
    llvm::StringRef costs = costModel;
    (void)costs.consume_front("profile=");
    SmallVector<NamedFile> inputs{{"plan", planFile},
                                  {"plan-hint", planHint},
                                  {"cost-model", costs.str()}};
    for (const std::string &table : rematOps)
      inputs.push_back({"remat-ops", table});
    if (llvm::Error error = checkDistinct(
            {{"plan-out", planOut, "plan-hint"}, {"report", report}}, inputs))
      return emitError(UnknownLoc::get(context)) << describe(std::move(error));
    sink = createFileSink(planOut, report);
    llvm::Expected<RematOptions> parsed =
        parseRematOptions(stated(), search.stated());
    if (!parsed)
      return emitError(UnknownLoc::get(context))
             << describe(parsed.takeError());
    settled = std::make_shared<RematOptions>(std::move(*parsed));
    return success();
  }

  static MessageText describe(llvm::Error error) {
    ErrorText text = takeErrorText(std::move(error));
    bool named = StringRef(text.text).starts_with("remat: ") ||
                 StringRef(text.text).starts_with("plan file ");
    return (named ? "" : "remat: ") + text.message;
  }

  /// Canonicalizes a function with ops of other dialects, so that a later
  /// canonicalization does not undo the plan; not if that takes bytes: values
  /// that CSE merges live longer.
  LogicalResult canonicalize(FunctionOpInterface function,
                             const RematOptions &options) {
    bool foreign =
        llvm::any_of(function.front().without_terminator(), [](Operation &op) {
          return !isa<KernelCallOp>(op) &&
                 !(isa<KernelOpInterface>(op) && isView(&op));
        });
    if (!foreign || !canonicalizeFirst ||
        !function->hasTrait<OpTrait::IsIsolatedFromAbove>())
      return success();
    OpPassManager pipeline(function->getName().getStringRef());
    pipeline.addPass(createCSEPass());
    pipeline.addPass(createCanonicalizerPass());
    pipeline.addPass(createCSEPass());
    pipeline.addPass(createCanonicalizerPass());
    return changeUnlessWorse(function, options,
                             [&] { return runPipeline(pipeline, function); });
  }

  /// Returns whether the option `functions` names the function, or is empty.
  bool isNamed(FunctionOpInterface function) {
    return functions.empty() ||
           llvm::is_contained(functions, function.getName().str()) ||
           llvm::is_contained(functions, getFunctionPath(function));
  }

  /// Returns the functions with a body in a module, and in modules inside of
  /// it.
  static SmallVector<FunctionOpInterface> functionsIn(Operation *module) {
    SmallVector<FunctionOpInterface> found;
    module->walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (auto function = dyn_cast<FunctionOpInterface>(op)) {
        if (!function.isExternal())
          found.push_back(function);
        return WalkResult::skip();
      }
      return op == module || op->hasTrait<OpTrait::SymbolTable>()
                 ? WalkResult::advance()
                 : WalkResult::skip();
    });
    return found;
  }

  /// Returns why the function cannot be planned under the budget, if the
  /// options say to leave such functions alone.
  std::string findObstacle(FunctionOpInterface function,
                           const RematOptions &options, Location &where) {
    std::string what = findUnsupported(function, &where, options.hooks);
    if (!what.empty() || !needsAllCounted(options))
      return what;
    for (const Uncounted &entry :
         findUncounted(function, planningContext(options)))
      if (entry.own) {
        where = entry.where;
        return "its plan would not count " + entry.what;
      }
    return "";
  }

  /// Returns the functions to plan: this one, or those of this module.
  SmallVector<FunctionOpInterface> findFunctions(const RematOptions &options) {
    SmallVector<FunctionOpInterface> wanted;
    auto consider = [&](FunctionOpInterface function) {
      if (!isStepFunction(function) || !isNamed(function))
        return;
      if (skipUnsupported) {
        Location where = function.getLoc();
        if (std::string what = findObstacle(function, options, where);
            !what.empty()) {
          emitRemark(where)
              << "@" << function.getName() << " is left as it is: " << what;
          return;
        }
      }
      wanted.push_back(function);
    };
    if (auto function = dyn_cast<FunctionOpInterface>(getOperation()))
      consider(function);
    else
      llvm::for_each(functionsIn(getOperation()), consider);
    return wanted;
  }

  /// Returns the functions that may be planned, including those that other
  /// clones of this pass plan now. Their bodies must not be read here.
  SmallVector<FunctionOpInterface> findNamed() {
    Operation *module = getOperation();
    if (isa<FunctionOpInterface>(module) && module->getParentOp())
      module = module->getParentOp();
    if (isa<FunctionOpInterface>(module))
      return {cast<FunctionOpInterface>(module)};
    SmallVector<FunctionOpInterface> found = functionsIn(module);
    llvm::erase_if(found, [&](FunctionOpInterface function) {
      return !isNamed(function);
    });
    return found;
  }

  /// Warns of each name in `functions` that no function has: with several
  /// modules, another one may have it.
  void checkNames(ArrayRef<FunctionOpInterface> named) {
    // If functions are planned one by one, only one run of the pass warns.
    if (auto function = dyn_cast<FunctionOpInterface>(getOperation());
        function && function->getBlock())
      for (Operation &op : *function->getBlock())
        if (isa<FunctionOpInterface>(op)) {
          if (&op != function)
            return;
          break;
        }
    for (const std::string &name : functions)
      if (llvm::none_of(named, [&](FunctionOpInterface function) {
            return function.getName() == name ||
                   getFunctionPath(function) == name;
          }))
        emitWarning(getOperation()->getLoc())
            << "remat: functions: there is no function '" << name
            << "' with a body here";
  }

  /// Returns whether this run's plan is the one for a plan file. If functions
  /// are planned one by one, only one is.
  bool storesPlan(ArrayRef<FunctionOpInterface> named) {
    if (!isa<FunctionOpInterface>(getOperation()))
      return true;
    const auto *step = llvm::find_if(named, [](FunctionOpInterface function) {
      return function.getName() == "step";
    });
    if (step == named.end())
      step = named.begin();
    return !named.empty() &&
           FunctionOpInterface(*step).getOperation() == getOperation();
  }

  void runOnOperation() override {
    SmallVector<FunctionOpInterface> named = findNamed();
    checkNames(named);
    RematOptions options = *settled;
    options.mayReadCallees = !isa<FunctionOpInterface>(getOperation());
    Described described(getOperation(), options);
    if (failed(described.status()))
      return signalPassFailure();
    SmallVector<FunctionOpInterface> wanted = findFunctions(options);
    for (FunctionOpInterface function : wanted)
      if (failed(canonicalize(function, options)))
        return signalPassFailure();
    RematResult found;
    if (failed(runRemat(wanted, options, found)))
      signalPassFailure();
    // If no plan fits, the sink still gets what is known.
    const RematPlan *stored = storesPlan(named) ? found.mainPlan() : nullptr;
    if (llvm::Error error = sink->add(std::move(found), stored)) {
      ErrorText text = takeErrorText(std::move(error));
      InFlightDiagnostic diagnostic = emitError(getOperation()->getLoc());
      diagnostic << text.message;
      setExitCode(diagnostic, text.code);
      signalPassFailure();
    }
  }

private:
  /// The options on how to search: one of the pass for each row of their table.
  class SearchOptions {
  public:
    /// Adds the options to the pass, with the values that are `given`.
    explicit SearchOptions(RematPass &pass,
                           const planner::Options *given = nullptr) {
      for (const planner::SearchOption &row : planner::searchOptions())
        std::visit([&](auto member) { add(pass, row, member, given); },
                   row.member);
    }
    planner::Options stated() const {
      planner::Options options;
      for (const auto &read : reads)
        read(options);
      return options;
    }

  private:
    template <typename T>
    void add(RematPass &pass, const planner::SearchOption &row,
             T planner::Options::*member, const planner::Options *given) {
      using Stored = std::conditional_t<std::is_same_v<T, double>, Real, T>;
      auto option = std::make_shared<Option<Stored>>(
          pass, row.name, llvm::cl::desc(row.passHelp),
          llvm::cl::init(Stored(planner::Options().*member)));
      if (given)
        *option = Stored(given->*member);
      reads.push_back([option, member](planner::Options &options) {
        options.*member = T(option->getValue());
      });
    }

    /// Each stores the value of an option, which it owns.
    std::vector<std::function<void(planner::Options &)>> reads;
  };

  SearchOptions search{*this};
  /// The options in effect.
  std::shared_ptr<const RematOptions> settled;
  /// Copies of the pass that run in parallel share it.
  std::shared_ptr<PlanSink> sink;
  bool isTyped = false; ///< set if the options are a struct rather than text
};

struct StripBarriersPass
    : ckopt::impl::StripBarriersPassBase<StripBarriersPass> {
  using StripBarriersPassBase::StripBarriersPassBase;

  void runOnOperation() override {
    getOperation()->walk([](Operation *op) {
      if (isa<BarrierOp>(op) || isClientsBarrier(op)) {
        op->getResult(0).replaceAllUsesWith(op->getOperand(0));
        op->erase();
      } else if (!isa<KernelCallOp>(op)) {
        op->removeDiscardableAttr(attrs::kClone);
        op->removeDiscardableAttr(attrs::kNode);
      }
    });
  }
};

} // namespace

std::unique_ptr<Pass> ckopt::createRematPass(RematOptions options,
                                             RematResult *result,
                                             const RematPassOptions &which) {
  return std::make_unique<RematPass>(std::move(options), result, which);
}

static void writeReportJson(llvm::json::OStream &json,
                            ArrayRef<RematPlan> plans) {
  std::map<std::string, const RematPlan *> byName;
  for (const RematPlan &plan : plans)
    if (plan.wasPlanned())
      byName[plan.problem.graph.name] = &plan;
  json.object([&] {
    json.attribute("format", "ckopt-remat-report/1");
    json.attributeArray("functions", [&] {
      for (const auto &[name, plan] : byName)
        json.object([&, plan = plan] { writePlanFigures(json, *plan); });
    });
  });
}

llvm::Error ckopt::writeRematReport(StringRef path, ArrayRef<RematPlan> plans) {
  return writeJsonFile(
      path, [&](llvm::json::OStream &json) { writeReportJson(json, plans); });
}

std::string ckopt::rematReport(ArrayRef<RematPlan> plans) {
  return jsonText(
      [&](llvm::json::OStream &json) { writeReportJson(json, plans); });
}
