//===- Loss.h - the loss of a model -----------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A loss is a sum of terms with weights. A term is a scalar output of the model
// itself ("output") or a loss that is attached to an output and takes targets
// ("cross_entropy", "mse", ...), equal to PyTorch's in value and gradient.
// docs/losses.md describes all of them for users.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LOSSES_LOSS_H
#define CKOPT_LOSSES_LOSS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>
#include <vector>

namespace ckopt::autodiff {

/// Attribute of a target argument: the name of the output that it is for.
inline constexpr llvm::StringLiteral kTargetOfAttr = "ckopt.target_of";

/// The kind of a term that is a scalar output of the model itself.
inline constexpr llvm::StringLiteral kOutputTerm = "output";

struct LossTerm {
  std::string kind = "cross_entropy";
  std::string output; ///< result name; empty: by the rules of resolveLoss
  double weight = 1;

  bool attaches() const { return kind != kOutputTerm; }
};

/// Parses "cross_entropy" or "mse:depth*0.5+output:kl*1e-3". A `+` separates
/// terms only before the name of a loss, so that names of outputs may hold one.
llvm::Expected<std::vector<LossTerm>> parseLoss(llvm::StringRef text);
/// Returns the text that parses to these terms.
std::string formatLoss(llvm::ArrayRef<LossTerm> terms);

/// Numbers and choices of attached losses; defaults as in PyTorch.
struct LossSettings {
  std::string reduction = "mean";   ///< "mean", "sum"; of kl also "batchmean"
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

struct LossOptions : LossSettings {
  std::vector<LossTerm> terms{LossTerm()};
  /// Name of the new argument; a number follows if it is taken, and of several
  /// each has its output's name behind it ("target.depth").
  std::string target = "target";
  /// Processes that each compute the loss of their share of a batch: the result
  /// is this one's share of the batch's loss, and the shares add up to it.
  int64_t ranks = 1;
};

/// Fills in the outputs that the terms mean. `output` without a name means the
/// scalar named "loss"; else the only one that a loss operator made; else the
/// only scalar. A loss that is attached without a name takes the first float
/// output that is no scalar. Errors list the outputs. Where there
/// was a choice, `remark` names the chosen output and those without a part in
/// the loss.
llvm::Error resolveLoss(mlir::func::FuncOp function,
                        std::vector<LossTerm> &terms, std::string &remark);

/// Tells whether the model holds a loss: a float output that is one number (of
/// a batch of one only if it has no dimensions, is named "loss" or comes from a
/// loss operator, for it could be a prediction otherwise).
bool hasScalarOutput(mlir::func::FuncOp function);

/// Chooses the axis of the classes of scores of this shape where no targets are
/// known: 1, in rank 3 the last; an error where the shape of targets could be
/// that of either (or, for probabilities in rank 3, always).
llvm::Expected<int64_t> defaultClassAxis(llvm::ArrayRef<int64_t> shape,
                                         bool softTargets);

/// Makes the loss result 0, a scalar with role "loss", and appends the targets
/// that its terms take. Other results follow.
llvm::LogicalResult attachLoss(mlir::func::FuncOp function,
                               const LossOptions &options);

} // namespace ckopt::autodiff

#endif // CKOPT_LOSSES_LOSS_H
