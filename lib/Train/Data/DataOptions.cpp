//===- DataOptions.cpp - files and arrays that options name ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Train/Data/DataOptions.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Train/Data/ArrayStream.h"

using namespace ckopt;

llvm::Expected<std::string> ckopt::targetArrayOf(const DataOptions &options,
                                                 llvm::StringRef output) {
  if (options.targets.find('=') == std::string::npos)
    return options.targets.empty() ? options.usualTargets() : options.targets;
  auto mappings = parseArrayMappings(options.targets, Setting("targets"));
  if (!mappings)
    return mappings.takeError();
  std::string known;
  for (const ArrayMapping &mapping : *mappings) {
    if (mapping.name == output)
      return mapping.array;
    known += (known.empty() ? "'" : ", '") + mapping.name + "'";
  }
  return usageError(Setting("targets") + " names no array for output '" +
                    output + "', but for " + known);
}

llvm::Expected<std::vector<ArrayMapping>>
ckopt::inputMappings(const DataOptions &options) {
  if (options.inputs.empty())
    return std::vector<ArrayMapping>();
  return parseArrayMappings(options.inputs, Setting("inputs"));
}

std::string ckopt::arrayOf(llvm::StringRef tensor,
                           llvm::ArrayRef<ArrayMapping> mappings,
                           llvm::StringRef usual) {
  for (const ArrayMapping &mapping : mappings)
    if (mapping.name == tensor)
      return mapping.array;
  return usual.str();
}

bool ckopt::takesTokens(llvm::StringRef array) {
  return array == "tokens" || array == "next";
}

llvm::Error ckopt::checkSequence(llvm::StringRef input,
                                 llvm::ArrayRef<int64_t> shape,
                                 const DataOptions &options) {
  if (options.tokens.empty() || shape.size() < 2)
    return llvm::Error::success();
  int64_t takes = shape[1];
  if (shape.size() == 2 && takes == options.sequence)
    return llvm::Error::success();
  MessageText text = options.tokens + ": samples have " +
                     std::to_string(options.sequence) + " tokens, and '" +
                     input.str() + "' takes " + shapeString(shape.drop_front());
  if (shape.size() == 2)
    text += " a sample: give " + Setting("sequence", std::to_string(takes));
  else
    text += " a sample, which is no row of tokens";
  return inputError(text);
}

llvm::Expected<std::vector<ArrayFile>>
ckopt::openFiles(const DataOptions &options) {
  if (options.isStream())
    return usageError("standard input is for training alone: it can be read "
                      "but once");
  bool isText = !options.tokens.empty();
  auto names = listFiles(isText ? options.tokens : options.path);
  if (!names)
    return names.takeError();
  std::vector<ArrayFile> files;
  llvm::Error errors = llvm::Error::success();
  for (const std::string &name : *names) {
    auto file = isText
                    ? openTokenFile(name, options.tokenType, options.sequence)
                    : openArrayFile(name, options.cache);
    if (file)
      files.push_back(std::move(*file));
    else
      errors = joinErrors(std::move(errors), file.takeError());
  }
  if (errors)
    return std::move(errors);
  return std::move(files);
}

bool ckopt::classifies(const StepData &options) {
  return options.loss == HostLoss::CrossEntropy ||
         (options.loss == HostLoss::None && options.classify);
}
