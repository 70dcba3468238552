//===- Optimizers.h - optimizers and their hyperparameters ------*- C++ -*-===//
//
// Which optimizers there are, what each of them can be told, and PyTorch's
// defaults. The formulas are in lib/Autodiff/Optimizers.cpp; flags, groups of
// parameters, checkpoints and the pass `optimizer` read this table.
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

/// Hyperparameters by name; those that are not there have their default.
using HyperValues = std::map<std::string, double>;

/// What an optimizer can be told. A switch is 0 or 1.
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
/// Null: there is none of that name.
const OptimizerKind *findOptimizer(llvm::StringRef name);
/// "sgd, adam, ..."
std::string optimizerNames();
/// Names of all hyperparameters of all optimizers, once each.
std::vector<std::string> allHyperParameters();
/// Whether it is a switch.
bool isSwitch(llvm::StringRef hyperParameter);

/// The value, or the default.
double hyperValue(const OptimizerKind &kind, const HyperValues &values,
                  llvm::StringRef name);
/// What is wrong with the values: names that the optimizer does not have,
/// numbers outside of their range, combinations that mean nothing.
llvm::Error checkHyperValues(const OptimizerKind &kind,
                             const HyperValues &values);

/// Parameters with settings of their own.
struct ParameterGroup {
  std::string text;    ///< as given
  std::string pattern; ///< POSIX extended, found anywhere in the name
  HyperValues values;
  std::optional<double> learningRate; ///< at the schedule's factor 1
};

/// "norm|bias:weight_decay=0,lr=1e-4". The last colon separates; names as in
/// PyTorch: `eps` is epsilon, `betas=(a,b)` is beta1 and beta2. A usage error
/// says what cannot be read, or what `kind` does not have.
llvm::Expected<ParameterGroup> parseParameterGroup(llvm::StringRef text,
                                                   const OptimizerKind &kind);

} // namespace ckopt

#endif // CKOPT_SUPPORT_OPTIMIZERS_H
