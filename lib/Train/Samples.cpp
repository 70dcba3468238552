//===- Samples.cpp - arrays of files as a step's operands -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds an array for each input and target of the step: the one that the
// options map to it, or the one of its name. Labels and indices are checked
// against the ops that read them before any step runs. Linear in the data.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Runtime/LastFailure.h"
#include "ckopt/Runtime/StatusExit.h"
#include "ckopt/Support/ByteSize.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Train/Data/ArrayStream.h"
#include "ckopt/Train/Feeding.h"
#include "llvm/ADT/StringExtras.h"

#include <memory>
#include <set>

using namespace ckopt;
using runtime::TensorRole;

int64_t ckopt::batchSize(const runtime::Manifest &manifest) {
  for (const runtime::TensorInfo &tensor : manifest.tensors)
    if (tensor.role == TensorRole::Input && !tensor.shape.empty())
      return tensor.shape.front();
  return 1;
}

int64_t ckopt::leastBatch(runtime::Manifest manifest) {
  int64_t batch = batchSize(manifest), low = manifest.open.low;
  std::string error;
  bool isOpen = batch == manifest.open.size &&
                runtime::resize(manifest, low, error) &&
                batchSize(manifest) == low;
  return isOpen ? low : batch;
}

static FieldSpec describeField(const runtime::TensorInfo &tensor,
                               std::string array, int64_t batch) {
  FieldSpec field;
  field.name = tensor.name;
  field.array = std::move(array);
  field.dtype = tensor.dtype;
  std::vector<int64_t> shape = tensor.shape;
  field.batched = !shape.empty() && shape.front() == batch;
  if (field.batched)
    shape.erase(shape.begin());
  field.shape = std::move(shape);
  return field;
}

/// Names the array of a target: the one that --inputs maps to it, else the one
/// of --targets. A target that is an input of the model itself is read from the
/// array of its name, like any other input.
static llvm::Expected<std::string>
targetArray(const runtime::TensorInfo &tensor,
            llvm::ArrayRef<ArrayMapping> mappings, const StepData &options) {
  for (const ArrayMapping &mapping : mappings)
    if (mapping.name == tensor.name && mapping.array != mapping.name)
      return mapping.array;
  auto attached = options.targetOutputs.find(tensor.name);
  if (attached != options.targetOutputs.end())
    return targetArrayOf(options, attached->second);
  bool alone = options.targetOutputs.empty();
  if (alone && !options.targets.empty())
    return targetArrayOf(options, tensor.name);
  return alone && tensor.name == "target" ? options.usualTargets()
                                          : tensor.name;
}

/// What values of the tensor a step takes, as the manifest has it.
static void limitValues(FieldSpec &field, const runtime::TensorInfo &tensor,
                        const StepData &data) {
  using runtime::TargetValues;
  field.limits = tensor.limits;
  field.signs = tensor.values == TargetValues::Signs;
  field.probabilities = tensor.values == TargetValues::Probabilities ||
                        tensor.values == TargetValues::UsuallyProbabilities;
  if (tensor.values == TargetValues::UsuallyProbabilities)
    field.warn = [warn = data.warn,
                  told = std::make_shared<bool>()](const std::string &text) {
      if (!*told && warn)
        warn(text);
      *told = true;
    };
}

/// Names in --inputs and --targets that the step does not know.
static llvm::Error checkNames(const Session &session,
                              llvm::ArrayRef<ArrayMapping> inputs,
                              const StepData &options) {
  std::string known, outputs;
  auto list = [](std::string &to, llvm::StringRef name) {
    to += ((to.empty() ? "'" : ", '") + name + "'").str();
  };
  std::set<std::string> names, targets;
  for (TensorRole role : {TensorRole::Input, TensorRole::Target})
    for (int64_t index : session.tensors(role)) {
      const std::string &name = session.infoOf(index).name;
      auto attached = options.targetOutputs.find(name);
      bool isAttached = attached != options.targetOutputs.end();
      if (role == TensorRole::Target)
        targets.insert(isAttached ? attached->second : name);
      if (names.insert(name).second && !isAttached)
        list(known, name);
    }
  for (const std::string &name : targets)
    list(outputs, name);
  for (const ArrayMapping &mapping : inputs)
    if (!names.count(mapping.name))
      return usageError(Setting("inputs") + ": the step takes no '" +
                        mapping.name + "'; there are " +
                        (known.empty() ? "none" : known));
  if (options.targets.empty())
    return llvm::Error::success();
  if (targets.empty())
    return usageError(Setting("targets", options.targets) +
                      ": nothing reads targets here");
  if (options.targets.find('=') == std::string::npos)
    return llvm::Error::success();
  auto mappings = parseArrayMappings(options.targets, Setting("targets"));
  if (!mappings)
    return mappings.takeError();
  for (const ArrayMapping &mapping : *mappings)
    if (!targets.count(mapping.name))
      return usageError(Setting("targets") + ": there is no '" + mapping.name +
                        "' that has targets; there are " + outputs);
  return llvm::Error::success();
}

/// A text has no arrays of inputs' names: those of several have to be said.
/// What a loss reads as it is are the next tokens.
static llvm::Error sayWhichTokens(const Session &session,
                                  llvm::StringRef input) {
  std::string inputs;
  for (TensorRole role : {TensorRole::Input, TensorRole::Target})
    for (int64_t index : session.tensors(role))
      inputs += (inputs.empty() ? "" : ",") +
                std::string(session.infoOf(index).name) +
                (role == TensorRole::Input ? "=tokens" : "=next");
  return usageError("which part of the text '" + input +
                    "' takes is not said: there are 'tokens', and 'next', the "
                    "token that follows each; give " +
                    Setting("inputs", inputs) +
                    " (tokens for labels that the model shifts itself)");
}

llvm::Expected<std::vector<FieldSpec>>
ckopt::describeFields(const Session &session, const StepData &options) {
  auto mappings = inputMappings(options);
  if (!mappings)
    return mappings.takeError();
  if (llvm::Error error = checkNames(session, *mappings, options))
    return std::move(error);
  int64_t batch = batchSize(session.manifest());
  std::vector<FieldSpec> fields;
  std::vector<int64_t> inputs = session.tensors(TensorRole::Input);
  for (int64_t index : inputs) {
    const runtime::TensorInfo &tensor = session.infoOf(index);
    bool isText = !options.tokens.empty() && inputs.size() == 1;
    std::string array =
        arrayOf(tensor.name, *mappings, isText ? "tokens" : tensor.name);
    if (takesTokens(array)) {
      if (llvm::Error error = checkSequence(tensor.name, tensor.shape, options))
        return std::move(error);
    } else if (!options.tokens.empty()) {
      return sayWhichTokens(session, tensor.name);
    }
    fields.push_back(describeField(tensor, array, batch));
    limitValues(fields.back(), tensor, options);
  }
  for (int64_t index : session.tensors(TensorRole::Target)) {
    const runtime::TensorInfo &tensor = session.infoOf(index);
    auto array = targetArray(tensor, *mappings, options);
    if (!array)
      return array.takeError();
    if (!options.tokens.empty() && options.targetOutputs.empty() &&
        !takesTokens(*array))
      return sayWhichTokens(session, tensor.name);
    fields.push_back(describeField(tensor, *array, batch));
    limitValues(fields.back(), tensor, options);
  }
  return std::move(fields);
}

llvm::Expected<Dataset> ckopt::loadDataset(const Session &session,
                                           const StepData &options) {
  auto fields = describeFields(session, options);
  if (!fields)
    return fields.takeError();
  auto files = openFiles(options);
  if (!files)
    return files.takeError();
  return Dataset::fromFiles(
      options.tokens.empty() ? options.path : options.tokens, *files, *fields);
}

static void tell(const StepData &options, Message::Severity severity,
                 MessageText text) {
  Message message{severity, "", std::move(text)};
  options.messages ? options.messages(message) : printMessage(message);
}

static void tellRemark(const StepData &options, MessageText text) {
  tell(options, Message::Severity::Remark, std::move(text));
}

/// Says what a folder holds, and what of it is left out.
static void tellListing(const ImageListing &listing, const StepData &options) {
  constexpr size_t kMost = 20;
  const std::vector<std::string> &names = listing.classes;
  std::string text = listing.folder + ": " +
                     std::to_string(listing.images.size()) + " images of " +
                     std::to_string(names.size()) + " classes: ";
  text += llvm::join(llvm::ArrayRef(names).take_front(kMost), ", ");
  if (names.size() > kMost)
    text += " and " + std::to_string(names.size() - kMost) + " more";
  tellRemark(options, std::move(text));
  for (std::string &line : listing.remarks())
    tellRemark(options, std::move(line));
}

static llvm::Expected<std::unique_ptr<BatchSource>>
openImages(const Session &session, const StepData &options, bool train) {
  auto fields = describeFields(session, options);
  if (!fields)
    return fields.takeError();
  auto listing = ImageListing::read(options.images, options.classNames);
  if (!listing)
    return listing.takeError();
  tellListing(*listing, options);
  for (const FieldSpec &field : *fields)
    if (int64_t had = int64_t(listing->classes.size());
        train && had < field.limits.all.classes)
      tell(options, Message::Severity::Warning,
           listing->folder + ": " + std::to_string(had) +
               " folders of classes, but the model has " +
               std::to_string(field.limits.all.classes) +
               " classes; is it the folder of the classes?");
  return ImageFolderSource::create(std::move(*listing), options.imageOptions,
                                   *fields, train);
}

llvm::Expected<std::unique_ptr<BatchSource>>
ckopt::openSource(const Session &session, const StepData &options,
                  DatasetSource::Order order) {
  if (!options.images.empty())
    return openImages(session, options,
                      order == DatasetSource::Order::Shuffled);
  if (options.isStream()) {
    auto fields = describeFields(session, options);
    if (!fields)
      return fields.takeError();
    return ArrayStreamSource::create(stdin, "standard input",
                                     std::move(*fields));
  }
  auto data = loadDataset(session, options);
  if (!data)
    return data.takeError();
  constexpr int64_t kMuch = int64_t(64) << 20;
  if (int64_t bytes = data->sizeInBytes(/*withMapped=*/false); bytes > kMuch)
    tellRemark(options, data->name() + ": " + formatBytes(bytes) +
                            " are unpacked in memory, outside of the budget: "
                            "compressed arrays (" +
                            Setting("data-cache", "FOLDER") +
                            " unpacks them to files, once), and those in "
                            "Fortran order or of another byte order");
  // Where one batch is all there is, what is not batched may speak of places in
  // it (the edges of a graph, of its nodes): samples stay where they are.
  bool isWhole = data->numSamples() == batchSize(session.manifest());
  for (size_t field = 0; isWhole && field < data->numFields(); ++field)
    if (!data->spec(field).batched && !data->sampleShape(field).empty())
      order = DatasetSource::Order::AsStored;
  return std::make_unique<DatasetSource>(std::move(*data), order);
}

llvm::Error ckopt::setSeed(Session &session, uint64_t seed) {
  for (int64_t index : session.tensors(TensorRole::Seed))
    if (llvm::Error error =
            session.write(index, HostTensor::scalar<int64_t>(int64_t(seed))))
      return error;
  return llvm::Error::success();
}

llvm::Expected<TensorMap> ckopt::averagedWeights(const Session &session,
                                                 bool own) {
  TensorMap result;
  for (int64_t index : session.tensors(TensorRole::Parameter)) {
    const std::string &name = session.infoOf(index).name;
    auto average = session.find(name + "/ema");
    if (!average)
      return average.takeError();
    auto value = own ? session.read(*average) : session.readWhole(*average);
    if (!value)
      return value.takeError();
    result.set(name, std::move(*value));
  }
  return result;
}

static llvm::Expected<int64_t> lossOf(const Session &session,
                                      llvm::StringRef function) {
  // Each function has an argument of its own for the labels of its loss.
  for (const runtime::FunctionInfo &info : session.manifest().functions) {
    if (info.name != function)
      continue;
    for (int32_t index : info.outputs)
      if (session.infoOf(index).role == TensorRole::Loss)
        return index;
  }
  return inputError("'" + function + "' computes no loss");
}

llvm::Expected<double> ckopt::readLoss(const Session &session,
                                       llvm::StringRef function) {
  auto index = lossOf(session, function);
  if (!index)
    return index.takeError();
  auto value = session.read(*index);
  if (!value)
    return value.takeError();
  return value->getDouble(0);
}

llvm::Expected<int64_t> ckopt::beginLoss(const Session &session,
                                         llvm::StringRef function) {
  auto index = lossOf(session, function);
  if (index)
    if (ckrt_status status = ckrt_tensor_fetch(session.handle(), *index))
      return makeError(exitCodeOf(status), runtime::lastFailure());
  return index;
}

llvm::Expected<double> ckopt::endLoss(const Session &session, int64_t tensor) {
  double loss = 0;
  if (ckrt_status status = ckrt_tensor_fetched(session.handle(), tensor, &loss))
    return makeError(exitCodeOf(status), runtime::lastFailure());
  return loss;
}
