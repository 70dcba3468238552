//===- TrainedWeights.cpp - who is trained, and how -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Applies --freeze, --train, --group and --freeze-norms to the weights of a
// model, matched by name after import: an expression that matches nothing is an
// error, and all effects are listed in the summary.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Autodiff/Autodiff.h"
#include "ckopt/Compiler/Compile.h"
#include "ckopt/Compiler/LossChoice.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Normalize/Normalize.h"
#include "ckopt/Optimizers/Optimizers.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/FlagTable.h"
#include "ckopt/Support/NameList.h"
#include "ckopt/Support/Report.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Regex.h"

using namespace mlir;
using namespace ckopt;

/// Reports patterns that match nothing, since a typing error would silently
/// train everything, or nothing. Also finds the running statistics of frozen
/// layers.
llvm::Error Compilation::checkTrained() {
  const std::string &freezeText = opts.import.freezeRegex,
                    &trainText = opts.import.trainRegex;
  if (freezeText.empty() && trainText.empty())
    return llvm::Error::success();
  llvm::Regex freeze("^(" + freezeText + ")$"), train("^(" + trainText + ")$");
  auto forward = module().lookupSymbol<func::FuncOp>("forward");
  std::vector<std::string> weights;
  bool frozen = freezeText.empty(), trained = trainText.empty();
  int64_t left = 0, numbers = 0;
  for (unsigned i = 0; forward && i < forward.getNumArguments(); ++i) {
    StringRef role = argumentRole(forward, i);
    std::string name = argumentName(forward, i);
    bool freezes = !freezeText.empty() && freeze.match(name);
    bool trains = trainText.empty() || train.match(name);
    if (role == roles::kState && (freezes || !trains))
      forward.setArgAttr(i, kFrozenAttr, UnitAttr::get(context.get()));
    if (role != roles::kParameter && role != roles::kFrozen)
      continue;
    weights.push_back(name);
    frozen |= freezes;
    if (role == roles::kParameter && freezes) { // an adapter's
      role = roles::kFrozen;
      forward.setArgAttr(i, attrs::kRole, StringAttr::get(context.get(), role));
    }
    trained |= trains && !trainText.empty();
    if (role == roles::kParameter) {
      ++left;
      numbers += cast<RankedTensorType>(forward.getArgument(i).getType())
                     .getNumElements();
    }
  }
  auto noMatch = [&](const Setting &pattern) {
    return inputError(pattern + " matches no weight of '" + opts.model +
                      "' (the whole name has to match, as in '.*weight'); "
                      "its weights: " +
                      listNames(weights));
  };
  if (!frozen)
    return noMatch(Setting("freeze", inQuotes(freezeText)));
  if (!trained)
    return noMatch(Setting("train", inQuotes(trainText)));
  if (!left && !trainText.empty() && !freezeText.empty())
    return inputError(
        "nothing is left to train: " + Setting("freeze", inQuotes(freezeText)) +
        " matches all that " + Setting("train", inQuotes(trainText)) +
        " does, and wins");
  trainedLines.push_back("trained: " + std::to_string(left) + " of " +
                         std::to_string(weights.size()) + " weights, " +
                         groupDigits(numbers) + " numbers");
  return llvm::Error::success();
}

/// Names what is trained though it may be a buffer: a form of export that does
/// not tell leaves the choice to the user.
void Compilation::noteUnclear() const {
  auto forward = module().lookupSymbol<func::FuncOp>("forward");
  if (!forward || opts.step.forwardOnly || opts.lost == LostParameters::Ignore)
    return;
  std::vector<std::string> names;
  std::string pattern;
  for (unsigned i = 0; i < forward.getNumArguments(); ++i) {
    std::string name = argumentName(forward, i);
    if (argumentRole(forward, i) != roles::kParameter ||
        !llvm::is_contained(imported.diagnosis.unclear, name))
      continue;
    names.push_back(name);
    pattern += (pattern.empty() ? "" : "|") + llvm::Regex::escape(name);
  }
  if (!names.empty())
    remark("trained, if they are no buffers, which this form of export does "
           "not tell: " +
           listNames(names, opts.import.namesInRemarks) + "; " +
           Setting("freeze", inQuotes(pattern)) + " keeps them as they are");
}

/// Returns settings like "weight_decay 0, lr 0.0001".
static std::string settingsText(const ParameterGroup &group) {
  std::string text;
  auto add = [&](StringRef name, double value) {
    text += ((text.empty() ? "" : ", ") + name + " ").str() +
            flag::limitText(value);
  };
  for (const auto &[name, value] : group.values)
    add(name, value);
  if (group.learningRate)
    add("lr", *group.learningRate);
  return text;
}

/// Sets the groups' settings as attributes of parameters, which the optimizer
/// reads.
llvm::Error Compilation::applyGroups() {
  auto forward = module().lookupSymbol<func::FuncOp>("forward");
  if (opts.groups.empty() || !forward)
    return llvm::Error::success();
  struct Members {
    int64_t count = 0, numbers = 0, taken = 0, frozen = 0;
  };
  std::vector<Members> members(opts.groups.size());
  std::vector<std::string> names;
  Builder b(context.get());
  for (unsigned i = 0; i < forward.getNumArguments(); ++i) {
    bool isTrained = argumentRole(forward, i) == roles::kParameter;
    if (!isTrained && argumentRole(forward, i) != roles::kFrozen)
      continue;
    std::string name = argumentName(forward, i);
    names.push_back(name);
    bool found = false;
    for (auto [group, in] : llvm::zip_equal(opts.groups, members)) {
      if (!llvm::Regex(group.pattern).match(name))
        continue;
      if (!isTrained || found) {
        ++(isTrained ? in.taken : in.frozen);
        continue;
      }
      found = true;
      ++in.count;
      in.numbers += cast<RankedTensorType>(forward.getArgument(i).getType())
                        .getNumElements();
      NamedAttrList settings;
      for (const auto &[key, value] : group.values)
        settings.set(key, b.getF64FloatAttr(value));
      if (group.learningRate)
        settings.set("lr_scale", b.getF64FloatAttr(*group.learningRate /
                                                   opts.learningRate));
      forward.setArgAttr(i, kOptimizerAttr,
                         settings.getDictionary(context.get()));
    }
  }
  for (auto [group, in] : llvm::zip_equal(opts.groups, members)) {
    MessageText what = Setting("group", inQuotes(group.text)) + " matches ";
    if (!in.count && in.taken)
      return inputError(what + "only weights that an earlier group has: the "
                               "first match counts");
    if (!in.count && in.frozen)
      return inputError(what + "only frozen weights");
    if (!in.count)
      return inputError(what + "no weight of '" + opts.model +
                        "'; its weights: " + listNames(names));
    trainedLines.push_back("group '" + group.pattern +
                           "': " + std::to_string(in.count) + " weights, " +
                           groupDigits(in.numbers) +
                           " numbers: " + settingsText(group));
  }
  return llvm::Error::success();
}

/// Says if --freeze-norms finds no norms, since users would assume that it did.
llvm::Error Compilation::noteFrozenNorms() {
  auto forward = module().lookupSymbol<func::FuncOp>("forward");
  if (!opts.step.freezeNorms || !forward)
    return llvm::Error::success();
  size_t frozen = findFrozenNorms(forward).size(), all = 0;
  forward.walk([&](BatchNormOp) { ++all; });
  if (!frozen)
    return inputError(Setting("freeze-norms") +
                      " finds no batch norm whose weights are frozen, of " +
                      std::to_string(all) + " in '" + opts.model +
                      "': freeze some (" + Setting("freeze") + ", " +
                      Setting("train") + "), or leave it out");
  trainedLines.push_back(std::to_string(frozen) + " of " + std::to_string(all) +
                         " batch norms use and keep their running statistics");
  return llvm::Error::success();
}

bool ckopt::isWeightFolder(llvm::StringRef path) {
  return path.ends_with("/") || llvm::sys::fs::is_directory(path);
}

llvm::Error ckopt::checkWeightsPath(llvm::StringRef path,
                                    const llvm::Twine &what) {
  if (path.ends_with(".onnx") || path.ends_with(".safetensors") ||
      isWeightFolder(path))
    return llvm::Error::success();
  return usageError(what +
                    " must end in .onnx or .safetensors, or be a folder "
                    "('NAME/', or one that exists), got '" +
                    path + "'");
}

llvm::Error Compilation::checkGoesBack(llvm::StringRef path) const {
  if (opts.lora.rank && path.ends_with(".onnx"))
    return usageError("'" + path +
                      "': adapters are written to .safetensors; `ckopt merge` "
                      "puts them into the model's file");
  const auto &partial = imported.diagnosis.partial;
  if (opts.lora.rank || partial.empty() || path.ends_with(".onnx"))
    return llvm::Error::success();
  std::string names;
  for (const std::string &name : partial)
    names += (names.empty() ? "'" : ", '") + name + "'";
  return inputError("'" + path + "': of " + names + " the file '" + opts.model +
                    "' holds only the entries that the model reads, so that "
                    "the module cannot load them; write .onnx, or export with "
                    "optimize=False");
}
