//===- Compile.cpp - from a model file to a loaded step -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Driver/Compile.h"
#include "DumpedPhases.h"
#include "LossChoice.h"
#include "ckopt/Analysis/MemoryTimeline.h"
#include "ckopt/Analysis/PlanningProblem.h"
#include "ckopt/Backends/Backends.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Dialect/Ckopt/Utils/LabelRange.h"
#include "ckopt/Driver/Session.h"
#include "ckopt/Support/ToldError.h"
#include "ckopt/Target/TargetRegistry.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringSet.h"

#include <chrono>
#include <cstring>

using namespace mlir;
using namespace ckopt;

static Message::Severity severityOf(const Diagnostic &diagnostic) {
  switch (diagnostic.getSeverity()) {
  case DiagnosticSeverity::Error:
    return Message::Severity::Error;
  case DiagnosticSeverity::Warning:
    return Message::Severity::Warning;
  case DiagnosticSeverity::Remark:
    return Message::Severity::Remark;
  case DiagnosticSeverity::Note:
    return Message::Severity::Note;
  }
  llvm_unreachable("all severities are listed");
}

/// Passes a diagnostic and its notes to the handler, with the node that it
/// belongs to.
static void handOn(Diagnostic &diagnostic, const MessageHandler &messages) {
  Message message{severityOf(diagnostic), "", diagnostic.str()};
  Location location = diagnostic.getLocation();
  if (std::string node = getSourceName(location); !node.empty())
    message.where = "node '" + node + "'";
  else if (auto file = dyn_cast<FileLineColLoc>(location))
    message.where = file.getFilename().str() + ":" +
                    std::to_string(file.getLine()) + ":" +
                    std::to_string(file.getColumn());
  messages(message);
  for (Diagnostic &note : diagnostic.getNotes())
    handOn(note, messages);
}

std::string Message::placed() const {
  return (where.empty() ? "" : where + ": ") + text;
}

std::string Message::str() const {
  static constexpr const char *names[] = {"error", "warning", "remark", "note"};
  return std::string(names[size_t(severity)]) + ": " + placed();
}

void ckopt::printMessage(const Message &message) {
  llvm::errs() << message.str() + "\n"; // one write: ranks share a terminal
}

Compilation::Compilation(CompileOptions options)
    : asked(options), opts(std::move(options)) {
  if (!opts.messages)
    opts.messages = printMessage;
  registerAllTargets();
  DialectRegistry registry;
  registerAllDialects(registry);
  context =
      std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  context->getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
    handOn(diagnostic, opts.messages);
    return success();
  });
  context->printOpOnDiagnostic(false); // an op may be a whole function
}

Compilation::~Compilation() = default;

void Compilation::say(Message::Severity severity,
                      const llvm::Twine &text) const {
  opts.messages({severity, "", text.str()});
}

/// Refuses a file that lacks parameters, or warns about it.
llvm::Error Compilation::judgeExport() const {
  const auto &diagnosis = imported.diagnosis;
  if (diagnosis.lost.empty() || opts.lost == LostParameters::Ignore)
    return llvm::Error::success();
  std::string text = onnx_frontend::describeLost(diagnosis, opts.model);
  if (opts.lost == LostParameters::Refuse)
    return inputError(text +
                      "\n  --allow-inference-export trains what is left");
  say(Message::Severity::Warning, text);
  return llvm::Error::success();
}

/// Checks that trained weights have a type wide enough for updates. Reports all
/// narrow ones at once, each with a node that reads it, before anything is
/// derived from them.
llvm::Error Compilation::checkTrainedTypes() const {
  auto forward = module().lookupSymbol<func::FuncOp>("forward");
  if (!forward || opts.step.forwardOnly || opts.step.optimizer.kind.empty())
    return llvm::Error::success();
  constexpr int64_t kShown = 5;
  std::string names, type;
  int64_t count = 0;
  for (BlockArgument argument : forward.getArguments()) {
    unsigned i = argument.getArgNumber();
    auto role = forward.getArgAttrOfType<StringAttr>(i, attrs::kRole);
    auto name = forward.getArgAttrOfType<StringAttr>(i, attrs::kName);
    Type element = getElementTypeOrSelf(argument.getType());
    if (!role || !name || role.getValue() != roles::kParameter ||
        !(element.isF16() || element.isBF16()) || ++count > kShown)
      continue;
    type = element.isF16() ? "f16" : "bf16";
    names += (names.empty() ? "'" : ", '") + name.str() + "' (" + type;
    for (Operation *user : argument.getUsers())
      if (std::string node = getSourceName(user->getLoc()); !node.empty()) {
        names += ", read by node '" + node + "'";
        break;
      }
    names += ")";
  }
  if (!count)
    return llvm::Error::success();
  if (count > kShown)
    names += " and " + std::to_string(count - kShown) + " more";
  return makeError(
      ExitUnsupported,
      "'" + opts.model + "': training updates weights of f32 or f64, and " +
          std::to_string(count) + " are halves: " + names +
          "; convert the model to f32 (for speed on a GPU add "
          "--matmul-precision=" +
          type + "), or keep weights in f32 and cast them where they are read");
}

/// Replaces random initialization rules; zeros and ones stay, since biases and
/// scales need them.
void Compilation::applyInit() {
  if (opts.init == "auto")
    return;
  auto forward = module().lookupSymbol<func::FuncOp>("forward");
  int64_t changed = 0;
  for (unsigned i = 0; forward && i < forward.getNumArguments(); ++i) {
    auto init = forward.getArgAttrOfType<StringAttr>(i, attrs::kInit);
    if (!init || init.getValue() == "zeros" || init.getValue() == "ones")
      continue;
    forward.setArgAttr(i, attrs::kInit,
                       StringAttr::get(context.get(), opts.init));
    ++changed;
  }
  imported.remarks.push_back(
      changed ? "init: " + opts.init + " for " + std::to_string(changed) +
                    " weights without values"
              : "init: the model has values for all weights that would start "
                "with random numbers; --init changes nothing");
}

/// Finds the target, which completes the options.
llvm::Error Compilation::settleTarget() {
  auto found = findTarget(opts.step.target);
  if (!found)
    return found.takeError();
  targetInfo = *found;
  TargetRequest request{opts.step, opts.target, opts.device,
                        opts.import.computeType};
  if (llvm::Error error = targetInfo->settle(request))
    return error;
  // What the kernels' passes would refuse is said before the model is read.
  if (auto kernels = targetInfo->codegen(opts.step); !kernels)
    return kernels.takeError();
  auto phases = buildPhases(opts.step, *targetInfo);
  if (!phases)
    return phases.takeError();
  PhaseControl control = opts.phases;
  if (control.to == "import")
    control.to.clear();
  return checkPhases(*phases, control);
}

llvm::Error Compilation::import() {
  if (stage != Stage::New)
    return usageError("a compilation imports its model once: make another "
                      "one");
  stage = Stage::Failed;
  if (llvm::Error error = importModel())
    return error;
  stage = Stage::Imported;
  return llvm::Error::success();
}

llvm::Error Compilation::importModel() {
  if (llvm::Error error = checkOptions(opts))
    return error;
  opts.learningRate =
      learningRateOr(opts.learningRate, opts.step.optimizer.kind);
  if (llvm::Error error = settleTarget())
    return error;
  if (!opts.phases.from.empty()) {
    imported.module = parseSourceFile<ModuleOp>(opts.model, context.get());
    if (!imported.module)
      return inputError("cannot read IR from '" + opts.model + "'");
    if (llvm::Error error = checkMadeWith(module(), opts, *targetInfo))
      return error;
    return noteMadeWith(module(), opts, *targetInfo);
  }
  const TargetTraits &traits = targetInfo->traits;
  const std::string &type = opts.step.precision;
  if ((type == "bf16" && !traits.bf16Products) ||
      (type == "f16" && !traits.halfProducts))
    remark("precision: there are no products of " + type +
           " on this machine; they are computed in f32 from values that are "
           "stored in " +
           type);
  noteProducts();
  opts.import.parts = opts.step.ranks;
  auto model = onnx_frontend::importModel(opts.model, opts.import, *context);
  if (!model)
    return model.takeError();
  imported = std::move(*model);
  if (auto forward = module().lookupSymbol<func::FuncOp>("forward"))
    readLimits(forward);
  applyInit();
  if (llvm::Error error = checkTrained())
    return error;
  if (llvm::Error error = applyGroups())
    return error;
  if (llvm::Error error = noteFrozenNorms())
    return error;
  for (const std::string &text : imported.remarks)
    remark(text);
  noteUnclear();
  if (!opts.phases.to.empty() || !opts.phases.dumpDirectory.empty())
    if (llvm::Error error = noteMadeWith(module(), opts, *targetInfo))
      return error;
  return judgeExport();
}

TensorMap Compilation::weights() const {
  TensorMap result;
  for (const auto &[name, value] : imported.weights)
    result.set(name, value);
  return result;
}

/// Sums argument bytes by role; gradients are what the updates read.
static void summarizeArguments(func::FuncOp step, PlanSummary &summary) {
  for (auto [i, argument] : llvm::enumerate(step.getArguments())) {
    auto role = step.getArgAttrOfType<StringAttr>(i, attrs::kRole);
    int64_t bytes = getByteSize(cast<RankedTensorType>(argument.getType()));
    StringRef text = role ? role.getValue() : StringRef();
    if (text == roles::kParameter || text == roles::kFrozen)
      summary.parameterBytes += bytes;
    else if (text == roles::kOptimizerState)
      summary.optimizerBytes += bytes;
    else if (text == roles::kState || text == roles::kConstant)
      summary.stateBytes += bytes;
    else
      summary.dataBytes += bytes;
  }
}

/// What integer data may hold, as arguments say.
void Compilation::readLimits(func::FuncOp function) {
  auto number = [&](unsigned i, StringRef attribute) {
    auto attr = function.getArgAttrOfType<IntegerAttr>(i, attribute);
    return attr ? std::optional(attr.getInt()) : std::nullopt;
  };
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    std::string name = argumentName(function, i);
    if (auto classes = number(i, kClassesAttr))
      labelRanges[name] = {*classes, number(i, kIgnoreIndexAttr)};
    if (function.getArgAttr(i, kSignsAttr))
      signTargets.insert(name);
    if (auto kind =
            function.getArgAttrOfType<StringAttr>(i, kProbabilitiesAttr))
      probabilityTargets[name] = kind.getValue() == "required";
    if (auto size = number(i, kRowsAttr))
      rows[name] = *size;
  }
}

/// Labels that attached losses take, and whose targets they are.
void Compilation::noteTargets() {
  for (StringRef name : {"step", "eval"})
    if (auto function = module().lookupSymbol<func::FuncOp>(name))
      for (unsigned i = 0; i < function.getNumArguments(); ++i)
        if (auto output = function.getArgAttrOfType<StringAttr>(
                i, autodiff::kTargetOfAttr))
          targets[argumentName(function, i)] = output.str();
  for (StringRef name : {"step", "eval"})
    if (auto function = module().lookupSymbol<func::FuncOp>(name))
      readLimits(function);
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
  if (opts.step.matmulPrecision != "f32")
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
  remat.overlap = overlaps(opts.step, *targetInfo);
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
  if (llvm::Error error = checkTrainedTypes())
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
  return error;
}

/// Copies row-major elements to where the tensor's own order has them.
static void copyToOrder(const HostTensor &value,
                        const runtime::TensorInfo &tensor, char *to) {
  int64_t size = dtypeSize(tensor.dtype), offset = 0;
  auto *from = static_cast<const char *>(value.rawData());
  SmallVector<int64_t> index(tensor.shape.size());
  for (int64_t i = 0, count = value.numElements(); i < count; ++i) {
    std::memcpy(to + offset * size, from + i * size, size_t(size));
    for (size_t d = index.size(); d-- > 0;) {
      offset += tensor.strides[d];
      if (++index[d] < tensor.shape[d])
        break;
      offset -= tensor.strides[d] * tensor.shape[d];
      index[d] = 0;
    }
  }
}

/// Appends the known values of tensors, so that the artifact carries them.
llvm::Error Compilation::embedWeights(runtime::Manifest &manifest,
                                      std::vector<char> &data) const {
  if (!opts.embedWeights)
    return llvm::Error::success();
  for (runtime::TensorInfo &tensor : manifest.tensors) {
    auto found = imported.weights.find(tensor.name);
    if (found == imported.weights.end())
      continue;
    auto value = found->second.convertTo(tensor.dtype);
    if (!value)
      return value.takeError();
    tensor.dataOffset = int64_t(data.size());
    data.resize((data.size() + size_t(tensor.dataBytes()) + 63) / 64 * 64);
    for (int64_t rank = 0; rank < tensor.shards; ++rank)
      copyToOrder(tensor.shards > 1 ? shardOf(tensor, *value, rank) : *value,
                  tensor, data.data() + tensor.dataOffsetOf(rank));
  }
  return llvm::Error::success();
}

llvm::Error Compilation::checkEmit() const {
  if (stage != Stage::Planned || hasCode())
    return usageError("emit() follows plan(), once, and needs its success");
  return checkAllPhases(opts.phases);
}

llvm::Expected<bool> Compilation::adoptCode(llvm::StringRef packed) {
  if (llvm::Error error = checkEmit())
    return std::move(error);
  auto code = targetInfo->unpack(packed);
  if (!code)
    return code.takeError();
  stepCode = std::move(*code);
  return hasCode();
}

llvm::Error Compilation::emit() {
  if (llvm::Error error = checkEmit())
    return error;
  EmitOptions options;
  options.kernels = opts.step;
  options.cpu = opts.target;
  options.device = opts.device;
  options.instrument = opts.instrument;
  options.keepDenormals = opts.keepDenormals;
  options.verbose = opts.phases.verbose;
  options.producer = std::string("ckopt ") + CKOPT_VERSION;
  options.addData = [this](runtime::Manifest &manifest,
                           std::vector<char> &data) {
    return embedWeights(manifest, data);
  };
  auto code = targetInfo->emit(module(), options);
  if (!code)
    return code.takeError();
  stepCode = std::move(*code);
  return llvm::Error::success();
}

const StepCode &Compilation::code() const {
  if (!stepCode)
    llvm::report_fatal_error("Compilation::code() and manifest() need emit()");
  return *stepCode;
}

TimelinePanel Compilation::timeline(llvm::StringRef title) const {
  auto step = module() ? module().lookupSymbol<func::FuncOp>("step") : nullptr;
  if (!step)
    return TimelinePanel();
  CostModel model(opts.step.remat.costs, targetInfo->traits.rates);
  return buildTimeline(step, title, planSummary.figures.budget, model);
}
