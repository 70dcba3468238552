//===- Checkpoint.cpp - a training run on disk ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads and writes checkpoints as safetensors. Its metadata are strings:
// numbers are written in decimal, under "ckopt.*", options under "option.*".
// O(bytes).
//
//===----------------------------------------------------------------------===//
#include "ckopt/Training/Checkpoint.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/FlagTable.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace ckopt {

static constexpr const char *formatKey = "ckopt.format";
static constexpr const char *formatName = "checkpoint-1";
static constexpr const char *optionPrefix = "option.";
/// Metric, value, step and evaluations since, with blanks between; may be
/// missing.
static constexpr const char *bestKey = "ckopt.best";

Error writeCheckpoint(StringRef path, const Checkpoint &checkpoint) {
  const TrainingState &state = checkpoint.state;
  StringMetadata metadata;
  metadata[formatKey] = formatName;
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
  return writeSafetensors(path, checkpoint.tensors, metadata);
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

Expected<Checkpoint> readCheckpoint(StringRef path) {
  Expected<SafetensorsFile> file = readSafetensors(path);
  if (!file)
    return file.takeError();
  auto format = file->metadata.find(formatKey);
  if (format == file->metadata.end())
    return inputError(path +
                      ": weights, but not a checkpoint of a training "
                      "run (there is no '" +
                      formatKey + "' in its metadata)");
  if (format->second != formatName)
    return inputError(path + ": a checkpoint of format '" + format->second +
                      "', this ckopt reads '" + formatName + "'");
  Checkpoint result;
  TrainingState &state = result.state;
  if (Error error = readNumber(file->metadata, "ckopt.step", state.step, path))
    return std::move(error);
  if (Error error =
          readNumber(file->metadata, "ckopt.epoch", state.data.epoch, path))
    return std::move(error);
  if (Error error = readNumber(file->metadata, "ckopt.position",
                               state.data.position, path))
    return std::move(error);
  if (Error error = readNumber(file->metadata, "ckopt.seed", state.seed, path))
    return std::move(error);
  if (Error error = readBest(file->metadata, state.best, path))
    return std::move(error);
  for (const auto &[key, value] : file->metadata)
    if (StringRef(key).starts_with(optionPrefix))
      state.options[key.substr(StringRef(optionPrefix).size())] = value;
  result.tensors = std::move(file->tensors);
  return result;
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

Error checkTensors(const TensorMap &tensors, ArrayRef<TensorSpec> expected,
                   StringRef what) {
  Error errors = Error::success();
  auto report = [&](const Twine &message) {
    errors = joinErrors(std::move(errors), inputError(what + ": " + message));
  };
  std::vector<std::string> missing, unknown;
  StringMap<bool> known;
  for (const TensorSpec &spec : expected) {
    known[spec.name] = true;
    const HostTensor *tensor = tensors.find(spec.name);
    if (!tensor)
      missing.push_back(spec.name);
    else if (tensor->dtype() != spec.dtype ||
             tensor->shape() != ArrayRef<int64_t>(spec.shape))
      report("tensor '" + spec.name + "' is " + tensor->typeString() +
             ", the model needs " + dtypeName(spec.dtype) + " " +
             shapeString(spec.shape));
  }
  for (const auto &entry : tensors)
    if (!known.contains(entry.first))
      unknown.push_back(entry.first);
  if (!missing.empty())
    report("missing tensors: " + nameList(missing));
  if (!unknown.empty())
    report("tensors that the model does not have: " + nameList(unknown));
  return errors;
}

Error checkOptions(const StringMetadata &saved, const StringMetadata &current,
                   StringRef what) {
  Error errors = Error::success();
  auto report = [&](StringRef key, const Twine &was, const Twine &is) {
    errors = joinErrors(std::move(errors),
                        inputError(what + ": option '" + key + "' was " + was +
                                   " when the run was saved, now it is " + is));
  };
  for (const auto &[key, value] : current) {
    auto it = saved.find(key);
    if (it == saved.end())
      report(key, "not set", "'" + value + "'");
    else if (it->second != value)
      report(key, "'" + it->second + "'", "'" + value + "'");
  }
  for (const auto &[key, value] : saved)
    if (!current.count(key))
      report(key, "'" + value + "'", "not set");
  return errors;
}

} // namespace ckopt
