//===- Passes.cpp - the passes of Losses ----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Losses/Passes.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Dialect/Ckopt/Utils/SettingDiagnostic.h"
#include "ckopt/Support/Error.h"
#include "mlir/IR/BuiltinOps.h"

namespace ckopt {
#define GEN_PASS_DEF_ATTACHLOSSPASS
#define GEN_PASS_DEF_RANKLABELSPASS
#include "ckopt/Losses/Passes.h.inc"
} // namespace ckopt

using namespace mlir;
using namespace ckopt;

namespace {
struct AttachLoss : ckopt::impl::AttachLossPassBase<AttachLoss> {
  using AttachLossPassBase::AttachLossPassBase;
  AttachLoss(const LossOptions &options, StringRef name) : typed(options) {
    function = name.str();
    loss = formatLoss(options.terms);
    target = options.target;
    ignoreIndex = options.ignoreIndex;
    reduction = nameOf(options.reduction).str();
    labelSmoothing = options.labelSmoothing;
    auto list = [](ListOption<Real> &option,
                   const std::vector<double> &values) {
      if (!values.empty())
        option = llvm::to_vector_of<Real>(values);
    };
    list(classWeights, options.classWeights);
    list(posWeight, options.posWeight);
    beta = options.beta;
    delta = options.delta;
    margin = options.margin;
    softTargets = options.softTargets;
    ranks = options.ranks;
    if (options.classAxis)
      classAxis = *options.classAxis;
  }

  void runOnOperation() override {
    func::FuncOp found = findFunction(getOperation(), function);
    if (!found)
      return signalPassFailure();
    llvm::Expected<LossOptions> options = typed ? *typed : parse();
    if (!options) {
      found.emitError() << takeErrorText(options.takeError()).message;
      return signalPassFailure();
    }
    if (failed(attachLoss(found, *options)))
      signalPassFailure();
  }

private:
  /// Parses the textual options.
  llvm::Expected<LossOptions> parse() {
    LossOptions options;
    auto terms = parseLoss(loss);
    if (!terms)
      return terms.takeError();
    options.terms = std::move(*terms);
    options.target = target;
    options.ignoreIndex = ignoreIndex;
    auto kind = parseChoice<Reduction>(reduction);
    if (!kind)
      return usageError("unknown reduction '" + reduction + "'; expected " +
                        listChoices(choiceNames(Reduction())));
    options.reduction = *kind;
    options.labelSmoothing = labelSmoothing;
    options.classWeights.assign(classWeights.begin(), classWeights.end());
    options.posWeight.assign(posWeight.begin(), posWeight.end());
    options.beta = beta;
    options.delta = delta;
    options.margin = margin;
    options.softTargets = softTargets;
    options.ranks = ranks;
    if (classAxis != INT64_MIN)
      options.classAxis = classAxis;
    return options;
  }

  std::optional<LossOptions> typed;
};

struct RankLabels : ckopt::impl::RankLabelsPassBase<RankLabels> {
  using RankLabelsPassBase::RankLabelsPassBase;

  void runOnOperation() override {
    func::FuncOp found = findFunction(getOperation(), function);
    if (!found)
      return signalPassFailure();
    LossOptions options;
    auto terms = parseLoss(loss);
    if (!terms) {
      found.emitError() << takeErrorText(terms.takeError()).message;
      return signalPassFailure();
    }
    options.terms = std::move(*terms);
    options.target = target;
    options.ignoreIndex = ignoreIndex;
    if (classAxis != INT64_MIN)
      options.classAxis = classAxis;
    if (failed(rankLabels(found, options, leastBytes)))
      signalPassFailure();
  }
};
} // namespace

std::unique_ptr<Pass> ckopt::createAttachLossPass(const LossOptions &options,
                                                  StringRef function) {
  return std::make_unique<AttachLoss>(options, function);
}
