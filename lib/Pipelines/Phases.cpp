//===- Phases.cpp - the named phases of a compilation ---------------------===//
#include "ckopt/Pipelines/Pipelines.h"
#include "ckopt/Support/AtomicFile.h"
#include "ckopt/Support/Error.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>

using namespace mlir;
using namespace ckopt;

/// A number as pass options read it back: all digits of a double.
static std::string exact(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.17g", value);
  return text;
}

/// Options of the `optimizer` pass.
static std::string optimizerPipeline(const OptimizerSettings &o) {
  if (o.kind.empty())
    return "";
  std::string text = "optimizer{type=" + o.kind;
  auto set = [&](StringRef name, double value) {
    text += (" " + name + "=" + exact(value)).str();
  };
  for (const auto &[name, value] : o.values) {
    std::string option = name;
    llvm::replace(option, '_', '-');
    if (isSwitch(name))
      text += " " + option + (value != 0 ? "=true" : "=false");
    else
      set(option, value);
  }
  if (o.ema > 0)
    set("ema", o.ema);
  if (o.clipNorm > 0)
    set("clip-norm", o.clipNorm);
  if (o.accumulate > 1)
    text += " accumulate=" + std::to_string(o.accumulate);
  return text + "}";
}

/// Options of the `attach-loss` pass: those that are not its defaults.
static std::string lossPipeline(const StepOptions &options) {
  if (options.loss.empty())
    return "";
  const autodiff::LossSettings &set = options.lossSettings, defaults;
  std::string text = "attach-loss{loss=\"" + options.loss +
                     "\" ignore-index=" + std::to_string(set.ignoreIndex);
  auto number = [&](StringRef name, double value, double usual) {
    if (value != usual)
      text += (" " + name + "=" + exact(value)).str();
  };
  auto list = [&](StringRef name, const std::vector<double> &values) {
    for (size_t i = 0; i < values.size(); ++i)
      text += (i ? "," : (" " + name + "=").str()) + exact(values[i]);
  };
  if (set.classAxis)
    text += " class-axis=" + std::to_string(*set.classAxis);
  if (set.reduction != defaults.reduction)
    text += " reduction=" + set.reduction;
  number("label-smoothing", set.labelSmoothing, defaults.labelSmoothing);
  number("beta", set.beta, defaults.beta);
  number("delta", set.delta, defaults.delta);
  number("margin", set.margin, defaults.margin);
  list("class-weights", set.classWeights);
  list("pos-weight", set.posWeight);
  if (set.softTargets)
    text += " soft-targets=true";
  return text + "},";
}

/// Evaluation's function is made of the forward one as it is then: with a loss
/// of the model's own, or with an attached one where the host cannot compute
/// it.
static std::string lossAndEval(const StepOptions &options) {
  std::string loss = lossPipeline(options);
  std::string eval = options.evaluation ? "make-eval," : "";
  return options.evaluateLoss ? loss + eval : eval + loss;
}

static std::string rematPipeline(const StepOptions &options) {
  const planner::Options &search = options.search;
  std::string text = "remat{strategy=" + search.strategy +
                     " time-limit=" + exact(search.timeLimitSeconds) +
                     " effort=" + exact(search.effort) +
                     " seed=" + std::to_string(search.seed) +
                     " threads=" + std::to_string(search.threads) +
                     " compare=" + options.compare;
  if (search.workLimit > 0)
    text += " work-limit=" + std::to_string(search.workLimit);
  if (search.searchToLimit)
    text += " search-to-limit=true";
  if (search.fixedOrder)
    text += " fixed-order=true";
  if (search.orderOnly)
    text += " order-only=true";
  switch (options.budget.kind) {
  case MemoryBudget::Kind::Unlimited:
    break;
  case MemoryBudget::Kind::Bytes:
    text += " budget=" + std::to_string(options.budget.bytes);
    break;
  case MemoryBudget::Kind::Ratio:
    text += " budget-ratio=" + exact(options.budget.ratio);
    break;
  case MemoryBudget::Kind::ActivationRatio:
    text += " activation-ratio=" + exact(options.budget.ratio);
    break;
  case MemoryBudget::Kind::Minimum:
    text += " budget=min";
    break;
  }
  if (options.costModel != "analytic")
    text += " cost-model=\"" + options.costModel + "\"";
  if (!options.planFile.empty())
    text += " plan=\"" + options.planFile + "\"";
  if (!options.planHint.empty())
    text += " plan-hint=\"" + options.planHint + "\"";
  if (!options.planOut.empty())
    text += " plan-out=\"" + options.planOut + "\"";
  if (!options.planReport.empty())
    text += " report=\"" + options.planReport + "\"";
  return text + "}";
}

/// A GPU's kernel takes 512 pointers: these, a result and scratch fit.
static constexpr char maxJoinedOnDevice[] = "{max-joined=500}";

std::vector<Phase> ckopt::buildPhases(const StepOptions &options) {
  auto module = [](const std::string &passes) {
    return "builtin.module(" + passes + ")";
  };
  std::vector<Phase> phases;
  phases.push_back(
      {"normalize",
       module("canonicalize,cse,func.func(normalize),canonicalize,cse"),
       "fold and deduplicate what the exporter wrote"});
  if (options.forwardOnly)
    phases.push_back({"autodiff",
                      module(std::string("make-eval{replace=true as-written=") +
                             (options.asWritten ? "true" : "false") + "}"),
                      "evaluation form alone: no gradients"});
  else
    phases.push_back(
        {"autodiff",
         module((options.freezeNorms ? "freeze-norms," : "") +
                lossAndEval(options) + "autodiff,canonicalize,cse"),
         "loss and backward graph"});
  if (!options.optimizer.kind.empty() && !options.forwardOnly)
    phases.push_back({"optimizer", module(optimizerPipeline(options.optimizer)),
                      "parameter updates"});
  phases.push_back(
      {"fuse",
       module(std::string("func.func(decompose") +
              (options.target == "cuda" ? maxJoinedOnDevice
                                        : "{widen-halves=true}") +
              "),canonicalize,cse,layout{layout=" + options.layout +
              "},canonicalize,cse,fuse,annotate-kernels{threads=" +
              std::to_string(options.threads) + " vector-bits=" +
              std::to_string(options.vectorBits) + " target=" + options.target +
              " library-workspace=" + std::to_string(options.libraryWorkspace) +
              " matmul-precision=" + options.matmulPrecision + "}"),
       "layouts, then ops to kernels with costs and workspaces"});
  phases.push_back({"remat", module(rematPipeline(options)),
                    "order and recomputation under the budget"});
  phases.push_back({"plan-memory", module("plan-memory"),
                    "one arena, an offset for every value"});
  return phases;
}

/// Writes the module as DIR/NN-phase.mlir.
static llvm::Error dump(ModuleOp module, StringRef directory, size_t number,
                        StringRef phase) {
  if (auto code = llvm::sys::fs::create_directories(directory))
    return ioError("cannot make '" + directory + "': " + code.message());
  std::string text;
  llvm::raw_string_ostream stream(text);
  OpPrintingFlags flags;
  flags.elideLargeElementsAttrs(64).enableDebugInfo(/*enable=*/true, false);
  module.print(stream, flags);
  std::string name;
  llvm::raw_string_ostream(name)
      << directory << "/" << llvm::format("%02zu-", number) << phase << ".mlir";
  return writeFileAtomically(name, text);
}

static llvm::Error runPhase(ModuleOp module, const Phase &phase) {
  PassManager manager(module.getContext());
  std::string problems;
  llvm::raw_string_ostream stream(problems);
  FailureOr<OpPassManager> pipeline = parsePassPipeline(phase.pipeline, stream);
  if (failed(pipeline))
    return makeError(ExitInternal,
                     "phase " + phase.name + ": bad pipeline: " + problems);
  static_cast<OpPassManager &>(manager) = std::move(*pipeline);
  manager.enableVerifier(true);
  if (succeeded(manager.run(module)))
    return llvm::Error::success();
  // A pass that fails for a documented reason says which exit code belongs to
  // it; everything else is bad input (its diagnostics are out).
  ExitCode code = ExitInputError;
  if (auto attr = module->getAttrOfType<IntegerAttr>("ckopt.exit_code"))
    code = ExitCode(attr.getInt());
  return makeError(code, "stopped in phase '" + phase.name +
                             "' by what is said above");
}

llvm::Error ckopt::runPhases(ModuleOp module, const std::vector<Phase> &phases,
                             const PhaseControl &control) {
  auto known = [&](StringRef name) {
    return name.empty() || llvm::any_of(phases, [&](const Phase &phase) {
             return phase.name == name;
           });
  };
  for (const std::string &name : {control.from, control.to})
    if (!known(name)) {
      std::string list;
      for (const Phase &phase : phases)
        list += (list.empty() ? "" : ", ") + phase.name;
      return usageError("no phase '" + name + "'; the phases are import, " +
                        list);
    }
  bool running = control.from.empty();
  for (auto [i, phase] : llvm::enumerate(phases)) {
    running |= phase.name == control.from;
    if (!running)
      continue;
    auto start = std::chrono::steady_clock::now();
    if (llvm::Error error = runPhase(module, phase))
      return error;
    std::chrono::duration<double> seconds =
        std::chrono::steady_clock::now() - start;
    if (control.verbose)
      llvm::errs() << llvm::format("[%zu/%zu] %-12s %6.2f s  ", i + 1,
                                   phases.size(), phase.name.c_str(),
                                   seconds.count())
                   << phase.summary << "\n";
    if (control.finished)
      control.finished(phase.name);
    if (!control.dumpDirectory.empty())
      if (llvm::Error error =
              dump(module, control.dumpDirectory, i + 1, phase.name))
        return error;
    if (phase.name == control.to)
      break;
  }
  return llvm::Error::success();
}
