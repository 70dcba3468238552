//===- Checkpoint.cpp - a training run on disk ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads and writes checkpoints as safetensors. Its metadata are strings:
// numbers are written in decimal, under "ckopt.*", options under "option.*".
// O(bytes).
//
//===----------------------------------------------------------------------===//
#include "ckopt/Train/Data/Checkpoint.h"
#include "CheckpointParts.h"
#include "ckopt/Base/ContentHash.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/FlagTable.h"
#include "ckopt/Support/Optimizers.h"
#include "ckopt/Support/Real.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/ScopedPrinter.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace ckopt {

static constexpr const char *formatName = "checkpoint-1";
/// The same without the values of frozen weights, which an earlier ckopt would
/// look for.
static constexpr const char *frozenFormatName = "checkpoint-2";
static constexpr const char *optionPrefix = "option.";
/// Metric, value, step and evaluations since, with blanks between; may be
/// missing.
static constexpr const char *bestKey = "ckopt.best";
/// Followed by a frozen weight's name: its type, hash and extents, with blanks
/// between.
static constexpr const char *frozenPrefix = "ckopt.frozen.";
static constexpr const char *constantPrefix = "ckopt.constant.";

StringMetadata describeState(const TrainingState &state) {
  StringMetadata metadata;
  bool leavesOut = any_of(state.frozen, [](const FrozenTensor &tensor) {
    return !tensor.isConstant;
  });
  metadata[kFormatKey] = leavesOut ? frozenFormatName : formatName;
  metadata["ckopt.step"] = std::to_string(state.step);
  metadata["ckopt.epoch"] = std::to_string(state.data.epoch);
  metadata["ckopt.position"] = std::to_string(state.data.position);
  metadata["ckopt.seed"] = std::to_string(state.seed);
  for (const auto &[key, value] : state.options)
    metadata[optionPrefix + key] = value;
  if (const auto &best = state.best)
    raw_string_ostream(metadata[bestKey])
        << best->metric << " " << format("%.17g", best->value) << " "
        << best->step << " " << best->since;
  for (const FrozenTensor &tensor : state.frozen) {
    std::string text =
        std::string(dtypeName(tensor.spec.dtype)) + " " + hexText(tensor.hash);
    for (int64_t size : tensor.spec.shape)
      text += " " + std::to_string(size);
    const char *prefix = tensor.isConstant ? constantPrefix : frozenPrefix;
    metadata[prefix + tensor.spec.name] = std::move(text);
  }
  return metadata;
}

Error writeCheckpoint(StringRef path, TensorParts &tensors,
                      const TrainingState &state) {
  if (Error error = writeSafetensors(path, tensors, describeState(state)))
    return error;
  removeShares(path, /*keep=*/-1);
  return Error::success();
}

Error writeCheckpoint(StringRef path, const Checkpoint &checkpoint) {
  MapParts tensors(checkpoint.tensors);
  return writeCheckpoint(path, tensors, checkpoint.state);
}

template <typename T>
static Error readNumber(const StringMetadata &metadata, const char *key, T &to,
                        StringRef path) {
  auto it = metadata.find(key);
  if (it == metadata.end())
    return inputError(path + ": not a whole checkpoint: '" + key +
                      "' is missing");
  if (StringRef(it->second).getAsInteger(10, to) ||
      (std::is_signed_v<T> && it->second[0] == '-'))
    return inputError(path + ": damaged checkpoint: '" + key + "' is '" +
                      it->second + "'");
  return Error::success();
}

static Error readBest(const StringMetadata &metadata,
                      std::optional<BestEvaluation> &to, StringRef path) {
  auto it = metadata.find(bestKey);
  if (it == metadata.end())
    return Error::success();
  SmallVector<StringRef> parts;
  StringRef(it->second).split(parts, ' ');
  BestEvaluation best;
  if (parts.size() != 4 || !flag::parseReal(parts[1], best.value) ||
      parts[2].getAsInteger(10, best.step) ||
      parts[3].getAsInteger(10, best.since))
    return inputError(path + ": damaged checkpoint: '" + bestKey + "' is '" +
                      it->second + "'");
  best.metric = parts[0].str();
  to = std::move(best);
  return Error::success();
}

static bool parseFrozen(StringRef text, FrozenTensor &tensor) {
  SmallVector<StringRef> parts;
  text.split(parts, ' ');
  if (parts.size() < 2 || parts[1].size() != 16 ||
      parts[1].getAsInteger(16, tensor.hash))
    return false;
  std::optional<DType> type = parseDType(std::string_view(parts[0]));
  if (!type)
    return false;
  tensor.spec.dtype = *type;
  for (StringRef size : ArrayRef(parts).drop_front(2))
    if (size.getAsInteger(10, tensor.spec.shape.emplace_back()) ||
        tensor.spec.shape.back() < 0)
      return false;
  return true;
}

static Error readFrozen(const StringMetadata &metadata,
                        std::vector<FrozenTensor> &to, StringRef path) {
  for (const auto &[key, text] : metadata) {
    StringRef name = key;
    bool isConstant = name.consume_front(constantPrefix);
    if (!isConstant && !name.consume_front(frozenPrefix))
      continue;
    if (!parseFrozen(text, to.emplace_back()))
      return inputError(path + ": damaged checkpoint: '" + key + "' is '" +
                        text + "'");
    to.back().spec.name = name.str();
    to.back().isConstant = isConstant;
  }
  return Error::success();
}

static Expected<TrainingState> parseState(const StringMetadata &metadata,
                                          StringRef path) {
  auto format = metadata.find(kFormatKey);
  if (format == metadata.end())
    return inputError(path +
                      ": weights, but not a checkpoint of a training "
                      "run (there is no '" +
                      kFormatKey + "' in its metadata)");
  if (format->second != formatName && format->second != frozenFormatName &&
      !isShardIndex(metadata))
    return inputError(path + ": a checkpoint of format '" + format->second +
                      "', this ckopt reads '" + formatName + "' and '" +
                      frozenFormatName + "'");
  TrainingState state;
  if (Error error = readNumber(metadata, "ckopt.step", state.step, path))
    return std::move(error);
  if (Error error = readNumber(metadata, "ckopt.epoch", state.data.epoch, path))
    return std::move(error);
  if (Error error =
          readNumber(metadata, "ckopt.position", state.data.position, path))
    return std::move(error);
  if (Error error = readNumber(metadata, "ckopt.seed", state.seed, path))
    return std::move(error);
  if (Error error = readBest(metadata, state.best, path))
    return std::move(error);
  if (Error error = readFrozen(metadata, state.frozen, path))
    return std::move(error);
  for (const auto &[key, value] : metadata)
    if (StringRef(key).starts_with(optionPrefix))
      state.options[key.substr(StringRef(optionPrefix).size())] = value;
  return state;
}

Expected<OpenCheckpoint> openCheckpoint(StringRef path) {
  auto tensors = StoredTensors::open(path);
  if (!tensors)
    return tensors.takeError();
  auto state = parseState(tensors->metadata(), path);
  if (!state)
    return state.takeError();
  return OpenCheckpoint{std::move(*tensors), std::move(*state)};
}

Expected<Checkpoint> readCheckpoint(StringRef path) {
  auto opened = openCheckpoint(path);
  if (!opened)
    return opened.takeError();
  auto tensors = opened->tensors.readAll();
  if (!tensors)
    return tensors.takeError();
  return Checkpoint{std::move(*tensors), std::move(opened->state)};
}

/// Prints the first ten names, then a count, so that long lists stay readable.
static std::string nameList(ArrayRef<std::string> names) {
  std::string text;
  for (const std::string &name : names.take_front(10))
    text += (text.empty() ? "" : ", ") + name;
  if (names.size() > 10)
    text += " and " + std::to_string(names.size() - 10) + " more";
  return text;
}

Error checkTensors(ArrayRef<TensorSpec> tensors, ArrayRef<TensorSpec> expected,
                   StringRef what) {
  Error errors = Error::success();
  auto report = [&](const Twine &message) {
    errors = joinErrors(std::move(errors), inputError(what + ": " + message));
  };
  std::vector<std::string> missing, unknown;
  StringMap<const TensorSpec *> given, known;
  for (const TensorSpec &spec : tensors)
    given[spec.name] = &spec;
  auto typeString = [](const TensorSpec &spec) {
    return std::string(dtypeName(spec.dtype)) + " " + shapeString(spec.shape);
  };
  for (const TensorSpec &spec : expected) {
    known[spec.name] = &spec;
    const TensorSpec *tensor = given.lookup(spec.name);
    if (!tensor)
      missing.push_back(spec.name);
    else if (tensor->dtype != spec.dtype || tensor->shape != spec.shape)
      report("tensor '" + spec.name + "' is " + typeString(*tensor) +
             ", the model needs " + typeString(spec));
  }
  for (const TensorSpec &spec : tensors)
    if (!known.contains(spec.name))
      unknown.push_back(spec.name);
  if (!missing.empty())
    report("missing tensors: " + nameList(missing));
  if (!unknown.empty())
    report("tensors that the model does not have: " + nameList(unknown));
  return errors;
}

/// What an option is called: a setting, or what else a run depends on.
static MessageText optionName(StringRef key) {
  static const StringMap<MessageText> others = {
      {"schedule", Setting("lr-schedule")},
      {"dims", Setting("dim")},
      {"cpu", "the processor and the level of optimization"},
      {"data", "the data"},
      {"steps-before", "the number of updates outside of its epochs"},
      {"stop-asked", "whether a signal stops the run"},
      {"lr-file", "the sum of the file of " + Setting("lr-schedule")}};
  if (auto found = others.find(key); found != others.end())
    return found->second;
  auto [name, number] = key.split(' '); // "group 1"
  std::string flag = name.str();        // hyperparameters: weight_decay
  std::replace(flag.begin(), flag.end(), '_', '-');
  MessageText text = Setting::ofFlag(flag);
  return number.empty() ? text : text + " " + number;
}

/// Doubles were written with all their digits: "0.10000000000000001".
static std::string optionValue(StringRef text) {
  double value = 0;
  text = text.rtrim();
  if (!text.contains('.') || !flag::parseReal(text, value))
    return inQuotes(text);
  return inQuotes(llvm::to_string(Real(value)));
}

std::vector<OptionDifference> compareOptions(const StringMetadata &saved,
                                             const StringMetadata &current) {
  std::vector<OptionDifference> result;
  StringMetadata all = current;
  all.insert(saved.begin(), saved.end());
  auto valueIn = [](const StringMetadata &options, const std::string &key) {
    auto found = options.find(key);
    return found == options.end() ? "not set" : optionValue(found->second);
  };
  for (const auto &[key, value] : all) {
    auto was = saved.find(key), is = current.find(key);
    if (was == saved.end() || is == current.end() || was->second != is->second)
      result.push_back(
          {optionName(key), valueIn(saved, key), valueIn(current, key)});
  }
  return result;
}

Error checkOptions(const StringMetadata &saved, const StringMetadata &current,
                   StringRef what) {
  Error errors = Error::success();
  for (const OptionDifference &option : compareOptions(saved, current))
    errors =
        joinErrors(std::move(errors),
                   inputError(what + ": " + option.name + " was " + option.was +
                              " when the run was saved, now "
                              "it is " +
                              option.is));
  return errors;
}

} // namespace ckopt
