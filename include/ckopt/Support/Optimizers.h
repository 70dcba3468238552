//===- Optimizers.h - optimizers and their hyperparameters ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table lists the optimizers, their hyperparameters, and PyTorch's
// defaults. The formulas are in lib/Transforms/Optimizers/Optimizers.cpp;
// flags, groups of parameters, checkpoints and the pass `optimizer` read this
// table.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_SUPPORT_OPTIMIZERS_H
#define CKOPT_SUPPORT_OPTIMIZERS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ckopt {

/// Hyperparameters by name; names that are missing have their default.
using HyperValues = std::map<std::string, double>;

/// A hyperparameter of an optimizer. A switch is 0 or 1.
struct HyperParameter {
  const char *name; ///< "weight_decay"
  double value;     ///< the default
};

struct OptimizerKind {
  const char *name; ///< "adamw"
  double learningRate;
  std::vector<HyperParameter> parameters;

  const HyperParameter *find(llvm::StringRef parameter) const;
  /// "momentum, dampening, ..."
  std::string parameterNames() const;
};

llvm::ArrayRef<OptimizerKind> optimizerKinds();
/// Finds an optimizer; null if there is none of that name.
const OptimizerKind *findOptimizer(llvm::StringRef name);
/// "sgd, adam, ..."
std::string optimizerNames();
/// Names of all hyperparameters of all optimizers, once each.
std::vector<std::string> allHyperParameters();
/// Turns "weight_decay" into the flag's name, "weight-decay".
std::string flagOf(llvm::StringRef parameter);
/// Tells whether a hyperparameter is a switch.
bool isSwitch(llvm::StringRef hyperParameter);

/// Returns the value of a hyperparameter, or its default.
double hyperValue(const OptimizerKind &kind, const HyperValues &values,
                  llvm::StringRef name);
/// Returns `rate`, or the optimizer's default if it is not a number (0 without
/// an optimizer).
double learningRateOr(double rate, llvm::StringRef optimizer);
/// Checks the values. The error lists names that the optimizer does not have,
/// numbers outside of their range, combinations that have no effect.
llvm::Error checkHyperValues(const OptimizerKind &kind,
                             const HyperValues &values);

/// A group of parameters with separate settings.
struct ParameterGroup {
  std::string text;    ///< as given
  std::string pattern; ///< POSIX extended, found anywhere in the name
  HyperValues values;
  std::optional<double> learningRate; ///< at the schedule's factor 1
};

/// Parses "norm|bias:weight_decay=0,lr=1e-4". The last colon separates the
/// pattern from the values; names are as in PyTorch: `eps` is epsilon,
/// `betas=(a,b)` is beta1 and beta2. A usage error says what cannot be read, or
/// what `kind` does not have.
llvm::Expected<ParameterGroup> parseParameterGroup(llvm::StringRef text,
                                                   const OptimizerKind &kind);

} // namespace ckopt

#endif // CKOPT_SUPPORT_OPTIMIZERS_H
