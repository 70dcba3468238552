//===- Optimizers.cpp - optimizers and their hyperparameters --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/Optimizers.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/FlagTable.h"
#include "ckopt/Support/Report.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Regex.h"

#include <algorithm>
#include <cmath>

using namespace llvm;

namespace ckopt {

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

ArrayRef<OptimizerKind> optimizerKinds() {
  static const std::vector<OptimizerKind> kinds = {
      {"sgd",
       1e-3,
       {{"momentum", 0},
        {"dampening", 0},
        {"weight_decay", 0},
        {"nesterov", 0}}},
      {"adam",
       1e-3,
       {{"beta1", 0.9},
        {"beta2", 0.999},
        {"epsilon", 1e-8},
        {"weight_decay", 0},
        {"amsgrad", 0}}},
      {"adamw",
       1e-3,
       {{"beta1", 0.9},
        {"beta2", 0.999},
        {"epsilon", 1e-8},
        {"weight_decay", 0.01},
        {"amsgrad", 0}}},
      {"rmsprop",
       1e-2,
       {{"alpha", 0.99},
        {"epsilon", 1e-8},
        {"weight_decay", 0},
        {"momentum", 0},
        {"centered", 0}}},
      {"adagrad",
       1e-2,
       {{"lr_decay", 0},
        {"weight_decay", 0},
        {"initial_accumulator_value", 0},
        {"epsilon", 1e-10}}},
      {"adadelta", 1.0, {{"rho", 0.9}, {"epsilon", 1e-6}, {"weight_decay", 0}}},
      {"adamax",
       2e-3,
       {{"beta1", 0.9},
        {"beta2", 0.999},
        {"epsilon", 1e-8},
        {"weight_decay", 0}}},
      {"nadam",
       2e-3,
       {{"beta1", 0.9},
        {"beta2", 0.999},
        {"epsilon", 1e-8},
        {"weight_decay", 0},
        {"momentum_decay", 4e-3},
        {"decoupled_weight_decay", 0}}},
      {"radam",
       1e-3,
       {{"beta1", 0.9},
        {"beta2", 0.999},
        {"epsilon", 1e-8},
        {"weight_decay", 0},
        {"decoupled_weight_decay", 0}}},
      {"lion", 1e-4, {{"beta1", 0.9}, {"beta2", 0.99}, {"weight_decay", 0}}},
  };
  return kinds;
}

const OptimizerKind *findOptimizer(StringRef name) {
  for (const OptimizerKind &kind : optimizerKinds())
    if (kind.name == name)
      return &kind;
  return nullptr;
}

std::string optimizerNames() {
  std::string text;
  for (const OptimizerKind &kind : optimizerKinds())
    text += (text.empty() ? "" : ", ") + std::string(kind.name);
  return text;
}

const HyperParameter *OptimizerKind::find(StringRef parameter) const {
  for (const HyperParameter &one : parameters)
    if (one.name == parameter)
      return &one;
  return nullptr;
}

std::string OptimizerKind::parameterNames() const {
  std::string text;
  for (const HyperParameter &one : parameters)
    text += (text.empty() ? "" : ", ") + std::string(one.name);
  return text;
}

std::string flagOf(StringRef parameter) {
  std::string name = parameter.str();
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

std::vector<std::string> allHyperParameters() {
  std::vector<std::string> names;
  for (const OptimizerKind &kind : optimizerKinds())
    for (const HyperParameter &one : kind.parameters)
      if (!is_contained(names, one.name))
        names.push_back(one.name);
  return names;
}

bool isSwitch(StringRef name) {
  return StringSwitch<bool>(name)
      .Cases({"nesterov", "amsgrad", "centered", "decoupled_weight_decay"},
             true)
      .Default(false);
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

double hyperValue(const OptimizerKind &kind, const HyperValues &values,
                  StringRef name) {
  if (auto found = values.find(name.str()); found != values.end())
    return found->second;
  const HyperParameter *parameter = kind.find(name);
  return parameter ? parameter->value : 0;
}

double learningRateOr(double rate, StringRef optimizer) {
  const OptimizerKind *kind = findOptimizer(optimizer);
  return !std::isnan(rate) ? rate : kind ? kind->learningRate : 0;
}

/// Whether the number is a share, below 1.
static bool isShare(StringRef name) {
  return StringSwitch<bool>(name)
      .Cases({"beta1", "beta2"}, true)
      .Default(false);
}

Error checkHyperValues(const OptimizerKind &kind, const HyperValues &values) {
  for (const auto &[name, value] : values) {
    if (!kind.find(name))
      return usageError(Twine(kind.name) + " has no '" + name +
                        "'; it has: " + kind.parameterNames());
    if (!(value >= 0) || !std::isfinite(value))
      return usageError(name + " must not be negative, got " +
                        formatNumber(value));
    if (isShare(name) && value >= 1)
      return usageError(name + " must lie in [0, 1), got " +
                        formatNumber(value));
    if (name == "rho" && value > 1)
      return usageError("rho must lie in [0, 1], got " + formatNumber(value));
    if (isSwitch(name) && value != 0 && value != 1)
      return usageError(name + " is a switch, 0 or 1, got " +
                        formatNumber(value));
  }
  if (hyperValue(kind, values, "nesterov") != 0 &&
      (hyperValue(kind, values, "momentum") <= 0 ||
       hyperValue(kind, values, "dampening") != 0))
    return usageError("nesterov needs a momentum above 0 and no dampening");
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

/// Splits at commas outside of parentheses.
static SmallVector<StringRef> splitSettings(StringRef text) {
  SmallVector<StringRef> parts;
  size_t start = 0;
  int depth = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size())
      depth += (text[i] == '(') - (text[i] == ')');
    if (i == text.size() || (text[i] == ',' && depth == 0)) {
      parts.push_back(text.slice(start, i).trim());
      start = i + 1;
    }
  }
  return parts;
}

static Error setOne(ParameterGroup &group, StringRef name, StringRef text) {
  bool isTrue = text.equals_insensitive("true");
  double value = isTrue ? 1 : 0;
  bool word = isSwitch(name) && (isTrue || text.equals_insensitive("false"));
  if (!word && !flag::parseReal(text, value))
    return usageError(Setting("group", inQuotes(group.text)) + ": '" + text +
                      "' is no number for " + name);
  if (name == "lr") {
    if (value < 0)
      return usageError(Setting("group", inQuotes(group.text)) +
                        ": lr must not be negative");
    group.learningRate = value;
    return Error::success();
  }
  std::string key = name == "eps" ? "epsilon" : name.str();
  std::replace(key.begin(), key.end(), '-', '_');
  group.values[key] = value;
  return Error::success();
}

Expected<ParameterGroup> parseParameterGroup(StringRef text,
                                             const OptimizerKind &kind) {
  ParameterGroup group;
  group.text = text.str();
  auto [pattern, settings] = text.rsplit(':');
  if (pattern.empty() || settings.trim().empty())
    return usageError(Setting("group", inQuotes(text)) +
                      ": give REGEX:NAME=VALUE,..., as in "
                      "'norm|bias:weight_decay=0,lr=1e-4'");
  group.pattern = pattern.str();
  std::string problem;
  if (!Regex(group.pattern).isValid(problem))
    return usageError(Setting("group", inQuotes(text)) +
                      ": malformed regular expression '" + pattern +
                      "': " + problem);
  for (StringRef part : splitSettings(settings)) {
    auto [name, value] = part.split('=');
    name = name.trim();
    value = value.trim();
    if (name.empty() || value.empty())
      return usageError(Setting("group", inQuotes(text)) + ": '" + part +
                        "' is no NAME=VALUE");
    if (name == "betas") {
      if (!value.consume_front("(") || !value.consume_back(")"))
        return usageError(Setting("group", inQuotes(text)) +
                          ": betas are written betas=(0.9,0.999)");
      auto [first, second] = value.split(',');
      if (Error error = setOne(group, "beta1", first.trim()))
        return std::move(error);
      if (Error error = setOne(group, "beta2", second.trim()))
        return std::move(error);
      continue;
    }
    if (Error error = setOne(group, name, value))
      return std::move(error);
  }
  for (const auto &entry : group.values)
    if (!kind.find(entry.first))
      return usageError(Setting("group", inQuotes(text)) + ": " + kind.name +
                        " has no '" + entry.first + "'; it has: lr, " +
                        kind.parameterNames());
  return group;
}

} // namespace ckopt
