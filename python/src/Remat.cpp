//===- Remat.cpp - remat on modules of other compilers --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: Python has a module as text or bytecode, of dialects that may be
// unknown here, and wants it back with every function within a budget. Method:
// each call has a context of its own, in which ops of unknown dialects are
// allowed; the module is parsed, the pass `remat` runs, and it is printed; then
// the rewritten functions are measured as they stand. Guarantee: calls share
// nothing, and the same call gives the same bytes.
//
//===----------------------------------------------------------------------===//
#include "Bindings.h"

#include "ckopt/Compiler/Phases.h"
#include "ckopt/Dialect/Ckopt/Utils/ExitDiagnostic.h"
#include "ckopt/Planner/GraphJson.h"
#include "ckopt/Planner/Report.h"
#include "ckopt/Planner/Request.h"
#include "ckopt/Planner/SearchFlags.h"
#include "ckopt/Remat/Figures.h"
#include "ckopt/Remat/Passes.h"
#include "ckopt/Target/Targets.h"
#include "ckopt/Tool/Main.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <limits>

using namespace ckopt;
using namespace ckopt::python;

namespace {

/// What a call asks for. Budget and search are settings by the names that they
/// have in all tools, the rest are the pass's options.
struct Asked {
  MemoryBudget budget;
  planner::Options search;
  RematPassOptions pass;

  explicit Asked(const std::vector<GivenSetting> &settings);
  RematOptions options() const;

private:
  void addBudget(FlagTable &table);
  MessageText budgetSetting;
};

/// A file that Python has read: its kind ("ops", "plan", "plan-hint"), its name
/// for messages, and its text.
using File = std::tuple<std::string, std::string, std::string>;

/// Collects diagnostics, and throws the errors among them.
struct Diagnostics {
  explicit Diagnostics(mlir::MLIRContext &context) {
    context.getDiagEngine().registerHandler([this](mlir::Diagnostic &found) {
      if (found.getSeverity() == mlir::DiagnosticSeverity::Error && !code)
        code = getExitCode(found).value_or(ExitInputError);
      handOn(found, [this](const Message &message) {
        messages.push_back(message);
        errors.add(message);
      });
      return llvm::success();
    });
  }
  [[noreturn]] void fail(const MessageText &advice = {}) {
    throw Failure{int(code.value_or(ExitInternal)),
                  inPython(errors.take() + advice, {})};
  }

  std::optional<ExitCode> code; ///< of the first error
  std::vector<Message> messages;
  ErrorLines errors;
};

struct PlannedFunction {
  std::string name, graph, plan, timeline;
  int64_t measured = -1; ///< bytes, as measure() returns them; -1: unknown
};

struct PlannedModule {
  std::string text, bytecode, report, main;
  std::vector<PlannedFunction> functions;
  std::vector<Message> messages;
};

} // namespace

void Asked::addBudget(FlagTable &table) {
  using Kind = MemoryBudget::Kind;
  auto add = [&](llvm::StringRef name, const Setting &setting, auto parse) {
    table.add(name, "BYTES", 1, "",
              [this, setting, parse](llvm::StringRef text) -> llvm::Error {
                llvm::Expected<MemoryBudget> parsed = parse(text);
                if (!parsed)
                  return parsed.takeError();
                if (parsed->kind == Kind::Bytes && parsed->bytes == 0)
                  return usageError(setting + ": 0 bytes hold nothing; 'min' "
                                              "asks for the smallest possible");
                if (!budgetSetting.empty())
                  return usageError("give one of " + budgetSetting + " and " +
                                    setting);
                budgetSetting = setting;
                budget = *parsed;
                return llvm::Error::success();
              });
  };
  add("budget", Setting("memory-budget"),
      [](llvm::StringRef text) { return parseMemoryBudget(text); });
  add("activation-ratio", Setting("activation-ratio"),
      [](llvm::StringRef text) {
        return parseBudgetRatio(text, Kind::ActivationRatio,
                                Setting("activation-ratio"));
      });
}

Asked::Asked(const std::vector<GivenSetting> &settings) {
  FlagTable table;
  addBudget(table);
  planner::addSearchFlags(
      search, [&](const planner::SearchOption &row, Flag::Store store) {
        table.add(row.flag, row.value, 1, row.help, std::move(store));
      });
  for (auto [name, slot] :
       {std::pair("apart", &pass.apart), std::pair("save", &pass.save),
        std::pair("recompute", &pass.recompute),
        std::pair("auto", &pass.automatic),
        std::pair("checkpoint", &pass.checkpoint),
        std::pair("compare", &pass.compare),
        std::pair("cost-model", &pass.costModel)})
    table.add(name, "TEXT", 1, "", flag::text(name, *slot));
  for (auto [name, slot] :
       {std::pair("remarks", &pass.remarks),
        std::pair("allow-uncounted", &pass.allowUncounted),
        std::pair("skip-unsupported", &pass.skipUnsupported)})
    table.add(name, "", 1, "", flag::turnOn(*slot));
  table.add("policy", "TEXT", 1, "", [this](llvm::StringRef text) {
    pass.policy = text.str();
    RematPolicy policy;
    llvm::Error wrong = parseRematMode(text, policy);
    return wrong ? withContext(std::move(wrong), "policy") : std::move(wrong);
  });
  table.add("no-canonicalize", "", 1, "", [this](llvm::StringRef) {
    pass.canonicalizeFirst = false;
    return llvm::Error::success();
  });
  table.add("functions", "NAME", 1, "", [this](llvm::StringRef name) {
    pass.functions.push_back(name.str());
    return llvm::Error::success();
  });
  check(table.store(settings, 1));
  check(planner::checkSearch(search));
}

RematOptions Asked::options() const {
  RematOptions result = take(parseRematOptions(pass));
  result.budget = budget;
  result.search = search;
  return result;
}

static void addFile(const File &file, RematOptions &options) {
  const auto &[kind, name, text] = file;
  if (kind == "ops")
    options.ops.push_back(
        std::make_shared<const OpTable>(take(OpTable::parse(text, name))));
  else
    (kind == "plan" ? options.plan : options.hint) =
        take(StoredPlan::parse(text, name));
}

/// Says what to do about ops of unknown dialects.
static std::string adviceOn(const std::vector<Message> &messages) {
  for (const Message &message : messages)
    if (message.text.inShell().find("the unregistered op '") !=
        std::string::npos)
      return "\n'ops' says what such ops are: the name of a table, a file, a "
             "dict, or a list of these";
  return "";
}

/// Parses the module; what it cannot read for want of a dialect is told with
/// the form that needs none. Bytecode with ops of unknown dialects is refused:
/// where the writer knew them, their properties would be read as others.
static mlir::OwningOpRef<mlir::ModuleOp> parseModule(const std::string &module,
                                                     const std::string &name,
                                                     mlir::MLIRContext &context,
                                                     Diagnostics &told) {
  const bool isBytecode = llvm::StringRef(module).starts_with("ML\xefR");
  context.allowUnregisteredDialects(!isBytecode);
  const mlir::ParserConfig config(&context, /*verifyAfterParse=*/false);
  auto parsed = mlir::parseSourceString<mlir::ModuleOp>(module, config, name);
  context.allowUnregisteredDialects();
  if (parsed && mlir::succeeded(mlir::verify(*parsed)))
    return parsed;
  if (parsed)
    told.fail();
  const bool isCustom = llvm::any_of(told.messages, [](const Message &message) {
    return llvm::StringRef(message.text.inShell()).contains("custom op '");
  });
  if (isBytecode || isCustom)
    told.fail(std::string("\n") +
              (isBytecode ? "bytecode of a dialect that ckopt does not have "
                            "cannot be read: give its generic text"
                          : "ops of a dialect that ckopt does not have are "
                            "read in generic form") +
              ", as module.operation.get_asm(print_generic_op_form=True) gives "
              "it in Python (JAX: lowered.compiler_ir('stablehlo') itself may "
              "be given), or " +
              foreignFlag("mlir-print-op-generic") + " of an opt tool");
  told.fail();
}

/// Returns the bytes of the rewritten function by the rules of plans, op by op
/// in the order of its text, with the arguments of the functions beside it.
static int64_t measure(mlir::ModuleOp module, const RematPlan &plan,
                       const RematOptions &options) {
  int64_t bytes = -1;
  module.walk([&](mlir::FunctionOpInterface function) {
    if (getFunctionPath(function) != plan.problem.graph.name)
      return;
    CostModel costs(options.costs);
    RematOptions own = options;
    own.ignorePolicy = true;
    auto graph = buildRematGraph(function, own, costs);
    if (mlir::succeeded(graph))
      bytes = planner::programLoad(graph->graph) + plan.fixedBytes -
              plan.problem.argumentBytes;
  });
  return bytes;
}

static PlannedFunction describe(const RematPlan &plan) {
  const planner::Graph &graph = plan.problem.graph;
  planner::ReportOptions report;
  if (plan.budgetBytes != std::numeric_limits<int64_t>::max())
    report.budget =
        plan.budgetBytes - (plan.fixedBytes - plan.problem.argumentBytes);
  report.secondsPerCost = 1;
  return {graph.name, planner::printGraph(graph), printStoredPlan(plan),
          timelineSvg(planner::planTimeline(graph, plan.result, report))};
}

/// Returns bytecode, or nothing where a tool that knows more dialects would
/// read the properties of their ops as others.
static std::string bytecodeOf(mlir::ModuleOp module) {
  std::string bytes;
  mlir::WalkResult known = module.walk([](mlir::Operation *op) {
    return op->isRegistered() ? mlir::WalkResult::advance()
                              : mlir::WalkResult::interrupt();
  });
  if (known.wasInterrupted())
    return bytes;
  llvm::raw_string_ostream stream(bytes);
  if (mlir::failed(mlir::writeBytecodeToFile(module, stream)))
    throw Failure{ExitInternal, "the module cannot be written as bytecode"};
  return bytes;
}

static PlannedModule planModule(const std::string &module,
                                const std::string &name,
                                const std::vector<GivenSetting> &settings,
                                const std::vector<File> &files) {
  Asked asked(settings);
  RematOptions options = asked.options();
  for (const File &file : files)
    addFile(file, options);
  registerAllTargets(); // steps of ckopt name theirs
  mlir::DialectRegistry registry;
  registerOptDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false);
  Diagnostics told(context);
  auto parsed = parseModule(module, name, context, told);
  RematResult found;
  mlir::PassManager passes(&context);
  passes.addPass(createRematPass(options, &found, asked.pass));
  if (mlir::failed(passes.run(*parsed)))
    told.fail(adviceOn(told.messages));
  // Figures are in the report; other compilers know no such attribute.
  parsed->walk([](mlir::FunctionOpInterface function) {
    function->removeAttr(kPlanAttr);
  });
  PlannedModule result;
  result.messages = std::move(told.messages);
  result.report = rematReport(found.plans);
  if (const RematPlan *main = found.mainPlan())
    result.main = main->problem.graph.name;
  for (const RematPlan &plan : found.plans) {
    result.functions.push_back(describe(plan));
    result.functions.back().measured = measure(*parsed, plan, options);
  }
  mlir::OpPrintingFlags flags;
  if (llvm::StringRef(module).contains("loc("))
    flags.enableDebugInfo();
  llvm::raw_string_ostream stream(result.text);
  parsed->print(stream, flags);
  if (!llvm::StringRef(result.text).ends_with("\n"))
    result.text += "\n";
  result.bytecode = bytecodeOf(*parsed);
  return result;
}

/// Returns text and bytecode of the rewritten module, the report, the name of
/// its main function, what is known of each function, and messages.
static nb::tuple remat(const nb::bytes &module, const std::string &name,
                       const std::vector<GivenSetting> &settings,
                       const std::vector<File> &files) {
  const std::string given(module.c_str(), module.size());
  PlannedModule planned;
  {
    nb::gil_scoped_release release;
    planned = planModule(given, name, settings, files);
  }
  nb::list functions, messages;
  for (const PlannedFunction &each : planned.functions)
    functions.append(nb::make_tuple(each.name, each.graph, each.plan,
                                    each.timeline, each.measured));
  for (const Message &message : planned.messages)
    messages.append(
        nb::make_tuple(message.severity == Message::Severity::Warning,
                       inPython(message.str(), {})));
  return nb::make_tuple(
      planned.text, nb::bytes(planned.bytecode.data(), planned.bytecode.size()),
      planned.report, planned.main, functions, messages);
}

void python::bindRemat(nb::module_ &module) {
  module.def("remat", remat, nb::arg("module"), nb::arg("name"),
             nb::arg("settings"), nb::arg("files"));
}
