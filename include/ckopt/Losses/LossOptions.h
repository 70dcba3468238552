//===- LossOptions.h - options of losses ------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LOSSES_LOSSOPTIONS_H
#define CKOPT_LOSSES_LOSSOPTIONS_H

#include "ckopt/Support/Choice.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ckopt {

/// The kind of a term that is a scalar output of the model itself.
inline constexpr llvm::StringLiteral kOutputTerm = "output";

struct LossTerm {
  std::string kind = "cross_entropy";
  std::string output; ///< result name; empty: chosen by resolveLoss
  double weight = 1;

  bool attaches() const { return kind != kOutputTerm; }
};

/// Parses "cross_entropy" or "mse:depth*0.5+output:kl*1e-3". A `+` separates
/// terms only before the name of a loss, so that names of outputs may contain
/// one.
llvm::Expected<std::vector<LossTerm>> parseLoss(llvm::StringRef text);
/// Returns the text that parses to these terms.
std::string formatLoss(llvm::ArrayRef<LossTerm> terms);

/// How the values of all elements are reduced to one; only kl also has the mean
/// over samples of the sums.
enum class Reduction { Mean, Sum, BatchMean };
inline ChoiceNames choiceNames(Reduction) {
  static constexpr const char *names[] = {"mean", "sum", "batchmean"};
  return names;
}

/// Settings of attached losses; defaults as in PyTorch.
struct LossSettings {
  Reduction reduction = Reduction::Mean;
  std::optional<int64_t> classAxis; ///< negative: from the end
  int64_t ignoreIndex = -100;
  double labelSmoothing = 0;
  std::vector<double> classWeights; ///< one a class; empty: all 1
  std::vector<double> posWeight; ///< one, or one for each of the last dimension
  double beta = 1;               ///< smooth_l1
  double delta = 1;              ///< huber
  double margin = 1;             ///< hinge, hinge_embedding, multi_margin
  bool softTargets = false;      ///< cross_entropy: probabilities, no labels
};

/// A kind of attached loss: the settings that it reads and the targets it
/// takes.
struct LossKind {
  enum Setting : unsigned {
    ClassAxis = 1,
    IgnoreIndex = 2,
    LabelSmoothing = 4,
    ClassWeights = 8,
    PosWeight = 16,
    Beta = 32,
    Delta = 64,
    Margin = 128,
    SoftTargets = 256,
    BatchMean = 512,
  };
  llvm::StringRef name;
  unsigned settings; ///< the settings that it reads
  bool labels;       ///< targets are classes (of cross_entropy: by default)
};
llvm::ArrayRef<LossKind> lossKinds();
/// Finds a kind of loss; null if there is none of this name.
const LossKind *findLossKind(llvm::StringRef name);
/// Lists the names: "cross_entropy, nll, mse, ...".
std::string listLossKinds();

} // namespace ckopt

#endif // CKOPT_LOSSES_LOSSOPTIONS_H
