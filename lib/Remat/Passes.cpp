//===- Passes.cpp - order and recomputation as passes ---------------------===//
#include "ckopt/Remat/Passes.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Remat/Remat.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/Report.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringSwitch.h"

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
  llvm::Error add(StringRef path, ArrayRef<func::FuncOp> functions,
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
      pages[func::FuncOp(function).getSymName().str()] = std::move(indented);
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

  bool canScheduleOn(RegisteredOperationName name) const override {
    return name.getStringRef() == ModuleOp::getOperationName() ||
           name.getStringRef() == func::FuncOp::getOperationName();
  }

  void getDependentDialects(DialectRegistry &registry) const override {
    RematPassBase::getDependentDialects(registry);
    registerBarrierBufferization(registry);
  }

  /// The budget that the options ask for.
  llvm::Expected<MemoryBudget> parseBudget() {
    int given =
        !budget.empty() + !budgetRatio.empty() + !activationRatio.empty();
    if (given > 1)
      return usageError("give one of budget, budget-ratio and "
                        "activation-ratio");
    if (StringRef text = budget; text.consume_back_insensitive("x"))
      return parseBudgetRatio(text, MemoryBudget::Kind::Ratio, "budget");
    if (!budget.empty())
      return parseBytes();
    if (!budgetRatio.empty())
      return parseBudgetRatio(budgetRatio, MemoryBudget::Kind::Ratio,
                              "budget-ratio");
    if (!activationRatio.empty())
      return parseBudgetRatio(activationRatio,
                              MemoryBudget::Kind::ActivationRatio,
                              "activation-ratio");
    return MemoryBudget();
  }

  /// `budget` as bytes, or `min`.
  llvm::Expected<MemoryBudget> parseBytes() {
    MemoryBudget result;
    result.kind = MemoryBudget::Kind::Minimum;
    if (StringRef(budget).trim() == "min")
      return result;
    llvm::Expected<int64_t> bytes = parseByteSize(budget);
    if (!bytes)
      return usageError("budget: " + takeErrorText(bytes.takeError()).text +
                        ", '0.6x' for a share of the peak without "
                        "recomputation, or 'min' for the smallest possible");
    if (*bytes == 0)
      return usageError("budget: 0 bytes hold nothing; 'min' asks for the "
                        "smallest possible");
    result.kind = MemoryBudget::Kind::Bytes;
    result.bytes = *bytes;
    return result;
  }

  /// The policy of the options, on top of the one that the driver left on the
  /// module.
  llvm::Error parsePolicy(Operation *module, RematOptions &options) {
    if (module && !isa<ModuleOp>(module))
      module = module->getParentOp();
    if (auto left = module ? module->getAttrOfType<DictionaryAttr>(kPolicyAttr)
                           : DictionaryAttr())
      options.policy = policyFromAttribute(left);
    auto add = [](const Option<std::string> &rules,
                  std::vector<std::string> &texts) -> llvm::Error {
      SmallVector<StringRef> parts;
      StringRef(rules).split(parts, ';', -1, /*KeepEmpty=*/false);
      for (StringRef part : parts)
        texts.push_back(part.str());
      if (parts.empty() && rules.getNumOccurrences() > 0)
        return usageError(rules.ArgStr + ": there is no rule in '" +
                          std::string(rules) + "'");
      return llvm::Error::success();
    };
    if (llvm::Error error = add(save, options.policy.save))
      return error;
    if (llvm::Error error = add(recompute, options.policy.recompute))
      return error;
    if (llvm::Error error = add(automatic, options.policy.automatic))
      return error;
    if (llvm::Error error = add(checkpoint, options.policy.checkpoint))
      return error;
    options.planFile = planFile;
    options.planHint = planHint;
    options.planOut = planOut;
    if (policy != "auto")
      if (llvm::Error error = parseRematMode(policy, options.policy))
        return error;
    return checkPolicyForm(options.policy);
  }

  /// What the options ask for; `module` (or a function in it, or null) may hold
  /// a policy beside them.
  llvm::Expected<RematOptions> parseOptions(Operation *module) {
    RematOptions options;
    if (llvm::Error error = parsePolicy(module, options))
      return error;
    llvm::Expected<MemoryBudget> parsed = parseBudget();
    if (!parsed)
      return parsed.takeError();
    options.budget = *parsed;
    if (!llvm::is_contained(planner::strategyNames(), strategy))
      return usageError("unknown strategy '" + strategy + "'; known are " +
                        llvm::join(planner::strategyNames(), ", "));
    if (!(timeLimit >= 0) || !(effort >= 0) || workLimit < 0 || threads < 0)
      return usageError("time-limit, work-limit, effort and threads must not "
                        "be negative");
    options.search.strategy = strategy;
    options.search.timeLimitSeconds = timeLimit;
    options.search.workLimit = workLimit;
    options.search.effort = effort;
    options.search.seed = seed;
    options.search.threads = std::min<int>(threads, 256);
    options.search.searchToLimit = searchToLimit;
    options.search.fixedOrder = fixedOrder;
    options.search.orderOnly = orderOnly;
    if (orderOnly && fixedOrder)
      return usageError("order-only and fixed-order leave nothing to search");
    auto known = llvm::StringSwitch<std::optional<Comparison>>(compare)
                     .Case("quick", Comparison::Quick)
                     .Case("on", Comparison::On)
                     .Case("off", Comparison::Off)
                     .Default(std::nullopt);
    if (!known)
      return usageError("compare: '" + compare +
                        "' is not one of quick, on, off");
    options.compare = *known;
    llvm::Expected<CostOptions> costs = parseCostModel(costModel);
    if (!costs)
      return costs.takeError();
    options.costs = std::move(*costs);
    return options;
  }

  /// Mistakes in the options are told once, not for each function.
  LogicalResult initialize(MLIRContext *context) override {
    book->clear();
    llvm::Expected<RematOptions> options = parseOptions(/*module=*/nullptr);
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
  LogicalResult canonicalize(func::FuncOp function) {
    bool foreign =
        llvm::any_of(function.front().without_terminator(), [](Operation &op) {
          return !isa<KernelCallOp, ReshapeOp, PinOp>(op);
        });
    if (!foreign || !canonicalizeFirst)
      return success();
    OpPassManager pipeline(func::FuncOp::getOperationName());
    pipeline.addPass(createCSEPass());
    pipeline.addPass(createCanonicalizerPass());
    pipeline.addPass(createCSEPass());
    pipeline.addPass(createCanonicalizerPass());
    return runPipeline(pipeline, function);
  }

  /// The functions to plan: this one, or those of this module.
  SmallVector<func::FuncOp> findFunctions() {
    SmallVector<func::FuncOp> wanted;
    auto consider = [&](func::FuncOp function) {
      if (!isStepFunction(function) ||
          (!functions.empty() &&
           !llvm::is_contained(functions, function.getSymName().str())))
        return;
      if (skipUnsupported) {
        Location where = function.getLoc();
        if (std::string what = findUnsupported(function, &where);
            !what.empty()) {
          emitRemark(where)
              << "@" << function.getSymName() << " is left as it is: " << what;
          return;
        }
      }
      wanted.push_back(function);
    };
    if (auto function = dyn_cast<func::FuncOp>(getOperation()))
      consider(function);
    else
      for (auto function :
           cast<ModuleOp>(getOperation()).getOps<func::FuncOp>())
        consider(function);
    return wanted;
  }

  /// Functions that may be planned, with those that other runs of this pass
  /// have. What those change of their functions must not be read here.
  SmallVector<func::FuncOp> findNamed() {
    Operation *module = getOperation();
    if (!isa<ModuleOp>(module))
      module = module->getParentOp();
    SmallVector<func::FuncOp> found;
    for (Operation &op : module->getRegion(0).front())
      if (auto function = dyn_cast<func::FuncOp>(op);
          function && !function.isDeclaration() &&
          (functions.empty() ||
           llvm::is_contained(functions, function.getSymName().str())))
        found.push_back(function);
    return found;
  }

  /// A warning for each name in `functions` that no function has: with several
  /// modules, others may have it.
  void checkNames(ArrayRef<func::FuncOp> named) {
    // Told once, where functions are planned one by one.
    if (auto function = dyn_cast<func::FuncOp>(getOperation()))
      for (Operation &op : *function->getBlock())
        if (isa<func::FuncOp>(op)) {
          if (&op != function)
            return;
          break;
        }
    for (const std::string &name : functions)
      if (llvm::none_of(named, [&](func::FuncOp function) {
            return function.getSymName() == name;
          }))
        emitWarning(getOperation()->getLoc())
            << "remat: functions: there is no function '" << name
            << "' with a body here";
  }

  void runOnOperation() override {
    SmallVector<func::FuncOp> named = findNamed();
    checkNames(named);
    auto fail = [&](const std::string &text) {
      emitError(getOperation()->getLoc()) << text;
      signalPassFailure();
    };
    llvm::Expected<RematOptions> options = parseOptions(getOperation());
    if (!options)
      return fail(describe(options.takeError()));
    // Of functions that are planned one by one, too, one plan is written.
    const auto *step = llvm::find_if(named, [](func::FuncOp function) {
      return function.getSymName() == "step";
    });
    if (step == named.end())
      step = named.begin();
    if (isa<func::FuncOp>(getOperation()) &&
        (named.empty() || *step != getOperation()))
      options->planOut.clear();
    SmallVector<func::FuncOp> wanted = findFunctions();
    for (func::FuncOp function : wanted)
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
