//===- Passes.cpp - the passes over what Autodiff.h offers ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Autodiff/Passes.h"
#include "ckopt/Autodiff/Autodiff.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"
#include "ckopt/Dialect/Ckopt/Utils/WholeBatch.h"
#include "ckopt/Support/Error.h"
#include "mlir/IR/BuiltinOps.h"
#include <cmath>

namespace ckopt {
#define GEN_PASS_DEF_ATTACHLOSSPASS
#define GEN_PASS_DEF_AUTODIFFPASS
#define GEN_PASS_DEF_DISTRIBUTEPASS
#define GEN_PASS_DEF_OPTIMIZERPASS
#define GEN_PASS_DEF_SETTLEBATCHNUMBERSPASS
#define GEN_PASS_DEF_SHARELOSSPASS
#include "ckopt/Autodiff/Passes.h.inc"
} // namespace ckopt

using namespace mlir;
using namespace ckopt;
using namespace ckopt::autodiff;

/// Returns the function of that name, or an error that lists the functions of
/// the module.
static func::FuncOp findFunction(ModuleOp module, StringRef name) {
  if (auto function = module.lookupSymbol<func::FuncOp>(name))
    return function;
  std::string names;
  for (func::FuncOp function : module.getOps<func::FuncOp>())
    names += (names.empty() ? "@" : ", @") + function.getSymName().str();
  module.emitError("no function '")
      << name << "'; the module has " << (names.empty() ? "none" : names);
  return {};
}

namespace {
struct AttachLoss : ckopt::impl::AttachLossPassBase<AttachLoss> {
  using AttachLossPassBase::AttachLossPassBase;
  AttachLoss(const LossOptions &options, StringRef name) : typed(options) {
    function = name.str();
    loss = formatLoss(options.terms);
    target = options.target;
    ignoreIndex = options.ignoreIndex;
    reduction = options.reduction;
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
      found.emitError(takeErrorText(options.takeError()).text);
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
    options.reduction = reduction;
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

struct Autodiff : ckopt::impl::AutodiffPassBase<Autodiff> {
  using AutodiffPassBase::AutodiffPassBase;
  void runOnOperation() override {
    func::FuncOp found = findFunction(getOperation(), function);
    AutodiffOptions options;
    options.wrt.assign(wrt.begin(), wrt.end());
    options.result = result;
    options.lossScale = lossScale;
    options.lossScaleState = lossScaleState;
    if (!found || failed(differentiate(found, options)))
      signalPassFailure();
  }
};

struct Distribute : ckopt::impl::DistributePassBase<Distribute> {
  using DistributePassBase::DistributePassBase;
  void runOnOperation() override {
    func::FuncOp found = findFunction(getOperation(), function);
    DistributeOptions options;
    options.ranks = ranks;
    options.shards = shards;
    options.bucketBytes = bucketBytes;
    options.syncNorms = syncNorms;
    if (!found || failed(distribute(found, options)))
      signalPassFailure();
  }
};

struct SettleBatchNumbers
    : ckopt::impl::SettleBatchNumbersPassBase<SettleBatchNumbers> {
  using SettleBatchNumbersPassBase::SettleBatchNumbersPassBase;
  void runOnOperation() override {
    for (auto found : getOperation().getOps<func::FuncOp>())
      settleBatchNumbers(found, found.getName() != evaluation);
  }
};

struct ShareLoss : ckopt::impl::ShareLossPassBase<ShareLoss> {
  using ShareLossPassBase::ShareLossPassBase;
  void runOnOperation() override {
    func::FuncOp found = findFunction(getOperation(), function);
    if (!found || failed(shareLoss(found, ranks)))
      signalPassFailure();
  }
};

struct Optimizer : ckopt::impl::OptimizerPassBase<Optimizer> {
  using OptimizerPassBase::OptimizerPassBase;
  explicit Optimizer(const OptimizerOptions &options) {
    type = options.kind;
    forEachValue([&](StringRef name, auto &option) {
      if (auto given = options.values.find(name.str());
          given != options.values.end())
        option = given->second;
    });
    clipNorm = options.clipNorm;
    accumulate = options.accumulate;
    ema = options.ema;
    lossScaleGrowth = options.lossScaleGrowth;
  }

  void runOnOperation() override {
    func::FuncOp found = findFunction(getOperation(), function);
    if (!found)
      return signalPassFailure();
    OptimizerOptions options;
    options.kind = type;
    // Takes only the options that were given, since each kind has its own
    // defaults. A printed pipeline lists all options: there NaN and false stand
    // for those that were not given.
    forEachValue([&](StringRef name, auto &option) {
      double value = option.getValue();
      bool isGiven = isSwitch(name) ? value != 0 : !std::isnan(value);
      if (isGiven)
        options.values[name.str()] = value;
    });
    options.clipNorm = clipNorm;
    options.accumulate = accumulate;
    options.ema = ema;
    options.lossScaleGrowth = lossScaleGrowth;
    if (failed(addOptimizer(found, options)))
      signalPassFailure();
  }

private:
  /// Calls `take` for each hyperparameter, with its name in the optimizers'
  /// table.
  template <typename Take> void forEachValue(Take take) {
    auto each = [&](auto &option) {
      std::string name = option.getArgStr().str();
      llvm::replace(name, '-', '_');
      take(StringRef(name), option);
    };
    for (Option<Real> *option :
         {&momentum, &dampening, &beta1, &beta2, &epsilon, &weightDecay, &alpha,
          &rho, &lrDecay, &initialAccumulatorValue, &momentumDecay})
      each(*option);
    for (Option<bool> *option :
         {&nesterov, &amsgrad, &centered, &decoupledWeightDecay})
      each(*option);
  }
};
} // namespace

std::unique_ptr<Pass> ckopt::createAttachLossPass(const LossOptions &options,
                                                  StringRef function) {
  return std::make_unique<AttachLoss>(options, function);
}

std::unique_ptr<Pass>
ckopt::createOptimizerPass(const OptimizerOptions &options) {
  return std::make_unique<Optimizer>(options);
}
