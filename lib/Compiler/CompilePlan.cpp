//===- CompilePlan.cpp - from imported IR to a planned step ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs the phases up to the plan, and notes what reports and the loop ask of
// it: figures, bytes by role, targets, and the graph before anything was moved.
//
//===----------------------------------------------------------------------===//
#include "DumpedPhases.h"
#include "ckopt/Analysis/MemoryTimeline.h"
#include "ckopt/Analysis/PlanningProblem.h"
#include "ckopt/Compiler/Compile.h"
#include "ckopt/Compiler/LossChoice.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Dialect/Ckopt/Utils/LabelRange.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Target/TargetRegistry.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringSet.h"

#include <chrono>

using namespace mlir;
using namespace ckopt;

/// Sums argument bytes by role; gradients are what the updates read.
static void summarizeArguments(func::FuncOp step, PlanSummary &summary) {
  for (auto [i, argument] : llvm::enumerate(step.getArguments())) {
    auto role = step.getArgAttrOfType<StringAttr>(i, attrs::kRole);
    int64_t bytes = getByteSize(cast<RankedTensorType>(argument.getType()));
    StringRef text = role ? role.getValue() : StringRef();
    if (text == roles::kParameter || text == roles::kFrozen)
      summary.parameterBytes += bytes;
    else if (text == roles::kOptimizerState || text == roles::kCopy)
      summary.optimizerBytes += bytes;
    else if (text == roles::kState || text == roles::kConstant)
      summary.stateBytes += bytes;
    else
      summary.dataBytes += bytes;
  }
  if (auto fed = step->getAttrOfType<DenseI64ArrayAttr>(attrs::kFed))
    summary.dataBytes += fed[1] - fed[0];
}

/// Whose targets the arguments of attached losses are.
void Compilation::noteTargets() {
  for (StringRef name : {"step", "eval"})
    if (auto function = module().lookupSymbol<func::FuncOp>(name))
      for (unsigned i = 0; i < function.getNumArguments(); ++i)
        if (auto output =
                function.getArgAttrOfType<StringAttr>(i, kTargetOfAttr))
          targets[argumentName(function, i)] = output.str();
}

void Compilation::summarize() {
  auto step = module().lookupSymbol<func::FuncOp>("step");
  if (!step)
    step = module().lookupSymbol<func::FuncOp>("eval");
  RematFigures &figures = planSummary.figures;
  // Planning stops at the first function that nothing fits.
  const RematPlan *plan = plans.mainPlan();
  for (const RematPlan &other : plans.plans)
    if (other.wasPlanned() && !other.result.hasPlan()) {
      plan = &other;
      step = module().lookupSymbol<func::FuncOp>(other.problem.graph.name);
    }
  if (!step)
    return;
  summarizeArguments(step, planSummary);
  if (plan)
    figures = getFigures(*plan);
  if (auto attr = step->getAttrOfType<DictionaryAttr>(kPlanAttr)) {
    RematFigures noted = figuresFromAttribute(attr);
    if (!plan || noted.communication > 0) // planning alone, or more behind it
      figures = noted;
  }
  figures.function = step.getSymName().str();
  if (!figures.hasPlan())
    return;
  if (auto bytes = step->getAttrOfType<IntegerAttr>(attrs::kArenaBytes))
    figures.arena = bytes.getInt();
  for (auto [attribute, type] : {std::pair(attrs::kBF16Products, "bf16"),
                                 std::pair(attrs::kF16Products, "f16")}) {
    auto work = step->getAttrOfType<ArrayAttr>(attribute);
    if (!work)
      continue;
    planSummary.lowType = type;
    auto at = [&](unsigned i) {
      return cast<FloatAttr>(work[i]).getValueAsDouble();
    };
    planSummary.lowProducts = at(1) > 0 ? at(0) / at(1) : 0;
  }
  llvm::StringSet<> kernels;
  figures.recomputed = 0;
  step.walk([&](KernelCallOp call) {
    ++planSummary.calls;
    figures.recomputed += call.getClone().has_value();
    kernels.insert(call.getCallee());
  });
  planSummary.kernels = int64_t(kernels.size());
  if (opts.step.matmulPrecision != MatmulPrecision::F32)
    summarizeProducts(step);
}

/// The step as it is before anything is moved or recomputed.
void Compilation::noteUnplanned() {
  auto step = module().lookupSymbol<func::FuncOp>("step");
  if (!step)
    return;
  CostModel model(opts.step.remat.costs, targetInfo->traits.rates);
  before = buildTimeline(step, "before: program order, nothing recomputed",
                         /*budget=*/0, model);
  if (!opts.keepGraph)
    return;
  // Where planning follows, it reports the same mistakes.
  ScopedDiagnosticHandler quiet(context.get(), [&](Diagnostic &) {
    return failure(opts.phases.to == "fuse");
  });
  SmallVector<FunctionOpInterface> functions{step};
  if (auto eval = module().lookupSymbol<func::FuncOp>("eval"))
    functions.push_back(eval);
  if (failed(checkPolicyMatches(functions, opts.step.remat.policy)))
    return;
  RematOptions remat = opts.step.remat;
  remat.overlap = overlaps(opts.step);
  FailureOr<RematGraph> graph = buildRematGraph(step, remat, model);
  if (failed(graph))
    return;
  unplanned = std::move(*graph);
  unplanned->graph.name = opts.title();
  if (unplanned->constrained)
    unplanned->constrained->graph.name = opts.title();
}

llvm::Error Compilation::plan() {
  if (stage != Stage::Imported)
    return usageError("plan() follows import(), once, and needs its success");
  stage = Stage::Failed;
  if (llvm::Error error = runPlanning())
    return error;
  stage = Stage::Planned;
  return llvm::Error::success();
}

llvm::Error Compilation::adopt(llvm::StringRef planned) {
  if (stage != Stage::Imported)
    return usageError("adopt() follows import(), once, and needs its success");
  stage = Stage::Failed;
  imported.module = parseSourceString<ModuleOp>(planned, context.get());
  if (!imported.module)
    return makeError(ExitInternal, "the planned step cannot be read");
  summarize();
  noteTargets();
  stage = Stage::Planned;
  return llvm::Error::success();
}

/// Differentiates the model for two samples a rank. Where there is one, sizes
/// do not show whether ops keep samples apart, and nothing would be refused.
llvm::Error Compilation::checkWithTwoSamples() {
  if (opts.step.ranks == 1 || imported.batch != 1 || !opts.phases.from.empty())
    return llvm::Error::success();
  onnx_frontend::ImportOptions import = opts.import;
  import.batch = 2;
  import.neededConstants = nullptr;
  auto model = onnx_frontend::importModel(opts.model, import, *context);
  if (!model) { // a constant or a shape is for one sample alone
    llvm::consumeError(model.takeError());
    return llvm::Error::success();
  }
  auto phases = buildPhases(opts.step, *targetInfo);
  if (!phases)
    return phases.takeError();
  PhaseControl control;
  control.to = "autodiff";
  return runPhases(*model->module, *phases, control);
}

llvm::Error Compilation::runPlanning() {
  bool updates = !opts.step.forwardOnly && !opts.step.optimizer.kind.empty();
  if (llvm::Error error =
          updates ? checkTrainedTypes() : llvm::Error::success())
    return error;
  if (llvm::Error error = checkWithTwoSamples())
    return error;
  auto phases = buildPhases(opts.step, *targetInfo, &plans);
  if (!phases)
    return phases.takeError();
  auto start = std::chrono::steady_clock::now();
  PhaseControl control = opts.phases;
  control.finished = [this](StringRef phase) {
    if (phase == "fuse")
      noteUnplanned();
  };
  if (opts.sizes) {
    if (llvm::Error error = lookAtSizes())
      return error;
    noteUnplanned();
    control.from = "remat";
  }
  llvm::Error error = runPhases(module(), *phases, control);
  planSummary.planSeconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  if (!error && opts.keepGraph && opts.phases.to == "fuse" && !unplanned &&
      module().lookupSymbol("step"))
    return toldError(ExitInputError,
                     "no curve is drawn, by what is said above");
  summarize();
  noteTargets();
  before.budget = planSummary.figures.budget;
  if (!error && opts.sizes)
    error = planSmaller();
  return error;
}

TimelinePanel Compilation::timeline(llvm::StringRef title) const {
  auto step = module() ? module().lookupSymbol<func::FuncOp>("step") : nullptr;
  if (!step)
    return TimelinePanel();
  CostModel model(opts.step.remat.costs, targetInfo->traits.rates);
  return buildTimeline(step, title, planSummary.figures.budget, model);
}
