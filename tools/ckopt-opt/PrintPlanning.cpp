//===- PrintPlanning.cpp - prints what the planner is given ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `--print-planning-problem` prints the planning graph of each function, and
// `--print-costs` the cost of each op with its source, on standard error like
// MLIR's `print-op-stats`. Both read the IR as `remat` does and change nothing.
//
//===----------------------------------------------------------------------===//
#include "TestPasses.h"
#include "ckopt/Analysis/PlanningProblem.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptKernelOps.h"
#include "ckopt/Support/Error.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace ckopt;

static StringRef kindOf(planner::ValueKind kind) {
  switch (kind) {
  case planner::ValueKind::Temp:
    return "temp";
  case planner::ValueKind::Input:
    return "input";
  case planner::ValueKind::Persistent:
    return "persistent";
  case planner::ValueKind::Output:
    return "output";
  }
  llvm_unreachable("every kind has a name");
}

static void printIds(raw_ostream &os, StringRef before, ArrayRef<int32_t> ids,
                     char letter) {
  if (ids.empty())
    return;
  os << before;
  llvm::interleaveComma(ids, os, [&](int32_t id) { os << letter << id; });
}

static void printProblem(raw_ostream &os, const PlanningProblem &problem) {
  const planner::Graph &graph = problem.graph;
  os << "problem @" << graph.name << ": " << graph.nodes.size() << " nodes, "
     << graph.values.size() << " values, " << problem.argumentBytes
     << " bytes of arguments\n";
  for (auto [v, value] : llvm::enumerate(graph.values)) {
    os << "  v" << v << ": " << kindOf(value.kind) << ", " << value.bytes
       << " bytes";
    if (value.aliasOf >= 0)
      os << ", view of v" << value.aliasOf;
    if (!value.name.empty())
      os << " \"" << value.name << "\"";
    os << "\n";
  }
  for (auto [n, node] : llvm::enumerate(graph.nodes)) {
    os << "  n" << n << ": " << problem.ops[n]->getName() << ", cost "
       << llvm::format("%.4g", node.cost);
    printIds(os, ", reads ", node.inputs, 'v');
    printIds(os, ", makes ", node.outputs, 'v');
    printIds(os, ", overwrites ", node.mutates, 'v');
    printIds(os, ", after ", node.after, 'n');
    for (auto [input, output] : node.reuse)
      os << ", v" << output << " may take v" << input;
    if (node.workspace)
      os << ", workspace " << node.workspace;
    if (!node.group.empty())
      os << ", block \"" << node.group << "\"";
    if (!node.recompute)
      os << ", runs once: " << problem.once[n];
    os << "\n";
  }
  for (const Uncounted &entry : problem.uncounted)
    os << "  not counted: " << entry.what << "\n";
}

static StringRef nameOf(CostSource source) {
  switch (source) {
  case CostSource::Attribute:
    return "attribute";
  case CostSource::Callback:
    return "callback";
  case CostSource::Profile:
    return "profile";
  case CostSource::Interface:
    return "interface";
  case CostSource::Analytic:
    return "analytic";
  case CostSource::Guess:
    return "guess";
  }
  llvm_unreachable("every source has a name");
}

namespace {
/// Runs on each step of a module, with the cost model that `remat` uses.
template <typename Derived>
struct PrintPass : PassWrapper<Derived, OperationPass<ModuleOp>> {
  PrintPass() = default;
  PrintPass(const PrintPass &other)
      : PassWrapper<Derived, OperationPass<ModuleOp>>(other) {}

  Pass::Option<std::string> costModel{
      *this, "cost-model",
      llvm::cl::desc("analytic, attribute or profile=FILE, as of remat"),
      llvm::cl::init("analytic")};

  void runOnOperation() override {
    auto options = parseCostModel(costModel);
    if (!options) {
      this->getOperation().emitError()
          << this->getArgument() << ": "
          << takeErrorText(options.takeError()).text;
      return this->signalPassFailure();
    }
    CostModel costs(*options);
    WalkResult done =
        this->getOperation().walk([&](FunctionOpInterface function) {
          if (isStepFunction(function) &&
              failed(static_cast<Derived *>(this)->print(function, costs)))
            return WalkResult::interrupt();
          return WalkResult::advance();
        });
    if (done.wasInterrupted())
      return this->signalPassFailure();
    this->markAllAnalysesPreserved();
  }
};

struct PrintPlanningProblemPass : PrintPass<PrintPlanningProblemPass> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PrintPlanningProblemPass)
  StringRef getArgument() const override { return "print-planning-problem"; }
  StringRef getDescription() const override {
    return "Print the planning graph of each function";
  }
  static LogicalResult print(FunctionOpInterface function, CostModel &costs) {
    FailureOr<PlanningProblem> problem = buildProblem(function, costs);
    if (succeeded(problem))
      printProblem(llvm::errs(), *problem);
    return problem;
  }
};

struct PrintCostsPass : PrintPass<PrintCostsPass> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PrintCostsPass)
  StringRef getArgument() const override { return "print-costs"; }
  StringRef getDescription() const override {
    return "Print the predicted seconds of each op, and where they come from";
  }
  static LogicalResult print(FunctionOpInterface function, CostModel &costs) {
    llvm::errs() << "costs @" << getFunctionPath(function) << "\n";
    for (Operation &op :
         function.getFunctionBody().front().without_terminator()) {
      if (isFree(&op) || isView(&op))
        continue;
      CostSource source = CostSource::Analytic;
      double seconds = costs.seconds(&op, &source);
      llvm::errs() << "  " << op.getName();
      if (auto call = dyn_cast<KernelCallOp>(op))
        llvm::errs() << " @" << call.getCallee();
      llvm::errs() << ": " << llvm::format("%.4g", seconds) << " s, "
                   << nameOf(source) << "\n";
    }
    return success();
  }
};
} // namespace

void ckopt::registerPrintPasses() {
  PassRegistration<PrintPlanningProblemPass>();
  PassRegistration<PrintCostsPass>();
}
