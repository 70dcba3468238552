//===- Step.cpp - compile, load and train from a program ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Train/Step.h"
#include "WeightNames.h"
#include "ckopt/Base/ContentHash.h"
#include "ckopt/Compiler/LossChoice.h"
#include "ckopt/Compiler/Together.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"
#include "ckopt/Frontend/Onnx/Onnx.h"
#include "ckopt/Ranks/Ranks.h"
#include "ckopt/Runtime/KeepAlive.h"
#include "ckopt/Support/AtomicFile.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/NameList.h"
#include "ckopt/Support/Report.h"
#include "ckopt/Support/Safetensors.h"
#include "ckopt/Train/Feeding.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

#include <cstring>
#include <set>

using namespace ckopt;
using runtime::TensorRole;

/// Fields of a caller's source that the step does not take, and those that it
/// takes and the source does not have.
static llvm::Error checkSourceFields(const Compilation &compilation,
                                     const DataOptions &data) {
  auto step = compilation.module().lookupSymbol<mlir::func::FuncOp>("step");
  if (data.fields.empty() || !step)
    return llvm::Error::success();
  std::set<std::string> taken;
  for (unsigned i = 0; i < step.getNumArguments(); ++i) {
    auto role = step.getArgAttrOfType<mlir::StringAttr>(i, attrs::kRole);
    auto name = step.getArgAttrOfType<mlir::StringAttr>(i, attrs::kName);
    if (role && name &&
        (role.getValue() == roles::kInput || role.getValue() == roles::kTarget))
      taken.insert(name.getValue().str());
  }
  std::string all = llvm::join(taken, "', '");
  for (const SourceField &field : data.fields)
    if (!taken.erase(field.name))
      return inputError("the step takes no field '" + field.name +
                        "', or takes it once alone; it takes '" + all + "'");
  if (!taken.empty())
    return inputError("the source has no field '" + *taken.begin() +
                      "'; the step takes '" + all + "'");
  return llvm::Error::success();
}

/// Refuses tokens in pieces that the model does not take before anything is
/// made of their shape.
static llvm::Error checkTokens(const Compilation &compilation,
                               const DataOptions &data) {
  auto forward =
      compilation.module().lookupSymbol<mlir::func::FuncOp>("forward");
  if (data.tokens.empty() || !forward)
    return llvm::Error::success();
  std::vector<std::pair<std::string, std::vector<int64_t>>> inputs;
  for (unsigned i = 0; i < forward.getNumArguments(); ++i) {
    auto role = forward.getArgAttrOfType<mlir::StringAttr>(i, attrs::kRole);
    auto name = forward.getArgAttrOfType<mlir::StringAttr>(i, attrs::kName);
    auto type =
        llvm::dyn_cast<mlir::RankedTensorType>(forward.getArgumentTypes()[i]);
    if (role && name && type && role.getValue() == roles::kInput)
      inputs.emplace_back(name.str(), type.getShape().vec());
  }
  auto mappings = inputMappings(data);
  if (!mappings)
    return mappings.takeError();
  for (const auto &[name, shape] : inputs) {
    std::string array =
        arrayOf(name, *mappings, inputs.size() == 1 ? "tokens" : name);
    if (takesTokens(array))
      if (llvm::Error error = checkSequence(name, shape, data))
        return error;
  }
  return llvm::Error::success();
}

static llvm::Error importForStep(Compilation &compilation,
                                 const DataOptions &data) {
  if (llvm::Error error = compilation.import())
    return error;
  if (llvm::Error error = checkTokens(compilation, data))
    return error;
  return settleLoss(compilation, data);
}

llvm::Error ckopt::plan(Compilation &compilation, const DataOptions &data) {
  if (llvm::Error error =
          agreeOnModel(compilation, importForStep(compilation, data)))
    return error;
  if (llvm::Error error = planOnMain(compilation))
    return error;
  return checkSourceFields(compilation, data);
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

/// Refuses a compilation that has made no code.
static llvm::Error checkCode(const Compilation &compilation) {
  if (compilation.code())
    return llvm::Error::success();
  return usageError("the step has no code: compile() makes one, or "
                    "Compilation::emit()");
}

/// Refuses what the code was not made for. Steps of devices run kernel by
/// kernel where a check is asked for; others need calls in their code.
static llvm::Error checkSession(const Compilation &compilation,
                                const SessionOptions &options) {
  if (llvm::Error error = checkCode(compilation))
    return error;
  bool checks = options.checkFinite || options.verifyRemat;
  if (checks && !compilation.given().instrument &&
      compilation.manifest().target == runtime::Target::Cpu)
    return usageError(
        llvm::Twine(options.checkFinite ? "checkFinite" : "verifyRemat") +
        " needs a step that was compiled with "
        "CompileOptions::instrument");
  return checkThreadsHere(compilation.manifest().threads);
}

llvm::Expected<std::unique_ptr<Session>>
ckopt::open(const Compilation &compilation, const SessionOptions &options) {
  if (llvm::Error error = checkSession(compilation, options))
    return std::move(error);
  const StepCode &code = compilation.codeAt(options.size);
  SessionOptions own = options;
  own.ranks = compilation.given().ranks;
  std::set<int64_t> known;
  while (true) {
    std::vector<int64_t> refused(known.begin(), known.end());
    auto loaded = options.size ? code.loadAt(options.size) : code.load(refused);
    if (!loaded)
      return loaded.takeError();
    auto session = Session::create(loaded->program, own,
                                   std::move(loaded->keeper), &refused);
    const size_t before = known.size();
    known.insert(refused.begin(), refused.end());
    if (session || known.size() == before)
      return session;
    llvm::consumeError(session.takeError());
  }
}

/// Names of the tensors that a file of weights can be about: those of the step,
/// and what the model holds beside them (weights that nothing reads).
static std::set<std::string> weightNames(const Compilation &compilation,
                                         const Session &session) {
  std::set<std::string> names;
  for (const auto &entry : compilation.model().weights)
    names.insert(entry.first);
  for (TensorRole role : {TensorRole::Parameter, TensorRole::Frozen,
                          TensorRole::State, TensorRole::Constant})
    for (int64_t index : session.tensors(role))
      names.insert(session.infoOf(index).name);
  return names;
}

/// Lists the weights whose values the model's file has, and these do not.
static std::vector<std::string> missingWeights(const Compilation &compilation,
                                               const Session &session,
                                               const TensorMap &weights) {
  std::vector<std::string> missing;
  for (TensorRole role : {TensorRole::Parameter, TensorRole::Frozen})
    for (int64_t index : session.tensors(role))
      if (const std::string &name = session.infoOf(index).name;
          !weights.contains(name) && compilation.weights().contains(name))
        missing.push_back(name);
  return missing;
}

/// Gives weights that modules share the name that the model's file has:
/// published files have one of both names ("embed_tokens" and "lm_head"), or
/// the same numbers twice. Notes which names the file has instead.
static llvm::Error settleTied(const Compilation &compilation,
                              const LoadOptions &options,
                              std::vector<std::string> &names,
                              std::map<std::string, std::string> &instead) {
  std::map<std::string, const HostTensor *> values;
  for (const auto &[entry, name] : llvm::zip(options.weights, names))
    values[name] = &entry.second;
  const auto &tied = compilation.model().diagnosis.tied;
  for (std::string &name : names) {
    auto found = tied.find(name);
    if (found == tied.end())
      continue;
    const std::string &kept = found->second;
    auto [own, isNew] = values.emplace(kept, values[name]);
    if (isNew) {
      instead[kept] = name;
      name = kept;
      continue;
    }
    const HostTensor &one = *own->second, &two = *values[name];
    if (one.dtype() != two.dtype() || one.shape() != two.shape() ||
        std::memcmp(one.rawData(), two.rawData(), size_t(one.sizeInBytes())))
      return inputError(options.weightsFile + ": '" + kept + "' and '" + name +
                        "' have other numbers, and are one weight of '" +
                        compilation.given().model + "'");
    name.clear();
  }
  return llvm::Error::success();
}

/// Returns the given weights by the model's names. Refuses weights of which the
/// model has none, which are another network's, and warns of those that it has
/// not. A checkpoint's optimizer state ("NAME/momentum") is that of NAME.
static llvm::Expected<TensorMap>
nameGivenWeights(const Compilation &compilation, Session &session,
                 const LoadOptions &options) {
  std::set<std::string> known = weightNames(compilation, session);
  for (const auto &entry : compilation.model().diagnosis.tied)
    known.insert(entry.first);
  const std::string &model = compilation.given().model;
  std::vector<std::string> given, unknown;
  for (const auto &entry : options.weights)
    given.push_back(entry.first);
  MatchedNames matched = matchNames(given, known);
  session.given = {matched.prefix, options.weightsFolder, {}};
  const std::vector<std::string> own = matched.names;
  if (llvm::Error error =
          settleTied(compilation, options, matched.names, session.given.tied))
    return std::move(error);
  TensorMap result;
  for (const auto &[entry, name, before] :
       llvm::zip(options.weights, matched.names, own)) {
    if (!name.empty() && !result.insert(name, entry.second))
      return inputError(options.weightsFile + " has '" + name +
                        "' twice, once "
                        "as '" +
                        entry.first + "'");
    if (before.empty() &&
        !known.count(llvm::StringRef(entry.first).rsplit('/').first.str()))
      unknown.push_back(entry.first);
  }
  if (!unknown.empty() && unknown.size() == given.size())
    return inputError(
        options.weightsFile + " holds no weight of '" + model + "': it has " +
        listNames(unknown) + ", the model has " +
        listNames(std::vector<std::string>(known.begin(), known.end())));
  const auto missing = missingWeights(compilation, session, result);
  MessageText kept =
      missing.empty()
          ? MessageText()
          : std::to_string(missing.size()) + " weights of '" + model +
                "' are not in it, and keep its values: " + listNames(missing);
  if (const NamePrefix &prefix = matched.prefix; !prefix.empty())
    compilation.say(
        Message::Severity::Note,
        options.weightsFile + ": " + std::to_string(matched.fitting) +
            " of its " + std::to_string(given.size()) + " tensors fit with '" +
            prefix.added + prefix.dropped + "' " +
            (prefix.dropped.empty() ? "put before" : "left out of") +
            " their names");
  if (!unknown.empty())
    compilation.say(Message::Severity::Warning,
                    options.weightsFile + ": " + llvm::Twine(unknown.size()) +
                        " of its " + llvm::Twine(given.size()) +
                        " tensors are no weights of '" + model +
                        "' and are not used: " + listNames(unknown) +
                        (kept.empty() ? "" : "; ") + kept);
  else if (!kept.empty())
    compilation.say(Message::Severity::Note, options.weightsFile + ": " + kept);
  return std::move(result);
}

/// Refuses other weights than those whose norms DoRA's magnitudes start with.
static llvm::Error checkMagnitudes(const Compilation &compilation,
                                   const TensorMap &weights,
                                   const LoadOptions &options) {
  for (const AdapterNote &adapter : compilation.adapters())
    if (!adapter.magnitude.empty() && weights.contains(adapter.weight) &&
        !weights.contains(adapter.magnitude))
      return inputError(options.weightsFile + " replaces '" + adapter.weight +
                        "', and " + Setting("dora") +
                        " starts with the norms of the model's own: put the "
                        "weights into the model's file first");
  return llvm::Error::success();
}

/// What checkpoints say of a base in few bits, which is constants.
static std::vector<FrozenTensor>
describeConstants(const onnx_frontend::ImportedModel &model) {
  std::vector<FrozenTensor> result;
  for (const auto &[name, value] : model.constants)
    result.push_back(
        {{name, value.dtype(), value.shape().vec()},
         ContentHash::of(value.rawData(), size_t(value.sizeInBytes())),
         /*isConstant=*/true});
  return result;
}

llvm::Expected<std::unique_ptr<Session>>
ckopt::load(const Compilation &compilation, const LoadOptions &options) {
  auto session = open(compilation, options.session);
  if (!session)
    return session.takeError();
  if (options.session.arenaOf)
    return session;
  if (!compilation.hasWeights())
    return usageError("the step has been loaded, and keeps no first weights "
                      "for another one: compile() again");
  TensorMap weights = compilation.weights();
  if (!options.weights.empty()) {
    auto given = nameGivenWeights(compilation, **session, options);
    if (!given)
      return given.takeError();
    if (llvm::Error error = checkMagnitudes(compilation, *given, options))
      return std::move(error);
    for (const auto &[name, value] : *given)
      weights.set(name, value);
  }
  if (llvm::Error error = (*session)->initialize(weights, options.seed))
    return std::move(error);
  (*session)->unchanged().constants = describeConstants(compilation.model());
  return session;
}

//===----------------------------------------------------------------------===//
// Training
//===----------------------------------------------------------------------===//

static constexpr llvm::StringLiteral kOurs = "ckopt.";

StringMetadata ckopt::weightsMetadata(llvm::ArrayRef<std::string> names) {
  if (names.empty())
    return {};
  llvm::json::Array array;
  for (const std::string &one : names)
    array.push_back(jsonString(one));
  std::string text;
  llvm::raw_string_ostream(text) << llvm::json::Value(std::move(array));
  return {{(kOurs + "classes").str(), text}};
}

llvm::Expected<TrainResult>
ckopt::train(const Compilation &compilation, Session &session,
             const StepData &where, BatchSource &source, TrainOptions options) {
  const CompileOptions &given = compilation.given();
  const OptimizerSettings &optimizer = given.step.optimizer;
  if (llvm::Error error = checkUpdates(optimizer))
    return std::move(error);
  options.schedule.base = learningRateOr(options.schedule.base, optimizer.kind);
  if (!given.groups.empty() &&
      compilation.options().learningRate != options.schedule.base)
    return usageError("the step's parameter groups were compiled for another "
                      "learning rate than the schedule's");
  if (!options.messages)
    options.messages = compilation.options().messages;
  if (options.accumulate != 1 && options.accumulate != optimizer.accumulate)
    return usageError("the step was compiled for " +
                      llvm::Twine(optimizer.accumulate) +
                      " micro-batches an update (OptimizerSettings), not " +
                      llvm::Twine(options.accumulate));
  options.accumulate = optimizer.accumulate;
  if (options.averages && optimizer.ema == 0)
    return usageError("the step was compiled without averaged weights "
                      "(OptimizerSettings::ema, " +
                      Setting("ema", "D") + ")");
  options.averages = optimizer.ema > 0;
  options.leastSamples = leastBatch(session.manifest());
  if (options.leastSamples < batchSize(session.manifest()))
    options.smaller = [&](int64_t samples) {
      SessionOptions part;
      part.arenaOf = &session;
      part.size = samples;
      return open(compilation, part);
    };
  options.identity = runIdentity(given, options, session, source.identity());
  for (const auto &[key, value] : weightsMetadata(source.classNames()))
    options.identity[llvm::StringRef(key).drop_front(kOurs.size()).str()] =
        value;
  if (!options.writeWeights)
    options.writeWeights = [&](const std::string &path) -> llvm::Error {
      return ckopt::writeWeights(compilation, session, path, {},
                                 weightsMetadata(source.classNames()));
    };
  return train(session, source, where, options);
}

llvm::Expected<CompiledStep> ckopt::compile(CompileOptions options,
                                            DataOptions data) {
  if (llvm::Error error = checkAllPhases(options.phases))
    return std::move(error);
  runtime::KeepAlive alive; // the others may be faster
  auto compiled = std::make_shared<Compilation>(std::move(options));
  if (!data.messages)
    data.messages = compiled->options().messages;
  if (llvm::Error error = plan(*compiled, data))
    return std::move(error);
  if (llvm::Error error = emitOnMain(*compiled))
    return std::move(error);
  CompiledStep step;
  step.stepData = describeData(*compiled, std::move(data));
  step.compiled = std::move(compiled);
  return step;
}

void CompiledStep::releaseWeights() { compiled->releaseWeights(); }

const PlanSummary &CompiledStep::plan() const { return compiled->summary(); }

CompiledStep::CompiledStep()
    : compiled(std::make_shared<Compilation>(CompileOptions())) {}

llvm::Expected<std::unique_ptr<Session>>
CompiledStep::load(const LoadOptions &options) const {
  return ckopt::load(*compiled, options);
}

llvm::Expected<TrainResult> CompiledStep::train(Session &session,
                                                BatchSource &source,
                                                TrainOptions options) const {
  if (llvm::Error error = checkCode(*compiled))
    return std::move(error);
  return ckopt::train(*compiled, session, stepData, source, std::move(options));
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

llvm::Error CompiledStep::writeWeights(const Session &session,
                                       const std::string &path) const {
  if (llvm::Error error = checkCode(*compiled))
    return error;
  return ckopt::writeWeights(*compiled, session, path);
}

llvm::Error CompiledStep::write(const std::string &path) const {
  if (llvm::Error error = checkCode(*compiled))
    return error;
  return compiled->code()->write(path);
}
