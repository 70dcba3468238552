//===- Passes.cpp - order and recomputation as passes ---------------------===//
#include "ckopt/Remat/Passes.h"
#include "Planning.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Remat/Remat.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/Report.h"
#include "mlir/Dialect/Affine/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Arith/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Linalg/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/SCF/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

#include <map>
#include <mutex>

using namespace mlir;
using namespace ckopt;

namespace ckopt {
#define GEN_PASS_DEF_REMATPASS
#define GEN_PASS_DEF_STRIPBARRIERSPASS
#include "ckopt/Remat/Passes.h.inc"
} // namespace ckopt

namespace {

/// The plans' figures of all functions that the copies of one pass planned.
/// Functions may be planned in parallel, in any order; the file lists them by
/// name and is complete when the last one is done.
class ReportBook {
public:
  llvm::Error add(StringRef path, ArrayRef<FunctionOpInterface> functions,
                  ArrayRef<RematPlan> plans) {
    std::lock_guard<std::mutex> lock(mutex);
    for (auto [function, plan] : llvm::zip(functions, plans)) {
      if (!plan.wasPlanned())
        continue;
      std::string page = jsonText([&, &plan = plan](llvm::json::OStream &json) {
        json.object([&] { writePlanFigures(json, plan); });
      });
      // It stands two levels deep in the file.
      std::string indented;
      for (char c : StringRef(page).rtrim()) {
        indented += c;
        if (c == '\n')
          indented += "    ";
      }
      pages[getFunctionPath(function)] = std::move(indented);
    }
    return writeJsonFile(path, [&](llvm::json::OStream &json) {
      json.object([&] {
        json.attribute("format", "ckopt-remat-report/1");
        json.attributeArray("functions", [&] {
          for (const auto &[name, page] : pages)
            json.rawValue(page);
        });
      });
    });
  }
  void clear() {
    std::lock_guard<std::mutex> lock(mutex);
    pages.clear();
  }

private:
  std::mutex mutex;
  std::map<std::string, std::string> pages;
};

struct RematPass : ckopt::impl::RematPassBase<RematPass> {
  using RematPassBase::RematPassBase;
  RematPass(const RematPassOptions &options, PlanningHooks hooks)
      : RematPassBase(options), hooks(std::move(hooks)) {}

  /// Modules, and functions of any dialect.
  bool canScheduleOn(RegisteredOperationName name) const override {
    return name.getStringRef() == ModuleOp::getOperationName() ||
           name.hasInterface<FunctionOpInterface>();
  }

  void getDependentDialects(DialectRegistry &registry) const override {
    RematPassBase::getDependentDialects(registry);
    registerBarrierBufferization(registry);
    // Upper bounds of dynamic shapes inside of loops.
    affine::registerValueBoundsOpInterfaceExternalModels(registry);
    arith::registerValueBoundsOpInterfaceExternalModels(registry);
    linalg::registerValueBoundsOpInterfaceExternalModels(registry);
    scf::registerValueBoundsOpInterfaceExternalModels(registry);
    tensor::registerValueBoundsOpInterfaceExternalModels(registry);
  }

  /// The options as one struct, which clients have, too.
  RematPassOptions stated() const {
    RematPassOptions all;
    all.budget = budget;
    all.budgetRatio = budgetRatio;
    all.activationRatio = activationRatio;
    all.strategy = strategy;
    all.timeLimit = timeLimit;
    all.workLimit = workLimit;
    all.effort = effort;
    all.seed = seed;
    all.threads = threads;
    all.searchToLimit = searchToLimit;
    all.fixedOrder = fixedOrder;
    all.orderOnly = orderOnly;
    all.costModel = costModel;
    all.policy = policy;
    all.save = save;
    all.recompute = recompute;
    all.automatic = automatic;
    all.checkpoint = checkpoint;
    all.planFile = planFile;
    all.planHint = planHint;
    all.compare = compare;
    all.planOut = planOut;
    all.allowUncounted = allowUncounted;
    return all;
  }

  /// What the options ask for; `op` (the module, or a function in it) may hold
  /// a policy beside them.
  llvm::Expected<RematOptions> parseOptions(Operation *op) {
    llvm::Expected<RematOptions> parsed =
        parseRematOptions(stated(), policyOf(op));
    if (!parsed)
      return parsed;
    parsed->hooks = hooks;
    parsed->mayReadCallees = op && !isa<FunctionOpInterface>(op);
    return parsed;
  }

  /// The policy that the driver left on the module.
  static RematPolicy policyOf(Operation *op) {
    while (op && !op->hasAttr(kPolicyAttr))
      op = op->getParentOp();
    auto left =
        op ? op->getAttrOfType<DictionaryAttr>(kPolicyAttr) : DictionaryAttr();
    return left ? policyFromAttribute(left) : RematPolicy();
  }

  /// Mistakes in the options are told once, not for each function.
  LogicalResult initialize(MLIRContext *context) override {
    book->clear();
    llvm::Expected<RematOptions> options = parseOptions(/*op=*/nullptr);
    if (options)
      return success();
    return emitError(UnknownLoc::get(context)) << describe(options.takeError());
  }

  static std::string describe(llvm::Error error) {
    std::string text = takeErrorText(std::move(error)).text;
    return StringRef(text).starts_with("remat: ") ? text : "remat: " + text;
  }

  /// Brings a function with ops of other dialects to the form that later
  /// canonicalization keeps.
  LogicalResult canonicalize(FunctionOpInterface function) {
    bool foreign =
        llvm::any_of(function.front().without_terminator(), [](Operation &op) {
          return !isa<KernelCallOp, ReshapeOp, PinOp>(op);
        });
    if (!foreign || !canonicalizeFirst ||
        !function->hasTrait<OpTrait::IsIsolatedFromAbove>())
      return success();
    OpPassManager pipeline(function->getName().getStringRef());
    pipeline.addPass(createCSEPass());
    pipeline.addPass(createCanonicalizerPass());
    pipeline.addPass(createCSEPass());
    pipeline.addPass(createCanonicalizerPass());
    return runPipeline(pipeline, function);
  }

  /// Whether `functions` names it, or names none.
  bool isNamed(FunctionOpInterface function) {
    return functions.empty() ||
           llvm::is_contained(functions, function.getName().str()) ||
           llvm::is_contained(functions, getFunctionPath(function));
  }

  /// Functions with a body in a module and the modules in it.
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

  /// Why the function is not to be planned under the budget, if unsupported
  /// ones are to be left alone.
  std::string findObstacle(FunctionOpInterface function,
                           const RematOptions &options, Location &where) {
    std::string what = findUnsupported(function, &where, hooks);
    if (!what.empty() || !needsAllCounted(options))
      return what;
    for (const Uncounted &entry :
         findUncounted(function, {hooks, options.mayReadCallees}))
      if (entry.own) {
        where = entry.where;
        return "its plan would not count " + entry.what;
      }
    return "";
  }

  /// The functions to plan: this one, or those of this module.
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

  /// Functions that may be planned, with those that other runs of this pass
  /// have. What those change of their functions must not be read here.
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

  /// A warning for each name in `functions` that no function has: with several
  /// modules, others may have it.
  void checkNames(ArrayRef<FunctionOpInterface> named) {
    // Told once, where functions are planned one by one.
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

  void runOnOperation() override {
    SmallVector<FunctionOpInterface> named = findNamed();
    checkNames(named);
    auto fail = [&](const std::string &text) {
      emitError(getOperation()->getLoc()) << text;
      signalPassFailure();
    };
    llvm::Expected<RematOptions> options = parseOptions(getOperation());
    if (!options)
      return fail(describe(options.takeError()));
    // Of functions that are planned one by one, too, one plan is written.
    const auto *step = llvm::find_if(named, [](FunctionOpInterface function) {
      return function.getName() == "step";
    });
    if (step == named.end())
      step = named.begin();
    if (isa<FunctionOpInterface>(getOperation()) &&
        (named.empty() ||
         FunctionOpInterface(*step).getOperation() != getOperation()))
      options->planOut.clear();
    SmallVector<FunctionOpInterface> wanted = findFunctions(*options);
    for (FunctionOpInterface function : wanted)
      if (failed(canonicalize(function)))
        return signalPassFailure();
    std::vector<RematPlan> plans;
    ExitCode code = runRemat(wanted, *options, remarks, plans);
    // Drivers tell an infeasible budget from bad input by this.
    if (code != ExitOk && isa<ModuleOp>(getOperation()))
      getOperation()->setAttr(
          "ckopt.exit_code",
          IntegerAttr::get(IntegerType::get(&getContext(), 64), code));
    // Where nothing fits, the report says what is known.
    bool reported =
        code == ExitOk || code == ExitInfeasible || code == ExitNoPlanFound;
    if (!report.empty() && !wanted.empty() && reported)
      if (llvm::Error error = book->add(report, wanted, plans))
        fail(takeErrorText(std::move(error)).text);
    if (code != ExitOk)
      return signalPassFailure();
  }

private:
  PlanningHooks hooks;
  /// Copies of the pass that run in parallel share it.
  std::shared_ptr<ReportBook> book = std::make_shared<ReportBook>();
};

struct StripBarriersPass
    : ckopt::impl::StripBarriersPassBase<StripBarriersPass> {
  using StripBarriersPassBase::StripBarriersPassBase;

  void runOnOperation() override {
    getOperation()->walk([](Operation *op) {
      if (auto barrier = dyn_cast<BarrierOp>(op)) {
        barrier.getOutput().replaceAllUsesWith(barrier.getInput());
        barrier.erase();
      } else if (!isa<KernelCallOp>(op)) {
        op->removeDiscardableAttr(attrs::kClone);
        op->removeDiscardableAttr(attrs::kNode);
      }
    });
  }
};

} // namespace

std::unique_ptr<Pass> ckopt::createRematPass(const RematPassOptions &options,
                                             PlanningHooks hooks) {
  return std::make_unique<RematPass>(options, std::move(hooks));
}
