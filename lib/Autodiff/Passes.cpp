//===- Passes.cpp - the passes over what Autodiff.h offers ----------------===//
#include "ckopt/Autodiff/Passes.h"
#include "ckopt/Autodiff/Autodiff.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"
#include "ckopt/Support/Error.h"
#include "mlir/IR/BuiltinOps.h"
#include <cmath>

namespace ckopt {
#define GEN_PASS_DEF_ATTACHLOSSPASS
#define GEN_PASS_DEF_AUTODIFFPASS
#define GEN_PASS_DEF_OPTIMIZERPASS
#include "ckopt/Autodiff/Passes.h.inc"
} // namespace ckopt

using namespace mlir;
using namespace ckopt;
using namespace ckopt::autodiff;

/// The function of that name, or an error that lists those there are.
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
  void runOnOperation() override {
    func::FuncOp found = findFunction(getOperation(), function);
    if (!found)
      return signalPassFailure();
    LossOptions options;
    auto terms = parseLoss(loss);
    if (!terms) {
      found.emitError(takeErrorText(terms.takeError()).text);
      return signalPassFailure();
    }
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
    if (classAxis != INT64_MIN)
      options.classAxis = classAxis;
    if (failed(attachLoss(found, options)))
      signalPassFailure();
  }
};

struct Autodiff : ckopt::impl::AutodiffPassBase<Autodiff> {
  using AutodiffPassBase::AutodiffPassBase;
  void runOnOperation() override {
    func::FuncOp found = findFunction(getOperation(), function);
    AutodiffOptions options;
    options.wrt.assign(wrt.begin(), wrt.end());
    options.result = result;
    if (!found || failed(differentiate(found, options)))
      signalPassFailure();
  }
};

struct Optimizer : ckopt::impl::OptimizerPassBase<Optimizer> {
  using OptimizerPassBase::OptimizerPassBase;
  void runOnOperation() override {
    func::FuncOp found = findFunction(getOperation(), function);
    if (!found)
      return signalPassFailure();
    OptimizerOptions options;
    options.kind = type;
    // Only what was given, since each kind has its own defaults. A pipeline
    // that was printed holds all options: NaN and false stand for those that
    // were not given.
    auto take = [&](auto &option) {
      std::string name = option.getArgStr().str();
      llvm::replace(name, '-', '_');
      options.values[name] = double(option.getValue());
    };
    for (Option<double> *option :
         {&momentum, &dampening, &beta1, &beta2, &epsilon, &weightDecay, &alpha,
          &rho, &lrDecay, &initialAccumulatorValue, &momentumDecay})
      if (!std::isnan(option->getValue()))
        take(*option);
    for (Option<bool> *option :
         {&nesterov, &amsgrad, &centered, &decoupledWeightDecay})
      if (option->getValue())
        take(*option);
    options.clipNorm = clipNorm;
    options.accumulate = accumulate;
    options.ema = ema;
    if (failed(addOptimizer(found, options)))
      signalPassFailure();
  }
};
} // namespace
