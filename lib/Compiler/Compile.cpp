//===- Compile.cpp - from a model file to imported IR ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads a model, checks that it can be trained as the options say, and applies
// what they change before anything is derived. CompilePlan.cpp goes on to the
// planned step, CompileEmit.cpp to code.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Compiler/Compile.h"
#include "DumpedPhases.h"
#include "ckopt/Base/PrintableText.h"
#include "ckopt/Compiler/LossChoice.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Dialect/Ckopt/Utils/LabelRange.h"
#include "ckopt/Dialect/Ckopt/Utils/SettingDiagnostic.h"
#include "ckopt/Support/InputBuffer.h"
#include "ckopt/Target/TargetRegistry.h"
#include "ckopt/Target/Targets.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

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

void ckopt::handOn(Diagnostic &diagnostic, const MessageHandler &messages) {
  Message message{severityOf(diagnostic), "", textOf(diagnostic).printable()};
  Location location = diagnostic.getLocation();
  if (std::string node = getSourceName(location); !node.empty())
    message.where = "node '" + printable(node) + "'";
  else if (auto file = dyn_cast<FileLineColLoc>(location))
    message.where = file.getFilename().str() + ":" +
                    std::to_string(file.getLine()) + ":" +
                    std::to_string(file.getColumn());
  messages(message);
  for (Diagnostic &note : diagnostic.getNotes())
    handOn(note, messages);
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
                      const MessageText &text) const {
  opts.messages({severity, "", text});
}

/// Refuses a file that lacks parameters, or warns about it.
llvm::Error Compilation::judgeExport() const {
  const auto &diagnosis = imported.diagnosis;
  if (opts.lost == LostParameters::Ignore)
    return llvm::Error::success();
  for (const std::string &uncompared : diagnosis.uncompared)
    say(Message::Severity::Warning,
        "not compared with the model: " + uncompared);
  if (!diagnosis.isAnother())
    return llvm::Error::success();
  std::string text = onnx_frontend::describeLost(diagnosis, opts.model);
  if (opts.lost == LostParameters::Refuse)
    return inputError(text + "\n  " + Setting("allow-inference-export") +
                      " trains what is left");
  say(Message::Severity::Warning, text);
  return llvm::Error::success();
}

/// Checks that trained weights have a type wide enough for updates. Reports all
/// narrow ones at once, each with a node that reads it, before anything is
/// derived from them.
llvm::Error Compilation::checkTrainedTypes() const {
  auto forward = module().lookupSymbol<func::FuncOp>("forward");
  if (!forward)
    return llvm::Error::success();
  constexpr int64_t kShown = 5;
  bool trainsBF16 = opts.step.optimizer.paramType == ParamType::BF16;
  std::string names, type;
  int64_t count = 0;
  for (BlockArgument argument : forward.getArguments()) {
    unsigned i = argument.getArgNumber();
    auto role = forward.getArgAttrOfType<StringAttr>(i, attrs::kRole);
    auto name = forward.getArgAttrOfType<StringAttr>(i, attrs::kName);
    Type element = getElementTypeOrSelf(argument.getType());
    if (!role || !name || role.getValue() != roles::kParameter ||
        !(element.isF16() || (element.isBF16() && !trainsBF16)) ||
        ++count > kShown)
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
          std::to_string(count) + " are f16 or bf16: " + names +
          "; freeze them (" + Setting("freeze") + ", or " +
          Setting("train", "'lora_.*'") +
          " and the like), convert the model to f32 (for speed on a GPU add " +
          Setting("precision", type) +
          "), or keep weights in f32 and cast them where they are read" +
          (type == "bf16" ? "; " + Setting("param-type", "bf16") +
                                " updates them as they are"
                          : MessageText()));
}

/// Replaces random initialization rules; zeros and ones stay, since biases and
/// scales need them.
void Compilation::applyInit() {
  if (opts.init == InitRule::Auto)
    return;
  auto forward = module().lookupSymbol<func::FuncOp>("forward");
  int64_t changed = 0;
  for (unsigned i = 0; forward && i < forward.getNumArguments(); ++i) {
    auto init = forward.getArgAttrOfType<StringAttr>(i, attrs::kInit);
    if (!init || init.getValue() == "zeros" || init.getValue() == "ones")
      continue;
    forward.setArgAttr(i, attrs::kInit,
                       StringAttr::get(context.get(), nameOf(opts.init)));
    ++changed;
  }
  imported.remarks.push_back(
      changed ? "init: " + nameOf(opts.init).str() + " for " +
                    std::to_string(changed) + " weights without values"
              : "init: the model has values for all weights that would start "
                "with random numbers; " +
                    Setting("init") + " changes nothing");
}

/// Finds the target, which completes the options.
llvm::Error Compilation::settleTarget() {
  auto found = findTarget(opts.step.target);
  if (!found)
    return found.takeError();
  targetInfo = *found;
  TargetRequest request{opts.step, opts.target, opts.device, opts.import.f64};
  if (llvm::Error error = targetInfo->settle(request))
    return error;
  if (opts.step.keepCopies &&
      (opts.step.forwardOnly || opts.step.optimizer.kind.empty()))
    return usageError(Setting("cuda-weight-copies") +
                      " is for weights that an optimizer updates: leave it "
                      "out, or give one");
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

/// Says of a model that holds for the whole batch, and not for a rank's part
/// of it, that this is so: the numbers in its error are those of the part.
llvm::Error Compilation::explainShare(llvm::Error error) {
  if (opts.step.ranks == 1 || !opts.import.batch)
    return error;
  ScopedDiagnosticHandler silent(context.get(),
                                 [](Diagnostic &) { return success(); });
  auto imports = [&](int64_t batch) {
    onnx_frontend::ImportOptions import = opts.import;
    import.batch = batch;
    import.parts = 1;
    import.neededConstants = nullptr;
    auto model = onnx_frontend::importModel(opts.model, import, *context);
    bool fine = bool(model);
    llvm::consumeError(model.takeError());
    return fine;
  };
  int64_t part = *opts.import.batch, whole = part * opts.step.ranks;
  if (imports(part) || !imports(whole))
    return error;
  return withContext(std::move(error),
                     "a rank's part of the batch is " + llvm::Twine(part) +
                         " of " + llvm::Twine(whole) +
                         " samples, and the model holds for the whole batch "
                         "alone (export it with a dynamic batch)");
}

llvm::Error Compilation::importModel() {
  if (llvm::Error error = checkOptions(opts))
    return error;
  opts.learningRate =
      learningRateOr(opts.learningRate, opts.step.optimizer.kind);
  if (llvm::Error error = settleTarget())
    return error;
  if (llvm::Error error = settleSizes())
    return error;
  if (!opts.phases.from.empty()) {
    auto text = readInput(opts.model, /*endsWithZero=*/true);
    if (!text)
      return text.takeError();
    imported.module = parseSourceString<ModuleOp>((*text)->getBuffer(),
                                                  context.get(), opts.model);
    if (!imported.module)
      return inputError("cannot read IR from '" + opts.model + "'");
    if (llvm::Error error = checkMadeWith(module(), opts, *targetInfo))
      return error;
    return noteMadeWith(module(), opts, *targetInfo);
  }
  const TargetTraits &traits = targetInfo->traits;
  Precision precision = opts.step.precision;
  std::string type = nameOf(precision).str();
  if ((precision == Precision::BF16 && !traits.bf16Products) ||
      (precision == Precision::F16 && !traits.halfProducts))
    remark("precision: there are no products of " + type +
           " on this machine; they are computed in f32 from values that are "
           "stored in " +
           type);
  noteProducts();
  opts.import.parts = opts.step.ranks;
  opts.import.trainsNone = opts.lora.rank && opts.import.trainRegex.empty();
  auto model = onnx_frontend::importModel(opts.model, opts.import, *context);
  if (!model)
    return explainShare(model.takeError());
  imported = std::move(*model);
  std::vector<NamedFile> weightFiles;
  for (const std::string &file : imported.externalFiles)
    weightFiles.push_back({"the model's weights", file});
  if (llvm::Error error = checkDistinct(opts.outputs, weightFiles))
    return error;
  applyInit();
  if (llvm::Error error = addAdapters())
    return error;
  if (llvm::Error error = checkTrained())
    return error;
  if (llvm::Error error = applyGroups())
    return error;
  if (llvm::Error error = noteFrozenNorms())
    return error;
  for (const MessageText &text : imported.remarks)
    remark(text);
  noteUnclear();
  if (!opts.phases.to.empty() || !opts.phases.dumpDirectory.empty())
    if (llvm::Error error = noteMadeWith(module(), opts, *targetInfo))
      return error;
  return judgeExport();
}

void Compilation::releaseWeights() {
  imported.weights.clear();
  imported.constants.clear();
  released = true;
}

TensorMap Compilation::weights() const {
  TensorMap result;
  for (const auto &[name, value] : imported.weights)
    result.set(name, value);
  return result;
}
